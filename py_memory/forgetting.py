"""Forgetting: by a selector, with a preview that uses the same predicate, and undoable."""

from collections.abc import Mapping
from typing import Any

from py_memory import boundary, loading
from py_memory.arbitration import keep_what_was_said_again
from py_memory.engine import Engine
from py_memory.errors import EmptySelector
from py_memory.listing import cursor_of, limit_of
from py_memory.records import Fragment, Page
from py_memory.remembering import TYPES
from py_memory.scoping import Condition
from py_memory.times import to_ms

_SELECTORS = ("ids", "session_id", "since", "until", "query", "type")
OPTIONS = frozenset((*_SELECTORS, "all", "preview"))


def forget(engine: Engine, user_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Take fragments out of sight; `restore` brings them back. `preview` only tells which.

    Raises:
        EmptySelector: Nothing says which; `all=True` means all of this user's.
    """
    return _mark(engine, user_id, options, "forget", deleted=False)


def restore(engine: Engine, user_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Bring forgotten fragments back, as they were.

    Raises:
        EmptySelector: Nothing says which; `all=True` means all of this user's.
    """
    return _mark(engine, user_id, options, "restore", deleted=True)


def trash(engine: Engine, user_id: str, options: Mapping[str, Any]) -> Page:
    """Return what is forgotten and can still be restored, latest first."""
    boundary.known(options, ("limit", "cursor"), "trash")
    limit = limit_of(options, 50)
    steps = [""]
    params: dict[str, Any] = {"user_id": user_id, "now": engine.clock()}
    if options.get("cursor") is not None:
        params["at"], params["pk"] = cursor_of(options["cursor"], 2)
        steps = [" AND deleted_at = :at AND pk < :pk", " AND deleted_at < :at"]
    rows: list[tuple[int, int]] = []
    for step in steps:
        rows += engine.database.rows(
            "SELECT pk, deleted_at FROM fragments WHERE user_id = :user_id AND deleted_at IS NOT NULL"
            f" AND (expires_at IS NULL OR expires_at > :now){step}"
            " ORDER BY deleted_at DESC, pk DESC LIMIT :limit",
            {**params, "limit": limit + 1 - len(rows)},
        )
    more = len(rows) > limit
    rows = rows[:limit]
    found: list[Fragment] = loading.fragments(engine, [row[0] for row in rows])
    return Page(found, f"{rows[-1][1]}:{rows[-1][0]}" if more else None)


def _mark(
    engine: Engine, user_id: str, options: Mapping[str, Any], verb: str, *, deleted: bool
) -> dict[str, Any]:
    boundary.known(options, OPTIONS, verb)
    preview = boundary.flag(options.get("preview", False), "preview")
    condition = _selected(engine, user_id, options, verb, deleted=deleted)
    if preview:
        return _answer(_rows(engine, condition))
    with engine.write() as connection:
        rows = _rows(engine, condition)
        now = engine.clock()
        connection.executemany(
            "UPDATE fragments SET deleted_at = ?, updated_at = updated_at WHERE pk = ?",
            [(None if deleted else now, pk) for pk, _ in rows],
        )
        if not deleted:
            keep_what_was_said_again(connection, [fragment_id for _, fragment_id in rows], now)
        engine.index.forget_cache()
        return _answer(rows)


def _answer(rows: list[tuple[int, str]]) -> dict[str, Any]:
    return {"count": len(rows), "ids": [row[1] for row in rows]}


def _rows(engine: Engine, condition: Condition) -> list[tuple[int, str]]:
    return engine.database.rows(
        f"SELECT f.pk, f.id FROM fragments AS f WHERE {condition.sql} ORDER BY f.happened_at, f.pk",
        condition.params,
    )


def _selected(
    engine: Engine, user_id: str, options: Mapping[str, Any], verb: str, *, deleted: bool
) -> Condition:
    everything = boundary.flag(options.get("all", False), "all")
    given = [name for name in _SELECTORS if options.get(name) is not None]
    if not given and not everything:
        message = f"Say what to {verb}: {', '.join(_SELECTORS)}; or pass all=true for all of this user's."
        raise EmptySelector(message, verb=verb)
    state = "IS NOT NULL" if deleted else "IS NULL"
    condition = Condition(["f.user_id = :user_id", f"f.deleted_at {state}"], {"user_id": user_id})
    ids = boundary.identifiers(options.get("ids"), "ids")
    if ids is not None:
        condition.add("f.id IN (SELECT value FROM json_each(:ids))", ids=boundary.to_json(list(ids)))
    if options.get("session_id") is not None:
        session = boundary.identifier(options["session_id"], "session_id")
        condition.add("f.session_id = :session", session=session)
    if options.get("since") is not None:
        condition.add("f.happened_at >= :since", since=to_ms(options["since"], "since"))
    if options.get("until") is not None:
        condition.add("f.happened_at < :until", until=to_ms(options["until"], "until"))
    condition.one_of("f.type", boundary.choices(options.get("type"), "type", TYPES))
    if options.get("query") is not None:
        _matching(engine, user_id, options["query"], condition, verb)
    return condition


def _matching(engine: Engine, user_id: str, query: object, condition: Condition, verb: str) -> None:
    """Narrow to fragments that have every word of a query; none may be selected by no word."""
    rows = engine.index.holding_all(user_id, boundary.text(query, "query", engine.settings))
    if rows is None:
        message = f"The query has no word to {verb} by."
        raise EmptySelector(message, verb=verb)
    condition.add("f.pk IN (SELECT value FROM json_each(:rows))", rows=boundary.to_json(rows))
