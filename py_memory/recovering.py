"""Recovery: what can still be read of a damaged database goes into a new one, and what was lost is counted.

Rows come from `carving`; whatever is derived is made anew. The report counts and never quotes.
"""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from py_memory.arbitration import index_row
from py_memory.carving import Carver, Row
from py_memory.database import Database
from py_memory.errors import CorruptImage, Internal, InvalidArgument, SchemaNewer, StorageBlocked
from py_memory.image.log import Log
from py_memory.imagefile import as_file
from py_memory.records import INTENT_COLUMNS
from py_memory.schema import MIGRATIONS, SCHEMA_VERSION, migrate
from py_memory.signature import context_signature
from py_memory.textindex import TextIndex

DERIVED = frozenset(("intent_terms", "properties"))
_ORDER = ("users", "sessions", "fragments", "intents")
_TIMES = ("happened_at", "started_at", "created_at", "at", "stored_at")


@dataclass(slots=True)
class _Table:
    """How a table of the new database is built, and what was found of the old one's."""

    name: str
    columns: list[str]
    key: str | None
    root: str
    stored: list[str]
    parents: list[tuple[str, list[tuple[str, str]]]]
    hints: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: int = 0
    doubtful: int = 0
    placeholders: int = 0
    refused: int = 0
    kept: set[int] = field(default_factory=set)


def recover(path: str, to: str) -> dict[str, Any]:
    """Read what can be read of the memory in a damaged file, and write it to a new file.

    The damaged file, and the log beside it, are only read. Returns a report: `tables` with, for each,
    `rows` (kept), `doubtful` (kept, though something in them does not fit), `placeholders` (made so that
    rows whose user, session or fragment is lost stay) and `lost` (known to have been there); `damage`,
    how often each kind was met; `complete`, whether nothing is wrong at all.

    Raises:
        InvalidArgument: There is a file at `to` already.
        StorageBlocked: A file cannot be read or written.
        CorruptImage: Nothing of a memory can be found in it.
        SchemaNewer: A newer version wrote it.
    """
    message = "There is a file at 'to' already: give a path where nothing is."
    if os.path.exists(to):
        raise InvalidArgument(message, option="to")
    try:
        with open(path, "rb") as file:
            data = bytearray(file.read())
    except OSError as exc:
        message = "The damaged file cannot be read: check the path and its permissions."
        raise StorageBlocked(message) from exc
    _apply_log(path, data)
    image, report = salvaged(data)
    try:
        with open(to, "xb") as file:
            file.write(image)
    except FileExistsError as exc:
        raise InvalidArgument(message, option="to") from exc
    except OSError as exc:
        message = "The new file cannot be written: check the path and its permissions."
        raise StorageBlocked(message) from exc
    return report


def salvaged(
    data: bytes | bytearray, missing: Collection[int] = (), suspect: Collection[int] = ()
) -> tuple[bytes, dict[str, Any]]:
    """Return a new database as a file, and the report, from the bytes of a damaged one.

    `missing` and `suspect` number the pages of which it is known that they are not there or changed.

    Raises:
        CorruptImage: Nothing of a memory can be found in it.
        SchemaNewer: A newer version wrote it.
    """
    carver = Carver(data, missing, suspect)
    stated = carver.schema
    if stated is not None and SCHEMA_VERSION < stated < SCHEMA_VERSION + 1_000 and 1 not in carver.suspect:
        message = f"This memory has schema {stated}; this version of py-memory knows up to {SCHEMA_VERSION}."
        raise SchemaNewer(f"{message} Update py-memory.", schema=stated, known=SCHEMA_VERSION)
    roots = carver.roots()
    version = stated if stated and stated <= SCHEMA_VERSION else SCHEMA_VERSION
    with tempfile.TemporaryDirectory() as folder:
        database = Database(os.path.join(folder, "recovered.db"))
        try:
            migrate(database, MIGRATIONS[:version])
            tables = _tables(database)
            _fill(database, carver, _all_roots(database, roots), tables)
            migrate(database)
            _derive(database)
            _verify(database)
            database.fold()
            image = as_file(database)
        finally:
            database.close()
    report = _report(carver, tables)
    if not any(table.rows for table in tables.values()):
        message = "Nothing of a memory could be found in these bytes; nothing was changed."
        raise CorruptImage(message, kind="empty")
    return image, report


