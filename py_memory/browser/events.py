"""Waiting for JavaScript events in Python with one proxy that lives as long as its owner.

A proxy made for each event and not destroyed exactly once leaks, or dies too early; here there is
one, and what waits is found by the identity of the event's target.
"""

import asyncio
from typing import Any


class Events:
    """Futures for events of JavaScript objects."""

    def __init__(self) -> None:
        """Make the one proxy."""
        from pyodide.ffi import create_proxy

        self._proxy = create_proxy(self._heard)
        self._waiting: dict[int, tuple[Any, asyncio.Future[str]]] = {}

    def first(self, target: Any, *names: str) -> "asyncio.Future[str]":
        """Return a future of the name of the event that comes first."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[target.js_id] = (target, future)
        for name in names:
            setattr(target, f"on{name}", self._proxy)
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
        entry = self._waiting.pop(event.target.js_id, None)
        if entry is not None and not entry[1].done():
            entry[1].set_result(str(event.type))
