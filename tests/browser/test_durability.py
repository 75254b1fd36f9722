"""The store in a real browser: nothing is acknowledged early, nothing is shown that is not kept."""

import sqlite3
from pathlib import Path

import pytest

from py_memory.times import system_zones
from tests.browser.engines import Engine
from tests.browser.lab import FAULTY, SETUP, Lab, laboratory, unharmed
from tools.project import Project
from tools.serve import Override


def another(lab: Lab, request: pytest.FixtureRequest) -> Lab:
    other = lab.another()
    other.run(SETUP)
    other.run("None", NAME=request.node.name[:150])
    request.addfinalizer(lambda: other.page in other.page.context.pages and other.page.close())
    return other


@pytest.mark.core
def test_a_write_is_acknowledged_at_complete_and_not_shown_before(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        await session.remember("first")
        js.faults.delay = 2_000
        begun = time.monotonic()
        write = asyncio.ensure_future(session.remember("机票 second"))
        await asyncio.sleep(0)
        recall = asyncio.ensure_future(session.recall("机票"))
        raw = []
        while time.monotonic() - begun < 1.5:
            await asyncio.sleep(0.1)
            raw.append(write.done() or recall.done())
        pending = [write.done(), recall.done()]
        await write
        took = time.monotonic() - begun
        js.faults.delay = 0
        hits = await recall
        answer([pending, any(raw), took, [hit.fragment.content for hit in hits][:1]])
        """
    )
    pending, any_early, took, hits = found
    assert pending == [False, False]
    assert not any_early
    assert 2.0 <= took < 4.0
    assert hits == ["机票 second"]


def test_a_recall_that_waits_for_a_write_that_fails_does_not_show_it(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        await session.remember("kept")
        js.faults.commits.push("abort")
        write = asyncio.ensure_future(outcome(session.remember("机票 lost")))
        await asyncio.sleep(0)
        hits = await session.recall("机票")
        answer([await write, [hit.fragment.content for hit in hits]])
        """
    )
    assert found == ["aborted", ["kept"]]


@pytest.mark.parametrize(
    ("commits", "invalid", "unopenable", "code"),
    [
        (["quota"], 0, 0, "quota_exceeded"),
        (["abort"], 0, 0, "aborted"),
        ([], 1, 0, "ok"),
        ([], 1, 2, "ok"),
        ([], 1, 3, "storage_lost"),
        (["throws"], 0, 0, "ok"),
        (["lost before"], 0, 0, "ok"),
        (["lost after"], 0, 0, "ok"),
        (["lost before"] * 4, 0, 0, "storage_lost"),
        (["lost before"], 0, 3, "storage_lost"),
        (["lost after"], 0, 3, "storage_lost"),
    ],
    ids=str,
)
def test_after_every_fault_memory_equals_disk_and_the_next_write_works(
    lab: Lab, commits: list, invalid: int, unopenable: int, code: str
):
    given = {"commits": commits, "invalid": invalid, "unopenable": unopenable}
    unharmed(lab.run(f"{FAULTY}\nawait meets_faults(started, same)", **given), code, commits)


