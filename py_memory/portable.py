"""The JSON file: one user's memory or everything, out in stable order and in again, whole.

What is forgotten or expired is not in it; what is sensitive only when asked for, and the file
says so. Export, import, export gives the same bytes apart from `exported_at`.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

from py_memory import boundary
from py_memory.engine import Engine
from py_memory.records import FRAGMENT_COLUMNS, INTENT_COLUMNS, columns
from py_memory.times import iso, iso_or_none

FORMAT = "py-memory"
VERSION = 1

USER_COLUMNS = "id, name, core, profile, created_at, updated_at"
SESSION_COLUMNS = "id, user_id, skill, started_at, last_active_at, ended_at, summary, frozen"

TIMES = frozenset(
    """
    created_at updated_at started_at last_active_at ended_at last_access_at expires_at happened_at
    stored_at deleted_at valid_from valid_to
    """.split()
)
OBJECTS = frozenset(("metadata", "entities", "frozen"))
FLAGS = frozenset(("pinned", "sensitive"))
SIGNATURES = frozenset(("context_signature", "state_signature"))


def exported(engine: Engine, user_id: str | None, *, include_sensitive: bool = False) -> str:
    """Return the file's text: one row a line, tables in order, rows by age and id."""
    user = None if user_id is None else boundary.user(user_id)
    sensitive = boundary.flag(include_sensitive, "include_sensitive")
    engine.flush()
    now = engine.clock()
    head = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": iso(now),
        "includes_sensitive": sensitive,
    }
    parts = [boundary.to_json(head)[:-1]]
    params = {"user": user, "now": now, "sensitive": int(sensitive)}
    for table, sql, names in _queries(user is None):
        rows = ",\n".join(boundary.to_json(_row(names, row)) for row in engine.database.rows(sql, params))
        parts.append(f'"{table}":[\n{rows}\n]' if rows else f'"{table}":[]')
    return ",\n".join(parts) + "}\n"


def _queries(everyone: bool) -> Iterator[tuple[str, str, list[str]]]:
    kept = (
        "f.deleted_at IS NULL AND (f.expires_at IS NULL OR f.expires_at > :now) AND f.sensitive <= :sensitive"
    )
    users = "1" if everyone else "id = :user"
    whose = "1" if everyone else "user_id = :user"
    of_user = "1" if everyone else "f.user_id = :user"
    yield (
        "users",
        f"SELECT {USER_COLUMNS} FROM users WHERE {users} ORDER BY created_at, id",
        _names(USER_COLUMNS),
    )
    yield (
        "sessions",
        f"SELECT {SESSION_COLUMNS} FROM sessions WHERE {whose} ORDER BY started_at, id",
        _names(SESSION_COLUMNS),
    )
    yield (
        "fragments",
        (
            f"SELECT {columns(FRAGMENT_COLUMNS, 'f')} FROM fragments AS f"
            f" WHERE {of_user} AND {kept} ORDER BY f.stored_at, f.id"
        ),
        _names(FRAGMENT_COLUMNS),
    )
    yield (
        "intents",
        (
            f"SELECT {columns(INTENT_COLUMNS, 'i')} FROM intents AS i"
            f" JOIN fragments AS f ON f.id = i.fragment_id WHERE {of_user} AND {kept}"
            " ORDER BY i.created_at, i.id"
        ),
        _names(INTENT_COLUMNS),
    )


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",")]


def _row(names: list[str], row: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _written(name, value) for name, value in zip(names, row, strict=True)}


def _written(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in TIMES:
        return iso_or_none(value)
    if name in OBJECTS:
        return json.loads(value)
    if name in FLAGS:
        return bool(value)
    if name in SIGNATURES:
        return value.hex()
    if name == "data":
        return base64.b64encode(value).decode()
    return value
