"""The entry of our worker: one function that takes and gives strings and buffers, never an object."""

import json
from typing import Any

import js
from pyodide.ffi import to_js

from py_memory import wire
from py_memory.browser.owner import Owner
from py_memory.browser.raw import raw_image
from py_memory.errors import AlreadyOpen, Closed
from py_memory.memory import Memory

_OPTIONS = ("settings", "time_zone", "durability", "fallback")


class Desk:
    """Answers one call after the other for the memory that is open in this worker."""

    def __init__(self) -> None:
        """Begin with nothing open."""
        self._owner: Owner | None = None
        self._told = ""

    async def dispatch(self, method: str, args_json: str, binary: Any) -> Any:
        """Serve one call; gives the JavaScript array `[ok, json, buffers, storage or null]`."""
        try:
            args = wire.parsed(args_json)
            text, parts = await self._call(method, args, [_bytes(part) for part in binary or ()])
            ok = True
        except Exception as exc:  # noqa: BLE001  # every fault has to reach the page as a code
            text, parts, ok = wire.error_json(exc), [], False
        buffers = js.Array.new()
        for part in parts:
            buffers.push(to_js(part))
        return js.Array.of(ok, text, buffers, self._news())

    async def _call(self, method: str, args: dict[str, Any], binary: list[bytes]) -> tuple[str, list[bytes]]:
        if method == "open":
            return await self._open(args), []
        if method == "export_raw":
            return '{"$binary":0}', [await raw_image(str(args.get("name", "")))]
        owner = self._owner
        if owner is None:
            message = "This memory is closed: open it again."
            raise Closed(message)
        if method == "storage":
            return json.dumps(await owner.refresh()), []
        if method == "close":
            self._owner = None
            await owner.close()
            return "null", []

        def verb(memory: Memory) -> tuple[str, list[bytes]]:
            return wire.Wire(memory).call(method, args, binary)

        return await owner.serve(verb)

    async def _open(self, args: dict[str, Any]) -> str:
        if self._owner is not None:
            message = "A memory is open in this worker already: close it first."
            raise AlreadyOpen(message)
        options = {name: args[name] for name in _OPTIONS if args.get(name) is not None}
        fixed = args.get("clock")
        if fixed is not None:
            options["clock"] = lambda: int(fixed)
        # Read by the page's side while Python started (web/early.js); for the first opening only.
        early = getattr(js, "pyMemoryEarly", None)
        js.pyMemoryEarly = None
        self._owner = await Owner.open(args.get("name", ""), early=early, **options)
        return json.dumps({"storage": self._owner.storage()})

    def _news(self) -> str | None:
        """Return the state of the storage as JSON if it is not what the page was told last."""
        if self._owner is None:
            return None
        told = json.dumps(self._owner.storage())
        if told == self._told:
            return None
        self._told = told
        return told


def _bytes(part: Any) -> bytes:
    return bytes(part.to_bytes())


_desk = Desk()
dispatch = _desk.dispatch
