"""Calls whose reply may have been lost: applied once, answered as often as they are asked.

A page that loses its answer, because the owner of the memory went away, makes the same call to the next
owner. What was applied is noted in the same transaction as what it wrote, and only until the page says
that it has the answer.
"""

import sqlite3
from dataclasses import dataclass

KEPT_MS = 7 * 86_400_000
"""A page that is frozen for longer than this, in the middle of a write, may write it twice."""

REQUESTS_KEPT_MS = 30 * 86_400_000
"""A caller's own `request_id` is known for this long."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one page: who makes it, its number, and up to which number it has all answers."""

    client: str
    number: int
    answered: int


def answer_of(connection: sqlite3.Connection, call: Call) -> str | None:
    """Return what was noted for this call, `None` if it has not been applied."""
    row = connection.execute(
        "SELECT answer FROM calls WHERE client = ? AND number = ?", (call.client, call.number)
    ).fetchone()
    return None if row is None else str(row[0])


def note(connection: sqlite3.Connection, call: Call, answer: str, now: int) -> None:
    """Note a call as applied, and let go of those of the same page that have been answered."""
    connection.execute("DELETE FROM calls WHERE client = ? AND number <= ?", (call.client, call.answered))
    connection.execute(
        "INSERT INTO calls (client, number, at, answer) VALUES (?, ?, ?, ?)",
        (call.client, call.number, stamp(connection, "calls", now), answer),
    )


def prune(connection: sqlite3.Connection, now: int) -> None:
    """Let go of what nobody will ask for any more; writes nothing where there is nothing.

    Age counts from the newest note or from now, whichever is earlier: a clock that jumped ahead since
    the last note must not drop what has just been written. Notes of a clock that was ahead stay until
    the clock gets there.
    """
    for table, kept in (("calls", KEPT_MS), ("requests", REQUESTS_KEPT_MS)):
        newest = _newest(connection, table)
        if newest is not None:
            connection.execute(f"DELETE FROM {table} WHERE at < ?", (min(now, newest) - kept,))


def stamp(connection: sqlite3.Connection, table: str, now: int) -> int:
    """Return the moment to note something at: never before the last, for a clock may go back."""
    return max(now, _newest(connection, table) or now)


def _newest(connection: sqlite3.Connection, table: str) -> int | None:
    row = connection.execute(f"SELECT max(at) FROM {table}").fetchone()
    return None if row[0] is None else int(row[0])
