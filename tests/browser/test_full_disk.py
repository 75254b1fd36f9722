"""No room at all: what is stored can be read, and nothing of it is lost when there is room again."""

from pathlib import Path

from tests.browser.engines import Engine, only
from tests.browser.lab import SETUP, Lab, laboratory
from tools.project import Project

LESS = 1_000_000
LITTLE = 20_000_000
ROOM = 500_000_000

BEGIN = """
memory, session = await started()
await session.remember_many([{"content": f"fragment {n} of the earlier ones"} for n in range(60)])
await memory.close()
"""

# In another memory, so that this one stays small.
FILL = """
import os
other = await open_memory("other")
other_session = await other.start_session("u_1")
told = "ok"
while told == "ok":
    told = await outcome(other_session.remember(os.urandom(2_000_000), type="image", media_type="image/png"))
answer(told)
"""

# For a while Chromium goes by the room that it found before.
NOTHING_MORE = """
import asyncio
for n in range(300):
    told = await outcome(other.start_session(f"u_{2 + n}"))
    if told != "ok":
        break
    await asyncio.sleep(0.1)
answer(told)
"""


def fill(engine: Engine, lab: Lab) -> None:
    """Leave not even room for the smallest write: what is stored is more than is allowed from now on."""
    assert lab.run(FILL) == "quota_exceeded"
    engine.limit(lab.page, LESS)
    assert lab.run(NOTHING_MORE) == "quota_exceeded"


@only("chromium", because="only there the room can be changed while the page lives")
def test_a_full_disk_still_gives_what_it_holds(project: Project, dist: Path, engine: Engine):
    """Opening raises the epoch, which is a write; without room for it, it is put off to the first write."""
    with laboratory(project, dist, engine, room=LITTLE) as lab:
        lab.run(SETUP)
        lab.run(BEGIN, NAME="full")
        fill(engine, lab)
        found = lab.run(
            """
            memory = await open_memory(NAME)
            refused = [
                await outcome(memory.start_session("u_2")),
                await outcome(memory.forget("u_1", all=True)),
            ]
            found = [hit.fragment.content for hit in await memory.search("u_1", "earlier", limit=100)]
            file = await memory.export_json()
            sound = await memory.check()
            closed = await outcome(memory.close())
            answer([refused, len(found), file.count("of the earlier ones"), sound["ok"], closed])
            """
        )
        assert found == [["quota_exceeded"] * 2, 60, 60, True, "ok"]
        lab.run("memory = await open_memory(NAME)")
        engine.limit(lab.page, ROOM)
        found = lab.run(
            """
            session = await memory.start_session("u_1", session_id="s_1")
            written = await outcome(session.remember("there is room again"))
            await memory.close()
            memory = await open_memory(NAME)
            last = (await memory.timeline("u_1", limit=1))[0].content
            count = (await memory.metrics())["fragments"]
            await memory.close()
            answer([written, last, count])
            """
        )
        assert found == ["ok", "there is room again", 61]


@only("chromium", because="only there the room can be changed while the page lives")
def test_who_opened_without_room_does_not_write_over_what_was_written_since(
    project: Project, dist: Path, engine: Engine
):
    """An owner that was frozen, and not fenced for want of room, wrote in between: the reader gives way."""
    with laboratory(project, dist, engine, room=LITTLE) as lab:
        lab.run(SETUP)
        lab.run(BEGIN, NAME="full")
        # One that holds no lock any more, as a frozen owner that was robbed of it.
        lab.run("early, session = await started()\nawait early._owner._lock.release()")
        lab.run("await early._owner._marker.release()\nearly._owner._taken_over = False")
        fill(engine, lab)
        lab.run("late = await open_memory(NAME)")
        engine.limit(lab.page, ROOM)
        found = lab.run(
            """
            wrote = await outcome(session.remember("by the one before"))
            refused = await outcome(late.start_session("u_2"))
            await late.close()
            memory = await open_memory(NAME)
            last = (await memory.timeline("u_1", limit=1))[0].content
            await memory.close()
            answer([wrote, refused, last])
            """
        )
        assert found == ["ok", "owner_lost", "by the one before"]
