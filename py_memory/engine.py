"""What all rooms stand on: the database, the text index, the settings and the ports."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from py_memory import ledger
from py_memory.database import Database
from py_memory.ids import Ids
from py_memory.settings import Settings
from py_memory.textindex import TextIndex
from py_memory.times import Clock, Zones


class Engine:
    """One open memory, as its rooms see it."""

    def __init__(
        self, database: Database, settings: Settings, clock: Clock, time_zone: str, zones: Zones
    ) -> None:
        """Stand on an open, migrated database."""
        self.database = database
        self.settings = settings
        self.clock = clock
        self.time_zone = time_zone
        self.zones = zones
        self.index = TextIndex(database)
        self.ids = Ids()
        self.session_zones: dict[str, str] = {}
        self._touched: dict[str, tuple[int, int]] = {}
        self._pruned = False

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run a write verb: one transaction, in which what was recalled before is counted too.

        The first one also lets go of what the ledger need not know any more: opening writes nothing.
        """
        touched, self._touched = self._touched, {}
        try:
            with self.database.atomic() as connection:
                if touched:
                    _store_touches(connection, touched)
                if not self._pruned:
                    ledger.prune(connection, self.clock())
                yield connection
            self._pruned = True
        except BaseException:
            self.index.forget_cache()
            self._touched = touched
            raise

    def touch(self, ids: Iterable[str], now: int) -> None:
        """Note that fragments were recalled; stored with the next write, so that reads write nothing."""
        for fragment_id in ids:
            count, _ = self._touched.get(fragment_id, (0, now))
            self._touched[fragment_id] = (count + 1, now)

    def flush(self) -> None:
        """Store the notes of what was recalled, if there are any."""
        if self._touched:
            with self.write():
                pass

    def after_undo(self) -> None:
        """Drop what is held in memory: the database under it was put back to an earlier state."""
        self.index.forget_cache()
        self._touched.clear()


def _store_touches(connection: sqlite3.Connection, touched: dict[str, tuple[int, int]]) -> None:
    connection.executemany(
        "UPDATE fragments SET access_count = access_count + ?,"
        " last_access_at = max(coalesce(last_access_at, 0), ?) WHERE id = ?",
        [(count, at, fragment_id) for fragment_id, (count, at) in touched.items()],
    )
