"""What comes from outside at a bad moment: lost connections, ended workers, reloads, and a wrong clock."""

import random
import time
from collections import Counter
from typing import Any

import pytest

from tests.browser.engines import only
from tests.browser.lab import SETUP, Lab
from tests.browser.scripted import put_blank, replace
from tests.browser.test_tabs import Tab
from tools.serve import StaticServer


def test_a_connection_that_the_browser_closes_is_opened_again(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        await session.remember("before")
        js.faults.opened = 0
        js.faults.last.close()
        js.faults.last.dispatchEvent(js.Event.new("close"))
        code = await outcome(session.remember("after"))
        answer([code, js.faults.opened, await fragments(memory), await same(memory)])
        """
    )
    assert found == ["ok", 1, ["before", "after"], True]


@pytest.mark.parametrize(("errors", "code"), [(2, "ok"), (9, "storage_lost")])
def test_an_opening_that_ends_with_an_unknown_error_is_repeated_in_bounds(lab: Lab, errors: int, code: str):
    found = lab.run(
        """
        memory, session = await started()
        await session.remember("before")
        js.faults.invalid, js.faults.opened = 1, 0
        for _ in range(errors): js.faults.openings.push("UnknownError")
        code = await outcome(session.remember("during"))
        tried = js.faults.opened
        js.faults.openings.length = 0
        last = await outcome(session.remember("after"))
        answer([code, tried, last, await fragments(memory), await same(memory)])
        """,
        errors=errors,
    )
    kept = ["before", "during", "after"] if code == "ok" else ["before", "after"]
    assert found == [code, 3, "ok", kept, True]


def test_a_first_opening_that_ends_with_an_unknown_error_is_no_new_memory(lab: Lab):
    found = lab.run(
        """
        js.faults.openings.push("UnknownError")
        code = await outcome(open_memory(NAME))
        memory, session = await started()
        answer([code, await outcome(session.remember("x"))])
        """
    )
    assert found == ["storage_lost", "ok"]


def test_an_opening_that_is_never_answered_ends_and_a_late_success_is_closed(lab: Lab):
    found = lab.run(
        """
        from py_memory.browser import opening
        before, opening.OPEN_SECONDS = opening.OPEN_SECONDS, 0.5
        js.faults.openings.push("silence")
        begun = time.monotonic()
        code = await outcome(open_memory(NAME))
        took = time.monotonic() - begun
        opening.OPEN_SECONDS = before
        js.faults.answer()
        try:
            js.faults.last.transaction("meta")
            late = "open"
        except Exception as error:
            late = error.name
        memory, session = await started()
        answer([code, took, late, await outcome(session.remember("x"))])
        """
    )
    code, took, late, after = found
    assert (code, late, after) == ("storage_blocked", "InvalidStateError", "ok")
    assert 0.4 < took < 5


@pytest.mark.parametrize("thrown", ["!", ""], ids=["thrown", "answered"])
@pytest.mark.parametrize("name", ["SecurityError", "NotAllowedError", "InvalidStateError"])
def test_a_browser_that_refuses_storage_gives_a_memory_only_by_the_option(lab: Lab, name: str, thrown: str):
    found = lab.run(
        """
        js.faults.openings.push(fault)
        try:
            await open_memory(NAME)
        except PyMemoryError as error:
            refused = [error.code, error.details["cause"]]
        js.faults.openings.push(fault)
        memory = await open_memory(NAME, fallback="memory")
        session = await memory.start_session("u_1")
        await session.remember("x")
        mode = memory.storage["mode"]
        held = await fragments(memory)
        await memory.close()
        memory = await open_memory(NAME, fallback="memory")
        answer([refused, mode, held, memory.storage["mode"] != "memory", await fragments(memory)])
        """,
        fault=name + thrown,
    )
    assert found == [["storage_blocked", "refused"], "memory", ["x"], True, []]


INSIDE = {
    "sql": """
        def work(one):
            connection = one.database.connection
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM fragments")
            connection.execute("CREATE TABLE half (n INTEGER)")
            connection.executemany("INSERT INTO half VALUES (?)", ((n,) for n in range(10_000)))
            js.postMessage("inside")
            while True:
                pass
        await memory._owner.run(work)
        """,
    "indexeddb": """
        js.faults.commits.push("held")
        await session.remember_many([{"content": f"new {n}"} for n in range(10_000)])
        """,
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_worker_that_is_ended_inside_a_transaction_leaves_the_state_before(
    lab: Lab, request: pytest.FixtureRequest, kind: str
):
    name = request.node.name
    other = lab.another()
    other.run(SETUP, NAME=name)
    other.run("memory, session = await started()")
    for text in "abc":
        other.run("await session.remember(text)", text=text)
    other.page.evaluate(
        """(code) => new Promise((resolve) => {
            lab.worker.addEventListener("message", ({ data }) => {
              if (data !== "inside") return;
              lab.worker.terminate();
              resolve();
            });
            lab.run(code);
        })""",
        "\n".join(line[8:] for line in INSIDE[kind].strip("\n").split("\n")),
    )
    # The browser gives the lock back when the worker has really ended.
    begun = time.monotonic()
    lab.page.evaluate("(name) => navigator.locks.request(`py-memory:${name}`, () => {})", name)
    found = lab.run(
        """
        memory, session = await started()
        shown = await fragments(memory)
        half = await memory._owner.run(lambda one: one.database.rows(
            "SELECT name FROM sqlite_schema WHERE name = 'half'"))
        sound = (await memory.check())["ok"]
        await session.remember("d")
        answer([shown, len(half), sound, await fragments(memory), await same(memory)])
        """
    )
    other.page.close()
    assert found == [list("abc"), 0, True, list("abcd"), True]
    assert time.monotonic() - begun < 30


def test_a_clock_that_goes_back_and_forth_loses_and_doubles_nothing(lab: Lab):
    jumps = [0, 20, -20, 0, 3, -1, 40, 0]
    found = lab.run(
        """
        async def write(n):
            await session.remember_many(
                [{"content": f"{n} {i}"} for i in range(2)], request_id=f"r {n}"
            )
            return await session.remember(f"{n} 2")

        begun = js.performance.now()
        memory, session = await started()
        kept = []
        for n, years in enumerate(jumps):
            js.faults.years = years
            kept.append((await asyncio.wait_for(write(n), 60)).id)
            if n % 3 == 2:
                await memory.close()
                memory, session = await started()
            # The answer was lost: the same request again.
            await session.remember_many([{"content": f"{n} {i}"} for i in range(2)], request_id=f"r {n}")
        js.faults.years = 0
        found = await memory.timeline("u_1", order="oldest")
        rows = [(one.id, one.content, one.happened_at) for one in found]
        hits = await session.recall("7 2")
        answer([rows, kept, bool(hits), (await memory.check())["ok"], await same(memory)])
        """,
        jumps=jumps,
    )
    rows, kept, hits, sound, equal = found
    assert sorted(text for _, text, _ in rows) == sorted(f"{n} {i}" for n in range(8) for i in range(3))
    assert len({one for one, _, _ in rows}) == 24
    assert len(set(kept)) == 8
    moments = [at for _, _, at in rows]
    assert moments == sorted(moments)
    assert hits
    assert sound
    assert equal


WRITE = """
const memory = await m.openMemory({ name: "storm" });
const session = await memory.startSession({ userId: "u", sessionId: "s" });
for (let n = 0; !window.enough; n += 1) {
  const id = `${LOAD}-${n}`;
  await session.rememberMany([1, 2, 3].map((part) => ({ content: `${id} ${part}` })));
  await window.acknowledged(id);
}
await memory.close();
"""

LENGTHS = [pytest.param(20, id="short"), pytest.param(600, id="long", marks=pytest.mark.soak)]


@only(
    "chromium", because="what was acknowledged leaves the page by a function that only Playwright puts there"
)
@pytest.mark.parametrize("seconds", LENGTHS)
@pytest.mark.parametrize("tabs", [1, 2])
@pytest.mark.timeout(1200)
def test_reloads_in_the_middle_of_writes_lose_halve_and_double_nothing(
    browser: Any, strict_site: StaticServer, tabs: int, seconds: int
):
    address = put_blank(strict_site)
    chance = random.Random(tabs)
    acknowledged: list[str] = []

    def note(one: str) -> None:
        acknowledged.append(one)

    loads = 0
    with browser.new_context() as context:
        context.expose_function("acknowledged", note)
        pages = [Tab(context.new_page(), address, wait=False) for _ in range(tabs)]

        def write(tab: Tab) -> None:
            nonlocal loads
            loads += 1
            tab.start(WRITE.replace("LOAD", str(loads)))

        for one in pages:
            write(one)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            one = chance.choice(pages)
            # Every second time only after something more was kept: else nobody might ever get to write.
            if chance.random() < 0.5 or tabs == 1:
                before = len(acknowledged)
                while len(acknowledged) == before and time.monotonic() < ends:
                    one.page.wait_for_timeout(5)
            one.page.wait_for_timeout(chance.uniform(0, 60))
            one.page.reload()
            write(one)
        for one in pages:
            one.page.evaluate("() => void (window.enough = true)")
        for one in pages:
            one.answer()
        last = Tab(context.new_page(), address, wait=False)
        texts, sound, after = last.run(
            """
            window.memory = await m.openMemory({ name: "storm" });
            const all = JSON.parse(await (await memory.exportJSON()).text()).fragments;
            const session = await memory.startSession({ userId: "u", sessionId: "s" });
            const { content } = await session.remember("after");
            return [all.map(({ content }) => content), (await memory.check()).ok, content];
            """
        )
    assert loads > tabs
    assert sound
    assert after == "after"
    counted = Counter(texts)
    assert not [text for text, times in counted.items() if times > 1]
    parts = Counter(text.split()[0] for text in texts)
    assert not {one: number for one, number in parts.items() if number != 3}
    assert set(acknowledged) <= set(parts)
    assert acknowledged


REFUSING = b"""
IDBFactory.prototype.open = () => {
  throw new DOMException("refused", "SecurityError");
};
"""


def test_tabs_share_a_memory_that_is_kept_nowhere_and_it_ends_with_its_owner(
    browser: Any, strict_site: StaticServer
):
    address = put_blank(strict_site)
    replace(strict_site, "worker.js", strict_site.find("/py-memory/worker.js").read_bytes() + REFUSING)
    with browser.new_context() as context:
        first, second = (Tab(context.new_page(), address, wait=False) for _ in range(2))
        assert first.run("return (await failing(m.openMemory({ name: 'n' }))).code") == "storage_blocked"
        opening = """
            window.memory = await m.openMemory({ name: "n", fallback: "memory" });
            window.told = memory.storage.mode;
            window.modes = [];
            window.ended = new Promise((resolve) => memory.on("closed", ({ code }) => resolve(code)));
            const session = await memory.startSession({ userId: "u", sessionId: "s" });
            memory.on("storage", ({ mode }) => window.modes.push(mode));
            await session.remember(given);
            return [told, await texts()];
            """
        assert first.run(opening, "one") == ["memory", ["one"]]
        assert second.run(opening, "two") == ["memory", ["one", "two"]]
        first.page.wait_for_function("() => modes.includes('memory')")
        first.page.close()
        assert second.run("return await ended") == "storage_lost"
        assert second.run("return (await failing(memory.timeline({ userId: 'u' }))).code") == "closed"
