"""Loading: rows by number become fragments with their intents, in the order asked for."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from py_memory.engine import Engine
from py_memory.records import (
    FRAGMENT_COLUMNS,
    INTENT_COLUMNS,
    Fragment,
    Intent,
    columns,
    fragment_of,
    intent_of,
)

_MAX_COMPANIONS = 100

# What may come along with a hit: what is live, not sensitive unless asked for, and known at the time.
_MAY_COME = (
    "deleted_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"
    " AND sensitive <= :sensitive AND stored_at <= :known"
)
_FRAGMENT = columns(FRAGMENT_COLUMNS, "f")
_INTENT = columns(INTENT_COLUMNS, "i")


def fragments(engine: Engine, rows: Sequence[int], *, data: bool = True) -> list[Fragment]:
    """Return the fragments of these row numbers, in their order, with their current intents."""
    picked = _FRAGMENT if data else _FRAGMENT.replace("f.data", "NULL")
    found = {
        pk: fragment_of(tuple(values))
        for pk, *values in engine.database.rows(
            f"SELECT f.pk, {picked} FROM json_each(?) AS j JOIN fragments AS f ON f.pk = j.value",
            (json.dumps(list(rows)),),
        )
    }
    meant = current_intents(engine, [fragment.id for fragment in found.values()])
    return [replace(found[pk], intents=tuple(meant.get(found[pk].id, ()))) for pk in rows if pk in found]


def companions(
    engine: Engine, fragment: Fragment, *, sensitive: bool, known: int, data: bool = True
) -> list[Fragment]:
    """Return the other live fragments of a fragment's moment, in the order they were stored.

    `known` leaves out what was stored later (epoch ms).
    """
    if fragment.moment is None:
        return []
    rows = engine.database.rows(
        "SELECT pk FROM fragments WHERE session_id = :here AND moment = :moment AND id <> :id"
        f" AND {_MAY_COME} ORDER BY pk LIMIT {_MAX_COMPANIONS}",
        {
            "here": fragment.session_id,
            "moment": fragment.moment,
            "id": fragment.id,
            "now": engine.clock(),
            "sensitive": int(sensitive),
            "known": known,
        },
    )
    return fragments(engine, [row[0] for row in rows], data=data)


def around(
    engine: Engine, row: int, count: int, *, sensitive: bool, known: int, data: bool = True
) -> list[Fragment]:
    """Return up to `count` live turns before and after a fragment in its session, in order.

    `known` leaves out what was stored later (epoch ms).
    """
    if not count:
        return []
    session_id, at = engine.database.row("SELECT session_id, happened_at FROM fragments WHERE pk = ?", (row,))
    params = {
        "here": session_id,
        "at": at,
        "pk": row,
        "now": engine.clock(),
        "sensitive": int(sensitive),
        "known": known,
    }
    beside: list[int] = []
    for sign, way in (("<", "DESC"), (">", "ASC")):
        found: list[int] = []
        for step in (f"f.happened_at = :at AND f.pk {sign} :pk", f"f.happened_at {sign} :at"):
            rows = engine.database.rows(
                f"SELECT f.pk FROM fragments AS f WHERE f.session_id = :here AND {step}"
                f" AND {_MAY_COME}"
                f" ORDER BY f.happened_at {way}, f.pk {way} LIMIT :count",
                {**params, "count": count - len(found)},
            )
            found += [one[0] for one in rows]
        beside.extend(reversed(found) if sign == "<" else found)
    return fragments(engine, beside, data=data)


def current_intents(engine: Engine, ids: Iterable[str]) -> dict[str, list[Intent]]:
    """Return the intents that hold now, by the fragment that carries them."""
    meant: dict[str, list[Intent]] = {}
    for row in engine.database.rows(
        f"SELECT {_INTENT} FROM json_each(?) AS j JOIN intents AS i ON i.fragment_id = j.value"
        " WHERE i.valid_to IS NULL ORDER BY i.pk",
        (json.dumps(list(ids)),),
    ):
        intent = intent_of(row)
        meant.setdefault(intent.fragment_id, []).append(intent)
    return meant
