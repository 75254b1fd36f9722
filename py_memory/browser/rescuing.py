"""Recovery of a stored memory that can no longer be opened: looked at first, replaced only when told to."""

import json
import time
from typing import Any

from py_memory.browser.indexeddb import IndexedDBStore
from py_memory.browser.locks import WebLock, alone_name, require_secure_context
from py_memory.browser.opening import database_name
from py_memory.browser.raw import joined, stored_records
from py_memory.browser.sealing import sealing_of
from py_memory.database import PAGE_SIZE
from py_memory.errors import PyMemoryError
from py_memory.image.form import (
    Meta,
    decode_meta,
    encode_meta,
    encode_page,
    generation_of,
    is_sound,
    mark_of,
    schema_of,
)
from py_memory.image.sealed import CHUNK_PAGES, KEY, SealedStore
from py_memory.image.store import Store
from py_memory.recovering import salvaged


async def recovered(
    name: str, *, replace: bool = False, passphrase: str | None = None
) -> tuple[bytes, dict[str, Any]]:
    """Return the salvaged database as a file and the report; with `replace`, also store it.

    Without `replace` nothing is changed and no lock is taken. With it, the name's lock is taken, and the
    stored image is replaced in one transaction, of which all is kept or nothing. A sealed memory needs
    its passphrase, and stays sealed.

    Raises:
        AlreadyOpen: With `replace`: a page has the memory open.
        NotFound: Nothing is stored under the name.
        WrongPassphrase: The image is sealed, and not with this passphrase.
        CorruptImage: Nothing of a memory can be found in what is stored.
        SchemaNewer, UnsupportedFormat: A newer version wrote it.
        InsecureContext, StorageBlocked, StorageLost, QuotaExceeded: The storage cannot be used.
    """
    if not replace:
        return _salvaged(*await stored_records(name, passphrase))
    require_secure_context()
    lock = WebLock(database_name(name), lambda: None)
    alone = WebLock(alone_name(name), lambda: None)
    await lock.take()
    try:
        await alone.take()
        records, text = await stored_records(name, passphrase)
        image, report = _salvaged(records, text)
        store = IndexedDBStore(name)
        try:
            # Raises the epoch: whoever had the memory before cannot write into the new one.
            await store.open()
            key = await store.get(KEY)
            if key is None:
                await _store(store, image, records)
            else:
                sealed = SealedStore(store, await sealing_of(key, passphrase))
                # Parts of the list may be of pages that are gone.
                sealed.start_over(max(records) + CHUNK_PAGES)
                await _store(sealed, image, records)
        finally:
            await store.close()
    finally:
        await alone.release()
        await lock.release()
    return image, report


def _salvaged(records: dict[int, bytes], text: object) -> tuple[bytes, dict[str, Any]]:
    suspect = {number for number, record in records.items() if not is_sound(number, record)}
    damage: dict[str, int] = {"checksum": len(suspect)} if suspect else {}
    count = max(records)
    try:
        meta = decode_meta(text)
    except PyMemoryError as exc:
        if exc.code == "unsupported_format":
            raise
        damage["meta"] = 1
    else:
        if count < meta.page_count:
            damage["truncated"] = meta.page_count - count
            count = meta.page_count
        late = [n for n, record in records.items() if generation_of(record) > meta.generation]
        whole = not suspect and not late and sorted(records) == list(range(1, meta.page_count + 1))
        if late:
            # Sound pages of a later write: it is the record about the image that is old.
            damage["generation"] = len(late)
        elif count > meta.page_count:
            damage["extra"] = count - meta.page_count
            count = meta.page_count
        elif whole and meta.marks not in (None, sum(map(mark_of, records.values()))):
            damage["stale"] = 1
    missing = [number for number in range(1, count + 1) if number not in records]
    image, report = salvaged(joined(records, count), missing, suspect)
    report["damage"] = dict(sorted({**report["damage"], **damage}.items()))
    report["complete"] = report["complete"] and not damage
    return image, report


async def _store(store: Store, image: bytes, records: dict[int, bytes]) -> None:
    generation = max(map(generation_of, records.values()), default=0) + 1
    # As a connection in write-ahead mode has it, so that opening it does not change it at once.
    image = image[:18] + b"\x02\x02" + image[20:]
    pages = []
    for number, start in enumerate(range(0, len(image), PAGE_SIZE), 1):
        pages.append((number, encode_page(number, generation, image[start : start + PAGE_SIZE])))
    now = time.time_ns() // 1_000_000
    meta = Meta(
        page_size=PAGE_SIZE,
        page_count=len(pages),
        generation=generation,
        epoch=store.epoch,
        schema=schema_of(image),
        created_at=now,
        updated_at=now,
        marks=sum(mark_of(record) for _, record in pages),
    )
    await store.put(pages, encode_meta(meta), len(pages))


def to_json(report: dict[str, Any]) -> str:
    """Write what crosses to the page: the image's place among the bytes, and the report."""
    return json.dumps({"image": {"$binary": 0}, "report": report})
