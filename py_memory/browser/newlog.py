"""A new log for Chromium's storage, before anything is written behind what a kill has cut off.

A killed browser may leave half a record at the end of LevelDB's log. Chromium goes on writing behind it,
finds the log damaged when it is started again, and then deletes all that the site has stored
(google/leveldb#1287). A log is ended when more than 4 MiB have been written to it.
"""

import asyncio
from contextlib import suppress
from typing import Any

import js
from pyodide.ffi import JsException

from py_memory.browser.events import Events

LIMIT_SECONDS = 2.0
"""Nobody waits longer than this for a precaution."""

# Together more than Chromium gathers before it begins a new log; each too small for a file of its own.
_FILLINGS = 72
_FILLING_BYTES = 60_000


async def begin_new_log(connection: Any, events: Events) -> None:
    """Fill the log by way of the store `fence`, and take away again what filled it."""
    if not js.Reflect.has(js.IDBVersionChangeEvent.prototype, "dataLoss"):
        return  # another browser, with another store
    filling = js.Uint8Array.new(_FILLING_BYTES)
    # Where there is no room for it, the browser refuses it whole, and the memory works all the same.
    with suppress(JsException):
        for filled in (True, False):
            transaction = connection.transaction("fence", "readwrite")
            done = events.first(transaction, "complete", "abort")
            fence = transaction.objectStore("fence")
            if filled:
                for key in range(-_FILLINGS, 0):
                    fence.put(filling, key)
            else:
                fence.delete(js.IDBKeyRange.upperBound(-1))
            transaction.commit()
            await asyncio.wait([done], timeout=LIMIT_SECONDS)
