"""Times: integer epoch milliseconds inside, ISO 8601 `…Z` outside; the clock and the zones are ports."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from py_memory.errors import InvalidArgument

Clock = Callable[[], int]
"""Gives the present as epoch milliseconds."""

Zones = Callable[[str, int], int]
"""Gives the offset from UTC, in minutes, of a named zone at an epoch millisecond."""

Moment = int | float | str | datetime
"""What callers may give as a time: epoch ms, ISO 8601 text (without offset: UTC), datetime."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_135_596_800_000
_LAST = 253_402_300_799_999


def system_clock() -> int:
    """Return the machine's time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def whole(clock: Callable[[], float]) -> Clock:
    """Return a clock cut to whole milliseconds within the years 1 to 9999, whatever the given one says."""
    return lambda: min(max(int(clock()), _FIRST), _LAST)


def system_zones(name: str, at: int) -> int:
    """Return a zone's offset in minutes, from the system's zone database.

    Raises:
        InvalidArgument: No zone has that name.
    """
    if name == "UTC":
        return 0
    at = min(max(at, _FIRST + DAY), _LAST - DAY)
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        message = "The time zone is unknown: give an IANA name such as 'Europe/Paris'."
        raise InvalidArgument(message, option="time_zone") from exc
    offset = (_EPOCH + timedelta(milliseconds=at)).astimezone(zone).utcoffset()
    return int(offset.total_seconds() // 60) if offset is not None else 0


def to_ms(value: object, option: str) -> int:
    """Read a caller's time as epoch milliseconds UTC.

    Raises:
        InvalidArgument: It is no time, or outside the years 1 to 9999.
    """
    result: int | None = None
    if isinstance(value, bool):
        result = None
    elif isinstance(value, int):
        result = value
    elif isinstance(value, float):
        result = int(value) if _FIRST <= value <= _LAST else None
    elif isinstance(value, str):
        result = _parse(value)
    elif isinstance(value, datetime):
        result = _from_datetime(value)
    if result is None or not _FIRST <= result <= _LAST:
        message = (
            f"'{option}' is not a time: give epoch milliseconds, ISO 8601 text or a datetime,"
            " in the years 1 to 9999."
        )
        raise InvalidArgument(message, option=option)
    return result


def to_ms_in(value: object, option: str, zone: str, zones: Zones) -> int:
    """Read a caller's time; one without an offset is a time in this zone.

    Raises:
        InvalidArgument: As `to_ms`.
    """
    result = to_ms(value, option)
    if zone == "UTC" or not _has_no_offset(value):
        return result
    # The offset is asked for at the time itself, which the first guess is at most a day from.
    guess = result - zones(zone, result) * MINUTE
    return result - zones(zone, guess) * MINUTE


def _has_no_offset(value: object) -> bool:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    return isinstance(value, datetime) and value.tzinfo is None


def _parse(text: str) -> int | None:
    try:
        return _from_datetime(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None


def _from_datetime(value: datetime) -> int:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def iso(ms: int) -> str:
    """Write epoch milliseconds as `2026-05-20T14:22:37.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def iso_or_none(ms: int | None) -> str | None:
    """Write epoch milliseconds as ISO 8601, or pass `None` on."""
    return None if ms is None else iso(ms)


def known_zone(value: object, zones: Zones, at: int) -> str:
    """Return the name of a time zone.

    Raises:
        InvalidArgument: It is no text, or the port knows no zone of that name.
    """
    if not isinstance(value, str) or not value:
        message = "'time_zone' must be the name of a zone, such as 'Europe/Paris'."
        raise InvalidArgument(message, option="time_zone")
    zones(value, at)
    return value


def local(ms: int, zone: str, zones: Zones) -> str:
    """Write a time as people in a zone read it: `2026-05-20 16:22`; the first and last day stay in range."""
    there = ms + zones(zone, ms) * MINUTE
    moment = _EPOCH + timedelta(milliseconds=min(max(there, _FIRST), _LAST))
    return f"{moment.year:04d}-{moment:%m-%d %H:%M}"
