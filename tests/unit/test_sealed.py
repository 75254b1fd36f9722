"""A sealed store under a seal that anybody could break: what is listed and noticed, what faults leave."""

import hashlib
import struct
from types import SimpleNamespace

import pytest

from py_memory import Memory
from py_memory.errors import Aborted, CorruptImage, OwnerLost, StorageLost, Unsupported
from py_memory.image.form import encode_page
from py_memory.image.sealed import CHUNK_PAGES, Opened, SealedStore, Wrapped
from py_memory.image.store import BATCH, RECORD_BYTES, MemoryStore, Shelf
from tests.unit.seam_operations import drive
from tests.unit.test_keeper import Kept

HEADER, SUM = 12, 32


class OpenSeal:
    """Seals by a checksum and by flipping bits."""

    def taken(self, data):
        return bytes(data)

    async def seal(self, portions, chunks, image):
        pages = [
            self._sealed("page", portion[at : at + RECORD_BYTES], 0)
            for portion in portions
            for at in range(0, len(portion), RECORD_BYTES)
        ]
        beside = {f"generations:{number(chunk)}": self._sealed("generations", chunk) for chunk in chunks}
        beside["image"] = self._sealed("image", image)
        return Wrapped(
            lambda store: [store.put(page, number(page)) for page in pages],
            lambda store: [store.put(record, key) for key, record in beside.items()],
        )

    async def open_pages(self, first, batch, generations):
        whole, fault = [], (None, 0)
        for place, record in enumerate(batch):
            wanted = generations[place * 8 : place * 8 + 8]
            kind = None
            if number(record) != first + place:
                kind = "hole"
            elif record[4:12] != wanted:
                kind = "generation"
            elif (page := self._opened("page", record)) is None:
                kind = "seal"
            whole.append(bytes(RECORD_BYTES) if kind else page)
            if kind and fault[0] is None:
                fault = (kind, first + place)
        return Opened(b"".join(whole), *fault)

    async def open_records(self, kind, records):
        opened = [self._opened(kind, record) for record in records]
        return [
            None if one is None else record[:HEADER] + one
            for one, record in zip(opened, records, strict=True)
        ]

    def _sealed(self, kind, record, start=HEADER):
        head, body = record[:HEADER], bytes(byte ^ 90 for byte in record[start:])
        return head + hashlib.sha256(kind.encode() + head + body).digest() + body

    def _opened(self, kind, record):
        head, body = record[:HEADER], record[HEADER + SUM :]
        if hashlib.sha256(kind.encode() + head + body).digest() != record[HEADER : HEADER + SUM]:
            return None
        return bytes(byte ^ 90 for byte in body)


class Beside(MemoryStore):
    """A store in memory that keeps records beside the pages too, and fails for both together."""

    def __init__(self, shelf=None, beside=None):
        super().__init__(shelf)
        self.beside = {} if beside is None else beside
        self.last: dict[str, set] = {}

    async def all_of(self, prefix):
        return [record for key, record in sorted(self.beside.items()) if key.startswith(f"{prefix}:")]

    def batches(self, count):
        return self.read(count)

    async def write(self, pages, beside, end):
        put, others = {}, {}
        pages(SimpleNamespace(put=lambda record, key: put.update({key: record})))
        store = SimpleNamespace(
            put=lambda record, key: others.update({key: record}),
            delete=lambda key: others.update({key: None}),
        )
        beside(store)
        before = self.puts
        try:
            await self.put(put.items(), others.pop("image"), end)
        finally:
            if self.puts != before:
                self.beside.update(others)
                for key in [key for key, record in self.beside.items() if record is None]:
                    del self.beside[key]
                self.last = {"pages": set(put), "beside": set(others)}


class SealedKept(Kept):
    """A small database in keeping, sealed; `below` is what anybody can read and change."""

    def __init__(self, path, below=None):
        new = None if below else "the key's record"
        self.below = below or Beside()
        super().__init__(path, SealedStore(self.below, OpenSeal(), new_key=new))

    @property
    def stored(self):
        seal = OpenSeal()
        pages = self.below.shelf.pages
        return b"".join(seal._opened("page", pages[one])[16:] for one in sorted(pages))