def _apply_log(path: str, data: bytearray) -> None:
    """Lay the committed pages of the log beside the file over its bytes."""
    log = Log(path)
    sealed = log.read()
    if sealed is None:
        return
    size = sealed.page_size
    data.extend(bytes(max(0, sealed.page_count * size - len(data))))
    for number, page in log.pages(sealed):
        data[(number - 1) * size : number * size] = page
    del data[sealed.page_count * size :]


def _tables(database: Database) -> dict[str, _Table]:
    """Return the tables that hold content, those first on which others stand."""
    found = {}
    for _, name, kind, _, without_rowid, _ in database.rows("PRAGMA table_list"):
        virtual = name.startswith(("sqlite_", "text_"))
        if kind != "table" or virtual or name in DERIVED:
            continue
        info = database.rows(f"PRAGMA table_info({name})")
        columns = [row[1] for row in info]
        key = next((row[1] for row in info if row[5] and row[2] == "INTEGER"), None)
        stored = columns
        if without_rowid:
            key = None
            first = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
            stored = first + [column for column in columns if column not in first]
        parents: dict[int, tuple[str, list[tuple[str, str]]]] = {}
        for number, _, parent, here, there, *_ in database.rows(f"PRAGMA foreign_key_list({name})"):
            parents.setdefault(number, (parent, []))[1].append((here, there))
        found[name] = _Table(name, columns, key, name, stored, list(parents.values()))
    rank = {name: place for place, name in enumerate(_ORDER)}
    return dict(sorted(found.items(), key=lambda one: rank.get(one[0], len(rank))))


def _all_roots(database: Database, found: dict[str, int]) -> dict[str, int]:
    """Add, for what was not found, where a new database of this schema has it."""
    usual = dict(database.rows("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0"))
    taken = set(found.values())
    return {**{name: root for name, root in usual.items() if root not in taken}, **found}


def _fill(database: Database, carver: Carver, roots: dict[str, int], tables: dict[str, _Table]) -> None:
    for table in tables.values():
        if table.key:
            _read_hints(database, carver, roots, table)
    with database.atomic() as connection:
        for table in tables.values():
            root = roots.get(table.root)
            if root is None:
                continue
            for row in carver.rows(root) if table.key else carver.entries(root):
                _take(connection, table, row, tables)


def _read_hints(database: Database, carver: Carver, roots: dict[str, int], table: _Table) -> None:
    """Note what the table's indexes say of its rows: which there were, and some of their columns."""
    for _, index, *_ in database.rows(f"PRAGMA index_list({table.name})"):
        names = [str(row[2] or table.key) for row in database.rows(f"PRAGMA index_info({index})")]
        root = roots.get(index)
        if root is None:
            continue
        for entry in carver.entries(root):
            if entry.sound and len(entry.values) == len(names) + 1 and isinstance(entry.values[-1], int):
                known = table.hints.setdefault(entry.rowid, {})
                known.update(zip(names, entry.values, strict=False))


def _take(connection: sqlite3.Connection, table: _Table, row: Row, tables: dict[str, _Table]) -> None:
    if len(row.values) > len(table.stored) or (table.key and row.rowid in table.kept):
        table.refused += 1
        return
    values = dict(zip(table.stored, row.values, strict=False))
    if table.key:
        values[table.key] = row.rowid
    try:
        for parent, pairs in table.parents:
            _ensure(connection, tables, parent, {there: values.get(here) for here, there in pairs}, values)
        _insert(connection, table.name, values)
    except (sqlite3.Error, ValueError, OverflowError):
        table.refused += 1
        return
    table.rows += 1
    table.doubtful += not row.sound or any(values.get(n) != v for n, v in _hinted(table, row.rowid))
    table.kept.add(row.rowid)


def _hinted(table: _Table, rowid: int) -> list[tuple[str, Any]]:
    return list(table.hints.get(rowid, {}).items())


