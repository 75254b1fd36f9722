"""Listing: `find` by what was meant, `timeline` by when it happened, both through indexes."""

import json
import re
from collections.abc import Mapping
from typing import Any

from py_memory import boundary, loading
from py_memory.arbitration import REJECTED
from py_memory.engine import Engine
from py_memory.entities import conditions, hashes_for, holds, term_hash
from py_memory.errors import InvalidArgument
from py_memory.records import INTENT_COLUMNS, Found, Fragment, Page, columns, intent_of
from py_memory.scoping import FILTERS, filtered, live

FIND_OPTIONS = FILTERS | frozenset(
    (
        "intent", "key", "subject", "namespace", "entities", "min_confidence", "history", "limit",
        "cursor", "include_data",
    )
)  # fmt: skip
TIMELINE_OPTIONS = FILTERS | frozenset(("order", "limit", "cursor", "include_data"))

MAX_LIMIT = 1_000
_WAYS = {"newest": 0, "oldest": 1}
_INTENT = columns(INTENT_COLUMNS, "i")
_MAX_BATCH = 2_000
_PROBE = 64
# More conditions than these, the commoner ones, are only checked on the row.
_MAX_LISTS = 16
_CURSOR = re.compile("([01]:)?(-?[0-9]{1,18}:)?[0-9]{1,18}")


def limit_of(options: Mapping[str, Any], default: int) -> int:
    """Return how many results are wanted.

    Raises:
        InvalidArgument: It is not between 1 and 1,000.
    """
    return boundary.integer(options.get("limit", default), "limit", 1, MAX_LIMIT)


def timeline(engine: Engine, user_id: str, options: Mapping[str, Any]) -> Page:
    """Return a user's fragments by when they happened, newest first unless `order` is `oldest`."""
    boundary.known(options, TIMELINE_OPTIONS, "timeline")
    limit = limit_of(options, 50)
    order = boundary.choice(options.get("order", "newest"), "order", ("newest", "oldest"))
    direction, sign = ("DESC", "<") if order == "newest" else ("ASC", ">")
    condition = filtered(live(engine, user_id), engine, options)
    rows: list[tuple[int, int]] = []
    steps = [""]
    if options.get("cursor") is not None:
        way, at, pk = cursor_of(options["cursor"], 3)
        if way != _WAYS[order]:
            message = "'cursor' was given for the other 'order'."
            raise InvalidArgument(message, option="cursor")
        condition.params.update(cursor_at=at, cursor_pk=pk)
        # What happened in the cursor's own millisecond comes first; asked for separately, both
        # stay index look-ups however many share it.
        steps = [
            f" AND f.happened_at = :cursor_at AND f.pk {sign} :cursor_pk",
            f" AND f.happened_at {sign} :cursor_at",
        ]
    for step in steps:
        rows += engine.database.rows(
            f"SELECT f.pk, f.happened_at FROM fragments AS f WHERE {condition.sql}{step}"
            f" ORDER BY f.happened_at {direction}, f.pk {direction} LIMIT :limit",
            {**condition.params, "limit": limit + 1 - len(rows)},
        )
    more = len(rows) > limit
    rows = rows[:limit]
    cursor = f"{_WAYS[order]}:{rows[-1][1]}:{rows[-1][0]}" if more else None
    data = boundary.flag(options.get("include_data", True), "include_data")
    return Page(loading.fragments(engine, [row[0] for row in rows], data=data), cursor)


def find(engine: Engine, user_id: str, options: Mapping[str, Any]) -> Page:
    """Return intents that meet every condition, with their fragments, newest stored first.

    With no condition this lists all of the user's intents: it only reads.

    Raises:
        InvalidArgument: A condition is not one that `find` knows.
    """
    boundary.known(options, FIND_OPTIONS, "find")
    limit = limit_of(options, 50)
    wanted = conditions(boundary.json_object(options.get("entities"), "entities", engine.settings))
    condition = filtered(live(engine, user_id), engine, options)
    past = options.get("as_of") is not None
    history = boundary.flag(options.get("history", False), "history")
    if past:
        condition.add("i.valid_from <= :as_of AND (i.valid_to IS NULL OR i.valid_to > :as_of)")
        condition.add("coalesce(i.update_reason, '') <> :rejected", rejected=REJECTED)
    _narrow(condition, options)
    lists = _hash_lists(user_id, options, wanted)
    source, order = _source(engine, lists, closed=past or history)
    condition.params.update(source[1])
    if options.get("cursor") is not None:
        condition.add("i.pk < :cursor", cursor=cursor_of(options["cursor"], 1)[0])
    found: list[tuple[int, Any]] = []
    batch = limit + 1
    while len(found) <= limit:
        rows = engine.database.rows(
            f"SELECT i.pk, f.pk, {_INTENT} FROM {source[0]} WHERE {condition.sql}"
            f" ORDER BY {order} LIMIT :limit",
            {**condition.params, "limit": batch},
        )
        for pk, fragment, *values in rows:
            intent = intent_of(tuple(values))
            if all(holds(intent.entities, *one) for one in wanted):
                found.append((fragment, (pk, intent)))
        if len(rows) < batch:
            break
        # What the index cannot tell is looked for in ever larger steps.
        batch = min(2 * batch, _MAX_BATCH)
        if "last" not in condition.params:
            condition.add("i.pk < :last")
        condition.params["last"] = rows[-1][0]
    more = len(found) > limit
    found = found[:limit]
    data = boundary.flag(options.get("include_data", True), "include_data")
    numbers = list(dict.fromkeys(fragment for fragment, _ in found))
    loaded: dict[int, Fragment] = dict(
        zip(numbers, loading.fragments(engine, numbers, data=data), strict=True)
    )
    cursor = str(found[-1][1][0]) if more else None
    return Page([Found(loaded[number], intent) for number, (_, intent) in found], cursor)


