"""A store whose records are sealed, above one that keeps them, with the list of their generations.

Sealing alone does not notice a record that was sealed earlier and is put back. So the generation of
every page is listed, in parts of `CHUNK_PAGES` pages that are records of their own, and the record
about the image lists the generations of the parts: a write seals the pages it changed, the few parts
that list them, and that one record, whatever the size of the image.
"""

import struct
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from py_memory.errors import CorruptImage, StorageLost
from py_memory.image.form import Bytes, damaged, decode_meta, verify_pages
from py_memory.image.store import BATCH, OutcomeUnknown, cut

CHUNK_PAGES = 256
"""So many pages' generations are one record (2 KiB)."""

GENERATIONS = "generations"
IMAGE = "image"
KEY = "key"

_HEAD = struct.Struct("<IQ")
_COUNT = struct.Struct("<I")
_WHY = {
    "record": "the record of page {} has a wrong length",
    "hole": "page {} is missing or in another's place",
    "number": "page {} is missing or in another's place",
    "generation": "page {} is not the one that was written last",
    "seal": "page {} does not open with the memory's key",
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A batch of pages' records in one piece; `kind` and `number` tell the first that failed."""

    records: Bytes
    kind: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What one transaction puts, sealed: each fills one of the two object stores."""

    pages: Callable[[Any], None]
    beside: Callable[[Any], None]


class Sealing(Protocol):
    """What seals and opens, with a key of its own. Records it gives are opaque here."""

    def taken(self, data: bytes) -> Any:
        """Return a copy that does not change any more, in whatever form `seal` needs."""

    async def seal(self, portions: Sequence[Any], chunks: Sequence[bytes], image: bytes) -> Wrapped:
        """Seal page records (in portions), parts of the list, and the record about the image.

        Parts and image begin with a header: number u32, generation u64; so do page records.
        """

    async def open_pages(self, first: int, batch: Any, generations: bytes) -> Opened:
        """Open the records that should be the pages from `first` on with these generations."""

    async def open_records(self, kind: str, records: Sequence[Any]) -> list[bytes | None]:
        """Open parts or the record about the image, header first; `None` for one that fails."""


class Below(Protocol):
    """The store that keeps what is sealed, and opaque records beside the pages."""

    epoch: int

    async def open(self) -> None:
        """Connect and raise the epoch."""

    async def own(self) -> None:
        """Raise the epoch if there was no room for it."""

    async def reconnect(self) -> None:
        """Connect again."""

    async def meta(self) -> object:
        """Return the record about the image as it is stored, or `None`."""

    async def all_of(self, prefix: str) -> Sequence[Any]:
        """Return the records beside the pages whose keys begin with a prefix and a colon."""

    async def count(self) -> int:
        """Return how many page records there are."""

    def batches(self, count: int) -> AsyncIterator[Any]:
        """Give the records of the pages 1 to `count`, in batches of `BATCH` numbers."""

    def read(self, count: int) -> AsyncIterator[Sequence[Bytes]]:
        """Give them as bytes: for records that are not sealed."""

    async def write(
        self, pages: Callable[[Any], None], beside: Callable[[Any], None], end: int | None
    ) -> None:
        """Let both object stores be filled in one transaction; drop the pages beyond `end`."""

    async def close(self) -> None:
        """Let go."""


@dataclass(slots=True)
class _Changes:
    """What a write makes of the list; it counts when the write is kept."""

    text: str
    chunks: dict[int, array[int]]
    stamps: array[int]


class SealedStore:
    """The store of a sealed image. Calls must not overlap."""

    def __init__(self, below: Below, sealing: Sealing, *, new_key: str | None = None) -> None:
        """Stand on a connected store; `new_key` is the record of a key that has not been stored."""
        self.below = below
        self._sealing = sealing
        self._new_key = new_key
        self._chunks: list[array[int]] = []
        self._stamps = _numbers(0)
        self._pending: _Changes | None = None

    @property
    def epoch(self) -> int:
        """The number of this ownership."""
        return self.below.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.below.epoch = epoch

    async def open(self) -> None:
        """Connect and raise the epoch."""
        await self.below.open()

    async def own(self) -> None:
        """Raise the epoch if there was no room for it."""
        await self.below.own()

    async def reconnect(self) -> None:
        """Connect again."""
        await self.below.reconnect()

    async def meta(self) -> object:
        """Return the record about the image, opened, or `None` where nothing has been stored."""
        stored = await self.below.meta()
        if stored is None:
            if self._new_key is None:
                raise damaged("meta", "the record about its pages is missing")
            return None
        opened = (await self._sealing.open_records(IMAGE, [stored]))[0]
        if opened is None:
            raise damaged("meta", "the record about its pages does not open with the memory's key")
        self._stamps, text = listed(opened)
        if self._pending is not None and self._pending.text == text:
            self._accept(self._pending)
        return text

    async def count(self) -> int:
        """Return how many page records there are."""
        return await self.below.count()

    async def read(self, count: int) -> AsyncIterator[Sequence[Bytes]]:
        """Open the records in batches, each checked against the list.

        Raises:
            CorruptImage: kind `seal`, `generation` (an older page, put back), `generations` (the list),
                `meta` (older than the list), `record`, `hole` or `number`.
        """
        await self._read_list(count)
        first = 1
        async for batch in self.below.batches(count):
            last = min(first + BATCH - 1, count)
            opened = await self._sealing.open_pages(first, batch, self._listed(first, last))
            if opened.kind is not None:
                raise damaged(opened.kind, _WHY[opened.kind].format(opened.number), page=opened.number)
            yield cut(opened.records)
            first = last + 1

    async def put(self, records: Iterable[tuple[int, bytes]], meta: str, end: int | None) -> None:
        """Seal records and the record about the image, and keep them in one transaction."""
        portions: list[Any] = []
        written: list[tuple[int, ...]] = []
        left = iter(records)
        while some := [record for _, record in islice(left, BATCH)]:
            written += [_HEAD.unpack_from(record) for record in some]
            portions.append(self._sealing.taken(b"".join(some)))
        await self._put(portions, written, meta, end)

    def start_over(self, pages: int) -> None:
        """Before all of a damaged image of so many pages is replaced: nothing of its list counts."""
        self._chunks = []
        self._stamps = _numbers(-(-pages // CHUNK_PAGES))

    async def convert(self) -> None:
        """Seal an image that was stored without a passphrase, all of it in one transaction.

        Raises:
            QuotaExceeded, Aborted, OwnerLost, StorageLost: It is as it was.
        """
        await self.below.own()
        text = await self.below.meta()
        meta = decode_meta(text)
        portions: list[Any] = []
        written: list[tuple[int, ...]] = []
        async for batch in self.below.read(meta.page_count):
            verify_pages(len(written) + 1, batch, meta)
            written += [_HEAD.unpack_from(record) for record in batch]
            portions.append(self._sealing.taken(b"".join(batch)))
        try:
            await self._put(portions, written, str(text), meta.page_count)
        except OutcomeUnknown as exc:
            message = (
                "The connection to the browser's storage was lost while the memory was being sealed; it is"
                " either sealed or as it was. Open it again with the passphrase."
            )
            raise StorageLost(message) from exc

    async def close(self) -> None:
        """Let go of the connection; twice does nothing."""
        await self.below.close()

    async def _put(
        self, portions: list[Any], written: list[tuple[int, ...]], text: str, end: int | None
    ) -> None:
        meta = decode_meta(text)
        changes = self._pending = self._changes(written, text, meta.page_count, meta.generation)
        chunks = [
            _HEAD.pack(index, meta.generation) + chunk.tobytes()
            for index, chunk in sorted(changes.chunks.items())
        ]
        stamps = changes.stamps
        image = b"".join(
            (
                _HEAD.pack(meta.page_count, meta.generation),
                _COUNT.pack(len(stamps)),
                stamps.tobytes(),
                text.encode(),
            )
        )
        sealed = await self._sealing.seal(portions, chunks, image)
        dropped = range(len(stamps), len(self._stamps))
        key = self._new_key

        def beside(about: Any) -> None:
            sealed.beside(about)
            for index in dropped:
                about.delete(f"{GENERATIONS}:{index}")
            if key is not None:
                about.put(key, KEY)

        await self.below.write(sealed.pages, beside, end)
        self._accept(changes)

    def _changes(
        self, written: list[tuple[int, ...]], text: str, page_count: int, generation: int
    ) -> _Changes:
        needed = -(-page_count // CHUNK_PAGES)
        chunks = {index: _numbers(CHUNK_PAGES) for index in range(len(self._chunks), needed)}
        for number, at in written:
            index, place = divmod(number - 1, CHUNK_PAGES)
            if index not in chunks:
                chunks[index] = self._chunks[index][:]
            chunks[index][place] = at
        # Two records about the image never list the same: an older one would not be noticed.
        if not chunks:
            chunks[0] = self._chunks[0][:]
        stamps = self._stamps[:needed] + _numbers(needed - len(self._stamps))
        for index in chunks:
            stamps[index] = generation
        return _Changes(text, chunks, stamps)

    def _accept(self, changes: _Changes) -> None:
        needed = len(changes.stamps)
        self._chunks = [
            changes.chunks[index] if index in changes.chunks else self._chunks[index]
            for index in range(needed)
        ]
        self._stamps = changes.stamps
        self._new_key = self._pending = None

    async def _read_list(self, count: int) -> None:
        if len(self._stamps) != -(-count // CHUNK_PAGES):
            raise _list_damaged("has another length than the image")
        stored = await self.below.all_of(GENERATIONS)
        found = {}
        for opened in await self._sealing.open_records(GENERATIONS, stored):
            if opened is None or len(opened) != _HEAD.size + 8 * CHUNK_PAGES:
                raise _list_damaged("does not open with the memory's key")
            index, generation = _HEAD.unpack_from(opened)
            found[index] = (generation, array("Q", opened[_HEAD.size :]))
        for index, stamp in enumerate(self._stamps):
            generation, _ = found.get(index, (0, None))
            if generation < stamp:
                raise _list_damaged("is older than the image, or lacks a part")
            if generation > stamp:
                raise damaged("meta", "the record about its pages is not the one that was written last")
        if len(found) != len(self._stamps) or len(stored) != len(found):
            raise _list_damaged("has parts that do not belong to it")
        self._chunks = [found[index][1] for index in range(len(found))]
        self._pending = None

    def _listed(self, first: int, last: int) -> bytes:
        """Return the generations of pages as u64 each; `BATCH` is a multiple of `CHUNK_PAGES`."""
        start, stop = (first - 1) // CHUNK_PAGES, -(-last // CHUNK_PAGES)
        return b"".join(chunk.tobytes() for chunk in self._chunks[start:stop])


def listed(opened: bytes) -> tuple["array[int]", str]:
    """Return what the opened record about the image holds: generations of the list's parts, its text."""
    count = _COUNT.unpack_from(opened, _HEAD.size)[0]
    start = _HEAD.size + _COUNT.size
    return array("Q", opened[start : start + 8 * count]), opened[start + 8 * count :].decode()


def _numbers(count: int) -> array[int]:
    return array("Q", bytes(8 * max(count, 0)))


def _list_damaged(why: str) -> CorruptImage:
    return damaged(GENERATIONS, f"the list of its pages' generations {why}")
