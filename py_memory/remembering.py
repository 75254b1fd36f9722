"""Remembering: a caller's content and options become rows, all in one transaction or none."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from py_memory import boundary, ledger
from py_memory.arbitration import Statement, settle
from py_memory.engine import Engine
from py_memory.errors import InvalidArgument
from py_memory.records import (
    FRAGMENT_COLUMNS,
    INTENT_COLUMNS,
    Fragment,
    Intent,
    fragment_of,
    intent_of,
)
from py_memory.signature import context_signature, state_signature
from py_memory.strength import default_half_life, default_memory_type
from py_memory.text import terms
from py_memory.times import to_ms
from py_memory.tokens import estimated

TYPES = ("text", "image", "audio", "location", "event")
ROLES = ("user", "assistant", "system", "tool")
SCOPES = ("working", "episodic", "semantic", "procedural")

OPTIONS = frozenset(
    """
    type role speaker at state metadata media_type intents memory_type scope base_score
    half_life_hours decay_rate ttl_seconds pinned sensitive source moment signature_window
    update_reason request_id
    """.split()
)
_INTENT_OPTIONS = frozenset(("name", "entities", "confidence", "key", "subject", "namespace", "source"))
_COLUMNS = tuple(name.strip() for name in FRAGMENT_COLUMNS.split(","))
_ONE_CENTURY = 3_155_760_000.0


@dataclass(frozen=True, slots=True)
class Place:
    """The session that remembers: its id, its user, its skill."""

    session_id: str
    user_id: str
    skill: str


@dataclass(slots=True)
class Draft:
    """A fragment that is checked and ready to be written, with its intents."""

    columns: dict[str, Any]
    terms: list[str]
    intents: list[dict[str, Any]]
    reason: str | None


def remember(engine: Engine, place: Place, items: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[Fragment]:
    """Store contents with their options, all or none, and return the fragments in order.

    Raises:
        InvalidArgument, TooLarge: One of them is not as it must be; nothing was written.
    """
    now = engine.clock()
    drafts = [_draft(engine, place, content, options, now) for content, options in items]
    with engine.write() as connection:
        connection.execute(
            "UPDATE sessions SET last_active_at = max(last_active_at, ?) WHERE id = ?",
            (now, place.session_id),
        )
        return [_store(engine, connection, place, draft) for draft in drafts]


def remember_once(
    engine: Engine,
    place: Place,
    items: Sequence[tuple[Any, Mapping[str, Any]]],
    request_id: object,
) -> list[Fragment]:
    """Do the same under a request id: a repeated request is answered and not applied again."""
    request = boundary.identifier(request_id, "request_id")
    with engine.write() as connection:
        known = connection.execute(
            "SELECT fragment_ids, outcomes FROM requests WHERE user_id = ? AND id = ?",
            (place.user_id, request),
        ).fetchone()
        if known is not None:
            return told_again(connection, Told(json.loads(known[0]), json.loads(known[1])))
        fragments = remember(engine, place, items)
        told = told_of(fragments)
        connection.execute(
            "INSERT INTO requests (user_id, id, at, fragment_ids, outcomes) VALUES (?, ?, ?, ?, ?)",
            (
                place.user_id,
                request,
                ledger.stamp(connection, "requests", engine.clock()),
                boundary.to_json(told.ids),
                boundary.to_json(told.outcomes),
            ),
        )
        return fragments


class Told(NamedTuple):
    """What a caller was told of a write, without what was written: enough to tell it again."""

    ids: list[str]
    outcomes: list[list[list[Any]]]


def told_of(fragments: Sequence[Fragment]) -> Told:
    """Return what is to be kept of an answer."""
    return Told(
        [fragment.id for fragment in fragments],
        [
            [[intent.id, intent.outcome, intent.previous_id, intent.change_id] for intent in one.intents]
            for one in fragments
        ],
    )


def told_again(connection: sqlite3.Connection, told: Told) -> list[Fragment]:
    """Give the same answer again, as far as its fragments are still there."""
    fragments: list[Fragment] = []
    for fragment_id, given in zip(told.ids, told.outcomes, strict=True):
        row = connection.execute(
            f"SELECT {FRAGMENT_COLUMNS} FROM fragments WHERE id = ?", (fragment_id,)
        ).fetchone()
        if row is not None:
            fragments.append(fragment_of(row, _outcomes_again(connection, given)))
    return fragments


def _outcomes_again(connection: sqlite3.Connection, outcomes: list[list[Any]]) -> tuple[Intent, ...]:
    told: list[Intent] = []
    for intent_id, outcome, previous, change in outcomes:
        row = connection.execute(
            f"SELECT {INTENT_COLUMNS} FROM intents WHERE id = ?", (intent_id,)
        ).fetchone()
        if row is not None:
            told.append(intent_of(row, outcome=outcome, previous_id=previous, change_id=change))
    return tuple(told)


def _draft(engine: Engine, place: Place, content: Any, options: Mapping[str, Any], now: int) -> Draft:
    boundary.known(options, OPTIONS, "remember")
    settings = engine.settings
    metadata = boundary.json_object(options.get("metadata"), "metadata", settings)
    kind, text, data = _content(engine, content, options, metadata)
    scope = boundary.choice(options.get("scope", "episodic"), "scope", SCOPES)
    memory_type = boundary.integer(
        options.get("memory_type", default_memory_type(scope)), "memory_type", 1, 100
    )
    at = now if options.get("at") is None else to_ms(options["at"], "at")
    given_state = options.get("state")
    state = boundary.json_object(given_state, "state", settings)
    window = options.get("signature_window")
    ttl = options.get("ttl_seconds", settings.working_ttl_seconds if scope == "working" else 0)
    ttl = boundary.number(ttl, "ttl_seconds", 0, _ONE_CENTURY)
    columns = {
        "id": engine.ids.new("mf", now),
        "session_id": place.session_id,
        "user_id": place.user_id,
        "skill": place.skill,
        "type": kind,
        "role": boundary.choice(options.get("role", "user"), "role", ROLES),
        "speaker": boundary.optional_text(options.get("speaker"), "speaker", settings),
        "content": text,
        "media_type": boundary.optional_text(options.get("media_type"), "media_type", settings),
        "metadata": boundary.to_json(metadata),
        "moment": boundary.optional_identifier(options.get("moment"), "moment"),
        "context_signature": context_signature(place.user_id, place.session_id, state, window, at),
        "state_signature": (None if given_state is None else state_signature(place.user_id, state)),
        "memory_type": memory_type,
        "scope": scope,
        "base_score": boundary.number(options.get("base_score", settings.base_score), "base_score", 1, 10),
        "decay_rate": boundary.number(options.get("decay_rate", settings.decay_rate), "decay_rate", 1e-6, 1),
        "half_life_hours": boundary.number(
            options.get("half_life_hours", default_half_life(scope, memory_type, settings)),
            "half_life_hours",
            1e-3,
            1e6,
        ),
        "expires_at": now + int(ttl * 1000) if ttl else None,
        "pinned": int(boundary.flag(options.get("pinned", False), "pinned")),
        "sensitive": int(boundary.flag(options.get("sensitive", False), "sensitive")),
        "token_count": estimated(text),
        "source": boundary.optional_text(options.get("source"), "source", settings),
        "happened_at": at,
        "stored_at": now,
        "updated_at": now,
        "deleted_at": None,
        "access_count": 0,
        "last_access_at": None,
        "summary": None,
        "data": data,
    }
    reason = boundary.optional_text(options.get("update_reason"), "update_reason", settings)
    intents = _intents(engine, place, options.get("intents"))
    found = terms(text)
    columns["terms"] = len(found)
    return Draft(columns, found, intents, reason)


def _content(
    engine: Engine, content: Any, options: Mapping[str, Any], metadata: dict[str, Any]
) -> tuple[str, str, bytes | None]:
    """Return type, text and bytes of a content; a place goes into the metadata too."""
    given = options.get("type")
    kind = None if given is None else boundary.choice(given, "type", TYPES)
    if isinstance(content, str):
        return kind or "text", boundary.text(content, "content", engine.settings), None
    if isinstance(content, bytes | bytearray | memoryview):
        media = options.get("media_type") or ""
        sound = isinstance(media, str) and media.startswith("audio/")
        data = boundary.blob(content, "content", engine.settings)
        return kind or ("audio" if sound else "image"), "", data
    if isinstance(content, Mapping) and "lat" in content and "lng" in content:
        metadata["location"] = _location(engine, content)
        return kind or "location", _readable(metadata["location"]), None
    message = "'content' must be text, bytes, or a place with 'lat' and 'lng'."
    raise InvalidArgument(message, option="content")


def _location(engine: Engine, content: Mapping[str, Any]) -> dict[str, Any]:
    boundary.known(content, ("lat", "lng", "accuracy", "label"), "A place")
    place: dict[str, Any] = {
        "lat": boundary.number(content["lat"], "lat", -90, 90),
        "lng": boundary.number(content["lng"], "lng", -180, 180),
    }
    if content.get("accuracy") is not None:
        place["accuracy"] = boundary.number(content["accuracy"], "accuracy", 0, 1e8)
    if content.get("label") is not None:
        place["label"] = boundary.text(content["label"], "label", engine.settings)
    return place


def _readable(place: Mapping[str, Any]) -> str:
    point = f"{place['lat']:.5f}, {place['lng']:.5f}"
    return f"{place['label']} ({point})" if place.get("label") else point


def _intents(engine: Engine, place: Place, given: Any) -> list[dict[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        message = "'intents' must be a list of objects with at least a 'name'."
        raise InvalidArgument(message, option="intents")
    settings = engine.settings
    found: list[dict[str, Any]] = []
    for one in given:
        if not isinstance(one, Mapping):
            message = "An intent must be an object with at least a 'name'."
            raise InvalidArgument(message, option="intents")
        boundary.known(one, _INTENT_OPTIONS, "An intent")
        subject = one.get("subject")
        namespace = one.get("namespace", place.skill)
        found.append(
            {
                "name": boundary.identifier(one.get("name"), "intents.name"),
                "entities": boundary.json_object(one.get("entities"), "entities", settings),
                "confidence": boundary.number(one.get("confidence", 1.0), "confidence", 0, 1),
                "key": boundary.optional_identifier(one.get("key"), "key"),
                "subject": boundary.optional_identifier(subject or None, "subject") or "",
                "namespace": (boundary.optional_identifier(namespace or None, "namespace") or ""),
                "source": boundary.optional_text(one.get("source"), "source", settings),
            }
        )
    return found


def _store(engine: Engine, connection: sqlite3.Connection, place: Place, draft: Draft) -> Fragment:
    columns = draft.columns
    engine.index.add(insert_fragment(connection, columns), place.user_id, draft.terms)
    stated: list[Intent] = [
        settle(
            engine,
            connection,
            Statement(
                fragment_id=columns["id"],
                user_id=place.user_id,
                scope=columns["scope"],
                reason=draft.reason,
                at=columns["happened_at"],
                **{**one, "source": one["source"] or columns["source"]},
            ),
        )
        for one in draft.intents
    ]
    return fragment_of(tuple(columns[name] for name in _COLUMNS), tuple(stated))


def insert_fragment(connection: sqlite3.Connection, columns: Mapping[str, Any]) -> int:
    """Write a fragment's row and return its number."""
    names = ", ".join(columns)
    marks = ", ".join("?" * len(columns))
    cursor = connection.execute(f"INSERT INTO fragments ({names}) VALUES ({marks})", tuple(columns.values()))
    return int(cursor.lastrowid or 0)
