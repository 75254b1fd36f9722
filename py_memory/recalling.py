"""Recall: three tiers, one formula, always explained.

score = weight × relevance × strength. L1 is the same context, L2 this session's last hour, L3
what the text means over the user's whole memory. A fragment appears once, with its best tier.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py_memory import boundary, loading
from py_memory.asking import Asked, asked
from py_memory.engine import Engine
from py_memory.errors import InvalidArgument
from py_memory.listing import limit_of
from py_memory.ranking import Relevance, relevances
from py_memory.records import Fragment, Hit
from py_memory.remembering import Place
from py_memory.scoping import FILTERS, Condition, filtered, live
from py_memory.signature import WINDOWS, context_signature, state_signature
from py_memory.strength import Strength, strength_of
from py_memory.times import iso, known_zone, local, to_ms

TIERS = ("L1", "L2", "L3")
SEARCH_OPTIONS = FILTERS | frozenset(
    (
        "limit", "min_score", "time_zone", "metadata", "include_sensitive", "around", "touch",
        "include_data",
    )
)  # fmt: skip
RECALL_OPTIONS = (SEARCH_OPTIONS - {"session_id"}) | {"state", "tiers", "signature_window"}

_MAX_AROUND = 20
_TIER_ROWS = 200
_FAR = 2**62
_MAX_METADATA = 100
# Without them true would be the same as 1.
_JSON_TYPES = {
    bool: "('true', 'false')",
    int: "('integer', 'real')",
    float: "('integer', 'real')",
    str: "('text')",
    type(None): "('null')",
}


@dataclass(slots=True)
class _Candidate:
    tiers: dict[str, float] = field(default_factory=dict)
    branch: bool = False
    timely: bool = False


@dataclass(frozen=True, slots=True)
class _Scored:
    pk: int
    id: str
    tier: str
    weight: float
    relevance: float
    strength: Strength
    score: float
    order: tuple[Any, ...]
    candidate: _Candidate


def recall(engine: Engine, place: Place, query: str, options: Mapping[str, Any]) -> list[Hit]:
    """Return the hits of a session's recall, best score first, ties by newest."""
    boundary.known(options, RECALL_OPTIONS, "recall")
    tiers = boundary.choices(options.get("tiers"), "tiers", TIERS) or TIERS
    if options.get("signature_window") is not None:
        boundary.choice(options["signature_window"], "signature_window", WINDOWS)
    return _hits(engine, place.user_id, place, query, options, tiers)


def search(engine: Engine, user_id: str, query: str, options: Mapping[str, Any]) -> list[Hit]:
    """Return hits by meaning alone, over the whole history of one user."""
    boundary.known(options, SEARCH_OPTIONS, "search")
    return _hits(engine, user_id, None, query, options, ("L3",))


def _hits(
    engine: Engine,
    user_id: str,
    place: Place | None,
    query: str,
    options: Mapping[str, Any],
    tiers: tuple[str, ...],
) -> list[Hit]:
    limit = limit_of(options, 10)
    now = engine.clock()
    zone = engine.time_zone if place is None else engine.session_zones.get(place.session_id, engine.time_zone)
    if options.get("time_zone") is not None:
        zone = known_zone(options["time_zone"], engine.zones, now)
    condition = _visible(engine, user_id, options)
    at: int = condition.params.get("as_of", now)
    query = boundary.text(query, "query", engine.settings)
    question = asked(engine, user_id, query, at, zone)
    found = relevances(engine, user_id, question, condition, limit) if question.terms else {}
    if not question.by_words and question.times:
        _within(condition, question)
    candidates: dict[int, _Candidate] = {}
    if place is not None and "L1" in tiers:
        _exact(engine, place, condition, options, at, found, candidates)
    if place is not None and "L2" in tiers:
        _near(engine, place, condition, at, found, candidates)
    if "L3" in tiers:
        _meant(engine, condition, found, question, limit, candidates)
    scored = _scored(engine, candidates, found, question, options, at)[:limit]
    hits = _explained(engine, scored, found, question, options, at, zone)
    if boundary.flag(options.get("touch", True), "touch") and options.get("as_of") is None:
        engine.touch([one.id for one in scored], now)
    return hits


def _within(condition: Condition, question: Asked) -> None:
    """Narrow to the times that a query is about, when it is about nothing else."""
    spans = " OR ".join(
        f"(f.happened_at >= :from_{i} AND f.happened_at < :till_{i})" for i in range(len(question.times))
    )
    condition.add(f"({spans})")
    for i, word in enumerate(question.times):
        condition.params.update({f"from_{i}": word.start, f"till_{i}": word.end})