def _narrow(condition: Any, options: Mapping[str, Any]) -> None:
    for option, column in (("intent", "i.name"), ("key", "i.key")):
        if options.get(option) is not None:
            value = boundary.identifier(options[option], option)
            condition.add(f"{column} = :{option}", **{option: value})
    for option in ("subject", "namespace"):
        if options.get(option) is not None:
            value = options[option]
            value = boundary.identifier(value, option) if value else ""
            condition.add(f"i.{option} = :{option}", **{option: value})
    if options.get("min_confidence") is not None:
        low = boundary.number(options["min_confidence"], "min_confidence", 0, 1)
        condition.add("i.confidence >= :confidence", confidence=low)


def _hash_lists(
    user_id: str, options: Mapping[str, Any], wanted: list[tuple[str, str, Any]]
) -> list[list[int]]:
    """Return, for each condition that the entity index knows, the hashes of which one must be there."""
    lists: list[list[int]] = [
        [term_hash(user_id, kind, options[option])]
        for option, kind in (("session_id", "session"), ("skill", "skill"))
        if options.get(option) is not None
    ]
    intent, namespace = options.get("intent"), options.get("namespace")
    if intent is not None and namespace is not None:
        lists.append([term_hash(user_id, "both", namespace, intent)])
    elif intent is not None:
        lists.append([term_hash(user_id, "name", intent)])
    elif namespace is not None:
        lists.append([term_hash(user_id, "namespace", namespace)])
    lists.extend(
        [term_hash(user_id, option, options[option])] for option in ("key", "subject") if options.get(option)
    )
    for path, operator, operand in wanted:
        if operator == "$eq" and intent is not None and not isinstance(operand, dict):
            hashes: list[int] | None = [term_hash(user_id, "named", intent, path, operand)]
        else:
            hashes = hashes_for(user_id, path, operator, operand)
        if hashes is not None:
            lists.append(sorted(set(hashes)))
    return lists


def _source(
    engine: Engine, lists: list[list[int]], *, closed: bool
) -> tuple[tuple[str, dict[str, Any]], str]:
    """Return the tables to read, the rarest condition first, and the order to read them in.

    The other conditions are checked in the index too, before a row is read.
    """
    flags = "(0, 1)" if closed else "(0)"
    join = "JOIN fragments AS f ON f.id = i.fragment_id"
    if not lists:
        current = "" if closed else " AND i.valid_to IS NULL"
        return (f"intents AS i {join} AND i.user_id = :user_id{current}", {}), "i.pk DESC"
    ordered = sorted(lists, key=lambda hashes: _rows_of(engine, hashes, flags))[:_MAX_LISTS]
    params: dict[str, Any] = {}
    tests: list[str] = []
    for i, hashes in enumerate(ordered):
        one = len(hashes) == 1
        params[f"hash_{i}"] = hashes[0] if one else json.dumps(hashes)
        test = f"hash = :hash_{i}" if one else f"hash IN (SELECT value FROM json_each(:hash_{i}))"
        tests.append(f"{test} AND closed IN {flags}")
    also = "".join(
        f" AND EXISTS (SELECT 1 FROM intent_terms AS o WHERE o.{test} AND o.intent = t.intent)"
        for test in tests[1:]
    )
    if len(ordered[0]) == 1 and not closed:
        table = "intent_terms AS t CROSS JOIN intents AS i ON i.pk = t.intent"
        on = f"t.hash = :hash_0 AND t.closed = 0{also}"
        return (f"{table} AND {on} CROSS {join}", params), "t.intent DESC"
    picked = f"SELECT DISTINCT t.intent FROM intent_terms AS t WHERE t.{tests[0]}{also}"
    return (f"({picked}) AS t CROSS JOIN intents AS i ON i.pk = t.intent CROSS {join}", params), "i.pk DESC"


def _rows_of(engine: Engine, hashes: list[int], flags: str) -> int:
    """Count a condition's rows, but no further than tells which condition is rare."""
    row = engine.database.row(
        "SELECT count(*) FROM (SELECT 1 FROM intent_terms"
        f" WHERE hash IN (SELECT value FROM json_each(?)) AND closed IN {flags} LIMIT {_PROBE})",
        (json.dumps(hashes),),
    )
    return int(row[0])


def cursor_of(value: object, parts: int) -> list[int]:
    """Read a cursor as the numbers it was made of; the last is a row's.

    Raises:
        InvalidArgument: It is none that this verb gave.
    """
    if not isinstance(value, str) or not _CURSOR.fullmatch(value) or value.count(":") != parts - 1:
        message = "'cursor' must be one that this verb gave."
        raise InvalidArgument(message, option="cursor")
    return [int(part) for part in value.split(":")]
