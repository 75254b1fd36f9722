"""The log reader against logs that SQLite wrote, and against damaged and unfinished ones."""

import os
import random
import struct

import pytest

from py_memory.database import Database
from py_memory.image.log import CHUNK_BYTES, FRAME_HEADER_BYTES, HEADER_BYTES, Log, chain, checksum

FRAME = 4096 + FRAME_HEADER_BYTES


@pytest.fixture
def database(tmp_path):
    one = Database(str(tmp_path / "image.db"), owned=True)
    one.connection.execute("CREATE TABLE notes (pk INTEGER PRIMARY KEY, body TEXT)")
    yield one
    one.close()


def add(database, rows=1, size=100):
    with database.atomic() as connection:
        for _ in range(rows):
            connection.execute("INSERT INTO notes (body) VALUES (?)", (os.urandom(size // 2).hex(),))


def rebuilt(log, sealed, image=b""):
    """Put the sealed pages over an image."""
    pages = bytearray(image.ljust(sealed.page_count * 4096, b"\0")[: sealed.page_count * 4096])
    for number, page in log.pages(sealed):
        if number <= sealed.page_count:
            pages[(number - 1) * 4096 : number * 4096] = page
    return bytes(pages)


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def rewrite(path, data):
    with open(path, "wb") as file:
        file.write(data)


def test_the_checksum_is_the_one_sqlite_writes(database):
    data = bytes_of(database.path + "-wal")
    assert checksum(0, 0, data[:24]) == struct.unpack(">2I", data[24:32])
    frames = memoryview(data)[HEADER_BYTES:]
    assert chain(frames, FRAME, *struct.unpack(">2I", data[24:32])) == len(frames) // FRAME


def test_the_sealed_pages_are_the_database(database):
    log = Log(database.path)
    add(database, 50)
    sealed = log.read()
    assert rebuilt(log, sealed) == database.connection.serialize()


def test_each_reading_begins_where_the_last_was_accepted(database):
    log = Log(database.path)
    log.accept(log.read())
    image = database.connection.serialize()
    assert log.read() is None

    add(database)
    first = log.read()
    assert log.read().offsets == first.offsets  # not accepted: read again
    image = rebuilt(log, first, image)
    log.accept(first)
    assert image == database.connection.serialize()
    assert log.frames() == (os.path.getsize(log.path) - HEADER_BYTES) // FRAME


def test_what_is_rolled_back_or_open_is_not_sealed(database):
    log = Log(database.path)
    log.accept(log.read())
    database.connection.execute("BEGIN")
    database.connection.execute("INSERT INTO notes (body) VALUES ('x')")
    assert log.read() is None
    database.connection.execute("ROLLBACK")
    assert log.read() is None


def test_frames_without_their_commit_are_left_alone(database):
    log = Log(database.path)
    log.accept(log.read())
    before = bytes_of(log.path)
    add(database, 300)
    after = bytes_of(log.path)
    assert len(after) - len(before) > 3 * FRAME
    rewrite(log.path, after[:-FRAME])
    assert log.read() is None
    rewrite(log.path, after[:-1])
    assert log.read() is None
    rewrite(log.path, after)
    assert log.read() is not None


@pytest.mark.parametrize("where", [0, 5, 9, 17, FRAME_HEADER_BYTES, FRAME - 1])
def test_a_frame_that_fails_its_checks_ends_the_reading(database, where):
    log = Log(database.path)
    log.accept(log.read())
    start = os.path.getsize(log.path)
    add(database)
    first = log.read()
    middle = os.path.getsize(log.path)
    add(database)
    data = bytearray(bytes_of(log.path))
    data[middle + where] ^= 1
    rewrite(log.path, data)
    assert log.read().position == first.position
    data[start + where] ^= 1
    rewrite(log.path, data)
    assert log.read() is None


def test_a_header_that_fails_its_checksum_is_no_log(database):
    data = bytearray(bytes_of(database.path + "-wal"))
    for where in (0, 4, 8, 16, 24):
        changed = bytearray(data)
        changed[where] ^= 1
        rewrite(database.path + "-wal", changed)
        assert Log(database.path).read() is None


def test_a_folded_log_is_a_new_one(database):
    log = Log(database.path)
    log.accept(log.read())
    salts = log.position.salts
    database.fold()
    assert log.read() is None
    assert log.position is None
    image = bytes_of(database.path)
    add(database)
    sealed = log.read()
    assert sealed.position.salts != salts
    assert rebuilt(log, sealed, image) == database.connection.serialize()


def test_a_log_begun_again_over_stale_frames_is_read_from_its_start(database):
    log = Log(database.path)
    add(database, 500)
    log.accept(log.read())
    long = os.path.getsize(log.path)
    # A checkpoint that does not truncate leaves the old frames behind the new ones.
    assert database.connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
    image = bytes_of(database.path)
    add(database)
    assert os.path.getsize(log.path) == long
    sealed = log.read()
    assert sealed.position.frames < 10
    assert rebuilt(log, sealed, image) == database.connection.serialize()


def test_a_transaction_of_many_pieces_is_read_whole(database):
    log = Log(database.path)
    add(database, 4_000, 1_000)
    sealed = log.read()
    assert os.path.getsize(log.path) > 3 * CHUNK_BYTES
    assert rebuilt(log, sealed) == database.connection.serialize()
    assert bytes(log.page(sealed, 1)) == database.connection.serialize()[:4096]
    assert log.page(sealed, 10**6) is None


def test_words_in_the_other_byte_order(database):
    add(database, 20)
    log = Log(database.path)
    expected = rebuilt(log, log.read())
    data = bytearray(bytes_of(log.path))
    data[3] |= 1
    sums = checksum(0, 0, bytes(data[:24]), ">")
    struct.pack_into(">2I", data, 24, *sums)
    for start in range(HEADER_BYTES, len(data), FRAME):
        sums = checksum(*sums, bytes(data[start : start + 8]), ">")
        sums = checksum(*sums, bytes(data[start + FRAME_HEADER_BYTES : start + FRAME]), ">")
        struct.pack_into(">2I", data, start + 16, *sums)
    rewrite(log.path, data)
    assert rebuilt(log, log.read()) == expected


def test_cutting_takes_back_what_was_not_accepted(tmp_path):
    path = str(tmp_path / "image.db")
    with_frames = Database(path, owned=True)
    with_frames.connection.execute("CREATE TABLE notes (pk INTEGER PRIMARY KEY, body TEXT)")
    log = Log(path)
    log.accept(log.read())
    kept = bytes_of(log.path)
    image = bytes_of(path)
    add(with_frames, 10)
    grown = bytes_of(log.path)
    with_frames.close()
    rewrite(path, image)
    rewrite(log.path, grown)
    log.cut(4096)
    assert bytes_of(log.path) == kept
    # Salts that are not those of the accepted position: all of the log is newer.
    rewrite(log.path, grown[:16] + b"otherone" + grown[24:])
    log.cut(4096)
    assert bytes_of(log.path) == b""
    os.unlink(log.path)
    log.cut(4096)
    assert not os.path.exists(log.path)


def test_the_pure_chain_on_random_frames():
    generator = random.Random(4)
    sums = (generator.getrandbits(32), generator.getrandbits(32))
    frames = bytearray()
    start = sums
    for _ in range(5):
        frame = bytearray(generator.randbytes(FRAME))
        sums = checksum(*sums, bytes(frame[:8]))
        sums = checksum(*sums, bytes(frame[FRAME_HEADER_BYTES:]))
        struct.pack_into(">2I", frame, 16, *sums)
        frames += frame
    assert chain(memoryview(frames), FRAME, *start) == 5
    frames[3 * FRAME + 50] ^= 4
    assert chain(memoryview(frames), FRAME, *start) == 3


def test_no_log_gives_nothing(tmp_path):
    log = Log(str(tmp_path / "none.db"))
    assert log.read() is None
    rewrite(log.path, b"short")
    assert log.read() is None
