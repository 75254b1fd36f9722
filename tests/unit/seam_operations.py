"""Random operations on a database in keeping, with the stored image compared byte for byte.

Shared by CPython (a dictionary store) and the browser (IndexedDB): nothing here knows the store.
"""

import random
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from py_memory.database import Database
from py_memory.errors import Aborted, StorageLost
from py_memory.image.keeper import Keeper

SCHEMA = (
    "CREATE TABLE notes (pk INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, note TEXT, data BLOB) STRICT",
    "CREATE INDEX notes_note ON notes (note)",
    "CREATE VIRTUAL TABLE words USING fts5(body, content='', tokenize='unicode61')",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID",
)
Result = TypeVar("Result")
_WORDS = "alpha beta gamma delta 你好 机票 epsilon zeta eta theta iota kappa".split()


def drive(steps: Coroutine[Any, Any, Result]) -> Result:
    """Run what never really waits, as everything on a `MemoryStore`, without an event loop."""
    try:
        steps.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    steps.close()
    message = "It waits for something."
    raise AssertionError(message)


Faults = Callable[[str], None]
"""Makes the coming write fail: `abort`, `lose_before` or `lose_after`."""


class Walk:
    """One seeded random walk over a database and its keeper."""

    def __init__(
        self,
        path: str,
        make_keeper: Callable[[], Awaitable[Keeper]],
        read_pages: Callable[[], Awaitable[bytes]],
        fault: Faults,
        seed: int,
    ) -> None:
        """Bind the walk to a way to make keepers, to read the stored pages and to cause faults."""
        self.random = random.Random(seed)
        self.path = path
        self.make_keeper = make_keeper
        self.read_pages = read_pages
        self.fault = fault
        self.counts: dict[str, int] = {}
        self.compared = 0
        self.frames_most = 0

    async def open(self) -> None:
        """Open, or open again from the stored image alone."""
        self.keeper = await self.make_keeper()
        loaded = await self.keeper.load()
        self.database = Database(self.path, owned=True)
        if not loaded:
            for statement in SCHEMA:
                self.database.connection.execute(statement)
        await self.keeper.adopt(self.database)

    async def close(self) -> None:
        """Close everything and remove the files."""
        self.database.close()
        self.keeper.remove_files()
        await self.keeper.store.close()

    async def step(self) -> None:
        """Do one operation, keep it or have it fail, and compare store and database."""
        name, weight = zip(*_OPERATIONS, strict=True)
        choice = self.random.choices(name, weight)[0]
        self.counts[choice] = self.counts.get(choice, 0) + 1
        if choice == "reopen":
            await self.close()
            await self.open()
        elif choice == "fold":
            await self.keeper.keep()
            with suppress(sqlite3.Error):
                self.database.fold()
        else:
            getattr(self, choice)()
            assert not self.database.connection.in_transaction
            await self._keep()
        await self.compare()

    async def _keep(self) -> None:
        fault = self.random.choices(("", "abort", "lose_before", "lose_after"), (88, 8, 2, 2))[0]
        if not fault:
            await self.keeper.keep()
            self.frames_most = max(self.frames_most, self.keeper.log.frames())
            return
        before = await self.read_pages()
        self.fault(fault)
        try:
            kept = await self.keeper.keep()
        except (Aborted, StorageLost):
            self.counts[fault] = self.counts.get(fault, 0) + 1
            assert await self.read_pages() == before
        else:
            if kept:
                assert fault != "abort"
                self.counts[fault] = self.counts.get(fault, 0) + 1
            self.fault("none")
        await self.keeper.settle()

    async def compare(self) -> None:
        """Hold the stored pages against what SQLite itself would write."""
        stored = await self.read_pages()
        shown = self.database.connection.serialize()
        if stored != shown:
            differing = [
                n // 4096 + 1
                for n in range(0, max(len(stored), len(shown)), 4096)
                if stored[n : n + 4096] != shown[n : n + 4096]
            ]
            message = f"pages {differing[:9]} differ, {len(stored)} against {len(shown)} bytes"
            raise AssertionError(message)
        self.compared += 1

    # The operations: each leaves no transaction open.

    def insert(self) -> None:
        self._insert(self.random.randint(1, 30))

    def insert_many(self) -> None:
        with self.database.atomic():
            self._insert(self.random.randint(100, 600))

    def insert_alone(self) -> None:
        self._insert(1)

    def update(self) -> None:
        with self.database.atomic() as connection:
            connection.execute(
                "UPDATE notes SET note = ?, data = ? WHERE pk % ? = 0",
                (self._text(), self._blob(), self.random.randint(2, 40)),
            )

    def delete(self) -> None:
        low = self.random.randint(0, max(1, self._size()))
        with self.database.atomic() as connection:
            gone = connection.execute(
                "SELECT pk, body FROM notes WHERE pk BETWEEN ? AND ?", (low, low + 200)
            ).fetchall()
            connection.executemany("INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)", gone)
            connection.executemany("DELETE FROM notes WHERE pk = ?", [(pk,) for pk, _ in gone])

    def rollback(self) -> None:
        connection = self.database.connection
        connection.execute("BEGIN")
        self._insert(self.random.randint(1, 800))
        connection.execute("ROLLBACK")

    def savepoints(self) -> None:
        with self.database.atomic():
            self._insert(self.random.randint(1, 50))
            with suppress(ZeroDivisionError), self.database.atomic():
                self._insert(self.random.randint(1, 600))
                raise ZeroDivisionError
            self._insert(self.random.randint(1, 20))

    def counter(self) -> None:
        self.database.connection.execute(
            "INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
            (self.random.choice(_WORDS),),
        )

    def optimize(self) -> None:
        self.database.connection.execute("INSERT INTO words (words) VALUES ('optimize')")

    def merge(self) -> None:
        self.database.connection.execute("INSERT INTO words (words, rank) VALUES ('merge', 50)")

    def refill_index(self) -> None:
        with self.database.atomic() as connection:
            connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
            connection.execute("INSERT INTO words (rowid, body) SELECT pk, body FROM notes")

    def vacuum(self) -> None:
        if self._size() > 4_000:
            self.database.connection.execute("DELETE FROM notes WHERE pk % 3 = 0")
        self.database.connection.execute("VACUUM")

    def incremental_vacuum(self) -> None:
        pages = self.random.randint(1, 200)
        self.database.connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()

    def definitions(self) -> None:
        connection = self.database.connection
        with self.database.atomic():
            connection.execute("CREATE TABLE IF NOT EXISTS extra (a INTEGER PRIMARY KEY, b)")
            connection.execute("INSERT INTO extra (b) SELECT body FROM notes LIMIT 50")
            connection.execute(f"PRAGMA user_version={self.random.randint(1, 9)}")
        if self.random.random() < 0.5:
            connection.execute("CREATE INDEX IF NOT EXISTS extra_b ON extra (b)")
        if self.random.random() < 0.3:
            connection.execute("DROP TABLE extra")

    def interrupt(self) -> None:
        connection = self.database.connection
        left = self.random.randint(1, 200)

        def count_down() -> int:
            nonlocal left
            left -= 1
            return int(left <= 0)

        connection.set_progress_handler(count_down, 500)
        with suppress(sqlite3.OperationalError):
            connection.execute("UPDATE notes SET note = body || 'x', data = zeroblob(300)")
        connection.set_progress_handler(None, 0)

    def read(self) -> None:
        self.database.connection.execute("SELECT count(*), max(body) FROM notes").fetchall()

    def _insert(self, count: int) -> None:
        connection = self.database.connection
        for _ in range(count):
            body = self._text()
            pk = connection.execute(
                "INSERT INTO notes (id, body, data) VALUES (?, ?, ?)",
                (f"{self.random.getrandbits(60):015x}", body, self._blob()),
            ).lastrowid
            connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (pk, body))

    def _size(self) -> int:
        return int(self.database.row("SELECT count(*) FROM notes")[0])

    def _text(self) -> str:
        return " ".join(self.random.choices(_WORDS, k=self.random.randint(1, 20)))

    def _blob(self) -> bytes:
        long = self.random.random() < 0.02
        return self.random.randbytes(self.random.randint(0, 9_000 if long else 60))


_OPERATIONS = (
    ("insert_alone", 30),
    ("insert", 12),
    ("insert_many", 4),
    ("update", 8),
    ("delete", 8),
    ("rollback", 4),
    ("savepoints", 5),
    ("counter", 6),
    ("optimize", 2),
    ("merge", 2),
    ("refill_index", 1),
    ("vacuum", 2),
    ("incremental_vacuum", 4),
    ("definitions", 4),
    ("interrupt", 4),
    ("read", 2),
    ("fold", 3),
    ("reopen", 2),
)