def _ensure(
    connection: sqlite3.Connection,
    tables: dict[str, _Table],
    parent: str,
    wanted: dict[str, Any],
    child: dict[str, Any],
) -> None:
    """Make a placeholder for the parent of a row unless it is there."""
    if any(value is None for value in wanted.values()):
        return
    where = " AND ".join(f"{column} = ?" for column in wanted)
    if connection.execute(f"SELECT 1 FROM {parent} WHERE {where}", tuple(wanted.values())).fetchone():
        return
    row = _placeholder(tables, parent, wanted, child)
    table = tables[parent]
    for grand, pairs in table.parents:
        _ensure(connection, tables, grand, {there: row.get(here) for here, there in pairs}, row)
    _insert(connection, parent, row)
    table.placeholders += 1


def _placeholder(
    tables: dict[str, _Table], parent: str, wanted: dict[str, Any], child: dict[str, Any]
) -> dict[str, Any]:
    """Return a parent's row from what its child and the indexes know of it."""
    hints = tables[parent].hints
    pk = next((pk for pk, known in hints.items() if known.get("id") == wanted["id"]), None)
    known = {} if pk is None else {**hints[pk], str(tables[parent].key): pk}
    at = next((child[name] for name in _TIMES if isinstance(child.get(name), int)), 0)
    if parent == "users":
        return {**known, "created_at": at, "updated_at": at, **wanted}
    if parent == "sessions":
        skill = child.get("skill") or ""
        return {"skill": skill, "started_at": at, "last_active_at": at, **known, **wanted}
    if parent != "fragments":
        message = "This table has no placeholders."
        raise ValueError(message)
    user = str(wanted["user_id"])
    lost = f"recovered-{hashlib.blake2b(user.encode(), digest_size=8).hexdigest()}"
    session = known.get("session_id", lost)
    return {
        "session_id": session,
        "type": "text",
        "role": "system",
        "content": "",
        "metadata": '{"recovered":true}',
        "context_signature": context_signature(user, session, None),
        "memory_type": 50,
        "scope": "episodic",
        "base_score": 5.0,
        "decay_rate": 0.9,
        "half_life_hours": 720.0,
        "happened_at": at,
        "stored_at": at,
        "updated_at": at,
        **{name: value for name, value in known.items() if value is not None},
        **wanted,
    }


def _insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
        tuple(values.values()),
    )


def _derive(database: Database) -> None:
    """Make the text index and the entity index anew; what cannot be read as JSON becomes empty."""
    TextIndex(database).rebuild()
    names = [name.strip() for name in INTENT_COLUMNS.split(",")]
    with database.atomic() as connection:
        for table, column in (("fragments", "metadata"), ("intents", "entities")):
            connection.execute(f"UPDATE {table} SET {column} = '{{}}' WHERE NOT json_valid({column})")
        rows = connection.execute(f"SELECT pk, user_id, {INTENT_COLUMNS} FROM intents").fetchall()
        for pk, user_id, *values in rows:
            index_row(connection, pk, user_id, dict(zip(names, values, strict=True)))


def _verify(database: Database) -> None:
    TextIndex(database).check()
    sound = database.rows("PRAGMA integrity_check(1)") == [("ok",)]
    if not sound or database.rows("PRAGMA foreign_key_check"):
        message = "The recovered database fails its checks; nothing was written."
        raise Internal(message)


def _report(carver: Carver, tables: dict[str, _Table]) -> dict[str, Any]:
    counted = {}
    for name, table in tables.items():
        known = table.hints.keys() - table.kept
        counted[name] = {
            "rows": table.rows,
            "doubtful": table.doubtful,
            "placeholders": table.placeholders,
            "lost": max(len(known), table.refused),
        }
    carver.damage["refused"] += sum(table.refused for table in tables.values())
    damage = dict(sorted((+carver.damage).items()))
    wrong = any(value for row in counted.values() for kind, value in row.items() if kind != "rows")
    return {
        "complete": not damage and not wrong,
        "pages": carver.count,
        "damage": damage,
        "tables": counted,
    }
