"""Time zones from the browser's own database, for Pyodide has none."""

import re
from functools import cache
from typing import Any

from py_memory.errors import InvalidArgument

_OFFSET = re.compile(r"GMT(?:([+−-])(\d{1,2}):?(\d{2})?(?::?(\d{2}))?)?$")


def intl_zones(name: str, at: int) -> int:
    """Return a zone's offset from UTC in minutes at an epoch millisecond.

    Raises:
        InvalidArgument: The browser knows no zone of that name.
    """
    if name == "UTC":
        return 0
    written = str(_formatter(name).format(at))
    found = _OFFSET.search(written.strip())
    if found is None or found[1] is None:
        return 0
    seconds = int(found[2]) * 3_600 + int(found[3] or 0) * 60 + int(found[4] or 0)
    # Offsets of old local times have seconds; minutes are rounded down, as the engine does.
    return (seconds if found[1] == "+" else -seconds) // 60


@cache
def _formatter(name: str) -> Any:
    import js
    from pyodide.ffi import JsException, to_js

    options = to_js({"timeZone": name, "timeZoneName": "longOffset"}, dict_converter=js.Object.fromEntries)
    try:
        return js.Intl.DateTimeFormat.new("en-US", options)
    except JsException as exc:
        message = "The time zone is unknown: give an IANA name such as 'Europe/Paris'."
        raise InvalidArgument(message, option="time_zone") from exc
