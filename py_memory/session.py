"""The verbs on a session; each is a few lines that call a room."""

from collections.abc import Iterable, Mapping
from typing import Any

from py_memory import recalling, remembering, sessions
from py_memory.engine import Engine
from py_memory.errors import InvalidArgument
from py_memory.records import Fragment, Hit
from py_memory.remembering import Place


class Session:
    """One conversation or task of one user; start it with `Memory.start_session`."""

    def __init__(self, engine: Engine, place: Place) -> None:
        """Stand on an engine; use `Memory.start_session`."""
        self._engine = engine
        self._place = place

    @property
    def id(self) -> str:
        """The session's id."""
        return self._place.session_id

    @property
    def user_id(self) -> str:
        """Whose session it is."""
        return self._place.user_id

    @property
    def skill(self) -> str:
        """The skill it belongs to, which is its intents' namespace; empty for none."""
        return self._place.skill

    def remember(self, content: Any, **options: Any) -> Fragment:
        """Store one thing: text, bytes, or a place `{lat, lng, accuracy?, label?}`.

        Options: type (from the content), role (`user`), speaker, at (now), state, metadata,
        media_type, intents, memory_type (by scope), scope (`episodic`), base_score,
        half_life_hours, decay_rate, ttl_seconds (0 is never; `working` 3600), pinned, sensitive,
        source, moment, signature_window, update_reason, request_id.

        Raises:
            InvalidArgument, TooLarge: Something is not as it must be; nothing was written.
            Closed: The session has ended.
        """
        return self._remember([(content, options)], options.pop("request_id", None))[0]

    def remember_many(
        self,
        items: Any,
        *,
        moment: str | None = None,
        request_id: str | None = None,
    ) -> list[Fragment]:
        """Store many, all or none: each item has `content` and `remember`'s options.

        `moment` groups all of them; ids come back in order.
        """
        pairs: list[tuple[Any, Mapping[str, Any]]] = []
        if not isinstance(items, Iterable) or isinstance(items, str | bytes | dict):
            message = "'items' must be a list of objects with 'content' and options."
            raise InvalidArgument(message, option="items")
        for item in items:
            if not isinstance(item, Mapping) or "content" not in item:
                message = "Each item must be an object with 'content' and options."
                raise InvalidArgument(message, option="items")
            options = {name: value for name, value in item.items() if name != "content"}
            if "request_id" in options:
                message = "'request_id' belongs to the whole call, not to an item."
                raise InvalidArgument(message, option="request_id")
            if moment is not None:
                options.setdefault("moment", moment)
            pairs.append((item["content"], options))
        return self._remember(pairs, request_id)

    def _remember(self, items: list[tuple[Any, Mapping[str, Any]]], request_id: object) -> list[Fragment]:
        sessions.must_be_open(self._engine, self._place)
        if request_id is None:
            return remembering.remember(self._engine, self._place, items)
        return remembering.remember_once(self._engine, self._place, items, request_id)

    def recall(self, query: str = "", **options: Any) -> list[Hit]:
        """Return what answers a query, best score first, each with tier, score, why and cite.

        Options: state, limit (10), tiers, min_score, since, until, as_of, time_zone, speaker, role,
        type, skill, metadata, include_sensitive, around, touch (True), include_data.
        An empty query gives L1, L2, then the newest.
        """
        return recalling.recall(self._engine, self._place, query, options)

    def end(self, at: Any = None) -> None:
        """End the session; ending it twice does nothing."""
        sessions.end(self._engine, self._place, at)
