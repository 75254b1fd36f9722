"""Counts, for people who look at a memory."""

from typing import Any

from py_memory import boundary
from py_memory.engine import Engine


def counted(engine: Engine, user_id: str | None) -> dict[str, Any]:
    """Return how much there is: of one user, or of everything."""
    user = None if user_id is None else boundary.user(user_id)
    whose = "1" if user is None else "user_id = :user_id"
    params = {"user_id": user, "now": engine.clock()}
    live = f"{whose} AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"
    rows = engine.database.rows
    by_type = dict(rows(f"SELECT type, count(*) FROM fragments WHERE {live} GROUP BY type", params))
    by_scope = dict(rows(f"SELECT scope, count(*) FROM fragments WHERE {live} GROUP BY scope", params))
    users = "1" if user is None else "id = :user_id"
    one = engine.database.row
    return {
        "users": one(f"SELECT count(*) FROM users WHERE {users}", params)[0],
        "sessions": one(f"SELECT count(*) FROM sessions WHERE {whose}", params)[0],
        "fragments": sum(by_type.values()),
        "by_type": by_type,
        "by_scope": by_scope,
        "forgotten": one(f"SELECT count(*) FROM fragments WHERE {whose} AND deleted_at IS NOT NULL", params)[
            0
        ],
        "intents": one(f"SELECT count(*) FROM intents WHERE {whose} AND valid_to IS NULL", params)[0],
        "bytes": one("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")[0],
    }
