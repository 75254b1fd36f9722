"""What lies in IndexedDB, read and changed without the package's own store."""

import asyncio

import js
from pyodide.ffi import create_once_callable, to_js


async def _heard(target, *names):
    future = asyncio.get_running_loop().create_future()
    proxy = create_once_callable(lambda event: future.set_result(str(event.type)))
    for name in names:
        setattr(target, f"on{name}", proxy)
    return await future


async def _with(name, mode, work):
    request = js.indexedDB.open(f"py-memory:{name}")
    await _heard(request, "success")
    database = request.result
    transaction = database.transaction(to_js(["pages", "meta", "fence"]), mode)
    answers = work(transaction.objectStore)
    kind = await _heard(transaction, "complete")
    assert kind == "complete"
    database.close()
    return answers


async def stored(name):
    """Return the page records by number, the record about the image, and the fence's keys."""

    def work(store):
        pages, meta, fence = store("pages"), store("meta"), store("fence")
        return pages.getAllKeys(), pages.getAll(), meta.get("image"), fence.getAllKeys()

    keys, records, meta, fence = await _with(name, "readonly", work)
    pages = {int(key): record.to_bytes() for key, record in zip(keys.result, records.result, strict=True)}
    return pages, meta.result, [int(key) for key in fence.result]


async def databases():
    """Return the names of the databases that are there; WebKit lists what nobody made, with version 0."""
    return [entry.name for entry in await js.indexedDB.databases() if entry.version > 0]


async def image(name):
    """Return the stored pages joined."""
    pages, _, _ = await stored(name)
    return b"".join(record[16:] for _, record in sorted(pages.items()))


async def change(name, pages=None, **others):
    """Put or delete records: `pages` maps numbers to bytes or None, `meta` is text or None."""

    def work(store):
        for number, record in (pages or {}).items():
            if record is None:
                store("pages").delete(number)
            else:
                store("pages").put(to_js(record), number)
        if "meta" in others:
            if others["meta"] is None:
                store("meta").delete("image")
            else:
                store("meta").put(others["meta"], "image")
        if "fence" in others:
            store("fence").put(1, others["fence"])

    await _with(name, "readwrite", work)


async def everything(name):
    """Return all records of all object stores, by store and key; bytes as hexadecimal digits."""

    def work(store):
        kinds = [store("pages"), store("meta"), store("fence")]
        return [(kind.name, kind.getAllKeys(), kind.getAll()) for kind in kinds]

    return {
        f"{kind} {key}": value.to_bytes().hex() if hasattr(value, "to_bytes") else value
        for kind, keys, values in await _with(name, "readonly", work)
        for key, value in zip(keys.result, values.result, strict=True)
    }


async def restore(name, records):
    """Put records, or take away those that are None, as `everything` gave them."""

    def work(store):
        for place, value in records.items():
            kind, key = place.split(" ", 1)
            key = key if kind == "meta" else int(key)
            if value is None:
                store(kind).delete(key)
            elif kind == "pages" or (kind == "meta" and not value.startswith("{")):
                store(kind).put(to_js(bytes.fromhex(value)), key)
            else:
                store(kind).put(value, key)

    await _with(name, "readwrite", work)
