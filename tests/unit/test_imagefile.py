# ruff: noqa: E501, ARG005 - tables of cases, one case a line
"""The image: a plain SQLite file out, a checked one in, all or nothing."""

import sqlite3

import pytest

from py_memory import schema
from py_memory.errors import CorruptImage, InvalidArgument, SchemaNewer
from tests.unit.helpers import contents, counts, dump, opened, without_time


def live(memory, word="tea"):
    session = memory.start_session("u_1", user_name="Ann", session_id=f"s_{word}")
    session.remember(
        f"green {word}", intents=[{"name": "likes", "entities": {"drink": word}}], state={"a": 1}
    )
    session.remember(b"\x89PNG" * 3000, media_type="image/png")
    session.remember_many([{"content": f"{word} number {n}"} for n in range(30)])
    return memory


def plain(image, tmp_path):
    """Open an image as every other tool does: as a file."""
    path = tmp_path / "plain.db"
    path.write_bytes(image)
    connection = sqlite3.connect(path)
    rows = connection.execute("PRAGMA integrity_check").fetchall()
    return connection, rows


@pytest.fixture(params=["memory", "file", "owned"])
def lived(request, memories, tmp_path):
    """A memory of each kind that can be opened."""
    path = ":memory:" if request.param == "memory" else str(tmp_path / "a.db")
    return live(memories(path, owned=request.param == "owned"))


def test_an_exported_image_is_a_plain_sqlite_file(lived, tmp_path):
    image = lived.export_image()
    assert image[:16] == b"SQLite format 3\x00"
    assert image[18:20] == b"\x01\x01"
    connection, checked = plain(image, tmp_path)
    assert checked == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert connection.execute("SELECT count(*) FROM fragments").fetchone() == (32,)
    assert connection.execute("SELECT data FROM fragments WHERE type = 'image'").fetchone() == (
        b"\x89PNG" * 3000,
    )
    connection.close()
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("plain")] == ["plain.db"]


def test_an_exported_image_holds_what_was_counted_and_what_is_in_the_log(lived, tmp_path):
    lived.search("u_1", "green")
    connection, _ = plain(lived.export_image(), tmp_path)
    assert connection.execute("SELECT max(access_count) FROM fragments").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize("kind", ["memory", "file", "owned"])
def test_an_image_replaces_everything_and_all_verbs_work_on(lived, memories, tmp_path, kind):
    image = lived.export_image()
    path = ":memory:" if kind == "memory" else str(tmp_path / "b.db")
    other = live(memories(path, owned=kind == "owned"), word="coffee")
    other.search("u_1", "coffee")
    report = other.import_image(image)
    assert report["fragments"] == 32
    assert without_time(other.export_json()) == without_time(lived.export_json())
    assert other.search("u_1", "coffee") == []
    assert contents(other.search("u_1", "green tea"))[0] == "green tea"
    assert contents(other.find("u_1", entities={"drink": "tea"})) == ["green tea"]
    other.session("s_tea").remember("white tea")
    assert contents(other.search("u_1", "white"))[0] == "white tea"
    assert other.check()["ok"]
    other.database.fold()
    other.close()
    if kind != "memory":
        again = memories(path, owned=kind == "owned")
        assert contents(again.search("u_1", "white"))[0] == "white tea"
        assert again.check()["ok"]


def test_an_exported_image_opens_as_a_memory(lived, memories, tmp_path):
    path = tmp_path / "copy.db"
    path.write_bytes(lived.export_image())
    other = memories(str(path))
    assert without_time(other.export_json()) == without_time(lived.export_json())


def test_an_image_comes_back_byte_for_byte_as_json(lived, memories):
    other = memories()
    other.import_image(bytearray(lived.export_image()))
    other.import_image(memoryview(other.export_image()))
    assert without_time(other.export_json()) == without_time(lived.export_json())


def edited(image, tmp_path, *statements):
    """Return an image that another program has written into."""
    path = tmp_path / "edited.db"
    path.write_bytes(image)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path.read_bytes()


def refused(memory, image, kind=CorruptImage):
    before = dump(memory)
    scores = [hit.score for hit in memory.search("u_1", "tea", touch=False)]
    with pytest.raises(kind) as caught:
        memory.import_image(image)
    assert dump(memory) == before
    assert [hit.score for hit in memory.search("u_1", "tea", touch=False)] == scores
    memory.start_session("u_1").remember("works on")
    memory.database.fold()
    assert memory.check()["ok"]
    return caught.value


