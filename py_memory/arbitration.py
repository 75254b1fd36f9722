"""Changing its mind: what happens when a keyed statement meets the current one in its slot.

A slot is (user, namespace, scope, name, subject, key). Intents without a key are events and
never compete. Every path that writes intents goes through `settle`.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py_memory.engine import Engine
from py_memory.entities import hashes_of, read, stored
from py_memory.records import INTENT_COLUMNS, Intent, intent_of
from py_memory.signature import canonical

REPLACES_ANY = 0.95
UPDATES = 0.85
WEAK = 0.7
REJECTED = "rejected:existing_confidence_higher"

_INSERT = (
    f"INSERT INTO intents (user_id, scope, {INTENT_COLUMNS})"
    f" VALUES ({', '.join('?' * (2 + len(INTENT_COLUMNS.split(','))))})"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """An intent as it is about to be written; `at` is when it was stated (epoch ms)."""

    fragment_id: str
    user_id: str
    scope: str
    name: str
    namespace: str
    subject: str
    key: str | None
    entities: dict[str, Any]
    confidence: float
    source: str | None
    reason: str | None
    at: int


def outcome_of(statement: Statement, current: dict[str, Any] | None) -> str:
    """Return what the arbitration table says, first line that fits."""
    if current is None:
        return "created"
    if canonical(read(current["entities"])) == canonical(statement.entities):
        return "unchanged"
    if statement.confidence > REPLACES_ANY:
        return "replaced"
    if statement.confidence > UPDATES and current["confidence"] < WEAK:
        return "updated"
    return "replaced" if statement.confidence >= current["confidence"] else REJECTED


def settle(engine: Engine, connection: sqlite3.Connection, statement: Statement) -> Intent:
    """Write a statement, and say what became of it."""
    now = engine.clock()
    if statement.key is None:
        intent_id = _insert(engine, connection, statement, now)
        return _answer(connection, intent_id, outcome="created")
    current = _current(connection, statement)
    if current is not None and not is_live(connection, current["fragment_id"], now):
        # Nobody can see it any more, so it must not decide; restored, it stands on the timeline.
        close_row(connection, current["id"], max(statement.at, current["valid_from"]), None, now)
        current = None
    if current is not None and statement.at < current["valid_from"]:
        return _into_the_past(engine, connection, statement, now)
    outcome = outcome_of(statement, current)
    if current is None:
        intent_id, previous = _insert(engine, connection, statement, now), None
    elif outcome == "unchanged":
        connection.execute(
            "UPDATE intents SET evidence = evidence + 1, updated_at = ? WHERE id = ?",
            (now, current["id"]),
        )
        intent_id, previous = current["id"], None
    elif outcome == "updated":
        intent_id, previous = _update(engine, connection, statement, current, now)
    elif outcome == "replaced":
        intent_id, previous = _replace(engine, connection, statement, current, now)
    else:
        intent_id = _insert(engine, connection, statement, now, valid_to=statement.at, reason=REJECTED)
        previous = current["id"]
    change = _record(engine, connection, statement, outcome, intent_id, previous)
    return _answer(connection, intent_id, outcome=outcome, previous_id=previous, change_id=change)


def keep_what_was_said_again(connection: sqlite3.Connection, forgotten: Sequence[str], now: int) -> None:
    """Let a fact whose fragment was forgotten stand on the latest fragment that says the same."""
    connection.execute(
        """
        UPDATE intents SET fragment_id = s.said
        FROM (
            SELECT i.pk, (
                SELECT c.fragment_id FROM changes AS c JOIN fragments AS f ON f.id = c.fragment_id
                WHERE c.intent_id = i.id AND c.outcome = 'unchanged' AND f.deleted_at IS NULL
                    AND (f.expires_at IS NULL OR f.expires_at > :now)
                ORDER BY c.pk DESC LIMIT 1
            ) AS said
            FROM json_each(:forgotten) AS j JOIN intents AS i ON i.fragment_id = j.value
            WHERE i.valid_to IS NULL AND i.key IS NOT NULL
        ) AS s
        WHERE intents.pk = s.pk AND s.said IS NOT NULL
        """,
        {"forgotten": json.dumps(list(forgotten)), "now": now},
    )


def _current(connection: sqlite3.Connection, statement: Statement) -> dict[str, Any] | None:
    row = connection.execute(
        "SELECT id, pk, fragment_id, entities, confidence, valid_from, update_reason, source,"
        " created_at, evidence FROM intents WHERE user_id = ? AND namespace = ? AND scope = ?"
        " AND name = ? AND subject = ? AND key = ? AND valid_to IS NULL",
        _slot(statement),
    ).fetchone()
    names = (
        "id", "pk", "fragment_id", "entities", "confidence", "valid_from", "update_reason",
        "source", "created_at", "evidence",
    )  # fmt: skip
    return None if row is None else dict(zip(names, row, strict=True))


def is_live(connection: sqlite3.Connection, fragment_id: str, now: int) -> bool:
    """Tell whether a statement's fragment is neither forgotten nor expired."""
    row = connection.execute(
        "SELECT deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?) FROM fragments WHERE id = ?",
        (now, fragment_id),
    ).fetchone()
    return row is not None and bool(row[0])


