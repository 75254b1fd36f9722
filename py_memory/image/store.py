"""Where the pages of an image are kept: the port, and a store in memory."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from py_memory.database import PAGE_SIZE
from py_memory.errors import OwnerLost, StorageLost
from py_memory.image.form import PAGE_HEADER_BYTES, Bytes

BATCH = 1_024
"""Records are read in batches of this many (4 MiB of pages)."""

RECORD_BYTES = PAGE_HEADER_BYTES + PAGE_SIZE
"""The length of a page's record."""


def cut(whole: Bytes) -> list[memoryview]:
    """Return the records of a batch that came in one piece."""
    view = memoryview(whole)
    return [view[start : start + RECORD_BYTES] for start in range(0, len(view), RECORD_BYTES)]


class OutcomeUnknown(Exception):
    """The connection went away while a transaction was being made durable.

    It may have been kept or not; only the stored generation tells. Never leaves this package.
    """


class Store(Protocol):
    """One image's records. Every write is one transaction: all of it is kept or nothing."""

    epoch: int
    """The number of this ownership; a store in which someone raised it refuses our writes."""

    async def open(self) -> None:
        """Connect and raise the epoch, so that no earlier owner can write any more."""

    async def own(self) -> None:
        """Raise the epoch if there was no room for it when the store was opened; before every write.

        Raises:
            QuotaExceeded: There still is none.
            OwnerLost: An earlier owner has written since the image was read.
        """

    async def reconnect(self) -> None:
        """Connect again after the connection was lost, with the same epoch.

        Raises:
            StorageLost: It cannot be reached, or the stored image has vanished.
        """

    async def meta(self) -> object:
        """Return the record about the image as it is stored, or `None`."""

    async def count(self) -> int:
        """Return how many page records there are."""

    def read(self, count: int) -> AsyncIterator[Sequence[Bytes]]:
        """Give the records of the pages 1 to `count` in order, in batches of `BATCH` numbers.

        A number without a record is left out, so a batch may be short.
        """

    async def put(self, records: Iterable[tuple[int, bytes]], meta: str, end: int | None) -> None:
        """Keep records and the record about the image; drop the pages beyond `end` if it is given.

        Returns only when the transaction has completed.

        Raises:
            Aborted, QuotaExceeded, OwnerLost: Nothing was kept.
            StorageLost: The connection is gone; nothing was kept.
            OutcomeUnknown: The connection went away; it may have been kept.
        """

    async def close(self) -> None:
        """Let go of the connection; twice does nothing."""


@dataclass(slots=True)
class Shelf:
    """What a `MemoryStore` keeps; several stores may share one."""

    pages: dict[int, bytes] = field(default_factory=dict)
    meta: str | None = None
    fence: set[int] = field(default_factory=set)


class MemoryStore:
    """A store in a dictionary, for a page that gets no other; for tests it fails on request.

    `abort` holds errors for coming writes; `lose_before` and `lose_after` count writes that lose the
    connection before or after they are kept, `down` attempts to connect that fail.
    """

    def __init__(self, shelf: Shelf | None = None) -> None:
        """Use a shelf that others may use too, or an empty one."""
        self.shelf = shelf if shelf is not None else Shelf()
        self.epoch = 0
        self.puts = 0
        self.abort: list[Exception] = []
        self.lose_before = 0
        self.lose_after = 0
        self.down = 0
        self.connected = False

    async def open(self) -> None:
        """Connect and raise the epoch."""
        self._connect()
        last = max(self.shelf.fence, default=-1)
        self.shelf.fence.add(last + 1)
        self.epoch = last + 2

    async def own(self) -> None:
        """Do nothing: there is always room."""

    async def reconnect(self) -> None:
        """Connect again."""
        self._connect()

    async def meta(self) -> object:
        """Return the record about the image."""
        self._check()
        return self.shelf.meta

    async def count(self) -> int:
        """Return how many page records there are."""
        self._check()
        return len(self.shelf.pages)

    async def read(self, count: int) -> AsyncIterator[Sequence[Bytes]]:
        """Give the records in batches."""
        self._check()
        pages = self.shelf.pages
        for first in range(1, count + 1, BATCH):
            last = min(first + BATCH - 1, count)
            yield [pages[n] for n in range(first, last + 1) if n in pages]

    async def put(self, records: Iterable[tuple[int, bytes]], meta: str, end: int | None) -> None:
        """Keep all of it, or fail as told."""
        self._check()
        changed = dict(records)
        if self.epoch in self.shelf.fence:
            message = "Another page took this memory over."
            raise OwnerLost(message)
        if self.abort:
            raise self.abort.pop()
        if self.lose_before:
            self.lose_before -= 1
            self.connected = False
            raise OutcomeUnknown
        pages = self.shelf.pages
        pages.update(changed)
        if end is not None:
            for number in [number for number in pages if number > end]:
                del pages[number]
        self.shelf.meta = meta
        self.puts += 1
        if self.lose_after:
            self.lose_after -= 1
            self.connected = False
            raise OutcomeUnknown

    async def close(self) -> None:
        """Let go."""
        self.connected = False

    def _connect(self) -> None:
        if self.down:
            self.down -= 1
            message = "The storage cannot be reached."
            raise StorageLost(message)
        self.connected = True

    def _check(self) -> None:
        if not self.connected:
            message = "The connection to the storage is gone."
            raise StorageLost(message)
