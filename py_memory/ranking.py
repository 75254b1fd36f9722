"""Ranking: how well each fragment answers a query, 0..1, made of small named signals.

Candidates are the fragments with the highest BM25 in the user's own text; then each signal
changes the sum by a factor or adds to it, and the result is bent into 0..1 by 1 - e^(-x·1.5),
where x = 1 is a fragment of mean length that has every telling word of the query once.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from py_memory.engine import Engine
from py_memory.scoping import Condition
from py_memory.textindex import Match

CANDIDATES = 200
_BEND = 1.5
_COVERAGE_FLOOR = 0.4
_QUESTION = 0.8
_NEXT_AFTER = 0.5
_NEXT_BEFORE = 0.2
_TWO_AWAY = 0.2


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well a fragment answers, 0..1, and the signals that made it."""

    value: float
    signals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Turn:
    """A candidate's place in its conversation."""

    pk: int
    session_id: str
    happened_at: int
    ends_in_question: bool


def relevances(
    engine: Engine, user_id: str, query: str, condition: Condition, limit: int
) -> dict[int, Relevance]:
    """Return the relevance of each fragment that the query meets; of more than 200 or `limit`, the best."""
    terms = engine.index.terms_of(user_id, query, engine.settings.posting_budget)
    ideal = sum(term.weight for term in terms)
    if not ideal:
        return {}
    matches = engine.index.matches(user_id, terms, condition.sql, condition.params, max(CANDIDATES, limit))
    turns = _turns(engine, [match.pk for match in matches])
    scores = {match.pk: _own(match, turns[match.pk], ideal) for match in matches}
    parts = {pk: dict(signals) for pk, (_, signals) in scores.items()}
    base = {pk: value for pk, (value, _) in scores.items()}
    final = _with_neighbours(engine, condition, base, parts)
    return {pk: Relevance(1 - math.exp(-_BEND * value), parts.get(pk, {})) for pk, value in final.items()}


def _own(match: Match, turn: Turn, ideal: float) -> tuple[float, dict[str, float]]:
    """Return what a fragment's own text says: BM25, by coverage, questions less than answers."""
    coverage = min(1.0, match.covered / ideal)
    value = match.bm25 / ideal * (_COVERAGE_FLOOR + (1 - _COVERAGE_FLOOR) * coverage)
    signals = {"bm25": match.bm25 / ideal, "coverage": coverage}
    if turn.ends_in_question:
        value *= _QUESTION
        signals["question"] = _QUESTION
    return value, signals


def _with_neighbours(
    engine: Engine,
    condition: Condition,
    base: dict[int, float],
    parts: dict[int, dict[str, float]],
) -> dict[int, float]:
    """Give a share of each turn's score to its neighbours: an answer often stands beside the word."""
    given: dict[int, float] = {}
    for pk, before, after in _beside(engine, condition, list(base)):
        for distance, other in enumerate(after):
            share = _NEXT_AFTER if distance == 0 else _TWO_AWAY
            given[other] = given.get(other, 0.0) + base[pk] * share
        for distance, other in enumerate(before):
            share = _NEXT_BEFORE if distance == 0 else _TWO_AWAY
            given[other] = given.get(other, 0.0) + base[pk] * share
    final = dict(base)
    for pk, share in given.items():
        final[pk] = final.get(pk, 0.0) + share
        parts.setdefault(pk, {})["neighbours"] = share
    return final


def _turns(engine: Engine, rows: Sequence[int]) -> dict[int, Turn]:
    found = engine.database.rows(
        "SELECT pk, session_id, happened_at, substr(rtrim(content), -1) IN ('?', '？')"
        " FROM fragments WHERE pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return {row[0]: Turn(row[0], row[1], row[2], bool(row[3])) for row in found}


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
        if pk not in visible or abs(times[pk] - at) > pause:
            break
        linked.append(pk)
        at = times[pk]
    return linked
