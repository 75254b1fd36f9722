"""Ranking: how well each fragment answers a query, 0..1, made of small named signals.

Candidates are the fragments with the highest BM25 in the user's own text; then each signal
changes the sum by a factor or adds to it, and the result is bent into 0..1 by 1 - e^(-x·1.5),
where x = 1 is a fragment of mean length that has every telling word of the query once.
The weights are settings (`rank_…`); docs/recall.md tells what each brings.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from py_memory.asking import Asked
from py_memory.engine import Engine
from py_memory.scoping import Condition
from py_memory.settings import Settings
from py_memory.textindex import Match

CANDIDATES = 200
_BEND = 1.5


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well a fragment answers, 0..1, and the signals that made it."""

    value: float
    signals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Turn:
    """A candidate's place in its conversation, and who said it."""

    pk: int
    session_id: str
    happened_at: int
    speaker: str | None
    ends_in_question: bool


def relevances(
    engine: Engine, user_id: str, asked: Asked, condition: Condition, limit: int
) -> dict[int, Relevance]:
    """Return the relevance of each fragment that the query meets; of more than 200 or `limit`, the best."""
    ideal = asked.ideal
    if not ideal:
        return {}
    matches = engine.index.matches(
        user_id, asked.terms, condition.sql, condition.params, max(CANDIDATES, limit)
    )
    turns = _turns(engine, [match.pk for match in matches])
    parts = {match.pk: _own(engine.settings, asked, match, turns[match.pk], ideal) for match in matches}
    base = {pk: math.prod(signals.values()) for pk, signals in parts.items()}
    final = _with_neighbours(engine, condition, asked, turns, base, parts)
    _with_session(engine.settings, turns, base, final, parts)
    return {pk: Relevance(1 - math.exp(-_BEND * value), parts[pk]) for pk, value in final.items()}


def _own(settings: Settings, asked: Asked, match: Match, turn: Turn, ideal: float) -> dict[str, float]:
    """Return what a fragment's own text says, as factors: BM25, how much is covered, who, when."""
    coverage = min(1.0, match.covered / ideal)
    floor = settings.rank_coverage_floor
    return {
        "bm25": match.bm25 / ideal,
        "coverage": floor + (1 - floor) * coverage,
        **_of_turn(settings, asked, turn),
    }


def _of_turn(settings: Settings, asked: Asked, turn: Turn) -> dict[str, float]:
    """Return the factors that need no text: a question tells less than an answer, names and days more."""
    factors: dict[str, float] = {}
    if turn.ends_in_question:
        factors["question"] = settings.rank_question
    if turn.speaker in asked.speakers:
        factors["speaker"] = settings.rank_speaker
    if asked.names_time(turn.happened_at):
        factors["day"] = settings.rank_day
    return factors


def _with_neighbours(
    engine: Engine,
    condition: Condition,
    asked: Asked,
    turns: dict[int, Turn],
    base: dict[int, float],
    parts: dict[int, dict[str, float]],
) -> dict[int, float]:
    """Give a share of each turn's score to its neighbours: an answer often stands beside the word."""
    settings = engine.settings
    given: dict[int, float] = {}
    for pk, before, after in _beside(engine, condition, list(base)):
        for others, nearest in ((after, settings.rank_next), (before, settings.rank_previous)):
            for distance, other in enumerate(others):
                share = nearest if distance == 0 else settings.rank_two_away
                if not share:
                    continue
                given[other] = given.get(other, 0.0) + base[pk] * share
    turns |= _turns(engine, given.keys() - turns.keys())
    final = dict(base)
    for pk, share in given.items():
        if pk not in base:
            parts[pk] = _of_turn(settings, asked, turns[pk])
            share *= math.prod(parts[pk].values())  # noqa: PLW2901 - its own factors, once
        final[pk] = final.get(pk, 0.0) + share
        parts[pk]["neighbours"] = share
    return final


