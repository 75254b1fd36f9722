"""A page whose worker runs Python with the checkout's package, and can be told to meet faults."""

import io
import json
import textwrap
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.engines import Engine
from tools.project import Project
from tools.serve import CONTENT_SECURITY_POLICY, Override, StaticServer

HERE = Path(__file__).parent / "pages"

SETUP = """
import asyncio, json, time
import js
from pyodide.ffi import to_js
from py_memory.browser import export_raw, open_memory
from py_memory.errors import PyMemoryError
import stored

def answer(value):
    return "json:" + json.dumps(value)

async def outcome(awaitable):
    '''Give the code of the error, or `ok`.'''
    try:
        await awaitable
    except PyMemoryError as error:
        return error.code
    return "ok"

async def fragments(memory):
    return [one.content for one in await memory.timeline("u_1", order="oldest")]

async def same(memory):
    '''Whether what the connection shows is what is stored.'''
    shown = await memory._owner.run(lambda one: one.database.connection.serialize())
    return shown == await stored.image(NAME)

async def started():
    memory = await open_memory(NAME)
    session = await memory.start_session("u_1", session_id="s_1")
    return memory, session
"""

CLEAN = """
faults = js.faults
faults.delay = faults.invalid = faults.unopenable = faults.years = 0
faults.commits.length = faults.openings.length = 0
if "memory" in globals():
    await outcome(memory.close())
    del memory
"""

# A write meets faults: what is shown and stored then, after another write, and after opening again.
FAULTY = """
async def meets_faults(start, same):
    memory, session = await start()
    await session.remember("before")
    for fault in commits: js.faults.commits.push(fault)
    js.faults.invalid, js.faults.unopenable, js.faults.opened = invalid, unopenable, 0
    code = await outcome(session.remember("during"))
    left = [js.faults.commits.length, js.faults.invalid, js.faults.unopenable, js.faults.opened]
    shown, equal = await fragments(memory), await same(memory)
    after = await outcome(session.remember("after"))
    equal_again, last = await same(memory), await fragments(memory)
    await memory.close()
    memory, _ = await start()
    again = await fragments(memory)
    await memory.close()
    return answer([code, left, shown, [equal, equal_again], after, [last, again]])
"""


def unharmed(found: list[Any], code: str, commits: list[str]) -> None:
    """Check what `meets_faults` found: memory equals disk throughout, and the next write works."""
    got, left, shown, equal, after, last = found
    assert got == code
    assert left[:3] == [0, 0, 0]
    assert left[3] <= 3  # a lost connection is opened again at most three times
    # Only a store that nobody can reach leaves open whether the write was kept; then the disk decides.
    kept = code == "ok" or commits == ["lost after"]
    assert shown == (["before", "during"] if kept else ["before"])
    assert equal == [True, True]
    assert after == "ok"
    assert last == [[*shown, "after"]] * 2


def put_lab(project: Project, site: StaticServer) -> str:
    """Serve the page and the sources, and return the page's address."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((project.root / "py_memory").rglob("*.py")):
            archive.write(path, path.relative_to(project.root).as_posix())
        archive.write(project.root / "tests" / "unit" / "seam_operations.py", "seam_operations.py")
        archive.write(HERE / "stored.py", "stored.py")
    site.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    site.overrides["/sources.zip"] = Override(body=packed.getvalue())
    site.mounts["/lab/"] = HERE
    return f"{site.url}/lab/lab.html"


@contextmanager
def laboratory(
    project: Project, dist: Path, engine: Engine, *, plain: bool = False, room: int | None = None
) -> "Iterator[Lab]":
    """Open a page that several tests share: starting Python takes longer than most of them.

    With `plain` the page cannot be told to meet faults, and IndexedDB is the browser's own to the last
    call. With `room` the site may store about so many bytes.
    """
    with StaticServer(dist) as site, engine.browser(room=room) as browser, browser.new_context() as context:
        page = context.new_page()
        address = put_lab(project, site)
        if room:
            # Before the first write: Chromium remembers for a while how much room it found.
            page.goto(address.replace("lab.html", "blank.html"))
            engine.limit(page, room)
        yield Lab(page, address + "?plain" * plain, site)


class Lab:
    """One page with Python."""

    def __init__(self, page: Any, address: str, site: StaticServer | None = None) -> None:
        """Open the page."""
        self.page = page
        self.address = address
        self.site = site
        page.set_default_timeout(0)
        page.goto(address)
        page.wait_for_function("() => globalThis.lab !== undefined")

    def another(self) -> "Lab":
        """Open one more page of the same person."""
        return Lab(self.page.context.new_page(), self.address, self.site)

    def run(self, code: str, **names: Any) -> Any:
        """Run Python in the worker; its last expression, as JSON, is the answer.

        Names live on from one call to the next.
        """
        given = f"import json as _json\nglobals().update(_json.loads({json.dumps(names)!r}))\n"
        answer = self.page.evaluate("code => lab.run(code)", given + textwrap.dedent(code).strip())
        if isinstance(answer, str) and answer.startswith("json:"):
            return json.loads(answer.removeprefix("json:"))
        return answer
