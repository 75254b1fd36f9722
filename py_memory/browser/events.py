"""Waiting for JavaScript events in Python with one proxy that lives as long as its owner.

A proxy made for each event and not destroyed exactly once leaks, or dies too early; here there is
one, and what waits is found by the identity of the event's target.
"""

import asyncio
from typing import Any


class Events:
    """Futures for events of JavaScript objects.

    `failed` is the error of the first request that failed since the last `first`: WebKit names no error of
    a transaction that was committed explicitly.
    """

    def __init__(self) -> None:
        """Make the one proxy."""
        from pyodide.ffi import create_proxy

        self.failed: Any = None
        self._proxy = create_proxy(self._heard)
        self._waiting: dict[int, tuple[Any, asyncio.Future[str]]] = {}

    def first(self, target: Any, *names: str) -> "asyncio.Future[str]":
        """Return a future of the name of the event that comes first."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[target.js_id] = (target, future)
        self.failed = None
        for name in names:
            setattr(target, f"on{name}", self._proxy)
        if "abort" in names:
            target.onerror = self._proxy
        return future

    def close(self) -> None:
        """Wait for nothing any more and give the proxy back."""
        for target, future in self._waiting.values():
            for name in ("success", "error", "complete", "abort"):
                setattr(target, f"on{name}", None)
            future.cancel()
        self._waiting.clear()
        self._proxy.destroy()

    def _heard(self, event: Any) -> None:
        if event.type == "error" and event.target.js_id not in self._waiting:
            # Of a request, on its way up to the transaction.
            if self.failed is None and str(event.target.error.name) != "AbortError":
                self.failed = event.target.error
            return
        entry = self._waiting.pop(event.target.js_id, None)
        if entry is not None and not entry[1].done():
            entry[1].set_result(str(event.type))