def _with_session(
    settings: Settings,
    turns: dict[int, Turn],
    base: dict[int, float],
    final: dict[int, float],
    parts: dict[int, dict[str, float]],
) -> None:
    """Add a share of the best score of the session: what belongs together was said together."""
    best: dict[str, float] = {}
    for pk, value in base.items():
        session = turns[pk].session_id
        best[session] = max(best.get(session, 0.0), value)
    for pk in final:
        share = settings.rank_session * best.get(turns[pk].session_id, 0.0)
        if share:
            final[pk] += share
            parts[pk]["session"] = share


def _turns(engine: Engine, rows: Iterable[int]) -> dict[int, Turn]:
    found = engine.database.rows(
        "SELECT pk, session_id, happened_at, speaker, substr(rtrim(content), -1) IN ('?', '？')"
        " FROM fragments WHERE pk IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(rows)),),
    )
    return {pk: Turn(pk, session, at, who, bool(asks)) for pk, session, at, who, asks in found}


# Turns of one millisecond are told apart by row; asked for separately, both stay index look-ups.
_BESIDE = (
    "(SELECT f.pk FROM fragments AS f WHERE f.session_id = h.session_id AND f.deleted_at IS NULL"
    " AND f.happened_at = h.happened_at AND f.pk {sign} h.pk ORDER BY f.pk {way}"
    " LIMIT 1 OFFSET {skip}), "
    "(SELECT f.pk FROM fragments AS f WHERE f.session_id = h.session_id AND f.deleted_at IS NULL"
    " AND f.happened_at {sign} h.happened_at ORDER BY f.happened_at {way}, f.pk {way}"
    " LIMIT 1 OFFSET {skip})"
)


def _beside(engine: Engine, condition: Condition, rows: list[int]) -> list[tuple[int, list[int], list[int]]]:
    """Return each turn with the two before and the two after it, nearest first.

    A pause ends the neighbourhood, and so does the session; what the caller may not see is left out.
    What was stored for one and the same millisecond is a collection, no conversation.
    """
    beside = ", ".join(
        _BESIDE.format(sign=sign, way=way, skip=skip)
        for sign, way in (("<", "DESC"), (">", "ASC"))
        for skip in (0, 1)
    )
    found = [
        (pk, at, _nearest(*row[:4]), _nearest(*row[4:]))
        for pk, at, *row in engine.database.rows(
            f"SELECT h.pk, h.happened_at, {beside}"
            " FROM json_each(?) AS j CROSS JOIN fragments AS h ON h.pk = j.value",
            (json.dumps(rows),),
        )
    ]
    others = [pk for _, _, before, after in found for pk in (*before, *after)]
    times = dict(
        engine.database.rows(
            "SELECT pk, happened_at FROM fragments WHERE pk IN (SELECT value FROM json_each(?))",
            (json.dumps(others),),
        )
    )
    visible = {
        row[0]
        for row in engine.database.rows(
            "SELECT f.pk FROM json_each(:others) AS j CROSS JOIN fragments AS f ON f.pk = j.value"
            f" WHERE {condition.sql}",
            {**condition.params, "others": json.dumps(others)},
        )
    }
    pause = engine.settings.neighbour_pause_ms
    return [
        (pk, _linked(at, before, times, visible, pause), _linked(at, after, times, visible, pause))
        for pk, at, before, after in found
    ]


def _nearest(same: int | None, other: int | None, same_2: int | None, other_2: int | None) -> list[int]:
    """Return the nearest two: those of the same millisecond first."""
    return [pk for pk in (same, same_2, other, other_2) if pk is not None][:2]


def _linked(at: int, row: list[int], times: dict[int, int], visible: set[int], pause: int) -> list[int]:
    linked: list[int] = []
    for pk in row:
        if pk not in visible or not 0 < abs(times[pk] - at) <= pause:
            break
        linked.append(pk)
        at = times[pk]
    return linked
