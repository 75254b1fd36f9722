"""The image as a file: out as a plain SQLite file, in after it was checked."""

import os
import sqlite3
import tempfile
from typing import Any

from py_memory import boundary, ledger
from py_memory.database import Database
from py_memory.engine import Engine
from py_memory.errors import CorruptImage, InvalidArgument, PyMemoryError
from py_memory.metrics import counted
from py_memory.schema import APPLICATION_ID, migrate, structure_of, version_of
from py_memory.textindex import TextIndex

_HEADER = b"SQLite format 3\x00"
# Bytes 18 and 19 of the header: 2 means write-ahead log, 1 a rollback journal, which every tool
# opens from a lone file.
_FORMAT = slice(18, 20)
_ROLLBACK = b"\x01\x01"


def exported(engine: Engine) -> bytes:
    """Return the database as one file in rollback-journal format."""
    engine.flush()
    return as_file(engine.database)


def as_file(database: Database) -> bytes:
    """Return a database's pages in the format that every tool opens from a lone file."""
    image = bytearray(database.connection.serialize())
    image[_FORMAT] = _ROLLBACK
    return bytes(image)


def imported(engine: Engine, image: object, call: ledger.Call | None = None) -> dict[str, Any]:
    """Replace the database by an image, in one transaction of the live connection.

    With `call`, what comes in notes that this call was applied.

    Raises:
        CorruptImage: It is damaged or no memory; nothing was changed.
        SchemaNewer: A newer version wrote it; nothing was changed.
    """
    if not isinstance(image, bytes | bytearray | memoryview):
        message = "'image' must be the bytes of a SQLite file."
        raise InvalidArgument(message, option="image")
    data = bytes(image)
    if data[:16] != _HEADER:
        message = "This is no SQLite file; nothing was changed."
        raise CorruptImage(message, kind="header")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "image.db")
        with open(path, "wb") as file:
            file.write(data)
        source = Database(path)
        try:
            _verify(source)
            migrate(source)
            _must_be_built_alike(source)
            TextIndex(source).ensure()
            _note_alone(source, call, engine.clock())
            source.fold()
            _replace(engine, source)
        finally:
            source.close()
    return counted(engine, None)


def _verify(source: Database) -> None:
    """Refuse an image that is damaged or is not a memory."""
    if source.row("PRAGMA application_id")[0] != APPLICATION_ID or version_of(source) == 0:
        message = "This SQLite file is no memory; nothing was changed."
        raise CorruptImage(message, kind="foreign")
    if source.rows("PRAGMA integrity_check(1)") != [("ok",)]:
        message = "The image fails SQLite's own checks; nothing was changed."
        raise CorruptImage(message, kind="integrity_check")
    if source.rows("PRAGMA foreign_key_check"):
        message = "The image has rows that belong to nothing; nothing was changed."
        raise CorruptImage(message, kind="foreign_key_check")


def _must_be_built_alike(source: Database) -> None:
    """Refuse an image with other tables, indexes, triggers or views than a new memory has."""
    new = Database(":memory:")
    try:
        migrate(new)
        expected = structure_of(new)
    finally:
        new.close()
    if structure_of(source) != expected:
        message = "The image is not built as a memory is; nothing was changed."
        raise CorruptImage(message, kind="structure")


def _note_alone(source: Database, call: ledger.Call | None, now: int) -> None:
    """Drop the calls that the image was written by: they were made to another memory."""
    with source.atomic() as connection:
        connection.execute("DELETE FROM calls")
        if call is not None:
            ledger.note(connection, call, "{}", now)


def _replace(engine: Engine, source: Database) -> None:
    """Copy all pages over the live connection's, which SQLite does as one transaction."""
    try:
        source.connection.backup(engine.database.connection)
    except sqlite3.Error as exc:
        message = "The image could not be copied in; nothing was changed."
        raise CorruptImage(message, kind="copy") from exc
    finally:
        engine.after_undo()


def checked(engine: Engine) -> dict[str, Any]:
    """Run SQLite's checks and the text index's own; say what is wrong."""
    problems = [row[0] for row in engine.database.rows("PRAGMA integrity_check(10)") if row[0] != "ok"]
    if engine.database.rows("PRAGMA foreign_key_check"):
        problems.append("rows that belong to nothing")
    try:
        engine.index.check()
    except PyMemoryError:
        problems.append("the text index does not agree with itself")
    return {"ok": not problems, "problems": [boundary.repaired(str(one)) for one in problems]}