def _slot(statement: Statement) -> tuple[str, ...]:
    return (
        statement.user_id,
        statement.namespace,
        statement.scope,
        statement.name,
        statement.subject,
        statement.key or "",
    )


def _insert(
    engine: Engine,
    connection: sqlite3.Connection,
    statement: Statement,
    now: int,
    valid_to: int | None = None,
    reason: str | None = None,
    replaced_by: str | None = None,
) -> str:
    intent_id = engine.ids.new("in", now)
    insert_row(
        connection,
        statement.user_id,
        statement.scope,
        {
            "id": intent_id,
            "fragment_id": statement.fragment_id,
            "name": statement.name,
            "namespace": statement.namespace,
            "subject": statement.subject,
            "key": statement.key,
            "entities": stored(statement.entities),
            "confidence": statement.confidence,
            "evidence": 1,
            "valid_from": statement.at,
            "valid_to": valid_to,
            "replaced_by": replaced_by,
            "update_reason": reason or statement.reason,
            "source": statement.source,
            "created_at": now,
            "updated_at": now,
        },
    )
    return intent_id


def insert_row(connection: sqlite3.Connection, user_id: str, scope: str, row: dict[str, Any]) -> None:
    """Write an intent's row as it is, with what `find` looks for."""
    values = [row[name.strip()] for name in INTENT_COLUMNS.split(",")]
    pk = connection.execute(_INSERT, (user_id, scope, *values)).lastrowid
    index_row(connection, int(pk or 0), user_id, row)


def index_row(connection: sqlite3.Connection, pk: int, user_id: str, row: dict[str, Any]) -> None:
    """Note under which hashes `find` finds an intent."""
    closed = int(row["valid_to"] is not None)
    session_id, skill = connection.execute(
        "SELECT session_id, skill FROM fragments WHERE id = ?", (row["fragment_id"],)
    ).fetchone()
    hashes = hashes_of(
        user_id,
        row["name"],
        row["namespace"],
        row["subject"],
        row["key"],
        read(row["entities"]),
        session_id,
        skill,
    )
    connection.executemany(
        "INSERT INTO intent_terms (hash, closed, intent) VALUES (?, ?, ?)",
        [(one, closed, pk) for one in sorted(hashes)],
    )


def _reindex(connection: sqlite3.Connection, intent_id: str) -> None:
    pk, user_id, *values = connection.execute(
        f"SELECT pk, user_id, {INTENT_COLUMNS} FROM intents WHERE id = ?", (intent_id,)
    ).fetchone()
    names = [name.strip() for name in INTENT_COLUMNS.split(",")]
    connection.execute("DELETE FROM intent_terms WHERE intent = ?", (pk,))
    index_row(connection, pk, user_id, dict(zip(names, values, strict=True)))


def rewrite_row(connection: sqlite3.Connection, row: dict[str, Any]) -> None:
    """Put an intent's row in place of the one of the same id."""
    names = [name for name in row if name != "id"]
    connection.execute(
        f"UPDATE intents SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",
        (*(row[name] for name in names), row["id"]),
    )
    _reindex(connection, row["id"])