def test_errors_say_how_much_room_there_is(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        js.faults.commits.push("quota")
        try:
            await session.remember("x")
        except PyMemoryError as error:
            details = error.details
        answer([details, memory.storage])
        """
    )
    details, storage = found
    assert storage["mode"] in {"best-effort", "persistent"}
    assert storage["quota"] == details["quota"]
    # WebKitGTK does not tell how much room there is.
    if lab.page.evaluate("() => 'storage' in navigator"):
        assert details["quota"] > details["usage"] >= 0


REMEMBER_MUCH = """
code = await outcome(session.remember(os.urandom(5_000_000), type="image", media_type="image/png"))
answer([code, len(await fragments(memory)), await same(memory)])
"""


@pytest.mark.core
def test_a_real_quota_is_met_and_nothing_is_torn(project: Project, dist: Path, engine: Engine):
    with laboratory(project, dist, engine, plain=True, room=12_000_000) as lab:
        lab.run(SETUP)
        lab.run("import os\nmemory, session = await started()\nawait session.remember('small')", NAME="quota")
        kept = 1
        while (answer := lab.run(REMEMBER_MUCH)) == ["ok", kept + 1, True]:
            kept += 1
            assert kept < 10
        assert answer == ["quota_exceeded", kept, True]
        found = lab.run("answer([len(await fragments(memory)), (await memory.check())['ok']])")
        assert found == [kept, True]


def test_a_second_opener_is_told(lab: Lab, request: pytest.FixtureRequest):
    lab.run("memory, session = await started()")
    other = another(lab, request)
    assert other.run("await outcome(open_memory(NAME))") == "already_open"
    assert other.run("await outcome(open_memory('another'))") == "ok"
    assert lab.run("await outcome(open_memory(NAME))") == "already_open"
    assert lab.run("await outcome(session.remember('x'))") == "ok"
    lab.run("await memory.close()\nawait memory.close()")
    assert other.run("memory = await open_memory(NAME)\nanswer(await fragments(memory))") == ["x"]
    assert lab.run("await outcome(session.remember('late'))") == "closed"


def test_a_closed_page_gives_the_name_back(lab: Lab, request: pytest.FixtureRequest):
    other = another(lab, request)
    other.run("memory, session = await started()\nawait session.remember('x')")
    other.page.close()
    assert lab.run("memory = await open_memory(NAME)\nanswer(await fragments(memory))") == ["x"]


ROBBED = """
from py_memory.browser.indexeddb import IndexedDBStore
memory, session = await started()
await session.remember("mine")
before = await stored.image(NAME)
thief = IndexedDBStore(NAME)
await thief.open()
await thief.close()
code = await outcome(session.remember("late"))
answer([code, await stored.image(NAME) == before, await fragments(memory)])
"""


@pytest.mark.core
def test_a_robbed_owner_cannot_write(project: Project, dist: Path, engine: Engine):
    """In the browser's own IndexedDB: not every one undoes what was committed when a request fails."""
    with laboratory(project, dist, engine, plain=True) as lab:
        lab.run(SETUP)
        assert lab.run(ROBBED, NAME="robbed") == ["owner_lost", True, ["mine"]]


def test_a_stolen_lock_ends_the_ownership(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        held = js.Promise.new(lambda resolve, reject: None)
        options = to_js({"steal": True}, dict_converter=js.Object.fromEntries)
        from pyodide.ffi import create_proxy
        js.navigator.locks.request(f"py-memory:{NAME}", options, create_proxy(lambda lock: held))
        await asyncio.sleep(0.2)
        answer([await outcome(session.remember("late")), await outcome(memory.close())])
        """
    )
    assert found == ["owner_lost", "ok"]


def test_a_newer_version_closes_the_older_one(lab: Lab, request: pytest.FixtureRequest):
    lab.run("memory, session = await started()\nawait session.remember('kept')")
    opened = lab.page.evaluate(
        """(name) => new Promise((resolve) => {
            const request = indexedDB.open(`py-memory:${name}`, 2);
            request.onupgradeneeded = () => {};
            request.onblocked = () => resolve("blocked");
            request.onsuccess = () => { request.result.close(); resolve("opened"); };
        })""",
        request.node.name[:150],
    )
    assert opened == "opened"
    found = lab.run(
        """
        code = await outcome(session.remember("late"))
        shown = await fragments(memory)
        await memory.close()
        raw = await export_raw(NAME)
        answer([code, shown, await outcome(open_memory(NAME)), raw[:15].decode()])
        """
    )
    assert found == ["outdated", ["kept"], "outdated", "SQLite format 3"]


def test_a_database_deleted_under_a_live_page_is_not_made_again(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        await session.remember("kept")
        js.indexedDB.deleteDatabase(f"py-memory:{NAME}")
        await asyncio.sleep(0.3)
        code = await outcome(session.remember("late"))
        made = f"py-memory:{NAME}" in await stored.databases()
        held = await fragments(memory) if await outcome(memory.metrics()) == "ok" else None
        answer([code, made, held])
        """
    )
    code, made, _ = found
    assert code == "storage_lost"
    assert not made


def test_a_connection_held_by_another_is_waited_for_in_bounds(lab: Lab, request: pytest.FixtureRequest):
    # A page of another version that does not let go: our open waits behind its upgrade.
    lab.page.evaluate(
        """(name) => new Promise((resolve) => {
            const first = indexedDB.open(`py-memory:${name}`, 1);
            first.onsuccess = () => {
              globalThis.held = first.result;
              const second = indexedDB.open(`py-memory:${name}`, 2);
              second.onblocked = () => resolve();
            };
        })""",
        request.node.name[:150],
    )
    found = lab.run(
        """
        begun = time.monotonic()
        code = await outcome(open_memory(NAME))
        answer([code, time.monotonic() - begun])
        """
    )
    lab.page.evaluate("() => held.close()")
    assert found[0] == "storage_blocked"
    assert found[1] < 15


def test_without_locks_there_is_no_second_writer(lab: Lab, request: pytest.FixtureRequest):
    found = another(lab, request).run(
        """
        none = to_js({"value": None}, dict_converter=js.Object.fromEntries)
        js.Object.defineProperty(js.navigator, "locks", none)
        answer([await outcome(open_memory(NAME)), len(await stored.databases())])
        """
    )
    assert found[0] == "insecure_context"


@pytest.mark.parametrize(
    ("damage", "code", "kind"),
    [
        ("{2: pages[2][:900] + b'?' + pages[2][901:]}", "corrupt_image", "checksum"),
        ("{2: None}", "corrupt_image", "hole"),
        ("{max(pages): None}", "corrupt_image", "hole"),
        ("{number: None for number in pages}", "corrupt_image", "hole"),
        ("{2: pages[3], 3: pages[2]}", "corrupt_image", "hole"),
        ("{2: pages[2][:-1]}", "corrupt_image", "record"),
        ("{2: b''}", "corrupt_image", "record"),
        ("{max(pages) + 1: encode_page(max(pages) + 1, 1, bytes(4096))}", "corrupt_image", "count"),
        ("{2: encode_page(2, 10**6, pages[2][16:])}", "corrupt_image", "generation"),
        ("{1: encode_page(1, 1, b'nonsense' + pages[1][24:])}", "corrupt_image", "header"),
        (
            (
                "meta=without_marks, pages="
                "{3: encode_page(3, 1, bytes([13, 0, 0, 255, 255, 16, 0, 0, 7, 7]) + pages[3][26:])}"
            ),
            "corrupt_image",
            "quick_check",
        ),
        ("{3: encode_page(3, 1, bytes([pages[3][16] ^ 1]) + pages[3][17:])}", "corrupt_image", "stale"),
        ("meta=None", "corrupt_image", "meta"),
        ("meta='{}'", "corrupt_image", "meta"),
        ("meta=meta.replace('\"generation\":', '\"generation\":1')", "corrupt_image", "meta"),
        ("meta=encode_meta(replace(decode_meta(meta), format=3))", "unsupported_format", None),
        (
            (
                "meta=without_marks, pages="
                "{1: encode_page(1, 1, pages[1][16:76] + (10**6).to_bytes(4, 'big') + pages[1][80:])}"
            ),
            "schema_newer",
            None,
        ),
    ],
)
def test_a_damaged_image_is_refused_untouched_and_exportable(
    lab: Lab, damage: str, code: str, kind: str | None
):
    call = damage if damage.startswith("meta") else f"pages={damage}"
    found = lab.run(
        f"""
        from dataclasses import replace
        from py_memory.image.form import decode_meta, encode_meta, encode_page
        memory, session = await started()
        for number in range(30): await session.remember(f"fragment {{number}} " * 20)
        await memory.close()
        pages, meta, _ = await stored.stored(NAME)
        without_marks = encode_meta(replace(decode_meta(meta), format=1, marks=None))
        await stored.change(NAME, {call})
        before = (await stored.stored(NAME))[:2]
        try:
            await open_memory(NAME)
        except PyMemoryError as error:
            found = [error.code, error.details.get("kind")]
        untouched = (await stored.stored(NAME))[:2] == before
        try:
            raw = await export_raw(NAME)
        except PyMemoryError as error:
            raw = error.code.encode()
        await stored.change(NAME, {{max(pages) + 1: None, **pages}}, meta=meta)
        memory = await open_memory(NAME)
        restored = len(await fragments(memory))
        answer([found, untouched, raw[:15].decode("latin-1"), len(raw), len(pages), restored])
        """
    )
    got, untouched, start, length, pages, restored = found
    assert got == [code, kind]
    assert untouched
    if "for number in pages" in damage:
        assert start == "not_found"
    else:
        assert abs(length - pages * 4096) <= 4096
        assert (
            start == ("nonsense\x00" + "\x00" * 6 if kind == "header" else "SQLite format 3")[:15]
            or kind == "header"
        )
    assert restored == 30  # the damage was the only thing in the way


@pytest.mark.core
def test_an_image_goes_out_and_in(lab: Lab, tmp_path):
    lab.run("memory, session = await started()\nfor n in range(50): await session.remember(f'number {n}')")
    text = lab.run("image = await memory.export_image()\nanswer(image.hex())")
    path = tmp_path / "image.db"
    path.write_bytes(bytes.fromhex(text))
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert plain.execute("SELECT count(*) FROM fragments").fetchone() == (50,)
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    plain.close()
    found = lab.run(
        """
        for n in range(20): await session.remember(f"later {n}")
        generation = memory.storage["generation"]
        js.faults.commits.push("abort")
        refused = await outcome(memory.import_image(image))
        unchanged = len(await memory.timeline("u_1", limit=200))
        await memory.import_image(image)
        shown = len(await memory.timeline("u_1", limit=200))
        equal = await same(memory)
        steps = memory.storage["generation"] - generation
        damaged = await outcome(memory.import_image(image[:8192] + bytes(9000) + image[17192:]))
        await memory.close()
        memory = await open_memory(NAME)
        again = len(await memory.timeline("u_1", limit=200))
        answer([refused, unchanged, shown, equal, steps, damaged, again])
        """
    )
    assert found == ["aborted", 70, 50, True, 1, "corrupt_image", 50]


@pytest.mark.parametrize("commits", [2_000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_commits_leave_no_proxy_behind(lab: Lab, commits: int):
    found = lab.run(
        """
        memory = await open_memory(NAME, durability="relaxed")
        connection = memory._owner._memory.database.connection
        connection.execute("CREATE TABLE soak (n INTEGER)")
        async def commit(count):
            for _ in range(count):
                await memory._owner.run(lambda _: connection.execute("INSERT INTO soak VALUES (1)"))
        await commit(200)
        before = js.livingProxies()
        await commit(commits // 2)
        middle = js.livingProxies()
        await commit(commits // 2)
        after = js.livingProxies()
        generation = memory.storage["generation"]
        for _ in range(5):
            await memory.close()
            memory = await open_memory(NAME)
        answer([before, middle, after, js.livingProxies(), generation])
        """,
        commits=commits,
    )
    before, middle, after, reopened, generation = found
    assert generation > commits
    assert max(middle, after, reopened) - before <= 5


def test_the_log_stays_bounded_in_the_page(lab: Lab):
    found = lab.run(
        """
        import os
        memory, session = await started()
        most = 0
        for n in range(150):
            await session.remember_many([{"content": f"text {n} {m} " * 40} for m in range(10)])
            most = max(most, os.path.getsize(memory._owner._keeper.path + "-wal"))
        answer([most, await same(memory)])
        """
    )
    most, equal = found
    assert 2_000_000 < most < 4_120 * 1_000 + 2_000_000
    assert equal


def test_a_page_with_its_own_python_uses_the_same_memory(lab: Lab):
    found = lab.run(
        """
        async with await open_memory(NAME, time_zone="Asia/Shanghai") as memory:
            session = await memory.start_session("u_1", skill="booking")
            kept = await session.remember("I live in Lyon")
            hits = await memory.search("u_1", "Lyon")
            same_id = kept.id == hits[0].fragment.id
            file = await memory.export_json()
        async with await open_memory(NAME) as memory:
            again = await memory.export_json()
        wrong = [await outcome(open_memory(name)) for name in ("", "x" * 300)]
        wrong.append(await outcome(open_memory(NAME, durability="maybe")))
        wrong.append(await outcome(open_memory(NAME, time_zone="No/Where")))
        relaxed = await open_memory("r", durability="relaxed")
        await relaxed.close()
        answer([same_id, json.loads(file)["fragments"] == json.loads(again)["fragments"], wrong])
        """
    )
    assert found == [True, True, ["invalid_argument"] * 4]


def test_a_caller_that_stops_waiting_does_not_stop_the_write(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        js.faults.delay = 600
        try:
            await asyncio.wait_for(session.remember("whole"), 0.1)
        except TimeoutError:
            gone = True
        js.faults.delay = 0
        answer([gone, await fragments(memory), await same(memory)])
        """
    )
    assert found == [True, ["whole"], True]


SHORT = """
from py_memory.browser import indexeddb
indexeddb.COMMIT_SECONDS = indexeddb.ASK_SECONDS = seconds
"""


def test_a_commit_whose_end_is_never_heard_is_looked_up(lab: Lab):
    lab.run(SHORT, seconds=0.5)
    found = lab.run(
        """
        memory, session = await started()
        js.faults.delay = 60_000
        begun = time.monotonic()
        code = await outcome(session.remember("kept"))
        took = time.monotonic() - begun
        js.faults.delay = 0
        answer([code, took, await fragments(memory), await same(memory)])
        """
    )
    lab.run(SHORT, seconds=20.0)
    code, took, shown, equal = found
    assert (code, shown, equal) == ("ok", ["kept"], True)
    assert 0.4 < took < 5


def test_a_write_behind_a_stuck_page_is_answered_in_bounds(lab: Lab, request: pytest.FixtureRequest):
    lab.run(SHORT, seconds=1.0)
    lab.run("memory, session = await started()\nawait session.remember('kept')")
    # Another page keeps a writing transaction open for as long as it lives.
    stuck = lab.page.context.new_page()
    stuck.goto(lab.address.replace("lab.html", "blank.html"))
    stuck.evaluate(
        """(name) => new Promise((resolve) => {
            const request = indexedDB.open(`py-memory:${name}`);
            request.onsuccess = () => {
              const transaction = request.result.transaction(["pages", "meta", "fence"], "readwrite");
              const turn = () => {
                const asked = transaction.objectStore("meta").get("image");
                asked.onsuccess = () => { resolve(); turn(); };
              };
              turn();
            };
        })""",
        request.node.name[:150],
    )
    found = lab.run(
        """
        begun = time.monotonic()
        code = await outcome(session.remember("late"))
        reading = await outcome(fragments(memory))
        answer([code, reading, time.monotonic() - begun])
        """
    )
    stuck.close()
    after = lab.run(
        """
        shown = await fragments(memory)
        answer([shown, await same(memory), await outcome(session.remember("next")), await same(memory)])
        """
    )
    lab.run(SHORT, seconds=20.0)
    code, reading, took = found
    # Nobody knows yet whether it will be kept: neither acknowledged nor shown.
    assert (code, reading) == ("storage_blocked", "storage_blocked")
    assert 0.8 < took < 6
    # It was, once the other page let go; the disk decides.
    assert after == [["kept", "late"], True, "ok", True]


def test_site_data_cleared_under_a_live_page_is_reported(lab: Lab):
    lab.run("memory, session = await started()\nawait session.remember('kept')")
    lab.site.overrides["/clear"] = Override(body=b"", headers={"Clear-Site-Data": '"storage"'})
    lab.page.evaluate("fetch('/clear').then(({ status }) => status)")
    lab.page.wait_for_timeout(500)
    found = lab.run(
        """
        code = await outcome(session.remember("late"))
        answer([code, f"py-memory:{NAME}" in await stored.databases()])
        """
    )
    assert found == ["storage_lost", False]


def test_the_worker_speaks_in_strings_and_buffers(lab: Lab):
    found = lab.run(
        """
        from py_memory.browser.worker import dispatch
        said = []
        async def call(method, binary=None, **args):
            ok, text, buffers, storage, change = await dispatch(method, json.dumps(args), binary)
            told = all(one is None or isinstance(one, str) for one in (storage, change))
            said.append([type(ok).__name__, type(text).__name__, told])
            return ok, json.loads(text), [bytes(part.to_bytes()) for part in buffers], storage
        early = (await call("metrics"))[1]["code"]
        opened = await call("open", name=NAME, time_zone="Europe/Paris", asset_base="/x/")
        twice = (await call("open", name=NAME))[1]["code"]
        await call("start_session", user_id="u_1", session_id="s_1")
        picture = js.Array.of(to_js(b"picture" * 100).buffer)
        kept = await call(
            "session.remember", picture, session_id="s_1", content={"$binary": 0}, type="image",
            media_type="image/png",
        )
        read = await call("timeline", user_id="u_1")
        wrong = [(await call(name, **args))[1]["code"] for name, args in (
            ("nothing", {}), ("find", {"user_id": "u_1", "x": 1}), ("session.recall", {"session_id": "s_9"}),
        )]
        broken = json.loads((await dispatch("metrics", "no json", None))[1])["code"]
        before = js.livingProxies()
        for n in range(100):
            await call("session.remember", session_id="s_1", content=f"n {n}")
            await call("session.recall", session_id="s_1", query="n 5")
        grown = js.livingProxies() - before
        raw = (await call("export_raw", name=NAME))[2][0][:15].decode()
        closed = await call("close")
        late = (await call("metrics"))[1]["code"]
        answer([
            early, opened[1]["storage"]["generation"], twice, kept[2] == [b"picture" * 100],
            kept[3] is not None, read[2] == kept[2], read[3], wrong, broken, grown, raw,
            closed[:2], late, all(one[2] for one in said),
        ])
        """
    )
    early, generation, twice, same_bytes, told, read_bytes, untold, wrong, broken, grown, raw, *rest = found
    assert (early, generation, twice, broken) == ("closed", 1, "already_open", "invalid_argument")
    assert same_bytes
    assert read_bytes
    assert told  # the generation moved
    assert untold is None  # a read changes nothing about the storage
    assert wrong == ["invalid_argument", "invalid_argument", "not_found"]
    assert grown <= 2
    assert raw == "SQLite format 3"
    assert rest == [[True, None], "closed", True]


def test_the_zones_are_those_of_the_zone_database(lab: Lab):
    zones = [
        "Europe/Paris",
        "America/St_Johns",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Asia/Shanghai",
        "UTC",
    ]
    moments = [1_000_000_000_000 + step * 5_000_000_017 for step in range(160)]
    found = lab.run(
        """
        from py_memory.browser.zones import intl_zones
        from py_memory.errors import InvalidArgument
        def refused(name):
            try:
                intl_zones(name, 0)
            except InvalidArgument:
                return True
        answer([[intl_zones(zone, at) for zone in zones for at in moments], refused("No/Where"), refused("")])
        """,
        zones=zones,
        moments=moments,
    )
    assert found == [[system_zones(zone, at) for zone in zones for at in moments], True, True]


NO_STORAGE = """
def hide(on):
    options = {"value": None, "configurable": True, "writable": True}
    given = to_js(options, dict_converter=js.Object.fromEntries)
    if on:
        js.Object.defineProperty(js.globalThis, "indexedDB", given)
    else:
        js.Reflect.deleteProperty(js.globalThis, "indexedDB")
"""


def test_without_storage_only_the_option_opens_a_memory_that_ends_with_the_page(
    lab: Lab, request: pytest.FixtureRequest
):
    other = another(lab, request)
    other.run(NO_STORAGE)
    found = other.run(
        """
        hide(True)
        refused = await outcome(open_memory(NAME))
        known = await outcome(open_memory(NAME, fallback="memory", existing=True))
        memory = await open_memory(NAME, fallback="memory")
        session = await memory.start_session("u_1")
        await session.remember("机票")
        hits = [hit.fragment.content for hit in await session.recall("机票")]
        state = await memory.persist()
        await memory.close()
        again = await open_memory(NAME, fallback="memory")
        left = await fragments(again)
        await again.close()
        answer([refused, known, hits, state["mode"], state["persisted"], left])
        """
    )
    assert found == ["storage_blocked", "storage_blocked", ["机票"], "memory", False, []]


def test_with_storage_the_fallback_is_not_taken(lab: Lab):
    found = lab.run(
        """
        memory = await open_memory(NAME, fallback="memory")
        answer([memory.storage["mode"], await outcome(open_memory(NAME + "x", fallback="disk"))])
        """
    )
    assert found[0] in {"best-effort", "persistent"}
    assert found[1] == "invalid_argument"


def test_a_fault_that_passes_is_no_reason_for_the_fallback(lab: Lab):
    found = lab.run(
        """
        js.faults.unopenable = 1
        code = await outcome(open_memory(NAME, fallback="memory"))
        memory = await open_memory(NAME, fallback="memory")
        answer([code, memory.storage["mode"] != "memory"])
        """
    )
    assert found == ["storage_lost", True]


@pytest.mark.parametrize("gone", ["never made", "deleted", "image dropped"])
def test_who_knows_of_a_memory_does_not_make_an_empty_one(lab: Lab, gone: str):
    found = lab.run(
        """
        if gone != "never made":
            memory, session = await started()
            await session.remember("kept")
            await memory.close()
            memory = await open_memory(NAME, existing=True)
            assert await fragments(memory) == ["kept"]
            await memory.close()
        if gone == "deleted":
            await stored._heard(js.indexedDB.deleteDatabase(f"py-memory:{NAME}"), "success")
        if gone == "image dropped":
            pages, _, _ = await stored.stored(NAME)
            await stored.change(NAME, pages=dict.fromkeys(pages), meta=None)
        try:
            await open_memory(NAME, existing=True)
            code = "ok"
        except PyMemoryError as error:
            code = [error.code, error.details.get("cause")]
        made = f"py-memory:{NAME}" in [entry.name for entry in await js.indexedDB.databases()]
        answer([code, made])
        """,
        gone=gone,
    )
    assert found == [["storage_lost", "vanished"], gone == "image dropped"]
