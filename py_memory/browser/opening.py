"""How a database of IndexedDB is opened: its name, its stores, and in bounds."""

import asyncio
from typing import Any

import js
from pyodide.ffi import JsException, create_proxy

from py_memory.browser import faults

VERSION = 1
STORES = ("pages", "meta", "fence")
OPEN_SECONDS = 10.0
BLOCKED_SECONDS = 2.0


def database_name(name: str) -> str:
    """Return the IndexedDB database (and Web Lock) of a memory's name."""
    return f"py-memory:{name}"


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
            raise faults.refused("this browser has no IndexedDB here")
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
