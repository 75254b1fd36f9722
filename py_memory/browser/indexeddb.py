"""The store of an image in IndexedDB: one database, every commit one transaction.

The epoch is checked without a round trip: each commit adds and deletes the key of its own epoch in
`fence`. Who takes the memory over puts that key there for good, so that the add fails and with it the
whole transaction, however late a frozen owner comes back.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import js
from pyodide.ffi import JsException, create_proxy, to_js

from py_memory.browser import faults
from py_memory.browser.events import Events
from py_memory.database import PAGE_SIZE
from py_memory.errors import CorruptImage, Internal, OwnerLost, PyMemoryError
from py_memory.image.form import PAGE_HEADER_BYTES, Bytes
from py_memory.image.store import BATCH, OutcomeUnknown

VERSION = 1
RECORD_BYTES = PAGE_HEADER_BYTES + PAGE_SIZE
STORES = ("pages", "meta", "fence")
OPEN_SECONDS = 10.0
BLOCKED_SECONDS = 2.0
COMMIT_SECONDS = 60.0
ASK_SECONDS = 10.0
_FENCE_KEPT = 10_000
_PUT_AT_ONCE = 256
# Together more than Chromium gathers before it begins a new log; each too small for a file of its own.
_FILLINGS = 72
_FILLING_BYTES = 60_000


def database_name(name: str) -> str:
    """Return the IndexedDB database (and Web Lock) of a memory's name."""
    return f"py-memory:{name}"


