"""The entity index: what `find` can ask of an intent, as 64-bit hashes, rechecked on the row.

One narrow table answers any entity key, nested or not, for one user: no scan, no index per key.
"""

import hashlib
import json
import operator as operator_module
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py_memory.boundary import to_json
from py_memory.errors import InvalidArgument
from py_memory.signature import canonical

_OPERATORS = frozenset(("$in", "$gt", "$gte", "$lt", "$lte", "$exists", "$contains"))


def term_hash(user_id: str, kind: str, *parts: Any) -> int:
    """Return the signed 64-bit hash of one thing to ask for, bound to its user."""
    digest = hashlib.blake2b(canonical([user_id, kind, *parts]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def hashes_of(
    user_id: str,
    name: str,
    namespace: str,
    subject: str,
    key: str | None,
    entities: Mapping[str, Any],
    session_id: str,
    skill: str,
) -> set[int]:
    """Return all hashes under which an intent is found."""
    found = {
        term_hash(user_id, "session", session_id),
        term_hash(user_id, "skill", skill),
        term_hash(user_id, "name", name),
        term_hash(user_id, "namespace", namespace),
        term_hash(user_id, "both", namespace, name),
    }
    if subject:
        found.add(term_hash(user_id, "subject", subject))
    if key is not None:
        found.add(term_hash(user_id, "key", key))
    for path, value in _paths(entities, ""):
        found.add(term_hash(user_id, "path", path))
        if isinstance(value, list):
            for item in value:
                found.add(term_hash(user_id, "member", path, item))
        if not isinstance(value, dict):
            found.add(term_hash(user_id, "value", path, value))
            found.add(term_hash(user_id, "named", name, path, value))
    return found


def _paths(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        path = f"{prefix}.{key}" if prefix else key
        yield path, item
        if isinstance(item, dict):
            yield from _paths(item, path)


def conditions(asked: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Return `find`'s entity conditions as (path, operator, operand); equality is `$eq`.

    Raises:
        InvalidArgument: An operator is unknown, or its operand does not fit.
    """
    found: list[tuple[str, str, Any]] = []
    for path, wanted in asked.items():
        if not (isinstance(wanted, dict) and any(key.startswith("$") for key in wanted)):
            found.append((path, "$eq", wanted))
            continue
        for operator, operand in wanted.items():
            _check(operator, operand)
            found.append((path, operator, operand))
    return found


def _check(operator: str, operand: Any) -> None:
    if operator not in _OPERATORS:
        message = f"Entity conditions know these operators: {', '.join(sorted(_OPERATORS))}."
        raise InvalidArgument(message, option="entities")
    fits = {
        "$in": isinstance(operand, list) and bool(operand),
        "$exists": isinstance(operand, bool),
    }
    comparable = isinstance(operand, int | float | str) and not isinstance(operand, bool)
    if not fits.get(operator, operator == "$contains" or comparable):
        message = f"The operand of '{operator}' does not fit it."
        raise InvalidArgument(message, option="entities")


def hashes_for(user_id: str, path: str, operator: str, operand: Any) -> list[int] | None:
    """Return the hashes of which a match has one; `None` where no index can tell."""
    if operator == "$eq":
        kind = "path" if isinstance(operand, dict) else "value"
        parts = (path,) if kind == "path" else (path, operand)
        return [term_hash(user_id, kind, *parts)]
    if operator == "$in":
        return [one for item in operand for one in hashes_for(user_id, path, "$eq", item) or ()]
    if operator == "$contains":
        return [term_hash(user_id, "member", path, operand)]
    if operator == "$exists" and not operand:
        return None
    return [term_hash(user_id, "path", path)]


_MISSING = object()


def holds(entities: Mapping[str, Any], path: str, operator: str, operand: Any) -> bool:
    """Tell whether an intent's entities meet one condition."""
    value = _at(entities, path)
    if operator == "$exists":
        return (value is not _MISSING) is bool(operand)
    if value is _MISSING:
        return False
    if operator == "$eq":
        return canonical(value) == canonical(operand)
    if operator == "$in":
        return any(canonical(value) == canonical(item) for item in operand)
    if operator == "$contains":
        return isinstance(value, list) and any(canonical(item) == canonical(operand) for item in value)
    return _compares(value, operator, operand)


def _compares(value: Any, operator: str, operand: Any) -> bool:
    if isinstance(value, bool) or isinstance(value, str) != isinstance(operand, str):
        return False
    if not isinstance(value, str | int | float):
        return False
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "$gt": operator_module.gt,
        "$gte": operator_module.ge,
        "$lt": operator_module.lt,
        "$lte": operator_module.le,
    }
    return compare[operator](value, operand)


def _at(entities: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path; a key that itself holds dots is tried first."""
    if path in entities:
        return entities[path]
    head, _, rest = path.partition(".")
    while rest:
        inner = entities.get(head, _MISSING)
        if isinstance(inner, dict):
            found = _at(inner, rest)
            if found is not _MISSING:
                return found
        more, _, rest = rest.partition(".")
        head = f"{head}.{more}"
    return _MISSING


def stored(entities: Mapping[str, Any]) -> str:
    """Write entities as they are kept."""
    return to_json(entities)


def read(text: str) -> dict[str, Any]:
    """Read entities as they were kept."""
    return json.loads(text)  # type: ignore[no-any-return]  # written by `stored`