def close_row(connection: sqlite3.Connection, intent_id: str, at: int, by: str | None, now: int) -> None:
    """End a statement's validity; the row stays on the timeline."""
    connection.execute(
        "UPDATE intents SET valid_to = ?, replaced_by = ?, updated_at = ? WHERE id = ?",
        (at, by, now, intent_id),
    )
    _reindex(connection, intent_id)


def _replace(
    engine: Engine,
    connection: sqlite3.Connection,
    statement: Statement,
    current: dict[str, Any],
    now: int,
) -> tuple[str, str]:
    close_row(connection, current["id"], statement.at, None, now)
    intent_id = _insert(engine, connection, statement, now)
    connection.execute("UPDATE intents SET replaced_by = ? WHERE id = ?", (intent_id, current["id"]))
    return intent_id, current["id"]


def _update(
    engine: Engine,
    connection: sqlite3.Connection,
    statement: Statement,
    current: dict[str, Any],
    now: int,
) -> tuple[str, str]:
    old = Statement(
        fragment_id=current["fragment_id"],
        user_id=statement.user_id,
        scope=statement.scope,
        name=statement.name,
        namespace=statement.namespace,
        subject=statement.subject,
        key=statement.key,
        entities=read(current["entities"]),
        confidence=current["confidence"],
        source=current["source"],
        reason=current["update_reason"],
        at=current["valid_from"],
    )
    previous = _insert(engine, connection, old, now, valid_to=statement.at, replaced_by=current["id"])
    connection.execute(
        "UPDATE intents SET fragment_id = ?, entities = ?, confidence = ?, evidence = 1,"
        " valid_from = ?, update_reason = ?, source = ?, updated_at = ? WHERE id = ?",
        (
            statement.fragment_id,
            stored(statement.entities),
            statement.confidence,
            statement.at,
            statement.reason,
            statement.source,
            now,
            current["id"],
        ),
    )
    _reindex(connection, current["id"])
    return current["id"], previous


def _into_the_past(engine: Engine, connection: sqlite3.Connection, statement: Statement, now: int) -> Intent:
    """Put a backdated statement before what was stated later; the current one stays."""
    later = connection.execute(
        "SELECT id, valid_from FROM intents WHERE user_id = ? AND namespace = ? AND scope = ?"
        " AND name = ? AND subject = ? AND key = ? AND valid_from > ?"
        " AND coalesce(update_reason, '') <> ? ORDER BY valid_from, pk LIMIT 1",
        (*_slot(statement), statement.at, REJECTED),
    ).fetchone()
    intent_id = _insert(engine, connection, statement, now, valid_to=later[1], replaced_by=later[0])
    earlier = connection.execute(
        "SELECT id FROM intents WHERE user_id = ? AND namespace = ? AND scope = ? AND name = ?"
        " AND subject = ? AND key = ? AND valid_from <= ? AND valid_to > ? AND id <> ?"
        " ORDER BY valid_from DESC, pk DESC LIMIT 1",
        (*_slot(statement), statement.at, statement.at, intent_id),
    ).fetchone()
    if earlier is not None:
        close_row(connection, earlier[0], statement.at, intent_id, now)
    change = _record(engine, connection, statement, "created", intent_id, None)
    return _answer(connection, intent_id, outcome="created", change_id=change)


def _record(
    engine: Engine,
    connection: sqlite3.Connection,
    statement: Statement,
    outcome: str,
    intent_id: str,
    previous: str | None,
) -> str:
    now = engine.clock()
    change = engine.ids.new("ch", now)
    connection.execute(
        "INSERT INTO changes (id, user_id, at, outcome, reason, intent_id, previous_id, fragment_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            change,
            statement.user_id,
            now,
            outcome,
            statement.reason,
            intent_id,
            previous,
            statement.fragment_id,
        ),
    )
    return change


def _answer(connection: sqlite3.Connection, intent_id: str, **outcome: Any) -> Intent:
    row = connection.execute(f"SELECT {INTENT_COLUMNS} FROM intents WHERE id = ?", (intent_id,)).fetchone()
    return intent_of(row, **outcome)
