"""The keeper: what is acknowledged is stored, and what is not stored is not shown."""

import os
from dataclasses import replace

import pytest

from py_memory.database import Database
from py_memory.errors import Aborted, CorruptImage, OwnerLost, QuotaExceeded, StorageLost, UnsupportedFormat
from py_memory.image.form import decode_meta, encode_meta, encode_page, mark_of
from py_memory.image.keeper import FOLD_FRAMES, Keeper
from py_memory.image.store import MemoryStore
from tests.unit.seam_operations import drive

FRAME = 4096 + 24


class Kept:
    """A small database in keeping."""

    def __init__(self, path, store=None):
        self.store = store or MemoryStore()
        self.undone = 0
        self.path = path
        self.keeper = Keeper(path, self.store, now=lambda: 1_000)
        drive(self.store.open())
        self.loaded = drive(self.keeper.load())
        self.database = Database(path, owned=True)
        if not self.loaded:
            self.database.connection.execute("CREATE TABLE notes (pk INTEGER PRIMARY KEY, body TEXT)")
        try:
            drive(self.keeper.adopt(self.database, self._count_undo))
        except BaseException:
            self.close()
            raise

    def _count_undo(self):
        self.undone += 1

    def add(self, text="x", rows=1):
        with self.database.atomic() as connection:
            connection.executemany("INSERT INTO notes (body) VALUES (?)", [(text,)] * rows)

    def keep(self):
        return drive(self.keeper.keep())

    def settle(self):
        return drive(self.keeper.settle())

    @property
    def rows(self):
        return self.database.row("SELECT count(*) FROM notes")[0]

    @property
    def shown(self):
        return self.database.connection.serialize()

    @property
    def stored(self):
        return b"".join(self.store.shelf.pages[n][16:] for n in sorted(self.store.shelf.pages))

    def close(self):
        if self.database.is_open:
            self.database.close()
        self.keeper.remove_files()


@pytest.fixture
def kept(tmp_path):
    one = Kept(str(tmp_path / "image.db"))
    yield one
    one.close()


def reopened(kept, path):
    again = Kept(path, kept.store)
    rows = again.rows
    assert again.shown == again.stored
    again.close()
    return rows


def test_the_first_image_is_stored_whole(kept):
    assert kept.stored == kept.shown
    meta = decode_meta(kept.store.shelf.meta)
    assert (meta.generation, meta.created_at, meta.page_count) == (1, 1_000, len(kept.store.shelf.pages))
    assert kept.store.puts == 1


def test_one_transaction_is_one_put_of_the_pages_it_changed(kept):
    kept.add()
    before = dict(kept.store.shelf.pages)
    assert kept.keep() is True
    assert kept.store.puts == 2
    assert kept.keeper.generation == 2
    changed = [n for n, record in kept.store.shelf.pages.items() if before.get(n) != record]
    assert 0 < len(changed) <= 3
    assert kept.stored == kept.shown


def test_a_read_is_not_a_put(kept):
    assert kept.rows == 0
    assert kept.keep() is False
    assert kept.store.puts == 1


def test_what_is_stored_comes_back(kept, tmp_path):
    kept.add("a", 500)
    kept.keep()
    assert reopened(kept, str(tmp_path / "again.db")) == 500


def test_opening_alone_writes_nothing(kept, tmp_path):
    before = dict(kept.store.shelf.pages), kept.store.shelf.meta
    assert reopened(kept, str(tmp_path / "again.db")) == 0
    assert (kept.store.shelf.pages, kept.store.shelf.meta) == before


def test_pages_beyond_the_end_are_dropped(kept):
    kept.add("long " * 300, 400)
    kept.keep()
    many = len(kept.store.shelf.pages)
    kept.database.connection.execute("DELETE FROM notes")
    kept.database.connection.execute("VACUUM")
    kept.keep()
    assert len(kept.store.shelf.pages) < many / 10
    assert kept.stored == kept.shown


@pytest.mark.parametrize("error", [Aborted("no"), QuotaExceeded("full")])
def test_an_aborted_write_is_undone_and_the_next_works(kept, tmp_path, error):
    kept.add("kept")
    kept.keep()
    before = kept.shown
    kept.add("lost", 200)
    kept.store.abort.append(error)
    with pytest.raises(type(error)):
        kept.keep()
    assert kept.rows == 1
    assert kept.shown == before == kept.stored
    assert kept.undone == 1
    kept.settle()
    kept.add("next")
    assert kept.keep() is True
    assert kept.rows == 2
    assert kept.stored == kept.shown
    assert reopened(kept, str(tmp_path / "again.db")) == 2


