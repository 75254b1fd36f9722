"""What verbs give back: fragments, intents and hits, with times as ISO 8601 text."""

import json
from dataclasses import dataclass
from typing import Any

from py_memory.times import iso, iso_or_none

FRAGMENT_COLUMNS = (
    "id, session_id, type, role, speaker, content, media_type, metadata, moment,"
    " context_signature, state_signature, memory_type, scope, base_score, decay_rate,"
    " half_life_hours, access_count, last_access_at, expires_at, pinned, sensitive, token_count,"
    " summary, source, happened_at, stored_at, updated_at, deleted_at, data"
)

INTENT_COLUMNS = (
    "id, fragment_id, name, namespace, subject, key, entities, confidence, evidence, valid_from,"
    " valid_to, replaced_by, update_reason, source, created_at, updated_at"
)


_FRAGMENT_FIELDS = tuple(name.strip() for name in FRAGMENT_COLUMNS.split(","))


def columns(names: str, table: str) -> str:
    """Return a column list with each name bound to a table."""
    return ", ".join(f"{table}.{name.strip()}" for name in names.split(","))


@dataclass(frozen=True, slots=True)
class Intent:
    """What a fragment means: an intent, or a keyed fact, with its entities.

    `outcome`, `previous_id` and `change_id` are there on what a write gives back: `created`,
    `updated`, `replaced`, `unchanged` or `rejected:existing_confidence_higher`.
    """

    id: str
    fragment_id: str
    name: str
    namespace: str
    subject: str | None
    key: str | None
    entities: dict[str, Any]
    confidence: float
    evidence: int
    valid_from: str
    valid_to: str | None
    replaced_by: str | None
    update_reason: str | None
    source: str | None
    created_at: str
    updated_at: str
    outcome: str | None = None
    previous_id: str | None = None
    change_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Fragment:
    """One thing that was said, seen, heard or done; fields as in the table and the JSON file."""

    id: str
    session_id: str
    type: str
    role: str
    speaker: str | None
    content: str
    media_type: str | None
    metadata: dict[str, Any]
    moment: str | None
    context_signature: str
    state_signature: str | None
    memory_type: int
    scope: str
    base_score: float
    decay_rate: float
    half_life_hours: float
    access_count: int
    last_access_at: str | None
    expires_at: str | None
    pinned: bool
    sensitive: bool
    token_count: int
    summary: str | None
    source: str | None
    happened_at: str
    stored_at: str
    updated_at: str
    deleted_at: str | None
    data: bytes | None
    intents: tuple[Intent, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON but for `data`, which stays bytes."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["intents"] = [intent.to_dict() for intent in self.intents]
        return fields


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled fragment: the tier that brought it, its score, why, and a line to cite.

    `companions` are the other fragments of the same moment; `around` the turns before and after.
    """

    fragment: Fragment
    tier: str
    score: float
    why: dict[str, Any]
    cite: str
    companions: tuple[Fragment, ...] = ()
    around: tuple[Fragment, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON but for the fragments' `data`."""
        return {
            "fragment": self.fragment.to_dict(),
            "tier": self.tier,
            "score": self.score,
            "why": self.why,
            "cite": self.cite,
            "companions": [fragment.to_dict() for fragment in self.companions],
            "around": [fragment.to_dict() for fragment in self.around],
        }


@dataclass(frozen=True, slots=True)
class Found:
    """One answer of `find`: an intent and the fragment that carries it."""

    fragment: Fragment
    intent: Intent

    def to_dict(self) -> dict[str, Any]:
        """Return both, ready for JSON but for the fragment's `data`."""
        return {"fragment": self.fragment.to_dict(), "intent": self.intent.to_dict()}


class Page(list[Any]):
    """A list of results with `cursor`: pass it to the same verb for what follows, `None` at the end."""

    def __init__(self, items: list[Any], cursor: str | None) -> None:
        """Hold the items and the cursor."""
        super().__init__(items)
        self.cursor = cursor


def fragment_of(row: tuple[Any, ...], intents: tuple[Intent, ...] = ()) -> Fragment:
    """Build a fragment from a row of `FRAGMENT_COLUMNS`."""
    values = list(row)
    values[7] = json.loads(row[7])
    values[9] = row[9].hex()
    values[10] = None if row[10] is None else row[10].hex()
    values[17] = iso_or_none(row[17])
    values[18] = iso_or_none(row[18])
    values[19] = bool(row[19])
    values[20] = bool(row[20])
    values[24] = iso(row[24])
    values[25] = iso(row[25])
    values[26] = iso(row[26])
    values[27] = iso_or_none(row[27])
    fields = dict(zip(_FRAGMENT_FIELDS, values, strict=True))
    return Fragment(**fields, intents=intents)


def intent_of(row: tuple[Any, ...], **outcome: Any) -> Intent:
    """Build an intent from a row of `INTENT_COLUMNS`, with what a write adds."""
    values = list(row)
    values[4] = row[4] or None
    values[6] = json.loads(row[6])
    values[9] = iso(row[9])
    values[10] = iso_or_none(row[10])
    values[14] = iso(row[14])
    values[15] = iso(row[15])
    return Intent(*values, **outcome)
