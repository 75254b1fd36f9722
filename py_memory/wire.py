"""The wire: one verb as JSON in and JSON out, with bytes beside it, for a worker or a server.

Bytes stand in few known places as `{"$binary": n}`: the content of what is remembered, an
imported image, a fragment's `data`, an exported image. Nowhere else is that form special.
"""

import inspect
import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from py_memory import boundary, imagefile, ledger
from py_memory.errors import Internal, InvalidArgument, NotFound, PyMemoryError
from py_memory.memory import Memory
from py_memory.metrics import counted
from py_memory.records import Fragment, Page
from py_memory.remembering import Told, told_again, told_of
from py_memory.session import Session

MEMORY_VERBS = frozenset(
    """
    search find timeline forget restore trash export_json import_json export_image import_image
    metrics check reindex
    """.split()
)
SESSION_VERBS = frozenset(("remember", "remember_many", "recall", "end"))
WRITING_VERBS = frozenset(
    """
    start_session forget restore import_json import_image reindex session.remember session.remember_many
    session.end
    """.split()
)


_SESSION = "session."
_PREVIEWS = ("preview", "dry_run")


@dataclass(frozen=True, slots=True)
class Answer:
    """A verb's result as JSON, the bytes it refers to, and what others need to know of the write."""

    text: str
    parts: list[bytes]
    change: dict[str, Any] | None = None