def number(record):
    return struct.unpack_from("<I", record)[0]


@pytest.fixture
def kept(tmp_path):
    one = SealedKept(str(tmp_path / "image.db"))
    yield one
    one.close()


def reopened(kept, folder):
    """Return the rows that are there when it is opened again, or the kind of the damage."""
    pages, meta, beside = copied(kept.below)  # with epochs of its own
    below = Beside(Shelf(pages, meta), beside)
    try:
        again = SealedKept(str(folder / "again.db"), below)
    except CorruptImage as error:
        return error.details["kind"]
    rows = again.rows
    again.close()
    return rows


def copied(below):
    return dict(below.shelf.pages), below.shelf.meta, dict(below.beside)


def test_a_new_image_is_sealed_whole_with_its_key(kept, tmp_path):
    assert kept.stored == kept.shown
    assert kept.below.puts == 1
    assert kept.below.beside["key"] == "the key's record"
    assert not any(b"SQLite format 3" in page for page in kept.below.shelf.pages.values())
    kept.add(rows=500)
    kept.keep()
    assert "key" not in kept.below.last["beside"]  # once
    assert reopened(kept, tmp_path) == 500


def test_a_write_seals_the_parts_of_the_list_whose_pages_it_changed(kept):
    kept.add("long " * 700, 1_000)
    kept.keep()
    parts = [key for key in kept.below.beside if key.startswith("generations")]
    assert len(parts) == -(-len(kept.below.shelf.pages) // CHUNK_PAGES) >= 4
    kept.add()
    kept.keep()
    changed = kept.below.last
    touched = {f"generations:{(page - 1) // CHUNK_PAGES}" for page in changed["pages"]}
    assert changed["beside"] == touched
    assert 0 < len(touched) <= len(changed["pages"]) <= 4


def test_a_batch_begins_where_a_part_of_the_list_does():
    assert BATCH % CHUNK_PAGES == 0


@pytest.mark.parametrize("rows", [10, 1_500])
def test_an_older_record_put_back_is_noticed(kept, tmp_path, rows):
    kept.add("long " * 700, rows)
    kept.keep()
    pages, meta, beside = copied(kept.below)
    kept.add("newer", 3)
    kept.keep()
    now_pages, now_meta, now_beside = copied(kept.below)
    now = kept.rows
    shelf = kept.below.shelf
    changed = [page for page in pages if pages[page] != now_pages[page]]
    assert changed
    for page in changed:
        shelf.pages[page] = pages[page]
        assert reopened(kept, tmp_path) == "generation"
        shelf.pages[page] = now_pages[page]
    parts = [key for key in beside if beside[key] != now_beside[key]]
    for part in parts:
        kept.below.beside[part] = beside[part]
        assert reopened(kept, tmp_path) == "generations"
        kept.below.beside[part] = now_beside[part]
    shelf.meta = meta
    assert reopened(kept, tmp_path) == "meta"
    # The list and the record about the image together.
    kept.below.beside.update({part: beside[part] for part in parts})
    assert reopened(kept, tmp_path) == "generation"
    kept.below.beside.update(now_beside)
    shelf.meta = now_meta
    assert reopened(kept, tmp_path) == now


def test_parts_that_are_missing_strange_or_too_many_are_noticed(kept, tmp_path):
    kept.add("long " * 700, 500)
    kept.keep()
    beside = kept.below.beside
    sound = dict(beside)
    del beside["generations:1"]
    assert reopened(kept, tmp_path) == "generations"
    beside["generations:1"] = sound["generations:0"]
    assert reopened(kept, tmp_path) == "generations"
    beside.update(sound)
    beside["generations:9"] = sound["generations:1"]
    assert reopened(kept, tmp_path) == "generations"
    del beside["generations:9"]
    beside["generations:1"] = sound["generations:1"][:-1] + b"?"
    assert reopened(kept, tmp_path) == "generations"
    beside.update(sound)
    assert reopened(kept, tmp_path) == 500
    kept.below.shelf.meta = None
    assert reopened(kept, tmp_path) == "meta"


def test_the_list_shrinks_with_the_image_and_old_pages_stay_out(kept, tmp_path):
    kept.add("long " * 700, 1_000)
    kept.keep()
    many_pages, _, many = copied(kept.below)
    kept.database.connection.execute("DELETE FROM notes")
    kept.database.connection.execute("VACUUM")
    kept.keep()
    few = len(kept.below.shelf.pages)
    assert sum(key.startswith("generations") for key in kept.below.beside) == 1 < len(many) - 1
    assert reopened(kept, tmp_path) == 0
    kept.below.shelf.pages[few + 1] = many_pages[few + 1]
    assert reopened(kept, tmp_path) == "count"
    del kept.below.shelf.pages[few + 1]
    kept.add("long " * 700, 1_000)
    kept.keep()
    assert reopened(kept, tmp_path) == 1_000
    kept.below.shelf.pages[few + 1] = many_pages[few + 1]
    assert reopened(kept, tmp_path) == "generation"


@pytest.mark.parametrize("fault", ["abort", "before", "after", "down", "after and down"])
def test_a_fault_leaves_the_list_with_what_is_kept(kept, tmp_path, fault):
    kept.add("kept", 5)
    kept.keep()
    kept.add("during", 700)
    if fault == "abort":
        kept.below.abort.append(Aborted("no"))
    kept.below.lose_before = int(fault in {"before", "down"})
    kept.below.lose_after = int("after" in fault)
    kept.below.down = 3 if "down" in fault else 0
    error = {"abort": Aborted, "down": StorageLost, "after and down": StorageLost}.get(fault)
    if error:
        with pytest.raises(error):
            kept.keep()
    else:
        kept.keep()
    kept.settle()
    rows = 5 if fault in {"abort", "down"} else 705
    assert kept.rows == rows
    assert reopened(kept, tmp_path) == rows
    kept.add("after")
    kept.keep()
    assert kept.stored == kept.shown
    assert reopened(kept, tmp_path) == rows + 1


def test_a_plain_image_is_converted_as_it_is(tmp_path):
    below = Beside(Shelf())
    plain = Kept(str(tmp_path / "image.db"), below)
    plain.add("long " * 700, 400)
    plain.keep()
    sealed = SealedStore(below, OpenSeal(), new_key="a key")
    before = dict(below.shelf.pages)
    below.abort.append(Aborted("no"))
    with pytest.raises(Aborted):
        drive(sealed.convert())
    assert below.shelf.pages == before
    below.lose_before = 1
    with pytest.raises(StorageLost):
        drive(sealed.convert())
    drive(below.reconnect())
    drive(sealed.convert())
    plain.keeper.store = sealed
    assert below.beside["key"] == "a key"
    assert not set(below.shelf.pages.values()) & set(before.values())
    plain.add()
    plain.keep()
    kept = SealedKept(str(tmp_path / "sealed.db"), below)
    assert kept.rows == 401
    kept.close()
    plain.close()


def test_a_damaged_plain_image_is_not_sealed(tmp_path):
    below = Beside(Shelf())
    plain = Kept(str(tmp_path / "image.db"), below)
    below.shelf.pages[2] = encode_page(3, 1, bytes(4096))
    before = dict(below.shelf.pages)
    with pytest.raises(CorruptImage):
        drive(SealedStore(below, OpenSeal(), new_key="a key").convert())
    assert below.shelf.pages == before
    plain.close()


def test_who_was_robbed_cannot_write(kept):
    kept.below.shelf.fence.add(kept.store.epoch)
    kept.add()
    with pytest.raises(OwnerLost):
        kept.keep()
    assert kept.rows == 0


def test_a_file_has_no_passphrase(tmp_path):
    with pytest.raises(Unsupported):
        Memory.open(str(tmp_path / "m.db"), passphrase="x")
    assert not (tmp_path / "m.db").exists()
