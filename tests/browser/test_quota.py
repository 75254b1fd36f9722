"""The browser's own quota: a large write is undone whole, told in figures, and works when there is room."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.engines import Engine, only
from tests.browser.lab import SETUP, Lab, laboratory
from tools.project import Project

ROWS = 400
SMALL = 1_000_000
LARGE = 500_000_000

# Random text: what the browser can compress does not use up its room.
SOURCE = """
import random
letters = random.Random(1)
rows = [{"content": f"{number} {letters.randbytes(1_500).hex()}"} for number in range(count)]
picture = b"x" * 3_000_000

from py_memory import Memory
source = Memory.open(":memory:", clock=lambda: 1_700_000_000_000)
source.start_session("u_1", session_id="s_2").remember_many(rows)
text, image = source.export_json(), source.export_image()
source.close()

ways = {
    "remember": lambda: session.remember(picture, type="image", media_type="image/png"),
    "remember_many": lambda: session.remember_many(rows),
    "import_json": lambda: memory.import_json(text),
    "import_image": lambda: memory.import_image(image),
    "VACUUM": lambda: memory._owner.run(lambda one: one.database.connection.execute("VACUUM") and None),
}

async def attempt(way):
    '''What became of it, and whether memory, disk and index fit together.'''
    try:
        await ways[way]()
        told = "ok"
    except PyMemoryError as error:
        # Chromium tells pages a round figure of its own and not the true quota.
        told = [error.code, error.details["quota"] > error.details["usage"] >= 0]
    return [told, await rows_now(), await same(memory), (await memory.check())["ok"]]

async def rows_now():
    return await memory._owner.run(
        lambda one: one.database.connection.execute("SELECT count(*) FROM fragments").fetchone()[0]
    )
"""


ONLY = only("chromium", because="only there the room can be changed while the page lives")


class Room:
    """A lab under a quota that the test sets."""

    def __init__(self, lab: Lab, engine: Engine) -> None:
        """Prepare what is to be written; nothing is kept yet."""
        self.lab = lab
        self._engine = engine
        self._ready()

    def is_(self, size: int) -> None:
        """Set the quota.

        Chromium keeps for half a minute how much room it found, and asks again only when that does not
        do: a lower quota is not noticed at once, a higher one is.
        """
        self._engine.limit(self.lab.page, size)

    def reload(self) -> None:
        """Load the page anew, without closing the memory."""
        self.lab.page.reload()
        self.lab.page.wait_for_function("() => globalThis.lab !== undefined")
        self._ready()

    def attempt(self, way: str) -> Any:
        """Write in this way: [outcome, rows, whether memory equals disk, whether it is sound]."""
        return self.lab.run("answer(await attempt(way))", way=way)

    def _ready(self) -> None:
        self.lab.run(SETUP, NAME="quota", count=ROWS)
        self.lab.run(SOURCE)


@pytest.fixture
def room(project: Project, dist: Path, engine: Engine) -> Iterator[Room]:
    """An origin of its own: what others used up there would count too."""
    with laboratory(project, dist, engine) as lab:
        yield Room(lab, engine)


START = "memory, session = await started()"


@ONLY
def test_a_real_quota_met_by_a_large_write_undoes_all_of_it(room: Room):
    room.is_(SMALL)
    room.lab.run(f"{START}\nawait session.remember('small')")
    for way in ("remember", "remember_many", "import_json", "import_image"):
        assert room.attempt(way) == [["quota_exceeded", True], 1, True, True], way
    # What is small enough goes on.
    assert room.lab.run("await outcome(session.remember('more'))") == "ok"
    room.reload()
    assert room.lab.run(f"{START}\nanswer(await fragments(memory))") == ["small", "more"]
    room.is_(LARGE)
    assert room.attempt("remember") == ["ok", 3, True, True]
    assert room.attempt("remember_many") == ["ok", ROWS + 3, True, True]
    assert room.attempt("import_json") == ["ok", 2 * ROWS + 3, True, True]
    assert room.attempt("import_image") == ["ok", ROWS, True, True]


@ONLY
def test_a_real_quota_met_by_a_vacuum_leaves_the_memory_as_it_was(room: Room):
    size = room.lab.run("answer(len(image))")
    # Enough for the rows once, not for writing all pages a second time.
    room.is_(size * 3 // 2)
    room.lab.run(START)
    assert room.attempt("remember_many") == ["ok", ROWS, True, True]
    generation = room.lab.run("memory.storage['generation']")
    assert room.attempt("VACUUM") == [["quota_exceeded", True], ROWS, True, True]
    assert room.lab.run("memory.storage['generation']") == generation
    room.reload()
    room.lab.run(START)
    assert room.lab.run("await rows_now()") == ROWS
    room.is_(LARGE)
    assert room.attempt("VACUUM") == ["ok", ROWS, True, True]
    assert room.lab.run("await outcome(session.remember('more'))") == "ok"
    assert room.lab.run("await rows_now()") == ROWS + 1
