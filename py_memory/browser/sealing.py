"""A memory with a passphrase: WebCrypto in web/sealing.js does the work, this hands it over.

Whoever loads Python imports that module first; it puts `pyMemorySealing` on the global scope.
"""

import re
from collections.abc import Awaitable, Sequence
from typing import Any

import js
from pyodide.ffi import JsException, to_js

from py_memory.browser import faults
from py_memory.browser.indexeddb import IndexedDBStore
from py_memory.errors import (
    BY_CODE,
    Aborted,
    CorruptImage,
    Internal,
    InvalidArgument,
    StorageLost,
    Unsupported,
    WrongPassphrase,
)
from py_memory.image.form import Bytes, damaged
from py_memory.image.keeper import RECONNECTS
from py_memory.image.sealed import KEY, Opened, SealedStore, Wrapped
from py_memory.image.store import RECORD_BYTES, OutcomeUnknown, Store

_SURROGATE = re.compile("[\ud800-\udfff]")
_WRONG = (
    "The passphrase does not open this memory, or it needs one and none was given. Nothing was changed:"
    " ask for it again."
)


async def unlock(store: IndexedDBStore, passphrase: str | None) -> tuple[Store, SealedStore | None]:
    """Return the store that the image is kept in, and one into which it has to be converted.

    Raises:
        WrongPassphrase: The image is sealed, and not with this passphrase.
        CorruptImage: The record of its key is damaged or missing (kind `key`).
        Unsupported: A passphrase was given and web/sealing.js is not loaded.
    """
    key, image = await store.get(KEY), await store.meta()
    if key is not None:
        return SealedStore(store, await sealing_of(key, passphrase)), None
    if image is not None and not isinstance(image, str):
        raise key_missing()
    if passphrase is None:
        return store, None
    made = await _answered(_port().create(passphrase))
    sealed = SealedStore(store, WebSealing(made.sealer), new_key=str(made.record))
    if image is None and await store.count() == 0:
        return sealed, None
    return store, sealed


async def sealing_of(key: object, passphrase: str | None) -> "WebSealing":
    """Return what opens the records of the store whose key this record holds."""
    if passphrase is None:
        raise WrongPassphrase(_WRONG)
    return WebSealing(await _answered(_port().unlock(key, passphrase)))


async def change(store: IndexedDBStore, passphrase: str, new_passphrase: str) -> None:
    """Store the same key under another passphrase: one record changes."""
    before = await store.get(KEY)
    if before is None:
        message = "This memory has no passphrase that could be changed: open it with one, and it is sealed."
        raise Unsupported(message)
    after = str(await _answered(_port().rewrap(before, passphrase, new_passphrase)))
    await put_key(store, str(before), after)


async def put_key(store: IndexedDBStore, before: object, after: object) -> None:
    """Put a key's record in the place of the one that it was made from.

    Raises:
        Aborted: Another has been stored since, or the storage aborted the write; it is as it was.
        QuotaExceeded, OwnerLost: The passphrase is the old one.
        StorageLost: It cannot be reached; the passphrase is one of the two.
    """
    if not (isinstance(before, str) and isinstance(after, str) and await store.get(KEY) == before):
        message = "The passphrase was changed elsewhere in the meantime: repeat with the one that counts now."
        raise Aborted(message)
    await store.own()
    for _ in range(RECONNECTS + 1):
        try:
            await store.write(_nothing, lambda about: about.put(after, KEY), None)
        except (OutcomeUnknown, StorageLost):
            await store.reconnect()  # and put it again: twice is once
        else:
            return
    raise faults.lost()


def key_missing() -> CorruptImage:
    """The image is sealed and there is nothing that could open it."""
    return damaged("key", "the record of its key is missing")


def checked(passphrase: object, option: str = "passphrase") -> str:
    """Return a passphrase if it is one.

    Raises:
        InvalidArgument: It is empty, or no text that can be written.
    """
    if isinstance(passphrase, str) and passphrase and not _SURROGATE.search(passphrase):
        return passphrase
    message = f"'{option}' is a text that is not empty."
    raise InvalidArgument(message, option=option)


class WebSealing:
    """Seals and opens with the browser's cryptography; records stay in JavaScript where they can."""

    def __init__(self, sealer: Any) -> None:
        """Stand on a `Sealer` of web/sealing.js."""
        self._sealer = sealer

    def taken(self, data: bytes) -> Any:
        """Return a copy outside the runtime's memory."""
        return to_js(data)

    async def seal(self, portions: Sequence[Any], chunks: Sequence[bytes], image: bytes) -> Wrapped:
        """Seal all that one transaction puts, in one call."""
        given = js.Array.new()
        for portion in portions:
            given.push(portion)
        sealed = await _answered(self._sealer.seal(given, RECORD_BYTES, to_js(list(chunks)), to_js(image)))
        # The browser walks the Map and calls put(value, key).
        return Wrapped(
            lambda pages: sealed.pages.forEach(pages.put, pages),
            lambda about: sealed.beside.forEach(about.put, about),
        )

    async def open_pages(self, first: int, batch: Any, generations: bytes) -> Opened:
        """Open a batch in one call."""
        numbers = to_js(list(range(first, first + int(batch.length))))
        opened = await _answered(self._sealer.openPages(numbers, batch, to_js(generations), RECORD_BYTES))
        return Opened(opened.whole.to_bytes(), opened.kind, int(opened.number))

    async def open_any(self, numbers: Sequence[int], batch: Any) -> Bytes:
        """Open the records of these pages whatever their generation; what fails is zeros."""
        opened = await _answered(self._sealer.openPages(to_js(list(numbers)), batch, None, RECORD_BYTES))
        return bytes(opened.whole.to_bytes())

    async def open_records(self, kind: str, records: Sequence[Any]) -> list[bytes | None]:
        """Open other records in one call."""
        given = js.Array.new()
        for record in records:
            given.push(record)
        opened = await _answered(self._sealer.openRecords(kind, given))
        return [record.to_bytes() if record else None for record in opened]


def _port() -> Any:
    found = getattr(js, "pyMemorySealing", None)
    if found is None:
        message = (
            "A passphrase needs the browser's cryptography: import py-memory/sealing.js where Python runs,"
            " before the memory is opened."
        )
        raise Unsupported(message)
    return found


async def _answered(promise: Awaitable[Any]) -> Any:
    """Wait for JavaScript; its errors are ours, with the same code and text."""
    try:
        return await promise
    except JsException as exc:
        error = getattr(exc, "js_error", exc)
        code = str(getattr(error, "code", ""))
        if code in BY_CODE:
            raise BY_CODE[code](str(error.message), **error.details.to_py()) from exc
        message = "The browser's cryptography failed; nothing was written. Reload the page and repeat."
        raise Internal(message, kind=faults.name_of(exc)) from exc


def _nothing(_: Any) -> None:
    """Put no page."""
