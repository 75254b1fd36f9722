"""What the engine's tests share: a clock one can move, memories that are closed, rows counted."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py_memory import Memory
from py_memory.times import HOUR, iso

START = 1_780_000_000_000
TABLES = ("users", "sessions", "fragments", "intents", "intent_terms", "changes", "requests", "calls")

# Cases that may lie beside the checkout. Where they do not, the tests' own cases are what runs.
SHARED_CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


class Clock:
    """Gives the present; stands still until it is moved, backwards too."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, *, ms: int = 0, hours: float = 0.0) -> None:
        self.now += ms + int(hours * HOUR)

    @property
    def iso(self) -> str:
        return iso(self.now)


@contextmanager
def opened(path: str = ":memory:", **options: Any) -> Iterator[Memory]:
    """Open a memory with a clock that stands still, and close it."""
    with Memory.open(path, **{"clock": Clock(), **options}) as memory:
        yield memory


def counts(memory: Memory) -> dict[str, int]:
    """Count the rows of every table, so that a refused call can be shown to have written nothing."""
    rows = memory.database.row
    return {table: rows(f"SELECT count(*) FROM {table}")[0] for table in TABLES}


def dump(memory: Memory) -> list[str]:
    """Return everything that is in the database, as SQL."""
    return list(memory.database.connection.iterdump())


def contents(hits: Any) -> list[str]:
    """Return the text of hits or fragments, in their order."""
    return [getattr(one, "fragment", one).content for one in hits]


def ids(hits: Any) -> list[str]:
    """Return the fragments' ids of hits or fragments, in their order."""
    return [getattr(one, "fragment", one).id for one in hits]


def shared_cases(name: str) -> dict[str, Any]:
    """Return the cases that lie beside the checkout, or none."""
    path = SHARED_CASES / name
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def without_time(text: str) -> str:
    """Return an export without the moment of its making."""
    head, _, rest = text.partition("\n")
    opening = json.loads(head.rstrip(",") + "}")
    del opening["exported_at"]
    return json.dumps(opening, sort_keys=True) + rest
