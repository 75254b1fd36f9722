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
