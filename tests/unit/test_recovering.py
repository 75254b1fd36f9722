"""Recovery: what can be read of a damaged database is saved, what is lost is counted, nothing is touched."""

import gzip
import json
import random
from pathlib import Path

import pytest

from py_memory import Memory, recover
from py_memory.errors import CorruptImage, InvalidArgument, PyMemoryError, SchemaNewer, StorageBlocked
from py_memory.recovering import salvaged
from tests.unit.helpers import opened

PAGE = 4096
OLD = Path(__file__).resolve().parents[1] / "fixtures" / "format-1"
IMAGE = gzip.decompress((OLD / "image.db.gz").read_bytes())


def rows(image: bytes, path: Path) -> dict[str, dict[int, tuple]]:
    path.write_bytes(image)
    with opened(str(path)) as memory:
        assert memory.check() == {"ok": True, "problems": []}
        return {
            table: {row[0]: row for row in memory.database.rows(f"SELECT * FROM {table}")}
            for table in ("users", "sessions", "fragments", "intents", "intent_terms", "changes")
        }


def page_of(image: bytes, text: bytes) -> int:
    at = image.index(text)
    assert image.find(text, at + 1) < 0
    return at // PAGE + 1


def without(image: bytes, *numbers: int) -> bytes:
    left = bytearray(image)
    for number in numbers:
        left[(number - 1) * PAGE : number * PAGE] = bytes(PAGE)
    return bytes(left)


def totals(report: dict, kind: str) -> int:
    return sum(table[kind] for table in report["tables"].values())


def test_what_is_whole_comes_back_whole(tmp_path):
    image, report = salvaged(IMAGE)
    assert report["complete"]
    assert not report["damage"]
    assert rows(image, tmp_path / "new.db") == rows(IMAGE, tmp_path / "old.db")


