"""Keeps a database's image in a store: after each call the pages that changed, in one transaction.

What the connection shows never gets ahead of the store for longer than that one transaction: when it
fails, the log is cut back to what is kept and the connection opened again; when nobody knows whether
it failed, the stored generation tells.
"""

import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import FileIO

from py_memory.database import PAGE_SIZE, Database
from py_memory.errors import Internal, OwnerLost, StorageLost
from py_memory.image.form import (
    FORMAT,
    Meta,
    damaged,
    decode_meta,
    encode_meta,
    encode_page,
    mark_of,
    page_size_of,
    schema_of,
    verify_header,
    verify_pages,
)
from py_memory.image.log import CHUNK_BYTES, Chain, Log, Sealed, chain
from py_memory.image.store import BATCH, OutcomeUnknown, Store

FOLD_FRAMES = 1_000
"""A log of more frames than this (4 MiB) is folded into the database file, after its pages are kept."""

RECONNECTS = 3
"""A lost connection is opened again at most this often for one call."""

_CAN_DETACH = sys.version_info >= (3, 12)
_SUFFIXES = ("", "-wal", "-shm", "-journal")


def system_ms() -> int:
    """Return the present as epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Keeper:
    """Binds one database file to one store. Calls must not overlap; the owner serialises them."""

    def __init__(
        self,
        path: str,
        store: Store,
        *,
        verify: Chain = chain,
        now: Callable[[], int] = system_ms,
        fold_frames: int = FOLD_FRAMES,
    ) -> None:
        """Prepare; nothing is read or written before `load`."""
        self.path = path
        self.store = store
        self.log = Log(path, verify)
        self.meta: Meta | None = None
        self.reloads = 0
        self._now = now
        self._fold_frames = fold_frames
        self._database: Database | None = None
        self._after_undo: Callable[[], None] = _nothing
        self._text: object = None
        self._in_doubt = False
        self._marks = array("I")

    @property
    def generation(self) -> int:
        """The number of transactions kept so far; 0 before the first image."""
        return self.meta.generation if self.meta is not None else 0

    async def load(self) -> bool:
        """Write the stored image to the path; return whether there was one.

        Raises:
            CorruptImage: It fails its checks; `details["kind"]` says which.
            UnsupportedFormat: A newer version of this code wrote it.
        """
        self.remove_files()
        text = await self.store.meta()
        count = await self.store.count()
        if text is None and count == 0:
            return False
        meta = decode_meta(text)
        if meta.page_size != PAGE_SIZE or meta.page_count < 1:
            raise damaged("meta", "the record about its pages states impossible sizes")
        try:
            await self._write_file(meta)
            if count != meta.page_count:
                raise damaged("count", "there are more pages than its record states")
            if meta.marks is not None and meta.marks != sum(self._marks):
                raise damaged("stale", "a page is not the one that was written last")
        except BaseException:
            self.remove_files()
            raise
        self.meta, self._text = meta, text
        self.log.position = None
        return True

    async def adopt(self, database: Database, after_undo: Callable[[], None] | None = None) -> None:
        """Take the opened database into keeping: what opening it changed, or all of it, is stored.

        `after_undo` is called whenever the database was put back to an earlier state.

        Raises:
            CorruptImage: A loaded image fails SQLite's own check (kind `quick_check`).
        """
        self._database = database
        self._after_undo = after_undo or _nothing
        if self.meta is None:
            await self._store_whole(database)
            return
        if not _is_sound(database):
            raise damaged("quick_check", "SQLite finds its structure inconsistent")
        await self.keep()

    async def keep(self) -> bool:
        """Make durable what has been committed since the last time; return whether there was any.

        Raises:
            QuotaExceeded, Aborted, OwnerLost: Nothing was kept, and the database shows none of it.
            StorageLost: The store cannot be reached; the next call begins by asking it.
        """
        previous = self._meta()
        try:
            sealed = self.log.read()
            if sealed is None:
                return False
            await self.store.own()
            meta = replace(
                previous,
                page_count=sealed.page_count,
                generation=previous.generation + 1,
                epoch=self.store.epoch,
                schema=self._schema(sealed, previous),
                updated_at=self._now(),
            )
            changed = {number: mark_of(record) for number, record in self._records(sealed, meta)}
            meta = replace(meta, format=FORMAT, marks=self._sum_after(previous, meta, changed))
            end = meta.page_count if meta.page_count < previous.page_count else None
            await self._put(partial(self._records, sealed, meta), meta, end)
        except BaseException:
            self._undo()
            raise
        self._mark(meta, changed)
        self.log.accept(sealed)
        if self.log.frames() > self._fold_frames:
            self._fold()
        return True

    async def settle(self) -> None:
        """Before a call: if the last one left the outcome open, ask the store and follow it.

        Raises:
            StorageLost: It still cannot be reached.
            OwnerLost: Someone else has written since.
        """
        if not self._in_doubt:
            return
        stored, _ = await self._look_again(RECONNECTS)
        if stored != self._text:
            await self._reload()
            if self._meta().epoch != self.store.epoch:
                raise _taken_over()
        self._in_doubt = False

    async def _reload(self) -> None:
        """Replace the database's files with the stored image, and open the connection again."""
        database = self._open_database()
        self.reloads += 1
        if database.is_open:
            database.close()
        if not await self.load():
            message = "The stored memory has vanished: the site's data was cleared."
            raise StorageLost(message)
        database.attach()
        self._after_undo()

    def remove_files(self) -> None:
        """Remove the database file and what SQLite puts beside it."""
        for suffix in _SUFFIXES:
            with suppress(FileNotFoundError):
                os.unlink(self.path + suffix)

    async def _put(
        self, records: Callable[[], Iterator[tuple[int, bytes]]], meta: Meta, end: int | None
    ) -> None:
        """Put once; after a lost connection look what is stored, and put again if it was not."""
        text = encode_meta(meta)
        left = RECONNECTS
        while True:
            try:
                await self.store.put(records(), text, end)
                break
            except (OutcomeUnknown, StorageLost) as exc:
                self._in_doubt = True
                stored, left = await self._look_again(left, exc)
                if stored == text:
                    break
                if stored != self._text:
                    raise _taken_over() from exc
        self._in_doubt = False
        self.meta, self._text = meta, text

    async def _look_again(self, left: int, cause: Exception | None = None) -> tuple[object, int]:
        """Connect again, at most `left` times; return what is stored and how often is left."""
        while left > 0:
            left -= 1
            try:
                await self.store.reconnect()
                return await self.store.meta(), left
            except (StorageLost, OutcomeUnknown) as exc:
                cause = exc
        raise _lost() from cause

    def _undo(self) -> None:
        """Make the database show what is kept, and nothing after it; needs nothing of the store."""
        database = self._open_database()
        try:
            if _CAN_DETACH:
                database.detach()
            else:
                self._close_without_folding(database)
            self.log.cut(PAGE_SIZE)
            database.attach()
            self._after_undo()
        except Exception:  # noqa: BLE001  # the caller's error matters more; the next call reloads
            self._in_doubt = True
            self._text = None

    def _close_without_folding(self, database: Database) -> None:
        """Put back what closing folds in: Python before 3.12 cannot close without that."""
        before = {}
        for path in (self.path, self.log.path):
            with open(path, "rb") as file:
                before[path] = file.read()
        database.close()
        for path, data in before.items():
            with open(path, "wb") as file:
                file.write(data)

    async def _store_whole(self, database: Database) -> None:
        await self.store.own()
        database.fold()
        head = self._first_page()
        if page_size_of(head) != PAGE_SIZE:
            message = "The new database has another page size than it was given."
            raise Internal(message)
        now = self._now()
        meta = Meta(
            page_size=PAGE_SIZE,
            page_count=os.stat(self.path).st_size // PAGE_SIZE,
            generation=1,
            epoch=self.store.epoch,
            schema=schema_of(head),
            created_at=now,
            updated_at=now,
        )
        marks = {number: mark_of(record) for number, record in self._whole_file(meta)}
        meta = replace(meta, marks=sum(marks.values()))
        await self._put(partial(self._whole_file, meta), meta, meta.page_count)
        self._mark(meta, marks)
        self.log.position = None

    async def _write_file(self, meta: Meta) -> None:
        first = 1
        self._marks = array("I")
        with self._new_file(meta.page_count * meta.page_size) as file:
            async for records in self.store.read(meta.page_count):
                pages = verify_pages(first, records, meta)
                if len(pages) != min(BATCH, meta.page_count - first + 1):
                    raise damaged("hole", f"page {first + len(pages)} is missing")
                if first == 1:
                    verify_header(pages[0], meta)
                file.write(b"".join(pages))
                self._marks.extend(map(mark_of, records))
                first += len(pages)

    def _sum_after(self, previous: Meta, meta: Meta, changed: dict[int, int]) -> int:
        """Return the sum of the pages' marks once these have changed."""
        total = sum(self._marks) if previous.marks is None else previous.marks
        here = range(len(self._marks))
        total += sum(changed.values()) - sum(self._marks[n - 1] for n in changed if n - 1 in here)
        gone = range(meta.page_count, len(self._marks))
        return total - sum(self._marks[n] for n in gone)

    def _mark(self, meta: Meta, changed: dict[int, int]) -> None:
        """Note the marks of what is kept now."""
        del self._marks[meta.page_count :]
        self._marks.extend([0] * (meta.page_count - len(self._marks)))
        for number, mark in changed.items():
            self._marks[number - 1] = mark

    def _new_file(self, size: int) -> FileIO:
        """Make the file at its full size: growing it piece by piece would copy it again and again."""
        file = open(self.path, "wb", buffering=0)  # noqa: SIM115  # closed by the caller
        file.truncate(size)
        return file

    def _first_page(self) -> bytes:
        with open(self.path, "rb", buffering=0) as file:
            return file.read(PAGE_SIZE)

    def _whole_file(self, meta: Meta) -> Iterator[tuple[int, bytes]]:
        number = 0
        with open(self.path, "rb", buffering=0) as file:
            while data := file.read(CHUNK_BYTES):
                view = memoryview(data)
                for start in range(0, len(data), meta.page_size):
                    number += 1
                    page = view[start : start + meta.page_size]
                    yield number, encode_page(number, meta.generation, page)

    def _records(self, sealed: Sealed, meta: Meta) -> Iterator[tuple[int, bytes]]:
        for number, page in self.log.pages(sealed):
            if number <= meta.page_count:
                yield number, encode_page(number, meta.generation, page)

    def _schema(self, sealed: Sealed, previous: Meta) -> int:
        page = self.log.page(sealed, 1)
        return previous.schema if page is None else schema_of(page)

    def _fold(self) -> None:
        # The write is kept already: a log that cannot be folded now is folded after the next one.
        with suppress(Internal):
            self._open_database().fold()
            self.log.position = None

    def _meta(self) -> Meta:
        if self.meta is None:
            message = "Nothing has been loaded or stored yet."
            raise Internal(message)
        return self.meta

    def _open_database(self) -> Database:
        if self._database is None:
            message = "No database is in keeping yet."
            raise Internal(message)
        return self._database


def _is_sound(database: Database) -> bool:
    """Check the structure; row content is promised by the records' checksums already.

    The tables' CHECK constraints look at every value of every row, which doubles the time.
    """
    database.rows("PRAGMA ignore_check_constraints=ON")
    try:
        return bool(database.row("PRAGMA quick_check(1)")[0] == "ok")
    finally:
        database.rows("PRAGMA ignore_check_constraints=OFF")


def _nothing() -> None:
    """Do nothing after an undo: no caches stand on this database."""


def _taken_over() -> OwnerLost:
    return OwnerLost("Another page took this memory over: close it here and open it again.")


def _lost() -> StorageLost:
    return StorageLost(
        "The connection to the browser's storage was lost and could not be opened again; the write"
        " was not acknowledged. Reload the page; if that does not help, restart the browser."
    )