def test_undo_of_the_first_write_after_a_fold(kept):
    kept.add("kept", 50)
    kept.keep()
    kept.database.fold()
    kept.add("lost")
    kept.store.abort.append(Aborted("no"))
    with pytest.raises(Aborted):
        kept.keep()
    assert kept.rows == 50
    assert kept.stored == kept.shown


def test_a_connection_lost_before_the_commit_is_opened_again_and_the_write_kept(kept):
    kept.add()
    kept.store.lose_before = 1
    assert kept.keep() is True
    assert kept.store.puts == 2
    assert kept.stored == kept.shown


def test_a_connection_lost_after_the_commit_is_not_written_twice(kept):
    kept.add()
    kept.store.lose_after = 1
    assert kept.keep() is True
    assert kept.store.puts == 2
    assert kept.keeper.generation == 2
    assert kept.undone == 0


def test_a_lost_connection_is_opened_at_most_three_times(kept):
    before = kept.shown
    kept.add()
    kept.store.lose_before = 1
    kept.store.down = 100
    with pytest.raises(StorageLost):
        kept.keep()
    assert kept.store.down == 97
    assert kept.shown == before == kept.stored
    with pytest.raises(StorageLost):
        kept.settle()
    assert kept.store.down == 94
    kept.store.down = 0
    kept.settle()
    kept.add()
    assert kept.keep() is True
    assert kept.rows == 1


def test_a_write_that_was_stored_though_nobody_heard_is_shown_later(kept):
    kept.add("stored")
    kept.store.lose_after = 1
    kept.store.down = 3
    with pytest.raises(StorageLost):
        kept.keep()
    assert kept.rows == 0
    kept.settle()
    assert kept.keeper.reloads == 1
    assert kept.rows == 1
    assert kept.shown == kept.stored
    kept.add("next")
    kept.keep()
    assert kept.keeper.generation == 3


def test_losing_the_connection_again_and_again_ends(kept):
    kept.add()
    kept.store.lose_before = 100
    with pytest.raises(StorageLost):
        kept.keep()
    assert kept.store.lose_before == 100 - 4
    assert kept.rows == 0


def test_a_robbed_owner_cannot_write(kept, tmp_path):
    thief = Kept(str(tmp_path / "thief.db"), MemoryStore(kept.store.shelf))
    kept.add("late")
    before = dict(kept.store.shelf.pages)
    with pytest.raises(OwnerLost):
        kept.keep()
    assert kept.store.shelf.pages == before
    assert kept.rows == 0
    thief.add("mine")
    assert thief.keep() is True
    thief.close()


def test_a_robbed_owner_that_lost_its_connection_learns_it(kept, tmp_path):
    thief = Kept(str(tmp_path / "thief.db"), MemoryStore(kept.store.shelf))
    thief.add("mine")
    thief.keep()
    kept.add("late")
    kept.store.connected = False
    with pytest.raises(OwnerLost):
        kept.keep()
    assert kept.rows == 0
    thief.close()


def test_the_log_is_bounded(kept):
    most = 0
    for _ in range(400):
        kept.add("text " * 500, 8)
        kept.keep()
        most = max(most, os.path.getsize(kept.path + "-wal"))
    # The bound, and the one transaction that crosses it.
    assert most <= 32 + (FOLD_FRAMES + 40) * FRAME
    assert most > FOLD_FRAMES // 2 * FRAME
    assert kept.stored == kept.shown


def test_an_open_cursor_delays_folding_and_fails_nothing(kept):
    kept.add("text " * 500, 3_000)
    cursor = kept.database.connection.execute("SELECT body FROM notes")
    cursor.fetchone()
    assert kept.keep() is True
    assert os.path.getsize(kept.path + "-wal") > FOLD_FRAMES * FRAME
    cursor.close()
    kept.add()
    kept.keep()
    assert os.path.getsize(kept.path + "-wal") == 0
    assert kept.stored == kept.shown


def page_with(kept, number, change):
    page = bytearray(kept.store.shelf.pages[number][16:])
    change(page)
    kept.store.shelf.pages[number] = encode_page(number, 1, bytes(page))


def flip(kept):
    kept.store.shelf.pages[2] = kept.store.shelf.pages[2][:500] + b"?" + kept.store.shelf.pages[2][501:]


def drop(kept):
    del kept.store.shelf.pages[2]


