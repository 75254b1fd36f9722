"""Someone else's Pyodide page: micropip installs our wheel, and nothing else of ours is there."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.project import Project
from tools.serve import Override, StaticServer

PAGE = b'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>Another page</title>'

RUN = """
async ([stock, code, names]) => {
  const { loadPyodide } = await import(`${stock}pyodide.mjs`);
  globalThis.pyodide ??= await loadPyodide({ indexURL: stock, packages: ["micropip"] });
  for (const [name, value] of Object.entries(names)) pyodide.globals.set(name, value);
  return await pyodide.runPythonAsync(code);
}
"""

INSTALL_AND_USE = """
import json
import micropip

await micropip.install(wheel_url)

from py_memory import Memory

with Memory.open(":memory:") as memory:
    session = memory.start_session(user_id="u_1", skill="booking")
    kept = session.remember("I would like a flight to Shanghai", speaker="Ann")
    hits = session.recall("Shanghai flight")
    answer = {"kept": kept.id, "hits": [[hit.fragment.id, hit.fragment.content] for hit in hits]}
json.dumps(answer)
"""


@pytest.fixture
def other_site(project: Project, dist: Path, pyodide_wheels: Path, tmp_path: Path) -> Iterator[StaticServer]:
    """Stock Pyodide with micropip, as a page that never heard of us would host it, and our wheel."""
    root = tmp_path / "site"
    root.mkdir()
    shutil.copyfile(dist / "py-memory" / project.wheel_name, root / project.wheel_name)
    lock = json.loads((project.pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    package = lock["packages"]["micropip"]
    # Pyodide's own lockfile has the hash of its repacked wheel; this is the one that installers get.
    package["sha256"] = hashlib.sha256((pyodide_wheels / package["file_name"]).read_bytes()).hexdigest()
    package["file_name"] = f"/wheels/{package['file_name']}"
    with StaticServer(root) as server:
        package["file_name"] = f"{server.url}{package['file_name']}"
        server.mounts.update({"/stock/": project.pyodide, "/wheels/": pyodide_wheels})
        server.overrides["/"] = Override(body=PAGE, content_type="text/html; charset=utf-8")
        server.overrides["/stock/pyodide-lock.json"] = Override(body=json.dumps(lock).encode())
        yield server


def run(page: Any, server: StaticServer, code: str, **names: str) -> dict:
    """Run Python in the page's own Pyodide and give its JSON answer."""
    return json.loads(page.evaluate(RUN, [f"{server.url}/stock/", code, names]))


def test_micropip_installs_the_wheel_on_a_page_of_its_own(
    project: Project, other_site: StaticServer, page: Any
):
    elsewhere = []
    page.on(
        "request", lambda request: None if other_site.url in request.url else elsewhere.append(request.url)
    )
    page.goto(f"{other_site.url}/")
    answer = run(page, other_site, INSTALL_AND_USE, wheel_url=f"{other_site.url}/{project.wheel_name}")
    assert answer["hits"] == [[answer["kept"], "I would like a flight to Shanghai"]]
    assert [url for url in elsewhere if not url.startswith(("data:", "blob:"))] == []
    assert not [path for path in other_site.requests if path.startswith("/py-memory/")]


REMEMBER = """
import json
import micropip

await micropip.install(wheel_url)

from py_memory.browser import open_memory

memory = await open_memory("micropip_page")
session = await memory.start_session(user_id="u_1", user_name="Ann")
kept = await session.remember("I always take the window seat", speaker="Ann")
picture = await session.remember(bytes(range(256)), type="image", media_type="image/png")
await memory.close()
json.dumps({"kept": kept.id, "picture": picture.id})
"""

RECALL = """
import json
import micropip

await micropip.install(wheel_url)

from py_memory.browser import open_memory

memory = await open_memory("micropip_page")
session = await memory.start_session(user_id="u_1")
hits = await session.recall("window seat")
pictures = [fragment for fragment in await memory.timeline(user_id="u_1") if fragment.type == "image"]
stranger = await memory.search(user_id="u_2", query="window seat")
await memory.close()
json.dumps(
    {
        "best": [hits[0].fragment.id, hits[0].fragment.content],
        "pictures": [[fragment.id, list(fragment.data)] for fragment in pictures],
        "stranger": len(stranger),
    }
)
"""


def test_what_such_a_page_remembers_is_there_after_a_reload(
    project: Project, other_site: StaticServer, page: Any
):
    wheel = f"{other_site.url}/{project.wheel_name}"
    page.goto(f"{other_site.url}/")
    before = run(page, other_site, REMEMBER, wheel_url=wheel)
    databases = page.evaluate("async () => (await indexedDB.databases()).map(({ name }) => name)")
    assert "py-memory:micropip_page" in databases

    page.reload()
    after = run(page, other_site, RECALL, wheel_url=wheel)
    assert after["best"] == [before["kept"], "I always take the window seat"]
    assert after["pictures"] == [[before["picture"], list(range(256))]]
    assert after["stranger"] == 0
