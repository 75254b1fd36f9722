"""The Web Lock that makes one page the owner of a memory's name."""

import asyncio
from collections.abc import Callable
from typing import Any

import js
from pyodide.ffi import JsException, create_once_callable, to_js

from py_memory.browser.faults import name_of
from py_memory.errors import AlreadyOpen, InsecureContext, StorageBlocked

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.05
_RELEASE_SECONDS = 1.0


def alone_name(name: str) -> str:
    """Return the lock that an owner holds who does not share its memory with other tabs."""
    return f"py-memory-alone:{name}"


def require_secure_context() -> None:
    """Refuse a page that has no locks and no cryptography: two of them would write at once.

    Raises:
        InsecureContext: The page is not served over https or from localhost.
    """
    crypto = getattr(js, "crypto", None)
    locks = getattr(js.navigator, "locks", None)
    if getattr(js, "isSecureContext", False) and locks and crypto and getattr(crypto, "subtle", None):
        return
    message = (
        "This page is not a secure context, so the browser gives it no locks: serve it over https, or"
        " from localhost."
    )
    raise InsecureContext(message)


class WebLock:
    """Holds one lock until it is released or stolen."""

    def __init__(self, name: str, on_stolen: Callable[[], None]) -> None:
        """Prepare; `take` asks for the lock."""
        self._name = name
        self._on_stolen = on_stolen
        self._release: Any = None
        self._over: asyncio.Future[None] | None = None

    async def take(self) -> None:
        """Take the lock if it is free, or becomes so in a moment: a page that went away may linger.

        Raises:
            AlreadyOpen: Another page, or another memory of this page, holds it.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE_SECONDS)
            if await self._ask():
                return
        message = (
            "This memory is open in another tab or page: close it there, or use it there, and open it again."
        )
        raise AlreadyOpen(message)

    async def release(self) -> None:
        """Give the lock back and wait until it is free; twice does nothing."""
        release, self._release = self._release, None
        if release is not None:
            release()
            if self._over is not None:
                await asyncio.wait([self._over], timeout=_RELEASE_SECONDS)

    async def _ask(self) -> bool:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        over: asyncio.Future[None] = loop.create_future()

        def hold(resolve: Any, _: Any) -> None:
            self._release = resolve

        def granted(lock: Any) -> Any:
            if not answer.done():
                answer.set_result(bool(lock))
            # The lock is held until the promise that is returned here is resolved.
            return js.Promise.new(create_once_callable(hold)) if lock else None

        def ended(_: Any) -> None:
            if not over.done():
                over.set_result(None)

        def failed(error: Any) -> None:
            ended(error)
            if not answer.done():
                answer.set_exception(_refused(error))
            elif self._release is not None:
                self._release = None
                self._on_stolen()

        options = to_js({"ifAvailable": True}, dict_converter=js.Object.fromEntries)
        callback = create_once_callable(granted)
        try:
            request = js.navigator.locks.request(self._name, options, callback)
        except JsException as exc:
            raise _refused(exc) from exc
        request.then(ended, failed)
        self._over = over
        return await answer


def _refused(error: Any) -> StorageBlocked:
    message = "The browser refused to give a lock: check that this page may use its storage."
    return StorageBlocked(message, cause=name_of(error))