def zeroed(image, start, length=4096):
    return image[:start] + bytes(length) + image[start + length :]


DAMAGED = {
    "nothing": lambda image: b"",
    "a few bytes": lambda image: image[:50],
    "only the header": lambda image: image[:100],
    "cut short": lambda image: image[: len(image) // 2],
    "cut within a page": lambda image: image[:-100],
    "another header": lambda image: b"x" + image[1:],
    "a page of zeros": lambda image: zeroed(image, 4096 * 2),
    "a page late": lambda image: zeroed(image, (len(image) // 4096 - 2) * 4096),
    "two pages exchanged": lambda image: image[: 4096 * 3] + image[4096 * 4 : 4096 * 5] + image[4096 * 3 : 4096 * 4]
    + image[4096 * 5 :],
    "another page size": lambda image: image[:16] + b"\x10\x01" + image[18:],
    "text": lambda image: b"this is no database" * 1000,
    "flipped bits in the schema": lambda image: image[:3800] + bytes(byte ^ 0xFF for byte in image[3800:4096]) + image[4096:],
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_image_is_refused_and_nothing_changed(lived, damage):
    refused(lived, DAMAGED[damage](lived.export_image()))


@pytest.mark.parametrize("image", [None, "text", 5, [1, 2]])
def test_what_is_no_bytes_is_refused(lived, image):
    refused(lived, image, InvalidArgument)


def test_a_newer_image_is_refused_and_nothing_changed(lived, tmp_path):
    image = edited(lived.export_image(), tmp_path, f"PRAGMA user_version={schema.SCHEMA_VERSION + 1}")
    error = refused(lived, image, SchemaNewer)
    assert "Update py-memory" in str(error)


@pytest.mark.parametrize(
    "statements",
    [
        ("PRAGMA application_id=0",),
        ("PRAGMA user_version=0",),
        ("CREATE TRIGGER t AFTER INSERT ON fragments BEGIN DELETE FROM fragments; END",),
        ("CREATE VIEW v AS SELECT * FROM fragments",),
        ("PRAGMA foreign_keys=OFF", "DELETE FROM users"),
        ("DROP TABLE requests",),
        ("DROP INDEX intents_slot",),
        ("ALTER TABLE users DROP COLUMN profile",),
        ("ALTER TABLE fragments RENAME COLUMN speaker TO teller",),
        ("CREATE TABLE extra (a)",),
        ("CREATE INDEX extra ON fragments (length(content))",),
    ],
)
def test_a_foreign_image_is_refused_and_nothing_changed(lived, tmp_path, statements):
    refused(lived, edited(lived.export_image(), tmp_path, *statements))


def test_someone_elses_database_is_refused(lived, tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.commit()
    connection.close()
    error = refused(lived, (tmp_path / "other.db").read_bytes())
    assert error.details["kind"] == "foreign"


def test_an_image_of_another_page_size_is_taken_or_refused_whole(lived, tmp_path):
    image = edited(lived.export_image(), tmp_path, "PRAGMA page_size=8192", "VACUUM")
    before = dump(lived)
    try:
        lived.import_image(image)
    except CorruptImage:
        assert dump(lived) == before
    assert lived.check()["ok"]
    assert lived.database.row("PRAGMA page_size")[0] == 4096 or lived.database.path == ":memory:"


def test_an_image_whose_index_was_made_by_another_analysis_gets_a_new_one(lived, tmp_path):
    image = edited(
        lived.export_image(), tmp_path,
        "INSERT INTO text_index (text_index) VALUES ('delete-all')", "UPDATE properties SET value = '0'",
    )  # fmt: skip
    lived.import_image(image)
    assert contents(lived.search("u_1", "green"))[0] == "green tea"


def test_an_imported_image_is_one_transaction_that_a_reader_sees_whole(memories, tmp_path):
    path = str(tmp_path / "a.db")
    one = live(memories(path))
    with opened() as other:
        image = live(other, word="coffee").export_image()
    reader = memories(path)
    assert reader.search("u_1", "coffee") == []
    one.import_image(image)
    assert reader.search("u_1", "tea") == []
    assert contents(reader.search("u_1", "green coffee"))[0] == "green coffee"
    assert counts(reader) == counts(one)


def test_checking_tells_what_is_wrong(memories):
    memory = live(memories())
    assert memory.check() == {"ok": True, "problems": []}
    memory.database.connection.execute("PRAGMA foreign_keys=OFF")
    memory.database.connection.execute("DELETE FROM users")
    assert memory.check() == {"ok": False, "problems": ["rows that belong to nothing"]}