def _visible(engine: Engine, user_id: str, options: Mapping[str, Any]) -> Condition:
    condition = filtered(live(engine, user_id), engine, options)
    if not boundary.flag(options.get("include_sensitive", False), "include_sensitive"):
        condition.add("f.sensitive = 0")
    wanted = boundary.json_object(options.get("metadata"), "metadata", engine.settings)
    if len(wanted) > _MAX_METADATA:
        message = f"'metadata' filters compare at most {_MAX_METADATA} fields."
        raise InvalidArgument(message, option="metadata")
    for i, (key, value) in enumerate(wanted.items()):
        if isinstance(value, dict | list):
            message = "'metadata' filters compare text, numbers, true, false and null."
            raise InvalidArgument(message, option="metadata")
        condition.add(
            f"EXISTS (SELECT 1 FROM json_each(f.metadata) AS m WHERE m.key = :meta_key_{i}"
            f" AND m.value IS :meta_value_{i} AND m.type IN {_JSON_TYPES[type(value)]})",
            **{f"meta_key_{i}": key, f"meta_value_{i}": value},
        )
    return condition


def _exact(
    engine: Engine,
    place: Place,
    condition: Condition,
    options: Mapping[str, Any],
    at: int,
    found: Mapping[int, Relevance],
    candidates: dict[int, _Candidate],
) -> None:
    """L1: the same context signature, then the same state in the user's other sessions."""
    if options.get("state") is None:
        return
    state = boundary.json_object(options["state"], "state", engine.settings)
    same = context_signature(place.user_id, place.session_id, state, options.get("signature_window"), at)
    rows = _newest_or_found(
        engine,
        condition,
        "f.state_signature = :state",
        {"same": same, "state": state_signature(place.user_id, state)},
        found,
        "f.context_signature = :same",
    )
    for pk, branch in rows:
        candidate = candidates.setdefault(pk, _Candidate())
        candidate.tiers["L1"] = engine.settings.exact_weight
        candidate.branch = bool(branch)


def _near(
    engine: Engine,
    place: Place,
    condition: Condition,
    at: int,
    found: Mapping[int, Relevance],
    candidates: dict[int, _Candidate],
) -> None:
    """L2: this session's text of the last hour."""
    rows = _newest_or_found(
        engine,
        condition,
        "f.session_id = :here AND f.type = 'text' AND f.happened_at > :from AND f.happened_at <= :to",
        {"here": place.session_id, "from": at - engine.settings.near_window_ms, "to": at},
        found,
    )
    for pk, _ in rows:
        candidates.setdefault(pk, _Candidate()).tiers["L2"] = engine.settings.near_weight


def _newest_or_found(
    engine: Engine,
    condition: Condition,
    where: str,
    params: Mapping[str, Any],
    found: Mapping[int, Relevance],
    flag: str = "0",
) -> list[tuple[int, int]]:
    """Return a tier's newest rows and, however old, those that the query meets; each with a flag."""
    tier = f"SELECT f.pk, {flag} FROM fragments AS f WHERE {where} AND {condition.sql}"
    bound = {**condition.params, **params}
    rows: list[tuple[int, int]] = engine.database.rows(
        f"{tier} ORDER BY f.happened_at DESC, f.pk DESC LIMIT {_TIER_ROWS}", bound
    )
    if len(rows) == _TIER_ROWS and found:
        rows += engine.database.rows(
            f"{tier} AND f.pk IN (SELECT value FROM json_each(:found))",
            {**bound, "found": json.dumps(list(found))},
        )
    return rows


def _meant(
    engine: Engine,
    condition: Condition,
    found: Mapping[int, Relevance],
    question: Asked,
    limit: int,
    candidates: dict[int, _Candidate],
) -> None:
    """L3: what the query meets; a query without words meets the newest."""
    for pk in found:
        candidates.setdefault(pk, _Candidate()).tiers["L3"] = engine.settings.meaning_weight
    if question.by_words:
        return
    rows = engine.database.rows(
        f"SELECT f.pk FROM fragments AS f WHERE {condition.sql}"
        " ORDER BY f.happened_at DESC, f.pk DESC LIMIT :rows",
        {**condition.params, "rows": limit},
    )
    for (pk,) in rows:
        candidate = candidates.setdefault(pk, _Candidate())
        candidate.tiers["L3"] = engine.settings.meaning_weight
        candidate.timely = bool(question.times)


