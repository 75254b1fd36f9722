"""Who sees which rows: the one predicate that every verb, reading or writing, is bound by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py_memory import boundary
from py_memory.engine import Engine
from py_memory.remembering import ROLES, TYPES
from py_memory.times import known_zone, to_ms_in

LIVE = "f.user_id = :user_id AND f.deleted_at IS NULL AND (f.expires_at IS NULL OR f.expires_at > :now)"
"""A user's fragments that are neither forgotten nor expired; expects `fragments AS f`."""


@dataclass(slots=True)
class Condition:
    """An SQL condition on `fragments AS f` and its parameters."""

    parts: list[str] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The condition as one expression."""
        return " AND ".join(self.parts) or "1"

    def add(self, part: str, **params: Any) -> None:
        """Narrow it."""
        self.parts.append(part)
        self.params.update(params)

    def one_of(self, column: str, values: tuple[str, ...] | None) -> None:
        """Narrow it to rows whose column has one of the values; `None` leaves it."""
        if values is None:
            return
        names = [f"{column.replace('.', '_')}_{i}" for i in range(len(values))]
        marks = ", ".join(f":{name}" for name in names)
        self.add(f"{column} IN ({marks})", **dict(zip(names, values, strict=True)))


def live(engine: Engine, user_id: str) -> Condition:
    """Return the condition of all that a user can see now."""
    return Condition([LIVE], {"user_id": user_id, "now": engine.clock()})


FILTERS = frozenset("since until as_of time_zone speaker role roles type types skill session_id".split())


def filtered(condition: Condition, engine: Engine, options: Mapping[str, Any]) -> Condition:
    """Narrow a condition by the filters that listing verbs share.

    `since` is inclusive and `until` exclusive, both on when it happened; `as_of` leaves out what
    this store got later. With `time_zone`, times given without an offset are times there.
    """
    settings = engine.settings
    zone = "UTC"
    if options.get("time_zone") is not None:
        zone = known_zone(options["time_zone"], engine.zones, engine.clock())
    if options.get("since") is not None:
        since = to_ms_in(options["since"], "since", zone, engine.zones)
        condition.add("f.happened_at >= :since", since=since)
    if options.get("until") is not None:
        until = to_ms_in(options["until"], "until", zone, engine.zones)
        condition.add("f.happened_at < :until", until=until)
    if options.get("as_of") is not None:
        condition.add("f.stored_at <= :as_of", as_of=to_ms_in(options["as_of"], "as_of", zone, engine.zones))
    speaker = boundary.optional_text(options.get("speaker"), "speaker", settings)
    if speaker is not None:
        condition.add("f.speaker = :speaker", speaker=speaker)
    roles = boundary.choices(options.get("roles") or options.get("role"), "role", ROLES)
    condition.one_of("f.role", roles)
    if roles is not None and not {"user", "assistant"} & set(roles):
        # Lets the small index of what neither said answer.
        condition.add("f.role NOT IN ('user', 'assistant')")
    types = boundary.choices(options.get("types") or options.get("type"), "type", TYPES)
    condition.one_of("f.type", types)
    if types is not None and "text" not in types:
        # Lets the small index of all that is not text answer.
        condition.add("f.type <> 'text'")
    skill = options.get("skill")
    if skill is not None:
        condition.add("f.skill = :skill AND f.skill <> ''", skill=boundary.identifier(skill, "skill"))
    session = options.get("session_id")
    if session is not None:
        condition.add("f.session_id = :session", session=boundary.identifier(session, "session_id"))
    return condition
