"""What was read while Python started counts only if nothing was written since."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.engines import Engine
from tests.browser.lab import Lab, laboratory
from tests.browser.test_story import BLANK
from tools.project import Project
from tools.serve import StaticServer

MADE = """
from py_memory.browser.owner import Owner
import js
owner = await Owner.open(name)
session = await owner.run(lambda memory: memory.start_session("u", session_id="s"))
await owner.run(lambda memory: session.remember("apples"))
await owner.close()
1
"""


@pytest.fixture(scope="module")
def lab(project: Project, dist: Path, engine: Engine) -> Iterator[Lab]:
    with laboratory(project, dist, engine) as found:
        yield found


def prepare(lab: Lab, name: str) -> None:
    lab.run(MADE, name=name)
    lab.run(
        """
        from pyodide.ffi import to_js
        from py_memory.browser.indexeddb import IndexedDBStore
        store = IndexedDBStore(name)
        await store._connect(create=False)
        meta = await store.meta()
        count = await store.count()
        records = [[bytes(one) for one in batch] async for batch in store.read(count)]
        await store.close()

        def early_of(meta, records):
            found = to_js({"meta": meta}, dict_converter=js.Object.fromEntries)
            found.batches = to_js(records)
            return js.Promise.resolve(found)
        1
        """,
        name=name,
    )


OPENED = """
import json
owner = await Owner.open(name, early=early)
hits = await owner.run(lambda memory: memory.search("u", "apples pears"))
await owner.close()
"json:" + json.dumps(sorted(hit.fragment.content for hit in hits))
"""


def test_the_image_read_early_is_what_is_opened(lab: Lab) -> None:
    prepare(lab, "early")
    lab.run("early = early_of(meta, records)\n1")
    assert lab.run(OPENED, name="early") == ["apples"]
    prepare(lab, "early-joined")
    lab.run("early = early_of(meta, [b''.join(batch) for batch in records])\n1")
    assert lab.run(OPENED, name="early-joined") == ["apples"]


def test_it_is_really_used_and_checked_like_any_other(lab: Lab) -> None:
    prepare(lab, "early-damaged")
    answer = lab.run(
        """
        import json
        from py_memory.errors import PyMemoryError
        broken = [list(batch) for batch in records]
        broken[0][2] = broken[0][2][:-1] + bytes([broken[0][2][-1] ^ 1])
        try:
            await Owner.open(name, early=early_of(meta, broken))
            code = "opened"
        except PyMemoryError as exc:
            code = exc.code
        owner = await Owner.open(name)
        await owner.close()
        code
        """,
        name="early-damaged",
    )
    assert answer == "corrupt_image"


def test_an_image_that_was_written_since_is_read_anew(lab: Lab) -> None:
    prepare(lab, "early-old")
    lab.run(
        """
        early = early_of(meta, records)
        owner = await Owner.open(name)
        session = owner._memory.session("s")
        await owner.run(lambda memory: session.remember("pears"))
        await owner.close()
        1
        """,
        name="early-old",
    )
    assert lab.run(OPENED, name="early-old") == ["apples", "pears"]


def test_what_could_not_be_read_early_is_read_later(lab: Lab) -> None:
    prepare(lab, "early-none")
    lab.run("early = js.Promise.resolve(None)\n1")
    assert lab.run(OPENED, name="early-none") == ["apples"]
    lab.run("early = js.Promise.reject(js.Error.new('no'))\n1")
    assert lab.run(OPENED, name="early-none") == ["apples"]


def test_the_worker_reads_early_and_makes_no_database(site: StaticServer, page: Any) -> None:
    site.overrides["/blank.html"] = BLANK
    page.goto(f"{site.url}/blank.html")
    seen = page.evaluate(
        """async () => {
          const { readEarly } = await import("/py-memory/early.js");
          const nothing = await readEarly("nobody");
          // WebKit lists what nobody made, with version 0.
          const made = (await indexedDB.databases()).filter(({ version }) => version > 0);
          const { openMemory } = await import("/py-memory/memory.js");
          const memory = await openMemory({ name: "early" });
          const session = await memory.startSession({ userId: "u" });
          await session.remember("apples");
          await memory.close();
          const early = await readEarly("early");
          const again = await openMemory({ name: "early" });
          const [hit] = await again.search({ userId: "u", query: "apples" });
          await again.close();
          const records = early.batches.reduce((sum, batch) => sum + batch.length / 4112, 0);
          return { nothing, made, meta: JSON.parse(early.meta), records, content: hit.fragment.content };
        }"""
    )
    assert seen["nothing"] is None
    assert "py-memory:nobody" not in [one["name"] for one in seen["made"]]
    assert seen["records"] == seen["meta"]["page_count"]
    assert seen["content"] == "apples"