class IndexedDBStore:
    """One image's records in IndexedDB. Calls must not overlap."""

    def __init__(self, name: str, *, durability: str = "strict") -> None:
        """Prepare; `open` connects."""
        self.name = database_name(name)
        self.epoch = 0
        self.early: Any = None
        self._meta: object = None
        self._durability = to_js({"durability": durability}, dict_converter=js.Object.fromEntries)
        self._stores = to_js(STORES)
        self._events: Events | None = Events()
        self._on_close = create_proxy(self._closed)
        self._on_versionchange = create_proxy(self._versionchange)
        self._connection: Any = None
        self._outdated = False
        self._watched: tuple[asyncio.Future[str], float] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Connect, make the database if there is none, and raise the epoch.

        Raises:
            StorageBlocked: Something else holds the storage, or the browser refuses it.
            Outdated: A newer version of this code made it.
            StorageLost: The browser cannot open it.
        """
        await self._connect(create=True)
        await self._begin_log()
        await self._raise_epoch()

    async def reconnect(self) -> None:
        """Connect again; a database that is gone is not made again."""
        self._drop()
        await self._connect(create=False)

    async def meta(self) -> object:
        """Return the record about the image, or `None`."""
        self._meta = await self._ask(self._transaction("meta").objectStore("meta").get("image"))
        return self._meta

    async def count(self) -> int:
        """Return how many page records there are."""
        return int(await self._ask(self._transaction("pages").objectStore("pages").count()))

    async def read(self, count: int) -> AsyncIterator[Sequence[Bytes]]:
        """Give the records in batches; all are asked for at once, and each is let go when it is taken."""
        early = await self._read_early()
        while early is not None and early.length:
            batch = early.shift()
            yield _bytes_of_all(batch) if js.Array.isArray(batch) else _cut(batch)
        if early is not None:
            return
        pages = self._transaction("pages").objectStore("pages")
        events = self._heard()
        asked = []
        for first in range(1, count + 1, BATCH):
            request = pages.getAll(js.IDBKeyRange.bound(first, min(first + BATCH - 1, count)))
            asked.append((request, events.first(request, "success", "error")))
        asked.reverse()
        while asked:
            request, future = asked.pop()
            if await _bounded(future) == "error":
                raise faults.lost(faults.name_of(request.error))
            yield _bytes_of_all(request.result)

    async def _read_early(self) -> Any:
        """Return what was read before this store was opened, if nothing has been written since."""
        early, self.early = self.early, None
        if early is None:
            return None
        try:
            found = await asyncio.wait_for(early, OPEN_SECONDS)
        except (TimeoutError, JsException):
            return None
        # Every write changes the record about the image, its generation at least.
        same = found and isinstance(self._meta, str) and found.meta == self._meta
        return found.batches if same else None

    async def put(self, records: Iterable[tuple[int, bytes]], meta: str, end: int | None) -> None:
        """Keep records and the record about the image in one transaction; return at `complete`."""
        transaction = self._transaction(self._stores, "readwrite", self._durability)
        done = self._heard().first(transaction, "complete", "abort")
        try:
            fence = transaction.objectStore("fence")
            fence.add(0, self.epoch)
            fence.delete(self.epoch)
            pages = transaction.objectStore("pages")
            _put_all(pages, records)
            if end is not None:
                pages.delete(js.IDBKeyRange.lowerBound(end, True))
            transaction.objectStore("meta").put(meta, "image")
            transaction.commit()
        except BaseException as exc:
            _abort(transaction)
            if not isinstance(exc, JsException):
                raise
            if faults.name_of(exc) == "QuotaExceededError":
                raise await self._quota() from exc
            if not faults.means_lost(exc):
                raise faults.aborted(faults.name_of(exc)) from exc
            self._drop()
            raise OutcomeUnknown from exc
        await self._outcome(transaction, await self._settled(done))

    async def close(self) -> None:
        """Let go of the connection and of every proxy; twice does nothing."""
        if self._events is not None:
            self._drop()
            if self._timer is not None:
                self._timer.cancel()
            self._events.close()
            self._events = None
            self._on_close.destroy()
            self._on_versionchange.destroy()

    async def _connect(self, *, create: bool) -> None:
        if self._outdated:
            raise faults.outdated()
        connection = await Opening(self.name, create=create).connection()
        missing = [name for name in STORES if not connection.objectStoreNames.contains(name)]
        if missing:
            connection.close()
            message = "The storage of this name holds something else; nothing was changed."
            raise CorruptImage(message, kind="stores", missing=missing)
        connection.onclose = self._on_close
        connection.onversionchange = self._on_versionchange
        self._connection = connection

    async def _begin_log(self) -> None:
        """Make Chromium begin a new log before anything else is written to the one that it found.

        A killed browser may leave half a record at the end of LevelDB's log. Chromium goes on writing behind
        it, finds the log damaged when it starts again, and then deletes all that the site has stored
        (google/leveldb#1287). A log is ended when more than 4 MiB are written to it.
        """
        if not js.Reflect.has(js.IDBVersionChangeEvent.prototype, "dataLoss"):
            return  # another browser, with another store
        filling = js.Uint8Array.new(_FILLING_BYTES)
        # A precaution, and no condition of opening.
        with suppress(PyMemoryError):
            for filled in (True, False):
                transaction = self._transaction("fence", "readwrite")
                done = self._heard().first(transaction, "complete", "abort")
                fence = transaction.objectStore("fence")
                if filled:
                    for key in range(-_FILLINGS, 0):
                        fence.put(filling, key)
                else:
                    fence.delete(js.IDBKeyRange.upperBound(-1))
                transaction.commit()
                await self._outcome(transaction, await _bounded(done))

    async def _raise_epoch(self) -> None:
        for _ in range(3):
            cursor = await self._ask(
                self._transaction("fence").objectStore("fence").openKeyCursor(None, "prev")
            )
            last = int(cursor.key) if cursor else -1
            transaction = self._transaction("fence", "readwrite", self._durability)
            done = self._heard().first(transaction, "complete", "abort")
            fence = transaction.objectStore("fence")
            # Only one of two that raise the same epoch at once can add its key.
            fence.add(1, last + 1)
            fence.delete(js.IDBKeyRange.upperBound(last - _FENCE_KEPT))
            transaction.commit()
            try:
                await self._outcome(transaction, await _bounded(done))
            except OwnerLost:
                continue
            except OutcomeUnknown as exc:
                raise faults.lost() from exc
            self.epoch = last + 2
            return
        raise faults.blocked("other pages are opening this memory at the same time")

    async def _ask(self, request: Any) -> Any:
        """Wait for one reading request, in bounds: it stands behind every write begun before it."""
        if await _bounded(self._heard().first(request, "success", "error")) == "success":
            return request.result
        raise faults.lost(faults.name_of(request.error))

    async def _settled(self, done: "asyncio.Future[str]") -> str:
        """Wait for a commit, in bounds, with one timer for all of them.

        A timer for each would stay behind, with its proxy, until its minute is over.
        """
        loop = asyncio.get_running_loop()
        self._watched = (done, loop.time() + COMMIT_SECONDS)
        if self._timer is None:
            self._timer = loop.call_later(COMMIT_SECONDS, self._tick)
        return await done

    def _tick(self) -> None:
        self._timer = None
        if self._watched is None or self._watched[0].done():
            return
        done, deadline = self._watched
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            done.set_result("late")
        else:
            self._timer = loop.call_later(deadline - loop.time(), self._tick)

    async def _outcome(self, transaction: Any, kind: str) -> None:
        """Say what a transaction's end means."""
        if kind == "complete":
            return
        if kind == "late":
            # Behind another page's open transaction, it cannot be taken back once committed.
            self._drop()
            raise OutcomeUnknown
        error = transaction.error
        name = faults.name_of(error)
        if name == "QuotaExceededError":
            raise await self._quota()
        if name == "ConstraintError":
            raise faults.taken_over()
        if self._connection is None or faults.means_lost(error):
            self._drop()
            raise OutcomeUnknown
        # Some browsers abort for want of room without saying so.
        usage, limit = await estimate()
        if not name and usage is not None and limit is not None and usage >= limit:
            raise faults.quota(usage, limit)
        raise faults.aborted(name)

    def _transaction(self, *arguments: Any) -> Any:
        if self._connection is None:
            raise faults.outdated() if self._outdated else faults.lost()
        try:
            return self._connection.transaction(*arguments)
        except JsException as exc:
            self._drop()
            raise faults.lost(faults.name_of(exc)) from exc

    async def _quota(self) -> Exception:
        return faults.quota(*await estimate())

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.onclose = None
            connection.onversionchange = None
            connection.close()

    def _heard(self) -> Events:
        if self._events is None:
            message = "The store was used after it was closed."
            raise Internal(message)
        return self._events

    def _closed(self, _: Any) -> None:
        """The browser closed the connection by force."""
        self._connection = None

    def _versionchange(self, event: Any) -> None:
        """Another page wants a newer version, or to delete; hold neither up."""
        self._outdated = bool(event.newVersion)
        self._drop()


class Opening:
    """One attempt to open a database, whose late success is closed."""

    def __init__(self, name: str, *, create: bool, version: int | None = VERSION) -> None:
        """Prepare to open; with `create` the stores are made where there are none."""
        self._name = name
        self._create = create
        self._version = version
        self._refused = False
        self._blocked = False
        self._given_up = False
        self._proxy = create_proxy(self._heard)
        self._request: Any = None
        self._done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def connection(self) -> Any:
        """Return the open connection."""
        factory = getattr(js, "indexedDB", None)
        if not factory:
            self._proxy.destroy()
            raise faults.blocked("this browser has no IndexedDB here")
        try:
            arguments = (self._name,) if self._version is None else (self._name, self._version)
            request = self._request = factory.open(*arguments)
        except JsException as exc:
            self._proxy.destroy()
            raise faults.opening(exc) from exc
        for name in ("success", "error", "upgradeneeded", "blocked"):
            setattr(request, f"on{name}", self._proxy)
        limit = OPEN_SECONDS
        while not self._done.done() and limit > 0:
            step = min(0.25, limit)
            await asyncio.wait([self._done], timeout=step)
            limit = min(limit - step, BLOCKED_SECONDS) if self._blocked else limit - step
        if not self._done.done():
            self._given_up = True
            raise faults.blocked("another tab or the browser itself holds it up")
        if self._done.result() == "success":
            return request.result
        if self._refused:
            raise faults.vanished()
        raise faults.opening(request.error)

    def _heard(self, event: Any) -> None:
        kind = str(event.type)
        if kind == "blocked":
            self._blocked = True
        elif kind == "upgradeneeded":
            self._upgrade()
        else:
            if self._given_up and kind == "success":
                self._request.result.close()
            if not self._done.done():
                self._done.set_result(kind)
            self._proxy.destroy()

    def _upgrade(self) -> None:
        if not self._create or self._given_up:
            self._refused = True
            self._request.transaction.abort()
            return
        for name in STORES:
            self._request.result.createObjectStore(name)


async def estimate() -> tuple[int | None, int | None]:
    """Return the bytes used and allowed for this site, where the browser says so."""
    try:
        found = await js.navigator.storage.estimate()
        return int(found.usage), int(found.quota)
    except (JsException, AttributeError, TypeError, ValueError):
        return None, None


async def _bounded(future: "asyncio.Future[str]") -> str:
    """Wait for an event that has to come soon.

    Raises:
        StorageBlocked: It did not.
    """
    await asyncio.wait([future], timeout=ASK_SECONDS)
    if not future.done():
        raise faults.blocked("it does not answer, and a write may still be waiting behind another tab")
    return future.result()


def _put_all(pages: Any, records: Iterable[tuple[int, bytes]]) -> None:
    """Issue the puts: the browser walks a Map and calls `put(value, key)`, Python only makes the Map.

    Called from Python for each record, `put` takes twice as long. `to_js` copies out of the runtime's
    memory: a view on it would change later.
    """
    left = iter(records)
    while batch := dict(islice(left, _PUT_AT_ONCE)):
        values = to_js(batch, dict_converter=js.Map.new)
        number, record = next(iter(batch.items()))
        if values.get(number).buffer.byteLength != len(record):
            message = "A page would have been stored as a view on a larger buffer."
            raise Internal(message)
        values.forEach(pages.put, pages)


def _bytes_of_all(records: Any) -> list[bytes]:
    """Return the records' bytes; what is no byte array counts as empty, and fails its check."""
    try:
        return [record.to_bytes() for record in records]
    except (AttributeError, TypeError, JsException):
        return [record.to_bytes() if hasattr(record, "to_bytes") else b"" for record in records]


def _cut(whole: Any) -> list[memoryview]:
    """Return the records of a portion that came in one piece."""
    view = memoryview(whole.to_bytes())
    return [view[start : start + RECORD_BYTES] for start in range(0, len(view), RECORD_BYTES)]


def _abort(transaction: Any) -> bool:
    try:
        transaction.abort()
    except JsException:
        return False
    return True