def _scored(
    engine: Engine,
    candidates: Mapping[int, _Candidate],
    found: Mapping[int, Relevance],
    question: Asked,
    options: Mapping[str, Any],
    at: int,
) -> list[_Scored]:
    settings = engine.settings
    floor = settings.relevance_floor
    low = boundary.number(options.get("min_score", settings.min_score), "min_score", 0, 12)
    rows = engine.database.rows(
        "SELECT pk, id, base_score, decay_rate, half_life_hours, access_count,"
        " max(stored_at, updated_at, coalesce(last_access_at, 0)), happened_at, stored_at"
        " FROM fragments WHERE pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(candidates)),),
    )
    scored: list[_Scored] = []
    for pk, fragment_id, base, decay, half_life, count, used, happened, stored in rows:
        strength = strength_of(base, decay, half_life, count, used, at, settings)
        if strength.memory_score < low:
            continue
        candidate = candidates[pk]
        value = found[pk].value if pk in found else 0.0
        best = max(
            (
                (
                    weight * _relevance(tier, value, floor, question, candidate),
                    weight,
                    tier,
                )
                for tier, weight in candidate.tiers.items()
            ),
            key=lambda one: (one[0], one[1]),
        )
        _, weight, tier = best
        relevance = _relevance(tier, value, floor, question, candidate)
        score = weight * relevance * strength.strength
        order = (-score, not candidate.branch, -happened, -stored, fragment_id)
        scored.append(_Scored(pk, fragment_id, tier, weight, relevance, strength, score, order, candidate))
    # Ids rise with time, so among rows stored in one millisecond the later id is the newer.
    scored.sort(key=lambda one: one.id, reverse=True)
    scored.sort(key=lambda one: one.order[:4])
    return scored


def _relevance(tier: str, value: float, floor: float, question: Asked, candidate: _Candidate) -> float:
    if question.by_words:
        return value if tier == "L3" else max(value, floor)
    # Without words: what lies in the time asked for answers wholly; the newest answer nothing.
    return 1.0 if tier != "L3" or candidate.timely else value


def _explained(
    engine: Engine,
    scored: list[_Scored],
    found: Mapping[int, Relevance],
    question: Asked,
    options: Mapping[str, Any],
    at: int,
    zone: str,
) -> list[Hit]:
    data = boundary.flag(options.get("include_data", True), "include_data")
    around = boundary.integer(options.get("around", 0), "around", 0, _MAX_AROUND)
    may_come: dict[str, Any] = {
        "sensitive": options.get("include_sensitive", False),
        "known": _FAR if options.get("as_of") is None else at,
        "data": data,
    }
    fragments = loading.fragments(engine, [one.pk for one in scored], data=data)
    skills = dict(
        engine.database.rows(
            "SELECT id, skill FROM sessions WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps([fragment.session_id for fragment in fragments]),),
        )
    )
    hits: list[Hit] = []
    for one, fragment in zip(scored, fragments, strict=True):
        skill = skills[fragment.session_id]
        signals = found[one.pk].signals if one.pk in found else {}
        why = {
            "tier": one.tier,
            "weight": one.weight,
            "relevance": one.relevance,
            "strength": one.strength.strength,
            "score": one.score,
            "tiers": sorted(one.candidate.tiers),
            "branch": one.candidate.branch,
            "signals": signals,
            "times": question.described(),
            "memory": one.strength.to_dict(),
            "provenance": _provenance(fragment, skill),
            "as_of": iso(at),
        }
        hits.append(
            Hit(
                fragment=fragment,
                tier=one.tier,
                score=one.score,
                why=why,
                cite=_cite(engine, fragment, skill, zone),
                companions=tuple(loading.companions(engine, fragment, **may_come)),
                around=tuple(loading.around(engine, one.pk, around, **may_come)),
            )
        )
    return hits


def _provenance(fragment: Fragment, skill: str) -> dict[str, Any]:
    return {
        "fragment": fragment.id,
        "session": fragment.session_id,
        "time": fragment.happened_at,
        "role": fragment.role,
        "speaker": fragment.speaker,
        "skill": skill or None,
        "source": fragment.source,
    }


def _cite(engine: Engine, fragment: Fragment, skill: str, zone: str) -> str:
    when = local(to_ms(fragment.happened_at, "at"), zone, engine.zones)
    who = f"{fragment.speaker} ({fragment.role})" if fragment.speaker else fragment.role
    parts = [who, when, skill, fragment.source or "", fragment.id]
    return " · ".join(" ".join(part.split()) for part in parts if part)
