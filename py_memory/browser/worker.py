"""The entry of our worker: one function that takes and gives strings and buffers, never an object."""

import json
from typing import Any

import js
from pyodide.ffi import to_js

from py_memory import ledger, wire
from py_memory.browser.owner import Owner
from py_memory.browser.raw import raw_image
from py_memory.browser.rescuing import recovered, to_json
from py_memory.errors import AlreadyOpen, Closed, InvalidArgument

_OPTIONS = ("settings", "time_zone", "durability", "passphrase", "fallback", "held", "existing")


class Desk:
    """Answers one call after the other for the memory that is open in this worker."""

    def __init__(self) -> None:
        """Begin with nothing open."""
        self._owner: Owner | None = None
        self._told = ""

    async def dispatch(
        self, method: str, args_json: str, binary: Any, client: str = "", number: int = 0, answered: int = 0
    ) -> Any:
        """Serve one call; gives the JavaScript array `[ok, json, buffers, storage, change]`.

        `client` and `number` name the call, so that it is applied once, however often it is made;
        `answered` is up to where the client has all answers. The last two are JSON, or null where
        there is nothing new.
        """
        call = ledger.Call(client, number, answered) if client else None
        change = None
        try:
            args = wire.parsed(args_json)
            answer = await self._call(method, args, [_bytes(part) for part in binary or ()], call)
            text, parts, ok = answer.text, answer.parts, True
            change = json.dumps(answer.change) if answer.change else None
        except Exception as exc:  # noqa: BLE001  # every fault has to reach the page as a code
            text, parts, ok = wire.error_json(exc), [], False
        buffers = js.Array.new()
        for part in parts:
            buffers.push(to_js(part))
        return js.Array.of(ok, text, buffers, self._news(), change)

    async def _call(
        self, method: str, args: dict[str, Any], binary: list[bytes], call: ledger.Call | None
    ) -> wire.Answer:
        if method == "open":
            return wire.Answer(await self._open(args), [])
        if method == "export_raw":
            raw = await raw_image(str(args.get("name", "")), args.get("passphrase"))
            return wire.Answer('{"$binary":0}', [raw])
        if method == "recover":
            image, report = await recovered(
                str(args.get("name", "")),
                replace=bool(args.get("replace")),
                passphrase=args.get("passphrase"),
            )
            return wire.Answer(to_json(report), [image])
        owner = self._owner
        if owner is None:
            message = "This memory is closed: open it again."
            raise Closed(message)
        if method == "storage":
            return wire.Answer(json.dumps(await owner.refresh()), [])
        if method == "close":
            self._owner = None
            await owner.close()
            return wire.Answer("null", [])
        if method == "change_key":
            if set(args) != {"before", "after"}:
                message = "change_passphrase has no such option, or lacks one that it needs."
                raise InvalidArgument(message, verb="change_passphrase")
            await owner.change_key(args["before"], args["after"])
            return wire.Answer("null", [])
        return await owner.serve(
            lambda memory: wire.Wire(memory).answer(method, args, binary, call),
            reads=method not in wire.WRITING_VERBS,
        )

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
        owner = self._owner
        return json.dumps({"storage": owner.storage(), "term": owner.term, "born": owner.born})

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
