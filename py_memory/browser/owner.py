"""The owner of a memory in the browser: lock, store, files, and one call after the other."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar

import js
from pyodide.ffi import JsException

from py_memory import boundary
from py_memory.browser import faults, sealing
from py_memory.browser.checksum import fast_chain
from py_memory.browser.indexeddb import IndexedDBStore, estimate
from py_memory.browser.locks import WebLock, alone_name, require_secure_context
from py_memory.browser.opening import database_name
from py_memory.browser.zones import intl_zones
from py_memory.errors import Closed, InvalidArgument, QuotaExceeded, StorageBlocked
from py_memory.image.keeper import Keeper
from py_memory.image.store import MemoryStore, Store
from py_memory.memory import Memory
from py_memory.times import Clock

Result = TypeVar("Result")
DURABILITIES = ("strict", "relaxed")
FALLBACKS = (None, "memory")
_ESTIMATE_SECONDS = 10.0


class Owner:
    """One open memory and everything that must be let go of with it."""

    def __init__(self, name: str, durability: str, *, held: bool) -> None:
        """Prepare; use `Owner.open`."""
        self.name = name
        self._held = held
        self._folder = tempfile.mkdtemp(prefix="py-memory-")
        self._lock = WebLock(database_name(name), self._stolen)
        self._marker = WebLock(alone_name(name), self._stolen)
        self._stored = IndexedDBStore(name, durability=durability)
        self._in_memory = False
        self._keeper = self._keeper_of(self._stored)
        self._turn = asyncio.Lock()
        self._memory: Memory | None = None
        self._taken_over = False
        self._persisted = False
        self._usage: int | None = None
        self._quota: int | None = None
        self._estimated = 0.0
        self._estimating: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        name: str,
        *,
        settings: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        time_zone: str = "UTC",
        durability: str = "strict",
        held: bool = False,
        fallback: str | None = None,
        existing: bool = False,
        early: Any = None,
        passphrase: str | None = None,
    ) -> Self:
        """Take the name, read and check its image (or make a new one), and open the memory on it.

        With `held` the page has the name's lock already, for it shares the memory with other tabs.
        `early` is a promise of what was read before: it counts if the record about it is the same.
        With a `passphrase` a new image is sealed from the first byte, and a plain one is converted.
        With `fallback="memory"` a browser that refuses storage gets a memory that ends with the page;
        `storage()` says so. With `existing` nothing is made where nothing is stored, and there is no
        fallback: the caller knows that there was a memory.

        Raises:
            InvalidArgument: The name or an option is not usable.
            InsecureContext: The page has no locks.
            AlreadyOpen: Another page owns the name.
            WrongPassphrase: The image is sealed, and not with this passphrase.
            Unsupported: A passphrase was given and web/sealing.js is not loaded.
            CorruptImage, UnsupportedFormat, SchemaNewer: The stored image cannot be used; it is left
                as it is, and `raw_image` still gives its bytes.
            StorageBlocked, StorageLost, QuotaExceeded, Outdated: The storage cannot be used.
            StorageLost: With `existing`, the stored memory has vanished (cause `vanished`).
        """
        boundary.identifier(name, "name")
        if durability not in DURABILITIES:
            message = "'durability' is 'strict' or 'relaxed'."
            raise InvalidArgument(message, option="durability")
        if fallback not in FALLBACKS:
            message = "'fallback' is 'memory', or it is left out."
            raise InvalidArgument(message, option="fallback")
        if passphrase is not None:
            sealing.checked(passphrase)
        require_secure_context()
        owner = cls(name, durability, held=held)
        owner._stored.early = early
        try:
            await owner._open(
                settings, clock, time_zone, passphrase=passphrase, fallback=fallback, existing=existing
            )
        except BaseException:
            await owner._let_go()
            raise
        return owner

    async def run(self, verb: Callable[[Memory], Result], *, reads: bool = False) -> Result:
        """Run a verb when all calls before it are done; return when what it wrote is durable.

        A caller that stops waiting does not stop the call: it is done whole or not at all. One that
        only `reads` may still write down what was recalled, and does without where there is no room.
        """
        return await asyncio.shield(asyncio.ensure_future(self.serve(verb, reads=reads)))

    @property
    def term(self) -> int:
        """The number of this ownership: a later owner has a higher one."""
        return self._keeper.store.epoch

    @property
    def born(self) -> int:
        """When the stored image was made, in epoch milliseconds: another one is not this memory."""
        return self._keeper.meta.created_at if self._keeper.meta is not None else 0

    def storage(self) -> dict[str, Any]:
        """Return where the memory is kept: mode, persisted, usage and quota in bytes, generation."""
        return {
            "mode": self._mode(),
            "persisted": self._persisted,
            "usage": self._usage,
            "quota": self._quota,
            "generation": self._keeper.generation,
        }

    async def refresh(self) -> dict[str, Any]:
        """Ask the browser anew for room and persistence, and return the state of the storage."""
        await self._estimate()
        return self.storage()

    async def persist(self) -> dict[str, Any]:
        """Ask the browser to keep the storage, and return its state; in a worker there is nobody to ask."""
        if not self._in_memory:
            with suppress(JsException, AttributeError):
                await js.navigator.storage.persist()
        return await self.refresh()

    async def close(self) -> None:
        """Make durable what is left, and let go of lock, connection and files; twice does nothing."""
        async with self._turn:
            memory, self._memory = self._memory, None
            if memory is None:
                return
            try:
                await self._keeper.settle()
                # What is left are only counts of what was recalled: no reason to fail for want of room.
                with suppress(QuotaExceeded):
                    if memory.database.is_open:
                        memory.engine.flush()
                        await self._keeper.keep()
            finally:
                with suppress(Exception):
                    memory.database.close()
                await self._let_go()

    async def _open(
        self,
        settings: Mapping[str, Any] | None,
        clock: Clock | None,
        zone: str,
        *,
        passphrase: str | None,
        fallback: str | None,
        existing: bool,
    ) -> None:
        if not self._held:
            await self._lock.take()
            # Tells pages that share a memory that this owner does not, and is not to be robbed.
            await self._marker.take()
        converted = None
        try:
            await self._stored.open(create=not existing)
        except StorageBlocked as exc:
            if fallback is None or existing or exc.details.get("cause") != faults.REFUSED:
                raise
            store = MemoryStore()
            await store.open()
            self._in_memory = True
            self._keeper = self._keeper_of(store)
        else:
            self._keeper.store, converted = await sealing.unlock(self._stored, passphrase)
        # Beside the reading: the browser answers both from another process.
        self._estimating = asyncio.ensure_future(self._estimate())
        if not await self._keeper.load() and existing:
            raise faults.vanished()
        memory = Memory.open(
            self._keeper.path,
            settings=settings,
            clock=clock,
            time_zone=zone,
            zones=intl_zones,
            owned=True,
        )
        try:
            await self._keeper.adopt(memory.database, memory.engine.after_undo)
            if converted is not None:
                # Only what has passed every check: a damaged image is left as it is.
                await converted.convert()
                self._keeper.store = converted
        except BaseException:
            memory.database.close()
            raise
        if self._estimating is not None:
            await self._estimating
        # An owner that takes over is in a browser that has not been started since.
        if not existing and not self._in_memory:
            self._stored.begin_new_log()
        self._memory = memory

    async def change_passphrase(self, passphrase: str, new_passphrase: str) -> None:
        """Store the memory's key under another passphrase; return when that is durable."""
        old, new = sealing.checked(passphrase), sealing.checked(new_passphrase, "new_passphrase")
        changed = self._alone(lambda: sealing.change(self._stored, old, new))
        await asyncio.shield(asyncio.ensure_future(changed))

    async def change_key(self, before: object, after: object) -> None:
        """The same for a page that has made the new record of the key itself."""
        await self._alone(lambda: sealing.put_key(self._stored, before, after))

    async def _alone(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            self._opened()
            await self._keeper.settle()
            await work()

    def _opened(self) -> Memory:
        if self._memory is None:
            message = "This memory is closed: open it again."
            raise Closed(message)
        if self._taken_over:
            raise faults.taken_over()
        return self._memory

    async def serve(self, verb: Callable[[Memory], Result], *, reads: bool = False) -> Result:
        """Do the same for a caller that never stops waiting: a task less for every call."""
        async with self._turn:
            memory = self._opened()
            await self._keeper.settle()
            try:
                result = verb(memory)
            finally:
                # A verb that failed may have committed before; what is committed is kept.
                with suppress(*((QuotaExceeded,) if reads else ())):
                    await self._keep(memory)
            return result

    async def _keep(self, memory: Memory) -> None:
        connection = memory.database.connection
        if connection.in_transaction:
            connection.rollback()
        try:
            if await self._keeper.keep():
                self._estimate_later()
        except QuotaExceeded as exc:
            self._usage = exc.details.get("usage") or self._usage
            self._quota = exc.details.get("quota") or self._quota
            raise

    def _estimate_later(self) -> None:
        """Ask for usage and quota beside the calls: the answer takes longer than a small write."""
        if time.monotonic() - self._estimated > _ESTIMATE_SECONDS and self._estimating is None:
            self._estimating = asyncio.ensure_future(self._estimate())

    async def _estimate(self) -> None:
        self._estimated = time.monotonic()
        if self._in_memory:
            self._estimating = None
            return
        self._usage, self._quota = await estimate()
        with suppress(JsException, AttributeError):
            self._persisted = bool(await js.navigator.storage.persisted())
        self._estimating = None

    def _keeper_of(self, store: Store) -> Keeper:
        return Keeper(os.path.join(self._folder, "image.db"), store, verify=fast_chain())

    def _mode(self) -> str:
        if self._in_memory:
            return "memory"
        return "persistent" if self._persisted else "best-effort"

    async def _let_go(self) -> None:
        try:
            await self._stored.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            await self._marker.release()
            await self._lock.release()

    def _stolen(self) -> None:
        self._taken_over = True
