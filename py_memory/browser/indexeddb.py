"""The store of an image in IndexedDB: one database, every commit one transaction.

The epoch is checked without a round trip: each commit adds and deletes the key of its own epoch in
`fence`. Who takes the memory over puts that key there for good, so that the add fails and with it the
whole transaction, however late a frozen owner comes back.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import js
from pyodide.ffi import JsException, create_proxy, to_js

from py_memory.browser import faults
from py_memory.browser.events import Events
from py_memory.browser.newlog import begin_new_log
from py_memory.browser.opening import OPEN_SECONDS, STORES, Opening, database_name
from py_memory.errors import CorruptImage, Internal, OwnerLost, QuotaExceeded
from py_memory.image.form import Bytes
from py_memory.image.store import BATCH, OutcomeUnknown, cut

COMMIT_SECONDS = 60.0
ASK_SECONDS = 10.0
_FENCE_KEPT = 10_000
_TRIED = -1
_PUT_AT_ONCE = 256


class IndexedDBStore:
    """One image's records in IndexedDB. Calls must not overlap."""

    # Whether this browser may be told to commit: the answer is the same for every store.
    _explicit: ClassVar[bool | None] = None

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
        self._unowned = False
        self._watched: tuple[asyncio.Future[str], float] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._new_log: asyncio.Future[None] | None = None

    async def open(self, *, create: bool = True) -> None:
        """Connect, make the database if there is none and `create` allows it, and raise the epoch.

        Raises:
            StorageBlocked: Something else holds the storage, or the browser refuses it.
            Outdated: A newer version of this code made it.
            StorageLost: The browser cannot open it, or there is none and `create` forbids to make it.
        """
        await self._connect(create=create)
        if IndexedDBStore._explicit is None:
            IndexedDBStore._explicit = await self._commits_whole()
        try:
            await self._raise_epoch()
        except QuotaExceeded:
            # What is stored can still be read; who writes has to find the room first.
            self._unowned = True

    async def own(self) -> None:
        """Raise the epoch now if there was no room for it when the store was opened.

        Raises:
            QuotaExceeded: There still is none.
            OwnerLost: An earlier owner has written since the image was read.
        """
        if not self._unowned:
            return
        await self._after_new_log()
        await self._raise_epoch()
        self._unowned = False
        known = _plain(self._meta)
        if _plain(await self.get("image")) != known:
            raise faults.taken_over()

    def begin_new_log(self) -> None:
        """See `newlog`; nobody waits for it but the next write."""
        if self._connection is not None:
            self._new_log = asyncio.ensure_future(begin_new_log(self._connection, self._heard()))

    async def reconnect(self) -> None:
        """Connect again; a database that is gone is not made again."""
        self._drop()
        await self._connect(create=False)

    async def meta(self) -> object:
        """Return the record about the image, or `None`."""
        self._meta = await self.get("image")
        return self._meta

    async def get(self, key: str) -> Any:
        """Return one record beside the pages, or `None`."""
        return await self._ask(self._transaction("meta").objectStore("meta").get(key))

    async def all_of(self, prefix: str) -> Sequence[Any]:
        """Return the records beside the pages whose keys are a prefix, a colon, and more."""
        wanted = js.IDBKeyRange.bound(f"{prefix}:", f"{prefix};", False, True)
        return list(await self._ask(self._transaction("meta").objectStore("meta").getAll(wanted)))

    async def count(self) -> int:
        """Return how many page records there are."""
        return int(await self._ask(self._transaction("pages").objectStore("pages").count()))

    async def read(self, count: int) -> AsyncIterator[Sequence[Bytes]]:
        """Give the records in batches."""
        async for batch in self.batches(count):
            yield bytes_of_all(batch) if js.Array.isArray(batch) else cut(batch.to_bytes())

    async def batches(self, count: int) -> AsyncIterator[Any]:
        """Give the records as JavaScript has them: arrays of them, or several in one piece.

        All are asked for at once, and each batch is let go when it is taken.
        """
        early = await self._read_early()
        while early is not None and early.length:
            yield early.shift()
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
            yield request.result

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
        same = found and self._meta is not None and _plain(found.meta) == _plain(self._meta)
        return found.batches if same else None

    async def put(self, records: Iterable[tuple[int, bytes]], meta: str, end: int | None) -> None:
        """Keep records and the record about the image in one transaction; return at `complete`."""
        # Made ready before: who is stopped while a transaction is open holds up everybody else.
        ready = list(_ready(records))
        await self.write(partial(_fill, ready), lambda about: about.put(meta, "image"), end)

    async def write(
        self, pages: Callable[[Any], None], beside: Callable[[Any], None], end: int | None
    ) -> None:
        """Let both object stores be filled in one transaction; drop the pages beyond `end`."""
        await self._after_new_log()
        transaction = self._transaction(self._stores, "readwrite", self._durability)
        done = self._heard().first(transaction, "complete", "abort")
        try:
            fence = transaction.objectStore("fence")
            fence.add(0, self.epoch)
            fence.delete(self.epoch)
            store = transaction.objectStore("pages")
            pages(store)
            if end is not None:
                store.delete(js.IDBKeyRange.lowerBound(end, True))
            beside(transaction.objectStore("meta"))
            self._commit(transaction)
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
            await self._after_new_log()
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

    async def _commits_whole(self) -> bool | None:
        """Find out whether an explicit commit undoes a transaction in which a request fails.

        Firefox 153 completes it, without that request, unless it was the last one: then a commit would
        pass the fence of a later owner, and a full disk would leave it half written. `None` is not known.
        """
        transaction = self._transaction("fence", "readwrite")
        done = self._heard().first(transaction, "complete", "abort")
        fence = transaction.objectStore("fence")
        for _ in range(2):
            fence.add(0, _TRIED)
        fence.delete(_TRIED)
        transaction.commit()
        if await _bounded(done) == "complete":
            return False
        # Where there is no room, that is why it was undone, and nothing is known.
        return faults.name_of(transaction.error or self._heard().failed) == "ConstraintError" or None

    async def _after_new_log(self) -> None:
        """Wait until the room for it was granted or refused.

        Chromium refuses what stands behind a request for more room than there is, however small.
        """
        if self._new_log is not None:
            await asyncio.wait([self._new_log])
            self._new_log = None

    def _commit(self, transaction: Any) -> None:
        """Let it end without waiting for its requests to be answered, where that is safe."""
        if self._explicit:
            transaction.commit()

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
            self._commit(transaction)
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
        error = transaction.error or self._heard().failed
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


