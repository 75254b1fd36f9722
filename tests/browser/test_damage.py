"""Damage in a real page: noticed at opening, what can be read is saved, nothing is thrown away."""

import gzip
import json
from pathlib import Path

import pytest

from tests.browser.lab import Lab

OLD = Path(__file__).resolve().parents[1] / "fixtures" / "format-1"
TABLES = ("users", "sessions", "fragments", "intents", "changes", "requests")

PREPARE = (
    f"TABLES = {TABLES!r}\n"
    """
import base64
from dataclasses import replace
from py_memory.browser import recover
from py_memory.image.form import decode_meta, encode_meta, encode_page

async def refused():
    try:
        await open_memory(NAME)
    except PyMemoryError as error:
        return [error.code, error.details.get("kind")]

def rows_of(connection):
    found = {}
    for table in TABLES:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
        names = [column[0] for column in cursor.description]
        found[table] = [
            {name: value.hex() if isinstance(value, bytes) else value for name, value in zip(names, row)}
            for row in cursor
        ]
    return found

async def put_old(records):
    await (await open_memory(NAME)).close()
    now = (await stored.stored(NAME))[0]
    pages = {int(number): base64.b64decode(text) for number, text in records["pages"].items()}
    await stored.change(NAME, pages={**dict.fromkeys(now), **pages}, meta=records["meta"])
    return (await stored.stored(NAME))[:2]
"""
)


@pytest.mark.parametrize(
    ("damage", "kind", "told", "most_lost"),
    [
        ("pages={text: pages[text].replace(b'number 7', b'number 9', 1)}", "checksum", "checksum", 0),
        ("pages={text: None}", "hole", "hole", 20),
        ("pages={1: None}", "hole", "hole", 0),
        ("pages={max(pages): None}", "hole", "truncated", 20),
        ("pages={n: None for n in pages if n > text}", "hole", "truncated", 50),
        ("pages={max(pages) + 1: encode_page(max(pages) + 1, 1, bytes(4096))}", "count", "extra", 0),
        ("pages={late: before[late]}", "stale", "stale", 40),
        ("pages={late: pages[text], text: pages[late]}", "hole", "checksum", 40),
        ("meta=None", "meta", "meta", 0),
        ("meta=old_meta", None, "generation", 0),
    ],
)
def test_damage_is_noticed_and_what_can_be_read_is_saved(
    lab: Lab, damage: str, kind: str | None, told: str, most_lost: int
):
    found = lab.run(
        f"""
        memory, session = await started()
        for number in range(40): await session.remember(f"fragment number {{number}} " * 20)
        before, old_meta, _ = await stored.stored(NAME)
        for number in range(40, 60): await session.remember(f"fragment number {{number}} " * 20)
        await memory.close()
        pages, meta, _ = await stored.stored(NAME)
        text = min(n for n in pages if pages[n].count(b"fragment number 7 ") > 5)
        late = max(n for n in before if pages[n] != before[n] and b"fragment number" in before[n])
        await stored.change(NAME, {damage})
        damaged = (await stored.stored(NAME))[:2]
        first = await refused()
        raw = len(await export_raw(NAME))
        image, report = await recover(NAME)
        untouched = (await stored.stored(NAME))[:2] == damaged
        second, again = await recover(NAME, replace=True)
        memory = await open_memory(NAME)
        session = await memory.start_session("u_1", session_id="s_1")
        shown = [one.content for one in await memory.timeline("u_1", limit=200)]
        sound = await memory.check()
        await session.remember("机票 goes on")
        hits = [hit.fragment.content for hit in await session.recall("机票")][0]
        equal = await same(memory)
        newer = memory.storage["generation"] > decode_meta(meta).generation
        told = [first, raw > 4096 * 40, report, untouched, again == report]
        answer([*told, len(shown), sound["ok"], hits, equal, newer])
        """
    )
    first, raw, report, untouched, again, shown, sound, hits, equal, newer = found
    if kind is not None:
        assert first == ["corrupt_image", kind]
    assert first[0] == "corrupt_image"
    assert raw
    assert not report["complete"]
    assert told in report["damage"]
    assert untouched
    assert again
    assert 60 - most_lost <= shown <= 60
    assert (sound, hits, equal, newer) == (True, "机票 goes on", True, True)
    if told == "checksum" and not most_lost:
        assert report["tables"]["fragments"]["doubtful"] > 0


def test_a_live_memory_is_not_replaced(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        await session.remember("live")
        _, report = await recover(NAME)
        before = (await stored.stored(NAME))[:2]
        code = await outcome(recover(NAME, replace=True))
        answer([report["complete"], code, (await stored.stored(NAME))[:2] == before, await same(memory),
            await outcome(recover("nothing here"))])
        """
    )
    assert found == [True, "already_open", True, True, "not_found"]


def test_a_replacement_that_fails_leaves_the_damaged_image_whole(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        for number in range(30): await session.remember(f"fragment {number} " * 20)
        await memory.close()
        pages, _, _ = await stored.stored(NAME)
        await stored.change(NAME, pages={max(pages): None})
        before = (await stored.stored(NAME))[:2]
        js.faults.commits.push("abort")
        code = await outcome(recover(NAME, replace=True))
        unchanged = (await stored.stored(NAME))[:2] == before
        answer([code, unchanged, await outcome(recover(NAME, replace=True)), await refused()])
        """
    )
    assert found == ["aborted", True, "ok", None]


def test_records_of_the_first_format_open_with_equal_content(lab: Lab):
    records = json.loads(gzip.decompress((OLD / "records.json.gz").read_bytes()))
    expected = json.loads((OLD / "expected.json").read_text(encoding="utf-8"))
    found = lab.run(
        """
        before = await put_old(records)
        js.faults.commits.push("abort")
        half_way = await outcome(open_memory(NAME, clock=lambda: NOW))
        unchanged = (await stored.stored(NAME))[:2] == before
        memory = await open_memory(NAME, clock=lambda: NOW)
        rows = await memory._owner.run(lambda one: rows_of(one.database.connection))
        sound = await memory.check()
        found = [hit.fragment.content for hit in await memory.search("u_ann", "机票")]
        session = await memory.start_session("u_ann", session_id="s_ann")
        await session.remember("written after the upgrade")
        meta = decode_meta((await stored.stored(NAME))[1])
        answer([half_way, unchanged, rows, sound["ok"], found, meta.format, await same(memory)])
        """,
        records=records,
        NOW=1_780_000_100_000,
    )
    half_way, unchanged, rows, sound, hits, version, equal = found
    assert (half_way, unchanged) == ("aborted", True)
    assert {
        table: [{name: row[name] for name in expected[table][0]} for row in rows[table]] for table in expected
    } == expected
    assert sound
    assert hits[0] == "帮我订下周三去北京的机票"
    assert version >= 2
    assert equal
