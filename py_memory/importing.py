"""Importing the JSON file: checked row by row, merged by id, whole or not at all.

What the store already has stays as it is, so that importing twice changes nothing, forgotten
rows stay forgotten, and no file can reach another user's rows. Only an intent that the file knows
a later state of is brought up to it: its value was updated or replaced elsewhere.
"""

import base64
import binascii
import sqlite3
from dataclasses import dataclass, field
from typing import Any, NoReturn

from py_memory import boundary
from py_memory.arbitration import REJECTED, close_row, insert_row, is_live, rewrite_row
from py_memory.engine import Engine
from py_memory.errors import ImportInvalid, PyMemoryError, UnsupportedFormat
from py_memory.portable import (
    FLAGS,
    FORMAT,
    OBJECTS,
    SESSION_COLUMNS,
    SIGNATURES,
    TIMES,
    USER_COLUMNS,
    VERSION,
)
from py_memory.records import FRAGMENT_COLUMNS, INTENT_COLUMNS
from py_memory.remembering import ROLES, SCOPES, TYPES, insert_fragment
from py_memory.text import terms
from py_memory.times import to_ms

_TABLES = {
    "users": USER_COLUMNS,
    "sessions": SESSION_COLUMNS,
    "fragments": FRAGMENT_COLUMNS,
    "intents": INTENT_COLUMNS,
}
_COLUMNS = {table: tuple(name.strip() for name in listed.split(",")) for table, listed in _TABLES.items()}
_OPTIONAL_TIMES = frozenset(("ended_at", "last_access_at", "expires_at", "deleted_at", "valid_to"))
_IDS = frozenset(("id", "user_id", "session_id", "fragment_id"))
_CHOICES = {"type": TYPES, "role": ROLES, "scope": SCOPES}
_WHOLE = {
    "memory_type": (1, 100),
    "access_count": (0, 2**53 - 1),
    "token_count": (0, 2**53 - 1),
    "evidence": (0, 2**53 - 1),
}
_NUMBERS = {
    "base_score": (1.0, 10.0),
    "decay_rate": (1e-6, 1.0),
    "half_life_hours": (1e-3, 1e6),
    "confidence": (0.0, 1.0),
}
_TEXT = frozenset(("core", "profile", "content", "skill", "name", "namespace"))


@dataclass(slots=True)
class _Report:
    added: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TABLES, 0))
    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TABLES, 0))
    updated: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TABLES, 0))

    def to_dict(self, *, dry_run: bool) -> dict[str, Any]:
        tables = {
            table: {"added": self.added[table], "kept": self.kept[table], "updated": self.updated[table]}
            for table in _TABLES
        }
        return {"dry_run": dry_run, **tables}


class _DryRun(Exception):
    pass


def imported(engine: Engine, text: str, *, dry_run: bool = False, owner: str | None = None) -> dict[str, Any]:
    """Merge a file; `dry_run` does the same and undoes it. Gives rows added, kept and updated by table.

    Raises:
        UnsupportedFormat: The format or its version is unknown.
        ImportInvalid: The file is damaged, or would reach another user's rows.
    """
    boundary.flag(dry_run, "dry_run")
    rows = _rows(engine, _read(text))
    if owner is not None:
        _give_to(rows, boundary.user(owner))
    _must_be_whole(rows)
    report = _Report()
    try:
        with engine.write() as connection:
            _merge(engine, connection, rows, report)
            engine.index.forget_cache()
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return report.to_dict(dry_run=dry_run)


def _refuse(message: str, **details: Any) -> NoReturn:
    raise ImportInvalid(f"{message} Nothing was imported.", **details)


