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
from py_memory.textindex import Match, Term
from py_memory.times import MINUTE

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
    engine: Engine, user_id: str, query: str, condition: Condition
) -> tuple[dict[int, Relevance], list[Term]]:
    """Return the relevance of each fragment that the query meets, and the terms it was asked by."""
    terms = engine.index.terms_of(user_id, query, engine.settings.posting_budget)
    ideal = sum(term.weight for term in terms)
    if not ideal:
        return {}, terms
    matches = engine.index.matches(user_id, terms, condition.sql, condition.params, CANDIDATES)
    turns = _turns(engine, [match.pk for match in matches])
    scores = {match.pk: _own(match, turns[match.pk], ideal) for match in matches}
    parts = {pk: dict(signals) for pk, (_, signals) in scores.items()}
    base = {pk: value for pk, (value, _) in scores.items()}
    final = _with_neighbours(engine, condition, turns, base, parts)
    return {
        pk: Relevance(1 - math.exp(-_BEND * value), parts.get(pk, {})) for pk, value in final.items()
    }, terms


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
    turns: dict[int, Turn],
    base: dict[int, float],
    parts: dict[int, dict[str, float]],
) -> dict[int, float]:
    """Give each turn a share of its neighbours' scores: an answer often stands beside the word."""
    final = dict(base)
    pause = engine.settings.neighbour_pause_ms
    for pk, before, after in _beside(engine, condition, turns, pause):
        given = 0.0
        for distance, other in enumerate(before):
            given += base.get(other, 0.0) * (_NEXT_AFTER if distance == 0 else _TWO_AWAY)
        for distance, other in enumerate(after):
            given += base.get(other, 0.0) * (_NEXT_BEFORE if distance == 0 else _TWO_AWAY)
        if given:
            final[pk] = final.get(pk, 0.0) + given
            parts.setdefault(pk, {})["neighbours"] = given
    return final


def _turns(engine: Engine, rows: Sequence[int]) -> dict[int, Turn]:
    found = engine.database.rows(
        "SELECT pk, session_id, happened_at, substr(rtrim(content), -1) IN ('?', '？')"
        " FROM fragments WHERE pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return {row[0]: Turn(row[0], row[1], row[2], bool(row[3])) for row in found}


def _beside(
    engine: Engine, condition: Condition, turns: dict[int, Turn], pause: int
) -> list[tuple[int, list[int], list[int]]]:
    """Return the turns within two of a candidate, each with those before and after it, nearest first.

    A pause ends the neighbourhood, and so does the session.
    """
    near: dict[int, tuple[str, int]] = {}
    reach = max(pause, MINUTE)
    spans = [
        (turn.session_id, turn.happened_at - 2 * reach, turn.happened_at + 2 * reach)
        for turn in turns.values()
    ]
    for pk, session_id, at in _rows_in(engine, condition, _merged(spans)):
        near[pk] = (session_id, at)
    order = sorted(near, key=lambda pk: (near[pk][0], near[pk][1], pk))
    found: list[tuple[int, list[int], list[int]]] = []
    for i, pk in enumerate(order):
        before = _linked(order, near, i, -1, pause)
        after = _linked(order, near, i, 1, pause)
        if any(other in turns for other in (*before, *after)):
            found.append((pk, before, after))
    return found


def _linked(
    order: list[int], near: dict[int, tuple[str, int]], start: int, step: int, pause: int
) -> list[int]:
    linked: list[int] = []
    at = start
    for _ in range(2):
        to = at + step
        if not 0 <= to < len(order):
            break
        here, there = near[order[at]], near[order[to]]
        if here[0] != there[0] or abs(here[1] - there[1]) > pause:
            break
        linked.append(order[to])
        at = to
    return linked


def _merged(spans: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    merged: list[tuple[str, int, int]] = []
    for session_id, start, end in sorted(spans):
        if merged and merged[-1][0] == session_id and merged[-1][2] >= start:
            merged[-1] = (session_id, merged[-1][1], max(merged[-1][2], end))
        else:
            merged.append((session_id, start, end))
    return merged


def _rows_in(
    engine: Engine, condition: Condition, spans: list[tuple[str, int, int]]
) -> list[tuple[int, str, int]]:
    return engine.database.rows(
        "SELECT f.pk, f.session_id, f.happened_at FROM json_each(:spans) AS j"
        " CROSS JOIN fragments AS f ON f.session_id = json_extract(j.value, '$[0]')"
        " AND f.happened_at BETWEEN json_extract(j.value, '$[1]') AND json_extract(j.value, '$[2]')"
        f" WHERE {condition.sql}",
        {**condition.params, "spans": json.dumps(spans)},
    )
