"""The stored bytes as they are, for when they no longer open."""

from typing import Any

import js

from py_memory.browser.events import Events
from py_memory.browser.faults import blocked, lost, name_of
from py_memory.browser.indexeddb import Opening, database_name
from py_memory.database import PAGE_SIZE
from py_memory.errors import NotFound, StorageLost
from py_memory.image.form import PAGE_HEADER_BYTES
from py_memory.image.store import BATCH


async def raw_image(name: str) -> bytes:
    """Return the pages of a memory as they are stored, unchecked; missing ones are zeros.

    Takes no lock and changes nothing, so that it works beside an owner and with a damaged image.

    Raises:
        NotFound: Nothing is stored under the name.
        StorageBlocked, StorageLost: The storage cannot be read.
    """
    records, _ = await stored_records(name)
    return joined(records, max(records))


def joined(records: dict[int, bytes], count: int) -> bytes:
    """Return the pages 1 to `count` of records as one; missing ones are zeros."""
    image = bytearray(count * PAGE_SIZE)
    for number, record in records.items():
        page = record[PAGE_HEADER_BYTES:][:PAGE_SIZE]
        if number <= count:
            image[(number - 1) * PAGE_SIZE : (number - 1) * PAGE_SIZE + len(page)] = page
    return bytes(image)


async def stored_records(name: str) -> tuple[dict[int, bytes], object]:
    """Return the records of the pages by number, and the one about the image, unchecked.

    Raises: as `raw_image`.
    """
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
        pages = connection.transaction("pages").objectStore("pages")
        keys = [int(key) for key in await _answer(events, pages.getAllKeys()) if _is_number(key)]
        records: dict[int, bytes] = {}
        for first in range(0, len(keys), BATCH):
            some = keys[first : first + BATCH]
            pages = connection.transaction("pages").objectStore("pages")
            wanted = js.IDBKeyRange.bound(some[0], some[-1])
            for number, record in zip(some, await _answer(events, pages.getAll(wanted)), strict=False):
                records[number] = record.to_bytes() if hasattr(record, "to_bytes") else b""
        if not records:
            raise _nothing()
        text: object = None
        if connection.objectStoreNames.contains("meta"):
            about = connection.transaction("meta").objectStore("meta")
            text = await _answer(events, about.get("image"))
        return records, text
    finally:
        events.close()
        connection.close()


async def _answer(events: Events, request: Any) -> Any:
    if await events.first(request, "success", "error") == "success":
        return request.result
    raise lost(name_of(request.error)) if request.error else blocked("it does not answer")


def _is_number(key: object) -> bool:
    return isinstance(key, int | float) and key >= 1


def _nothing() -> NotFound:
    return NotFound("Nothing is stored under this name.")