class Wire:
    """Runs verbs of one memory."""

    def __init__(self, memory: Memory) -> None:
        """Stand on an open memory."""
        self._memory = memory

    def call(self, method: str, args: Mapping[str, Any], binary: list[bytes]) -> tuple[str, list[bytes]]:
        """Run one verb and return its result as JSON, and the bytes it refers to.

        Raises:
            PyMemoryError: The verb's own errors; `InvalidArgument` for an unknown verb.
        """
        return _written(self._verb(method)(dict(args), binary))

    def answer(
        self, method: str, args: Mapping[str, Any], binary: list[bytes], call: ledger.Call | None = None
    ) -> Answer:
        """Do the same for a page: a write that is called again is answered and not applied again.

        Raises:
            PyMemoryError: As `call`; `NotFound` if what was written then is gone by now.
        """
        if method not in WRITING_VERBS or any(args.get(name) for name in _PREVIEWS):
            return Answer(*self.call(method, args, binary))
        if call is None:
            result = self._verb(method)(dict(args), binary)
        elif method == "import_image":
            result = self._image_once(call, args, binary)
        else:
            result = self._once(call, method, args, binary)
        return Answer(*_written(result), self._change(method, args, result))

    def _once(self, call: ledger.Call, method: str, args: Mapping[str, Any], binary: list[bytes]) -> Any:
        with self._memory.engine.write() as connection:
            noted = ledger.answer_of(connection, call)
            if noted is None:
                result = self._verb(method)(dict(args), binary)
                ledger.note(connection, call, _noted(result), self._memory.engine.clock())
                return result
            known = json.loads(noted)
            if "told" not in known:
                return known["result"]
            fragments = told_again(connection, Told(*known["told"]))
            if method != "session.remember":
                return fragments
            if not fragments:
                message = "It was remembered, but has been removed since."
                raise NotFound(message)
            return fragments[0]

    def _image_once(self, call: ledger.Call, args: Mapping[str, Any], binary: list[bytes]) -> Any:
        """Replace everything, with the note of it: SQLite copies pages in a transaction of its own."""
        engine = self._memory.engine
        if ledger.answer_of(engine.database.connection, call) is None:
            image = _with_bytes(dict(args), "image", binary).get("image")
            return imagefile.imported(engine, image, call)
        return counted(engine, None)

    def _change(self, method: str, args: Mapping[str, Any], result: Any) -> dict[str, Any]:
        """Say what other views need to know of a write: never its content."""
        user_id, session_id = args.get("user_id"), args.get("session_id")
        if method == "start_session":
            session_id = result["id"]
        elif method.startswith(_SESSION):
            user_id = self._memory.session(str(session_id)).user_id
        ids = result.get("ids") if isinstance(result, dict) else None
        if isinstance(result, Fragment):
            ids = [result.id]
        elif isinstance(result, list):
            ids = [one.id for one in result]
        told = {"user_id": user_id, "session_id": session_id, "ids": ids}
        return {
            "verb": method.removeprefix(_SESSION),
            **{name: value for name, value in told.items() if value is not None},
        }

    def _verb(self, method: str) -> Callable[[dict[str, Any], list[bytes]], Any]:
        if method == "start_session":
            return self._start_session
        if method in MEMORY_VERBS:
            return lambda args, binary: _called(
                getattr(self._memory, method), _with_bytes(args, "image", binary)
            )
        kind, _, name = method.partition(".")
        if kind == "session" and name in SESSION_VERBS:
            return lambda args, binary: self._session_verb(name, args, binary)
        message = "There is no verb of that name."
        raise InvalidArgument(message, method=method[:64])

    def _start_session(self, args: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
        session: Session = _called(self._memory.start_session, args)
        return {"id": session.id, "user_id": session.user_id, "skill": session.skill}

    def _session_verb(self, name: str, args: dict[str, Any], binary: list[bytes]) -> Any:
        session = self._memory.session(args.pop("session_id", ""))
        if name == "remember":
            args = _with_bytes(args, "content", binary)
        if name == "remember_many" and isinstance(args.get("items"), list):
            args["items"] = [
                _with_bytes(item, "content", binary) if isinstance(item, dict) else item
                for item in args["items"]
            ]
        return _called(getattr(session, name), args)


def _written(result: Any) -> tuple[str, list[bytes]]:
    out: list[bytes] = []
    return json.dumps(_plain(result, out), ensure_ascii=False, separators=(",", ":")), out


def _noted(result: Any) -> str:
    """Write down enough of an answer to give it again: of fragments their ids, never their content."""
    if isinstance(result, Fragment):
        result = [result]
    if isinstance(result, list):
        return json.dumps({"told": told_of(result)})
    return json.dumps({"result": result})


def _called(verb: Callable[..., Any], args: dict[str, Any]) -> Any:
    try:
        if "self" in args:
            raise TypeError
        _signature(getattr(verb, "__func__", verb)).bind(None, **args)
    except TypeError as exc:
        message = f"{verb.__name__} has no such option, or lacks one that it needs."
        raise InvalidArgument(message, verb=verb.__name__) from exc
    return verb(**args)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a method's signature; finding it out takes longer than a small verb."""
    return inspect.signature(function)


def _with_bytes(args: dict[str, Any], name: str, binary: list[bytes]) -> dict[str, Any]:
    value = args.get(name)
    if isinstance(value, dict) and set(value) == {"$binary"}:
        number = value["$binary"]
        if not isinstance(number, int) or not 0 <= number < len(binary):
            message = f"'{name}' refers to bytes that did not come along."
            raise InvalidArgument(message, option=name)
        return {**args, name: binary[number]}
    return args


def _plain(value: Any, out: list[bytes]) -> Any:
    """Return a verb's result as JSON values; bytes go beside it."""
    if isinstance(value, bytes):
        out.append(value)
        return {"$binary": len(out) - 1}
    if isinstance(value, Page):
        return {"items": [_plain(item, out) for item in value], "cursor": value.cursor}
    if isinstance(value, list):
        return [_plain(item, out) for item in value]
    if hasattr(value, "to_dict"):
        return _record(value.to_dict(), out)
    return value


def _record(fields: dict[str, Any], out: list[bytes]) -> dict[str, Any]:
    """Put bytes aside where a record has them: in a fragment's `data`, alone or within a hit."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "data" and isinstance(value, bytes):
            found[name] = _plain(value, out)
        elif name == "fragment":
            found[name] = _record(value, out)
        elif name in ("companions", "around"):
            found[name] = [_record(one, out) for one in value]
        else:
            found[name] = value
    return found


def parsed(text: str) -> dict[str, Any]:
    """Read a call's arguments.

    Raises:
        InvalidArgument: They are no JSON object, or nested beyond reason.
    """
    try:
        args = boundary.parse_json(text)
    except ValueError as exc:
        message = "The arguments are no JSON that can be read: flatten or shorten them."
        raise InvalidArgument(message) from exc
    if not isinstance(args, dict):
        message = "The arguments must be a JSON object."
        raise InvalidArgument(message)
    return args


def error_json(exc: BaseException) -> str:
    """Write an error as code, message, details; what is not ours becomes `internal`.

    The text of a foreign error is left out: it may quote what was to be remembered.
    """
    if not isinstance(exc, PyMemoryError):
        where = traceback.extract_tb(exc.__traceback__)[-1:] if exc.__traceback__ else []
        place = f"{where[0].name}:{where[0].lineno}" if where else "unknown"
        exc = Internal(
            "A fault in py-memory; please report it with the details.",
            kind=type(exc).__name__,
            where=place,
        )
    return json.dumps(exc.to_dict(), ensure_ascii=False, default=str)