@pytest.mark.parametrize("number", range(1, len(IMAGE) // PAGE + 1))
def test_one_page_that_is_gone_costs_no_more_than_its_rows(number: int, tmp_path):
    before = rows(IMAGE, tmp_path / "old.db")
    image, report = salvaged(without(IMAGE, number), missing=[number])
    after = rows(image, tmp_path / "new.db")
    assert not report["complete"]
    assert report["damage"]["hole"] == 1
    for table in ("users", "sessions", "fragments", "intents", "changes"):
        told = report["tables"][table]
        read = {pk for pk, row in after[table].items() if before[table].get(pk) == row}
        assert len(read) + told["lost"] == len(before[table]), table
        assert len(after[table]) == told["rows"] + told["placeholders"], table


def test_rows_whose_parent_is_lost_get_a_placeholder(tmp_path):
    before = rows(IMAGE, tmp_path / "old.db")
    lost = [n for n in range(3, 47) if salvaged(without(IMAGE, n))[1]["tables"]["users"]["lost"]]
    image, report = salvaged(without(IMAGE, *lost))
    after = rows(image, tmp_path / "new.db")
    assert report["tables"]["users"] == {"rows": 0, "doubtful": 0, "placeholders": 2, "lost": 2}
    assert after["fragments"] == before["fragments"]
    assert {row[1] for row in after["users"].values()} == {"u_ann", "u_bo"}


def test_a_fact_whose_fragment_is_lost_stays(tmp_path):
    number = page_of(IMAGE, "不，我喜欢靠过道的座位".encode())
    image, report = salvaged(without(IMAGE, number))
    (tmp_path / "new.db").write_bytes(image)
    assert report["tables"]["fragments"]["placeholders"] == 2
    with opened(str(tmp_path / "new.db")) as memory:
        found = memory.find("u_ann", intent="prefers")
        assert [one.intent.entities for one in found] == [{"value": "过道"}]


def test_a_changed_byte_is_kept_and_said_where_it_is_known(tmp_path):
    at = IMAGE.index(b"window seat")
    changed = bytearray(IMAGE)
    changed[at] ^= 1
    _, blind = salvaged(changed)
    assert blind["complete"]  # plain SQLite has no checksum of content
    image, report = salvaged(changed, suspect=[at // PAGE + 1])
    assert not report["complete"]
    assert 0 < report["tables"]["fragments"]["doubtful"] < 30
    assert len(rows(image, tmp_path / "new.db")["fragments"]) == 30


def test_a_file_cut_short_and_one_grown(tmp_path):
    image, report = salvaged(IMAGE[: 45 * PAGE + 100])
    assert report["damage"]["truncated"] == 2
    assert report["damage"]["length"] == 1
    assert report["tables"]["users"]["rows"] == 2
    assert rows(image, tmp_path / "new.db")["users"]
    _, report = salvaged(IMAGE + bytes(PAGE))
    assert report["damage"] == {"extra": 1}
    assert totals(report, "lost") == 0


def test_what_was_erased_does_not_come_back(tmp_path):
    path = str(tmp_path / "one.db")
    with opened(path) as memory:
        session = memory.start_session("u_1", session_id="s_1")
        for number in range(300):
            session.remember(f"erased number {number} " * 20)
        memory.database.connection.execute("DELETE FROM fragments WHERE pk > 10")
        image = memory.export_image()
    for damaged in (image, without(image, 1), without(image, 2)):
        _, report = salvaged(damaged)
        assert report["tables"]["fragments"]["rows"] == 10


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_ends_in_a_sound_database_or_a_typed_error(seed: int, tmp_path):
    dice = random.Random(seed)
    damaged = bytearray(IMAGE)
    for _ in range(dice.choice([1, 20, 400])):
        at = dice.randrange(len(damaged))
        length = dice.choice([1, 4, 600])
        damaged[at : at + length] = dice.randbytes(len(damaged[at : at + length]))
    del damaged[dice.choice([len(damaged), dice.randrange(len(damaged))]) :]
    try:
        image, report = salvaged(damaged)
    except PyMemoryError as error:
        assert error.code in {"corrupt_image", "schema_newer"}  # noqa: PT017
        return
    kept = rows(image, tmp_path / "new.db")
    assert len(kept["fragments"]) == sum(
        report["tables"]["fragments"][kind] for kind in ("rows", "placeholders")
    )


def test_the_report_holds_no_content():
    _, report = salvaged(without(IMAGE, 1, 46))
    text = json.dumps(report, ensure_ascii=False)
    for word in ("Ann", "u_ann", "s_ann", "里昂", "window"):
        assert word not in text


def test_files_are_only_read_and_never_overwritten(tmp_path):
    source, target = tmp_path / "damaged.db", tmp_path / "new.db"
    source.write_bytes(without(IMAGE, 46))
    report = recover(str(source), str(target))
    assert report["tables"]["fragments"]["lost"] == 10
    assert source.read_bytes() == without(IMAGE, 46)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.db", "new.db"]
    with opened(str(target)) as memory:
        assert memory.search("u_bo", "公里")
    before = target.read_bytes()
    with pytest.raises(InvalidArgument):
        recover(str(source), str(target))
    assert target.read_bytes() == before
    with pytest.raises(StorageBlocked):
        recover(str(tmp_path / "none.db"), str(tmp_path / "other.db"))


def test_the_log_beside_the_file_counts(tmp_path):
    path = tmp_path / "live.db"
    with opened(str(path)) as memory:
        session = memory.start_session("u_1", session_id="s_1")
        session.remember("only in the log 机票")
        report = recover(str(path), str(tmp_path / "new.db"))
    assert report["complete"]
    with opened(str(tmp_path / "new.db")) as memory:
        assert [hit.fragment.content for hit in memory.search("u_1", "机票")] == ["only in the log 机票"]


def test_what_is_no_memory_and_what_is_newer_is_refused():
    for nothing in (b"", b"x" * 50_000, bytes(8 * PAGE)):
        with pytest.raises(CorruptImage):
            salvaged(nothing)
    newer = bytearray(IMAGE)
    newer[60:64] = (99).to_bytes(4, "big")
    with pytest.raises(SchemaNewer):
        salvaged(newer)


def test_recovery_of_today_gives_what_today_writes(memories):
    with Memory.open(":memory:") as memory:
        memory.start_session("u_1", session_id="s_1").remember("今天", state={"a": 1})
        image, report = salvaged(memory.export_image())
    assert report["complete"]
    assert memories().import_image(image)
