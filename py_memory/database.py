"""The connection: pragmas, nested transactions, and the two ways to close."""

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py_memory.errors import Closed, CorruptImage, Internal, QuotaExceeded, ReadOnly, StorageBlocked

PAGE_SIZE = 4096

# The order matters: page_size and auto_vacuum are ignored once the file is in WAL mode.
_OWNED = (
    f"PRAGMA page_size={PAGE_SIZE}",
    "PRAGMA auto_vacuum=INCREMENTAL",
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA journal_mode=WAL",
    "PRAGMA wal_autocheckpoint=0",
    "PRAGMA synchronous=OFF",
)
_FILE = (
    f"PRAGMA page_size={PAGE_SIZE}",
    "PRAGMA auto_vacuum=INCREMENTAL",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
)
# A transaction that spills into the log and then rolls back to a savepoint can lose the
# committed rest after a crash (SQLite before 3.51.1), so nothing may spill.
_ALWAYS = (
    "PRAGMA cache_spill=OFF",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=FAST",
    "PRAGMA trusted_schema=OFF",
)
_NO_CHECKPOINT_ON_CLOSE = 1006  # SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE
_FOLD_TRIES = 5
_QUOTED = re.compile(r"[\"'].*", re.DOTALL)


class Database:
    """One SQLite database and its connection.

    `owned` is the browser's profile: the caller alone has the file, keeps its pages elsewhere,
    and decides when the log is folded in.
    """

    def __init__(self, path: str, *, owned: bool = False) -> None:
        """Open the file, or make it.

        Raises:
            StorageBlocked: It cannot be opened, or another process holds it.
            CorruptImage: It is no SQLite database.
        """
        self.path = path
        self.owned = owned
        self.undone = 0
        """How many transactions and savepoints were undone; what is held of their rows is stale."""
        self._depth = 0
        self._connection: sqlite3.Connection | None = None
        self.attach()

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection.

        Raises:
            Closed: There is none.
        """
        if self._connection is None:
            message = "This memory is closed: open it again."
            raise Closed(message)
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def attach(self) -> None:
        """Open the connection with the profile's pragmas; does not migrate."""
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10)
            # On a database that has pages, setting auto_vacuum would write a transaction. The file is
            # asked, not SQLite: a query before locking_mode would need shared memory.
            fresh = not os.path.exists(self.path) or os.path.getsize(self.path) == 0
            for pragma in (*(_OWNED if self.owned else _FILE), *_ALWAYS):
                if fresh or not pragma.startswith("PRAGMA auto_vacuum"):
                    connection.execute(pragma).fetchall()
        except sqlite3.Error as exc:
            if connection is not None:
                connection.close()
            raise translated(exc) from exc
        self._depth = 0
        self._connection = connection

    def detach(self) -> None:
        """Close without folding the log in, so that the log can be cut by its keeper.

        Raises:
            Internal: This Python (before 3.12) cannot.
        """
        connection = self.connection
        if not hasattr(connection, "setconfig"):
            message = "Closing without a checkpoint needs Python 3.12 or newer."
            raise Internal(message)
        connection.setconfig(_NO_CHECKPOINT_ON_CLOSE, True)
        connection.close()
        self._connection = None

    def close(self) -> None:
        """Close; twice does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def fold(self) -> None:
        """Fold the log into the database file and cut it to nothing.

        Raises:
            Internal: It stays locked: a cursor is still open.
        """
        for attempt in range(_FOLD_TRIES):
            try:
                busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.OperationalError:
                busy = 1
            if not busy:
                return
            time.sleep(0.001 * attempt)
        message = "The log could not be folded into the database: a statement is still open."
        raise Internal(message)

    @contextmanager
    def atomic(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction; inside another one, a savepoint. All of it is kept or nothing."""
        connection = self.connection
        outermost = self._depth == 0
        name = f"level_{self._depth}"
        try:
            connection.execute("BEGIN IMMEDIATE" if outermost else f"SAVEPOINT {name}")
        except sqlite3.Error as exc:
            raise translated(exc) from exc
        self._depth += 1
        try:
            yield connection
            connection.execute("COMMIT" if outermost else f"RELEASE {name}")
        except BaseException as exc:
            self.undone += 1
            self._undo(connection, None if outermost else name)
            if isinstance(exc, sqlite3.Error):
                raise translated(exc) from exc
            raise
        finally:
            self._depth -= 1

    @staticmethod
    def _undo(connection: sqlite3.Connection, savepoint: str | None) -> None:
        # SQLite itself may have rolled all of it back (full disk, out of memory, interrupt).
        if not connection.in_transaction:
            return
        if savepoint is None:
            connection.execute("ROLLBACK")
        else:
            connection.execute(f"ROLLBACK TO {savepoint}")
            connection.execute(f"RELEASE {savepoint}")

    def rows(self, sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        """Run a query to its end (an open cursor would keep the log from being folded)."""
        try:
            return self.connection.execute(sql, params).fetchall()
        except sqlite3.Error as exc:
            raise translated(exc) from exc

    def row(self, sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> Any:
        """Return the first row of a query that gives at most one, or `None`."""
        found = self.rows(sql, params)
        return found[0] if found else None


def translated(exc: sqlite3.Error) -> Exception:
    """Return the typed error for one of SQLite's, without its quoted parts (they may hold content)."""
    said = str(exc)
    name = getattr(exc, "sqlite_errorname", "") or ""
    kinds = (
        (("SQLITE_FULL",), QuotaExceeded, "The disk is full: free some room and repeat."),
        (("SQLITE_BUSY", "SQLITE_LOCKED"), StorageBlocked, "The database is in use: repeat later."),
        (("SQLITE_READONLY",), ReadOnly, "The database can only be read: check its permissions."),
        (
            ("SQLITE_CORRUPT", "SQLITE_NOTADB"),
            CorruptImage,
            "The database is damaged or is no SQLite file; nothing was changed.",
        ),
        (
            ("SQLITE_CANTOPEN",),
            StorageBlocked,
            "The database cannot be opened: check the path and its permissions.",
        ),
    )
    for prefixes, kind, message in kinds:
        if name.startswith(prefixes):
            return kind(message, sqlite=name)
    if "closed database" in said:
        return Closed("This memory is closed: open it again.")
    return Internal(f"SQLite refused: {_QUOTED.sub('…', said)}", sqlite=name)
