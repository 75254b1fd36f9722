"""Strength: the one place that says how a memory fades and how recalling it holds it up."""

from dataclasses import dataclass

from py_memory.settings import Settings
from py_memory.times import HOUR

_SHORT_LIVED = range(61, 81)
_SCOPE_CODES = {"working": 61, "episodic": 81, "semantic": 21, "procedural": 41}


def default_memory_type(scope: str) -> int:
    """Return the type code that a scope implies.

    Codes: 1-20 identity and preference, 21-40 fact, 41-60 skill and process, 61-80 task
    state, 81-100 feedback. What was merely said counts as feedback.
    """
    return _SCOPE_CODES[scope]


def default_half_life(scope: str, memory_type: int, settings: Settings) -> float:
    """Return the half-life in hours: short for working scope and task state, else long."""
    if scope == "working" or memory_type in _SHORT_LIVED:
        return settings.half_life_hours_short
    return settings.half_life_hours


@dataclass(frozen=True, slots=True)
class Strength:
    """A memory score (about 0 to 12), the strength 0..1 made of it, and its parts."""

    strength: float
    memory_score: float
    base_score: float
    access_bonus: float
    decay: float
    age_hours: float

    def to_dict(self) -> dict[str, float]:
        """Return the parts for `why`."""
        return {
            "memory_score": self.memory_score,
            "base_score": self.base_score,
            "access_bonus": self.access_bonus,
            "decay": self.decay,
            "age_hours": self.age_hours,
        }


def memory_score(
    base_score: float,
    decay_rate: float,
    half_life_hours: float,
    age_hours: float,
    access_count: int,
    settings: Settings,
) -> float:
    """Return `(base + bonus) × decay_rate ^ (age / half-life)`; an age below zero counts as zero."""
    bonus = min(settings.access_bonus * access_count, settings.access_bonus_max)
    decay: float = decay_rate ** (max(0.0, age_hours) / half_life_hours)
    return (base_score + bonus) * decay


def strength_of(
    base_score: float,
    decay_rate: float,
    half_life_hours: float,
    access_count: int,
    last_used: int,
    now: int,
    settings: Settings,
) -> Strength:
    """Return the strength of a fragment at `now`.

    `last_used` is the later of stored, updated and last access (epoch ms).
    strength = floor + (1 - floor) × min(1, score / 10), so that age orders equals and never
    buries an answer.
    """
    age_hours = max(0.0, (now - last_used) / HOUR)
    score = memory_score(base_score, decay_rate, half_life_hours, age_hours, access_count, settings)
    floor = settings.strength_floor
    return Strength(
        strength=floor + (1 - floor) * min(1.0, score / 10),
        memory_score=score,
        base_score=base_score,
        access_bonus=min(settings.access_bonus * access_count, settings.access_bonus_max),
        decay=decay_rate ** (age_hours / half_life_hours),
        age_hours=age_hours,
    )
