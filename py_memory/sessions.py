"""Sessions: one conversation or task of one user; started, resumed, ended."""

from typing import Any

from py_memory import boundary
from py_memory.engine import Engine
from py_memory.errors import Closed, NotFound, PermissionDenied
from py_memory.remembering import Place
from py_memory.times import known_zone, to_ms

OPTIONS = frozenset(("user_name", "skill", "session_id", "at", "time_zone"))


def start(engine: Engine, user_id: object, options: dict[str, Any]) -> Place:
    """Start a session, or resume the one under `session_id`; makes the user if there is none.

    Its L1 and L2 text is frozen into the session now; a resumed one that had ended is frozen anew.
    Its time zone, for citing, holds until the memory is closed.

    Raises:
        UserRequired: There is no user id.
        PermissionDenied: The session id belongs to another user.
    """
    user = boundary.user(user_id)
    boundary.known(options, OPTIONS, "start_session")
    settings = engine.settings
    name = boundary.optional_text(options.get("user_name"), "user_name", settings)
    skill = boundary.optional_identifier(options.get("skill") or None, "skill") or ""
    now = engine.clock()
    at = now if options.get("at") is None else to_ms(options["at"], "at")
    wanted = boundary.optional_identifier(options.get("session_id"), "session_id")
    zone = options.get("time_zone")
    if zone is not None:
        known_zone(zone, engine.zones, now)
    place = _started(engine, user, name, skill, wanted, now, at)
    if zone is not None:
        engine.session_zones[place.session_id] = zone
    return place


def _started(
    engine: Engine, user: str, name: str | None, skill: str, wanted: str | None, now: int, at: int
) -> Place:
    with engine.write() as connection:
        known = engine.database.row("SELECT user_id, skill, ended_at FROM sessions WHERE id = ?", (wanted,))
        if known is not None and known[0] != user:
            message = "This session id is taken by another user: choose another."
            raise PermissionDenied(message, option="session_id")
        connection.execute(
            "INSERT INTO users (id, name, created_at, updated_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = excluded.updated_at"
            " WHERE excluded.name IS NOT NULL AND excluded.name IS NOT name",
            (user, name, now, now),
        )
        frozen = _frozen(engine, user)
        if known is None:
            session_id = wanted or engine.ids.new("s", now)
            connection.execute(
                "INSERT INTO sessions (id, user_id, skill, started_at, last_active_at, frozen)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, user, skill, at, at, frozen),
            )
            return Place(session_id, user, skill)
        connection.execute(
            "UPDATE sessions SET last_active_at = max(last_active_at, ?),"
            " frozen = CASE WHEN ended_at IS NULL THEN frozen ELSE ? END, ended_at = NULL"
            " WHERE id = ?",
            (at, frozen, wanted),
        )
        return Place(str(wanted), user, known[1])


def _frozen(engine: Engine, user_id: str) -> str:
    core, profile = engine.database.row("SELECT core, profile FROM users WHERE id = ?", (user_id,))
    return boundary.to_json({"core": core, "profile": profile})


def place_of(engine: Engine, session_id: object) -> Place:
    """Return the session under an id.

    Raises:
        NotFound: There is none.
    """
    wanted = boundary.identifier(session_id, "session_id")
    row = engine.database.row("SELECT user_id, skill FROM sessions WHERE id = ?", (wanted,))
    if row is None:
        message = "There is no session under this id: start it first."
        raise NotFound(message, option="session_id")
    return Place(wanted, row[0], row[1])


def must_be_open(engine: Engine, place: Place) -> None:
    """Refuse to write into a session that has ended.

    Raises:
        Closed: It has.
        NotFound: It is gone.
    """
    row = engine.database.row("SELECT ended_at FROM sessions WHERE id = ?", (place.session_id,))
    if row is None:
        message = "The session is gone: start it again."
        raise NotFound(message, option="session_id")
    if row[0] is not None:
        message = "The session has ended: resume it with start_session(session_id=…)."
        raise Closed(message, option="session_id")


def end(engine: Engine, place: Place, at: object) -> None:
    """End a session; ending it twice does nothing."""
    when = engine.clock() if at is None else to_ms(at, "at")
    with engine.write() as connection:
        connection.execute(
            "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
            (when, place.session_id),
        )
