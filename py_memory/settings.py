"""Settings of a memory, with their defaults and bounds; unknown names are refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from py_memory.errors import InvalidArgument

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be tuned when a memory is opened. Sizes are bytes, times milliseconds."""

    max_text_bytes: int = 1 * _MIB
    max_blob_bytes: int = 64 * _MIB
    max_json_bytes: int = 256 * _KIB
    max_json_depth: int = 32
    exact_weight: float = 1.0
    near_weight: float = 0.7
    meaning_weight: float = 0.3
    relevance_floor: float = 0.5
    strength_floor: float = 0.6
    min_score: float = 0.3
    near_window_ms: int = 3_600_000
    base_score: float = 5.0
    decay_rate: float = 0.9
    half_life_hours: float = 720.0
    half_life_hours_short: float = 24.0
    access_bonus: float = 0.5
    access_bonus_max: float = 2.0
    working_ttl_seconds: int = 3_600
    posting_budget: int = 15_000
    neighbour_pause_ms: int = 1_800_000
    rank_coverage_floor: float = 0.6
    rank_question: float = 0.9
    rank_speaker: float = 1.3
    rank_day: float = 2.5
    rank_next: float = 0.5
    rank_previous: float = 0.2
    rank_two_away: float = 0.3
    rank_session: float = 0.2
    rank_character: float = 0.7


_UNIT = frozenset(
    (
        "exact_weight",
        "near_weight",
        "meaning_weight",
        "relevance_floor",
        "strength_floor",
        "rank_coverage_floor",
        "rank_question",
        "rank_next",
        "rank_previous",
        "rank_two_away",
        "rank_session",
        "rank_character",
    )
)
_POSITIVE = frozenset(
    (
        "max_text_bytes",
        "max_blob_bytes",
        "max_json_bytes",
        "max_json_depth",
        "posting_budget",
    )
)
# What a fragment's own option may be, its default must be within.
_LIMITS = {
    "base_score": (1.0, 10.0),
    "decay_rate": (1e-6, 1.0),
    "half_life_hours": (1e-3, 1e6),
    "half_life_hours_short": (1e-3, 1e6),
    "working_ttl_seconds": (0.0, 3_155_760_000.0),
    "max_json_depth": (1.0, 64.0),
    "rank_speaker": (1.0, 10.0),
    "rank_day": (1.0, 10.0),
}


def settings_of(given: object) -> Settings:
    """Return the defaults with the given values put in.

    Raises:
        InvalidArgument: A name is unknown, or a value is outside its bounds.
    """
    if given is None:
        return Settings()
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        message = "'settings' must be a mapping of setting names to numbers."
        raise InvalidArgument(message, option="settings")
    kinds = {field.name: type(field.default) for field in fields(Settings)}
    values: dict[str, int | float] = {}
    for name, value in given.items():
        if name not in kinds:
            message = f"There is no setting of that name; known are: {', '.join(sorted(kinds))}."
            raise InvalidArgument(message, option="settings")
        values[name] = _number(name, value, kinds[name])
    return replace(Settings(), **values)  # type: ignore[arg-type]  # kinds checked above


def _number(name: str, value: object, kind: type) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        message = f"The setting '{name}' must be a number."
        raise InvalidArgument(message, option=name)
    low, high = _LIMITS.get(name, (0.0, 1.0 if name in _UNIT else 2.0**53))
    if not low <= value <= high or (name in _POSITIVE and value == 0):
        message = f"The setting '{name}' must be between {low:g} and {high:g}."
        raise InvalidArgument(message, option=name)
    if kind is int and value != int(value):
        message = f"The setting '{name}' must be a whole number."
        raise InvalidArgument(message, option=name)
    return kind(value)  # type: ignore[no-any-return]  # int or float, by the field's default
