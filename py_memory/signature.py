"""Context signatures: the same situation gives the same signature, everywhere and always."""

import hashlib
import json
import unicodedata
from typing import Any

from py_memory.errors import InvalidArgument
from py_memory.times import iso

_CUT = {"minute": 16, "hour": 13, "day": 10}
WINDOWS = tuple(_CUT)


def canonical(value: Any) -> str:
    """Write JSON in its one form: sorted keys, no spaces, strings NFC."""
    return json.dumps(_nfc(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _nfc(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", key): _nfc(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nfc(item) for item in value]
    # 1.0 and 1 are one number in JavaScript, so they must be one here.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _digest(value: dict[str, Any]) -> bytes:
    return hashlib.sha256(canonical(value).encode()).digest()


def context_signature(
    user_id: str,
    session_id: str,
    state: dict[str, Any] | None,
    window: object = None,
    at: int = 0,
) -> bytes:
    """Return the SHA-256 of session, state and user, with `window` also of the time cut to it.

    Raises:
        InvalidArgument: The window is none of minute, hour, day.
    """
    parts: dict[str, Any] = {"session": session_id, "state": state or {}, "user": user_id}
    if window is not None:
        if not isinstance(window, str) or window not in _CUT:
            message = "'signature_window' must be one of: minute, hour, day."
            raise InvalidArgument(message, option="signature_window")
        parts["window"] = iso(at)[: _CUT[window]]
    return _digest(parts)


def state_signature(user_id: str, state: dict[str, Any]) -> bytes:
    """Return the SHA-256 of state and user alone, which recognises a state in later sessions."""
    return _digest({"state": state, "user": user_id})