def _read(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        _refuse("The file must be text.")
    try:
        file = boundary.parse_json(text.removeprefix("\ufeff"))
    except ValueError as exc:
        message = "The file is no complete JSON. Nothing was imported."
        raise ImportInvalid(message) from exc
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        message = f"The file does not say that its format is '{FORMAT}'. Nothing was imported."
        raise UnsupportedFormat(message)
    if file.get("version") != VERSION or isinstance(file["version"], bool):
        message = (
            f"The file has a format version other than {VERSION}, the one this py-memory reads."
            " Update py-memory, or export again with the version that wrote it."
        )
        raise UnsupportedFormat(message, known=VERSION)
    return file


def _rows(engine: Engine, file: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    known = ("format", "version", "exported_at", "includes_sensitive", *_TABLES)
    if any(name not in known for name in file):
        _refuse("The file has a part that this version does not know.")
    checked: dict[str, list[dict[str, Any]]] = {}
    for table, names in _COLUMNS.items():
        given = file.get(table)
        if not isinstance(given, list):
            _refuse(f"The file has no list of {table}.", table=table)
        seen: set[str] = set()
        checked[table] = []
        for number, row in enumerate(given):
            if not isinstance(row, dict) or set(row) != set(names):
                _refuse(f"A row of {table} has not the fields it must.", table=table, row=number)
            clean = _checked(engine, table, number, row)
            if clean["id"] in seen:
                _refuse(f"An id occurs twice in {table}.", table=table, row=number)
            seen.add(clean["id"])
            checked[table].append(clean)
    return checked


def _checked(engine: Engine, table: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
    try:
        return {name: _value(engine, table, name, value) for name, value in row.items()}
    except ImportInvalid:
        raise
    except PyMemoryError as exc:
        message = f"Row {number} of {table}: {exc.message} Nothing was imported."
        raise ImportInvalid(message, table=table, row=number) from exc


def _value(  # noqa: C901 - one line per kind of field
    engine: Engine, table: str, name: str, value: Any
) -> Any:
    settings = engine.settings
    if name in _IDS:
        return boundary.identifier(value, name)
    if name in TIMES:
        return None if value is None and name in _OPTIONAL_TIMES else to_ms(value, name)
    if name in OBJECTS:
        if value is None and name == "frozen":
            return None
        if value is None:
            _refuse(f"'{name}' must be an object.")
        return boundary.to_json(boundary.json_object(value, name, settings))
    if name in FLAGS:
        return int(boundary.flag(value, name))
    if name in SIGNATURES:
        return _signature(name, value)
    if name in _CHOICES:
        return boundary.choice(value, name, _CHOICES[name])
    if name in _WHOLE:
        return boundary.integer(value, name, *_WHOLE[name])
    if name in _NUMBERS:
        return boundary.number(value, name, *_NUMBERS[name])
    if name == "data":
        return _bytes(engine, value)
    if name in _TEXT and not (name == "name" and table == "users"):
        return boundary.text(value, name, settings)
    if name == "subject":
        return boundary.optional_text(value, name, settings) or ""
    return boundary.optional_text(value, name, settings)


def _signature(name: str, value: Any) -> bytes | None:
    if value is None and name == "state_signature":
        return None
    try:
        digest = bytes.fromhex(value)
    except (TypeError, ValueError):
        digest = b""
    if len(digest) != 32:
        _refuse(f"'{name}' is no SHA-256 in hexadecimal.")
    return digest


def _bytes(engine: Engine, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        data = base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error) as exc:
        message = "'data' is no base64. Nothing was imported."
        raise ImportInvalid(message) from exc
    return boundary.blob(data, "data", engine.settings)


def _give_to(rows: dict[str, list[dict[str, Any]]], owner: str) -> None:
    if len(rows["users"]) != 1:
        _refuse("Only a file of one user can be given to an owner.")
    rows["users"][0]["id"] = owner
    for session in rows["sessions"]:
        session["user_id"] = owner


def _must_be_whole(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Refuse rows that belong to something outside the file: that may be another user's."""
    for table, field_name, other in (
        ("sessions", "user_id", "users"),
        ("fragments", "session_id", "sessions"),
        ("intents", "fragment_id", "fragments"),
    ):
        there = {row["id"] for row in rows[other]}
        for number, row in enumerate(rows[table]):
            if row[field_name] not in there:
                _refuse(f"A row of {table} belongs to none of the file's {other}.", table=table, row=number)


def _merge(
    engine: Engine,
    connection: sqlite3.Connection,
    rows: dict[str, list[dict[str, Any]]],
    report: _Report,
) -> None:
    for user in rows["users"]:
        _add(connection, "users", user, {"id": user["id"]}, report)
    for session in rows["sessions"]:
        _add(connection, "sessions", session, {"user_id": session["user_id"]}, report)
    for fragment in rows["fragments"]:
        owner, skill = connection.execute(
            "SELECT user_id, skill FROM sessions WHERE id = ?", (fragment["session_id"],)
        ).fetchone()
        if _is_kept(connection, "fragments", fragment["id"], owner, report):
            continue
        found = terms(fragment["content"])
        row = insert_fragment(connection, {**fragment, "user_id": owner, "skill": skill, "terms": len(found)})
        engine.index.add(row, owner, found)
        report.added["fragments"] += 1
    _add_intents(engine, connection, rows["intents"], report)


def _owner(connection: sqlite3.Connection, table: str, column: str, row_id: str) -> str | None:
    row = connection.execute(f"SELECT {column} FROM {table} WHERE id = ?", (row_id,)).fetchone()
    return None if row is None else str(row[0])


def _is_kept(connection: sqlite3.Connection, table: str, row_id: str, owner: str, report: _Report) -> bool:
    column = "id" if table == "users" else "user_id"
    there = _owner(connection, table, column, row_id)
    if there is None:
        return False
    if there != owner:
        _refuse(f"A row of {table} has an id that belongs to another user.", table=table)
    report.kept[table] += 1
    return True


def _add(
    connection: sqlite3.Connection,
    table: str,
    row: dict[str, Any],
    owner: dict[str, str],
    report: _Report,
) -> None:
    if _is_kept(connection, table, row["id"], next(iter(owner.values())), report):
        return
    names = ", ".join(row)
    connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    report.added[table] += 1


def _add_intents(
    engine: Engine,
    connection: sqlite3.Connection,
    intents: list[dict[str, Any]],
    report: _Report,
) -> None:
    for intent in intents:
        owner, scope = connection.execute(
            "SELECT user_id, scope FROM fragments WHERE id = ?", (intent["fragment_id"],)
        ).fetchone()
        if _is_kept(connection, "intents", intent["id"], owner, report):
            if _is_later(connection, intent):
                _make_room(engine, connection, owner, scope, intent)
                rewrite_row(connection, intent)
                report.kept["intents"] -= 1
                report.updated["intents"] += 1
            continue
        _make_room(engine, connection, owner, scope, intent)
        insert_row(connection, owner, scope, intent)
        report.added["intents"] += 1


def _is_later(connection: sqlite3.Connection, intent: dict[str, Any]) -> bool:
    row = connection.execute("SELECT updated_at FROM intents WHERE id = ?", (intent["id"],)).fetchone()
    return bool(intent["updated_at"] > row[0])


def _make_room(
    engine: Engine,
    connection: sqlite3.Connection,
    owner: str,
    scope: str,
    intent: dict[str, Any],
) -> None:
    """Let a current imported statement meet the current one in its slot: only one stays current.

    The later stated one wins unless the other is surer; the loser stays on the timeline.
    """
    if intent["key"] is None or intent["valid_to"] is not None:
        return
    current = connection.execute(
        "SELECT id, valid_from, confidence, fragment_id FROM intents WHERE user_id = ? AND namespace = ?"
        " AND scope = ? AND name = ? AND subject = ? AND key = ? AND valid_to IS NULL AND id <> ?",
        (owner, intent["namespace"], scope, intent["name"], intent["subject"], intent["key"], intent["id"]),
    ).fetchone()
    if current is None:
        return
    there, since, confidence, fragment_id = current
    now = engine.clock()
    if not is_live(connection, fragment_id, now):
        close_row(connection, there, max(intent["valid_from"], since), intent["id"], now)
    elif intent["valid_from"] < since:
        intent.update(valid_to=since, replaced_by=there)
    elif intent["confidence"] >= confidence:
        close_row(connection, there, intent["valid_from"], intent["id"], now)
    else:
        intent.update(valid_to=intent["valid_from"], update_reason=REJECTED)
