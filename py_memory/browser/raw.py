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
        image = bytearray(max(keys, default=0) * PAGE_SIZE)
        for first in range(0, len(keys), BATCH):
            some = keys[first : first + BATCH]
            pages = connection.transaction("pages").objectStore("pages")
            wanted = js.IDBKeyRange.bound(some[0], some[-1])
            for number, record in zip(some, await _answer(events, pages.getAll(wanted)), strict=False):
                if hasattr(record, "to_bytes"):
                    page = record.to_bytes()[PAGE_HEADER_BYTES:][:PAGE_SIZE]
                    image[(number - 1) * PAGE_SIZE : (number - 1) * PAGE_SIZE + len(page)] = page
        if not image:
            raise _nothing()
        return bytes(image)
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
