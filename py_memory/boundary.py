"""The boundary: every value from outside is checked or repaired here, before anything is written.

Documented repairs: lone surrogates and NUL characters in text become U+FFFD. All else that is
not as it must be raises a typed error that names the option and never quotes the value.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Any

from py_memory.errors import InvalidArgument, TooLarge, UserRequired
from py_memory.settings import Settings

_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SAFE_INTEGER = 2**53 - 1
_ID_BYTES = 256


def repaired(text: str) -> str:
    """Return text that SQLite and UTF-8 can hold: surrogate pairs joined, lone ones and NUL replaced."""
    if text.isascii() and "\x00" not in text:
        return text
    if _UNSAFE.search(text) is None:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _UNSAFE.sub("\ufffd", joined)


def text(value: object, option: str, settings: Settings) -> str:
    """Return a repaired string within the text limit.

    Raises:
        InvalidArgument: It is not a string.
        TooLarge: It is over `max_text_bytes` in UTF-8.
    """
    if not isinstance(value, str):
        message = f"'{option}' must be text."
        raise InvalidArgument(message, option=option)
    if len(value) > settings.max_text_bytes:
        _too_large(option, settings.max_text_bytes)
    result = repaired(value)
    if not result.isascii() and len(result.encode()) > settings.max_text_bytes:
        _too_large(option, settings.max_text_bytes)
    return result


def optional_text(value: object, option: str, settings: Settings) -> str | None:
    """Return a repaired string, or `None` for `None`."""
    return None if value is None else text(value, option, settings)


def identifier(value: object, option: str) -> str:
    """Return an id as it was given.

    Raises:
        InvalidArgument: It is not text of 1 to 256 bytes without control characters.
    """
    if (
        not isinstance(value, str)
        or not value.strip()
        or _CONTROL.search(value) is not None
        or len(value.encode()) > _ID_BYTES
    ):
        message = f"'{option}' must be text of 1 to {_ID_BYTES} bytes without control characters."
        raise InvalidArgument(message, option=option)
    return value


def optional_identifier(value: object, option: str) -> str | None:
    """Return an id as it was given, or `None` for `None`."""
    return None if value is None else identifier(value, option)


def user(value: object) -> str:
    """Return a user's id.

    Raises:
        UserRequired: There is none; every verb belongs to one user.
        InvalidArgument: It is no id.
    """
    if value is None or value == "":
        message = "Say whose memory this is: pass 'user_id'."
        raise UserRequired(message, option="user_id")
    return identifier(value, "user_id")


def blob(value: bytes | bytearray | memoryview, option: str, settings: Settings) -> bytes:
    """Return the bytes.

    Raises:
        TooLarge: They are over `max_blob_bytes`.
    """
    if len(value) > settings.max_blob_bytes:
        _too_large(option, settings.max_blob_bytes)
    return bytes(value)


def _too_large(option: str, limit: int) -> None:
    message = f"'{option}' is over the limit of {limit} bytes: shorten it or raise the setting."
    raise TooLarge(message, option=option, limit=limit)


def number(value: object, option: str, low: float, high: float) -> float:
    """Return a finite number within its bounds.

    Raises:
        InvalidArgument: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        message = f"'{option}' must be a number between {low:g} and {high:g}."
        raise InvalidArgument(message, option=option)
    return float(value)