def _fill(ready: list[Any], pages: Any) -> None:
    """Issue the puts: the browser walks a Map and calls `put(value, key)`; Python takes twice as long."""
    for batch in ready:
        batch.forEach(pages.put, pages)


def _ready(records: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    """Give JavaScript Maps of number to record.

    `to_js` copies out of the runtime's memory: a view on it would change later.
    """
    left = iter(records)
    while batch := dict(islice(left, _PUT_AT_ONCE)):
        values = to_js(batch, dict_converter=js.Map.new)
        number, record = next(iter(batch.items()))
        if values.get(number).buffer.byteLength != len(record):
            message = "A page would have been stored as a view on a larger buffer."
            raise Internal(message)
        yield values


def bytes_of_all(records: Any) -> list[bytes]:
    """Return the records' bytes; what is no byte array counts as empty, and fails its check."""
    try:
        return [record.to_bytes() for record in records]
    except (AttributeError, TypeError, JsException):
        return [record.to_bytes() if hasattr(record, "to_bytes") else b"" for record in records]


def _plain(record: Any) -> object:
    """Return a record beside the pages in a form that can be compared."""
    return record.to_bytes() if hasattr(record, "to_bytes") else record


def _abort(transaction: Any) -> bool:
    try:
        transaction.abort()
    except JsException:
        return False
    return True
