"""The stored bytes as they are, for when they no longer open."""

from typing import Any

import js

from py_memory.browser.events import Events
from py_memory.browser.faults import blocked, lost, name_of
from py_memory.browser.indexeddb import bytes_of_all
from py_memory.browser.opening import Opening, database_name
from py_memory.browser.sealing import WebSealing, checked, key_missing, sealing_of
from py_memory.database import PAGE_SIZE
from py_memory.errors import NotFound, StorageLost
from py_memory.image.form import PAGE_HEADER_BYTES
from py_memory.image.sealed import IMAGE, KEY, listed
from py_memory.image.store import BATCH, cut


async def raw_image(name: str, passphrase: str | None = None) -> bytes:
    """Return the pages of a memory as they are stored, unchecked; missing ones are zeros.

    Takes no lock and changes nothing, so that it works beside an owner and with a damaged image. Sealed
    pages are opened, of whatever generation they are; those that do not open are zeros.

    Raises:
        NotFound: Nothing is stored under the name.
        WrongPassphrase: The image is sealed, and not with this passphrase.
        CorruptImage: It is sealed, and the record of its key is damaged (kind `key`).
        StorageBlocked, StorageLost: The storage cannot be read.
    """
    records, _ = await stored_records(name, passphrase)
    return joined(records, max(records))


def joined(records: dict[int, bytes], count: int) -> bytes:
    """Return the pages 1 to `count` of records as one; missing ones are zeros."""
    image = bytearray(count * PAGE_SIZE)
    for number, record in records.items():
        page = record[PAGE_HEADER_BYTES:][:PAGE_SIZE]
        if number <= count:
            image[(number - 1) * PAGE_SIZE : (number - 1) * PAGE_SIZE + len(page)] = page
    return bytes(image)


async def stored_records(name: str, passphrase: str | None = None) -> tuple[dict[int, bytes], object]:
    """Return the records of the pages by number, and the one about the image, unchecked.

    Of a sealed memory they come opened, and what does not open is missing.

    Raises: as `raw_image`.
    """
    if passphrase is not None:
        checked(passphrase)
    try:
        connection = await Opening(database_name(name), create=False, version=None).connection()
    except StorageLost as exc:
        if exc.details.get("cause") == "vanished":
            raise _nothing() from exc
        raise
    events = Events()
    try:
        if not connection.objectStoreNames.contains("pages"):
            raise _nothing()
        sealing = await _sealing(events, connection, passphrase)
        pages = connection.transaction("pages").objectStore("pages")
        keys = [int(key) for key in await _answer(events, pages.getAllKeys()) if _is_number(key)]
        records: dict[int, bytes] = {}
        for first in range(0, len(keys), BATCH):
            some = keys[first : first + BATCH]
            pages = connection.transaction("pages").objectStore("pages")
            wanted = js.IDBKeyRange.bound(some[0], some[-1])
            batch = await _answer(events, pages.getAll(wanted))
            if sealing is None:
                records.update(zip(some, bytes_of_all(batch), strict=False))
                continue
            opened = cut(await sealing.open_any(some, batch))
            records.update((n, bytes(one)) for n, one in zip(some, opened, strict=False) if any(one))
        if not records:
            raise _nothing()
        text = await _about(events, connection, IMAGE)
        if sealing is not None:
            (about,) = await sealing.open_records(IMAGE, [text])
            text = None if about is None else listed(about)[1]
        return records, text
    finally:
        events.close()
        connection.close()


async def _sealing(events: Events, connection: Any, passphrase: str | None) -> WebSealing | None:
    key, image = [await _about(events, connection, name) for name in (KEY, IMAGE)]
    if key is not None:
        return await sealing_of(key, passphrase)
    if image is not None and not isinstance(image, str):
        raise key_missing()
    return None


async def _about(events: Events, connection: Any, name: str) -> Any:
    """Return a record beside the pages, `None` where there is none."""
    if not connection.objectStoreNames.contains("meta"):
        return None
    return await _answer(events, connection.transaction("meta").objectStore("meta").get(name))


async def _answer(events: Events, request: Any) -> Any:
    if await events.first(request, "success", "error") == "success":
        return request.result
    raise lost(name_of(request.error)) if request.error else blocked("it does not answer")


def _is_number(key: object) -> bool:
    return isinstance(key, int | float) and key >= 1


def _nothing() -> NotFound:
    return NotFound("Nothing is stored under this name.")