def drop_last(kept):
    del kept.store.shelf.pages[max(kept.store.shelf.pages)]


def drop_all(kept):
    kept.store.shelf.pages.clear()


def drop_meta(kept):
    kept.store.shelf.meta = None


def spoil_meta(kept):
    kept.store.shelf.meta = kept.store.shelf.meta.replace('"generation":', '"generation":9')


def swap(kept):
    kept.store.shelf.pages[2], kept.store.shelf.pages[3] = (
        kept.store.shelf.pages[3],
        kept.store.shelf.pages[2],
    )


def add_page(kept):
    number = max(kept.store.shelf.pages) + 1
    kept.store.shelf.pages[number] = encode_page(number, 1, bytes(4096))


def cut_record(kept):
    kept.store.shelf.pages[2] = kept.store.shelf.pages[2][:-1]


def newer_page(kept):
    kept.store.shelf.pages[2] = encode_page(2, 99, kept.store.shelf.pages[2][16:])


def other_header(kept):
    page_with(kept, 1, lambda page: page.__setitem__(slice(0, 6), b"NoSQLi"))


def broken_tree(kept):
    page_with(
        kept,
        3,
        lambda page: page.__setitem__(slice(0, 12), b"\x0d\x00\x00\xff\xff\x10\x00\x00\x07\x07\x07\x07"),
    )
    without_marks(kept)


def without_marks(kept):
    meta = replace(decode_meta(kept.store.shelf.meta), format=1, marks=None)
    kept.store.shelf.meta = encode_meta(meta)


def older_page(kept):
    pages = kept.store.shelf.pages
    before = dict(pages)
    kept.add("newer", 3)
    kept.keep()
    changed = [number for number in before if pages[number] != before[number] and number > 1]
    pages[changed[-1]] = before[changed[-1]]


def two_older_pages(kept):
    before = dict(kept.store.shelf.pages)
    kept.add("newer " * 50, 200)
    kept.keep()
    changed = [number for number in before if kept.store.shelf.pages[number] != before[number]]
    kept.store.shelf.pages.update({number: before[number] for number in changed[-2:]})


def newer_format(kept):
    kept.store.shelf.meta = encode_meta(replace(decode_meta(kept.store.shelf.meta), format=3))


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (flip, "checksum"),
        (drop, "hole"),
        (drop_last, "hole"),
        (drop_all, "hole"),
        (drop_meta, "meta"),
        (spoil_meta, "meta"),
        (swap, "hole"),
        (add_page, "count"),
        (cut_record, "record"),
        (newer_page, "generation"),
        (other_header, "header"),
        (broken_tree, "quick_check"),
        (older_page, "stale"),
        (two_older_pages, "stale"),
        (newer_format, None),
    ],
)
def test_a_damaged_image_is_refused_and_left_as_it_is(kept, tmp_path, damage, kind):
    kept.add("text " * 100, 200)
    kept.keep()
    damage(kept)
    before = dict(kept.store.shelf.pages), kept.store.shelf.meta
    path = str(tmp_path / "again.db")
    with pytest.raises(UnsupportedFormat if kind is None else CorruptImage) as caught:
        Kept(path, kept.store)
    if kind is not None:
        assert caught.value.details["kind"] == kind
    assert (kept.store.shelf.pages, kept.store.shelf.meta) == before
    assert not os.path.exists(path)


def test_the_sum_of_marks_follows_every_write(kept, tmp_path):
    for step in range(6):
        kept.add("long " * 300, 100)
        kept.keep()
        if step % 2:
            kept.database.connection.execute("DELETE FROM notes WHERE pk > 120")
            kept.database.connection.execute("VACUUM")
            kept.keep()
        kept.store.abort.append(Aborted("no"))
        kept.add("refused", 50)
        with pytest.raises(Aborted):
            kept.keep()
        meta = decode_meta(kept.store.shelf.meta)
        assert meta.marks == sum(mark_of(record) for record in kept.store.shelf.pages.values())
        assert reopened(kept, str(tmp_path / f"{step}.db"))


def test_an_image_of_the_first_format_opens_and_gets_its_marks(kept, tmp_path):
    kept.add("first", 10)
    kept.keep()
    without_marks(kept)
    again = Kept(str(tmp_path / "again.db"), kept.store)
    assert again.rows == 10
    again.add("second")
    again.keep()
    meta = decode_meta(kept.store.shelf.meta)
    assert (meta.format, meta.marks) == (2, sum(map(mark_of, kept.store.shelf.pages.values())))
    again.close()