def integer(value: object, option: str, low: int, high: int) -> int:
    """Return a whole number within its bounds.

    Raises:
        InvalidArgument: It is not.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) <= _SAFE_INTEGER:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        message = f"'{option}' must be a whole number between {low} and {high}."
        raise InvalidArgument(message, option=option)
    return value


def flag(value: object, option: str) -> bool:
    """Return a truth value.

    Raises:
        InvalidArgument: It is neither true nor false.
    """
    if not isinstance(value, bool):
        message = f"'{option}' must be true or false."
        raise InvalidArgument(message, option=option)
    return value


def choice(value: object, option: str, allowed: Collection[str]) -> str:
    """Return one of the allowed words.

    Raises:
        InvalidArgument: It is none of them.
    """
    if not isinstance(value, str) or value not in allowed:
        message = f"'{option}' must be one of: {', '.join(sorted(allowed))}."
        raise InvalidArgument(message, option=option)
    return value


def choices(value: object, option: str, allowed: Collection[str]) -> tuple[str, ...] | None:
    """Return some of the allowed words (one word may stand for a list), or `None` for `None`.

    Raises:
        InvalidArgument: There is none, or one is unknown.
    """
    if value is None:
        return None
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple | set | frozenset) or not items:
        message = f"'{option}' must be one or more of: {', '.join(sorted(allowed))}."
        raise InvalidArgument(message, option=option)
    return tuple(dict.fromkeys(choice(item, option, allowed) for item in items))


def identifiers(value: object, option: str) -> tuple[str, ...] | None:
    """Return a list of ids (one id may stand for a list), or `None` for `None`.

    Raises:
        InvalidArgument: It is no list, or one is no id.
    """
    if value is None:
        return None
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple | set | frozenset):
        message = f"'{option}' must be a list of ids."
        raise InvalidArgument(message, option=option)
    return tuple(dict.fromkeys(identifier(item, option) for item in items))


def json_object(value: object, option: str, settings: Settings) -> dict[str, Any]:
    """Return a JSON object with strings repaired, safe to write and to read back anywhere.

    Raises:
        InvalidArgument: It is no object; holds NaN, infinity, a whole number beyond ±(2^53-1)
            (which JavaScript would change), something that JSON lacks, or is nested too deeply.
        TooLarge: It is over `max_json_bytes` in UTF-8.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        message = f"'{option}' must be an object with text keys."
        raise InvalidArgument(message, option=option)
    clean = _json(value, option, settings.max_json_depth)
    if len(to_json(clean).encode()) > settings.max_json_bytes:
        _too_large(option, settings.max_json_bytes)
    return clean  # type: ignore[no-any-return]  # a Mapping becomes a dict


def _json(value: object, option: str, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # Members of an enumeration become what they stand for.
    if isinstance(value, str):
        return repaired(value[:])
    if isinstance(value, int):
        if abs(value) > _SAFE_INTEGER:
            message = f"'{option}' holds a whole number beyond 2^53-1: write it as text."
            raise InvalidArgument(message, option=option)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            message = f"'{option}' holds NaN or infinity, which JSON cannot: use null or text."
            raise InvalidArgument(message, option=option)
        return float(value)
    if depth <= 0:
        message = f"'{option}' is nested too deeply: flatten it."
        raise InvalidArgument(message, option=option)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            message = f"'{option}' has a key that is not text."
            raise InvalidArgument(message, option=option)
        return {repaired(key): _json(item, option, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, option, depth - 1) for item in value]
    message = f"'{option}' holds something that JSON cannot: use text, numbers, lists, objects."
    raise InvalidArgument(message, option=option)


def to_json(value: Any) -> str:
    """Write JSON compactly, text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


# What is left when all but brackets is deleted from JSON text.
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_MAX_TEXT_DEPTH = 200


def parse_json(text: str) -> Any:
    """Read JSON text from outside.

    The depth is bounded before it is read: in WebAssembly a parser that recurses too deeply
    takes the whole runtime with it.

    Raises:
        ValueError: It is no JSON, holds NaN or infinity, or is nested more than 200 levels.
    """
    data = text.encode("utf-8", "surrogatepass")
    if _depth(data) > _MAX_TEXT_DEPTH and _depth(_JSON_STRING.sub(b"", data)) > _MAX_TEXT_DEPTH:
        message = "too deep"
        raise ValueError(message)
    return json.loads(text, parse_constant=_no_constant)


def _depth(data: bytes) -> int:
    brackets = data.translate(None, _NO_BRACKETS)
    return max(accumulate(_STEPS[byte] for byte in brackets), default=0)


def _no_constant(_: str) -> float:
    message = "NaN and infinity are no JSON"
    raise ValueError(message)


def known(options: Mapping[str, Any], allowed: Collection[str], verb: str) -> None:
    """Refuse options that the verb does not have.

    Raises:
        InvalidArgument: One is unknown; the message lists what there is.
    """
    unknown = [name for name in options if name not in allowed]
    if unknown:
        message = f"{verb} has no such option; it takes: {', '.join(sorted(allowed))}."
        raise InvalidArgument(message, verb=verb, unknown=len(unknown))
