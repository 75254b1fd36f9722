"""The verbs on a memory; each is a few lines that call a room."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from py_memory import (
    boundary,
    forgetting,
    imagefile,
    importing,
    listing,
    portable,
    recalling,
    sessions,
)
from py_memory.database import Database
from py_memory.engine import Engine
from py_memory.errors import Unsupported
from py_memory.metrics import counted
from py_memory.records import Found, Fragment, Hit
from py_memory.schema import migrate, refuse_unread
from py_memory.session import Session
from py_memory.settings import Settings, settings_of
from py_memory.times import Clock, Zones, known_zone, system_clock, system_zones, whole


class Memory:
    """One memory in one SQLite database; open it with `Memory.open`."""

    def __init__(self, engine: Engine) -> None:
        """Stand on an engine; use `Memory.open`."""
        self.engine = engine

    @classmethod
    def open(
        cls,
        path: str,
        *,
        settings: Mapping[str, Any] | Settings | None = None,
        clock: Clock | None = None,
        time_zone: str = "UTC",
        zones: Zones | None = None,
        owned: bool = False,
        passphrase: str | None = None,
    ) -> Self:
        """Open the memory in a file (or `":memory:"`), making or upgrading it as needed.

        `clock` gives the present in epoch milliseconds; `zones` the offset in minutes of a named
        zone at a time; both are ports, so that tests and simulations are exact.

        Raises:
            InvalidArgument: A setting or the zone is unknown.
            SchemaNewer: A newer version wrote it; it is left untouched.
            CorruptImage: It is damaged or no memory.
            StorageBlocked: It cannot be opened.
            Unsupported: A passphrase was given: only a memory in a browser can have one.
        """
        if passphrase is not None:
            message = (
                "Only a memory in a browser can have a passphrase: encrypt the file or the disk it is on,"
                " and open it without."
            )
            raise Unsupported(message, option="passphrase")
        chosen = settings_of(settings)
        zone_port = zones or system_zones
        now = system_clock if clock is None else whole(clock)
        known_zone(time_zone, zone_port, now())
        refuse_unread(str(path))
        database = Database(str(path), owned=owned)
        try:
            migrate(database)
            engine = Engine(database, chosen, now, time_zone, zone_port)
            engine.index.ensure()
        except BaseException:
            database.close()
            raise
        return cls(engine)

    @property
    def database(self) -> Database:
        """The database under this memory."""
        return self.engine.database

    @property
    def settings(self) -> Settings:
        """The settings this memory was opened with."""
        return self.engine.settings

    def start_session(self, user_id: str | None = None, **options: Any) -> Session:
        """Start a session of a user, or resume the one under `session_id`.

        Options: user_name, skill, session_id, at, time_zone.
        """
        place = sessions.start(self.engine, user_id, options)
        return Session(self.engine, place)

    def session(self, session_id: str) -> Session:
        """Return the session under an id, without resuming it.

        Raises:
            NotFound: There is none.
        """
        return Session(self.engine, sessions.place_of(self.engine, session_id))

    def search(self, user_id: str | None = None, query: str = "", **options: Any) -> list[Hit]:
        """Return what answers a query in the whole history of one user, best first.

        Options: limit (10), min_score, since, until, as_of, time_zone, speaker, role, type, skill,
        session_id, metadata, include_sensitive, around, touch (True), include_data (True).
        """
        return recalling.search(self.engine, boundary.user(user_id), query, options)

    def find(self, user_id: str | None = None, **options: Any) -> list[Found]:
        """Return the current intents that meet all conditions, with their fragments.

        Options: intent, key, subject, namespace, entities (equal, or `{operator: value}` with
        `$in $gt $gte $lt $lte $exists $contains`, dotted paths), min_confidence, since, until,
        as_of, history, session_id, skill, role, type, speaker, limit (50), cursor, include_data.
        The list has `cursor`; newest stored first.
        """
        return listing.find(self.engine, boundary.user(user_id), options)

    def timeline(self, user_id: str | None = None, **options: Any) -> list[Fragment]:
        """Return a user's fragments by when they happened.

        Options: since (inclusive), until (exclusive), time_zone (of times without an offset), order
        (`newest` or `oldest`), types, roles, speaker, skill, session_id, as_of, limit (50), cursor,
        include_data. The list has `cursor`.
        """
        return listing.timeline(self.engine, boundary.user(user_id), options)

    def forget(self, user_id: str | None = None, **selector: Any) -> dict[str, Any]:
        """Take fragments out of sight, undoably; gives `{count, ids}`.

        Selector: ids, session_id, since, until, query (all its words), type, or all=True; preview.

        Raises:
            EmptySelector: Nothing says which.
        """
        return forgetting.forget(self.engine, boundary.user(user_id), selector)

    def restore(self, user_id: str | None = None, **selector: Any) -> dict[str, Any]:
        """Bring forgotten fragments back; the selector is `forget`'s; gives `{count, ids}`."""
        return forgetting.restore(self.engine, boundary.user(user_id), selector)

    def trash(self, user_id: str | None = None, **options: Any) -> list[Fragment]:
        """Return forgotten fragments, latest first. Options: limit (50), cursor."""
        return forgetting.trash(self.engine, boundary.user(user_id), options)

    def export_json(self, user_id: str | None = None, *, include_sensitive: bool = False) -> str:
        """Return one user's memory, or everything, as a JSON file's text."""
        return portable.exported(self.engine, user_id, include_sensitive=include_sensitive)

    def import_json(self, text: str, *, dry_run: bool = False, owner: str | None = None) -> dict[str, Any]:
        """Merge a JSON file into this memory, whole or not at all; gives counts by table.

        `owner` gives all of a one-user file to that user. `dry_run` only counts.

        Raises:
            UnsupportedFormat: Its version is unknown.
            ImportInvalid: It is damaged, or would reach another user's rows.
        """
        return importing.imported(self.engine, text, dry_run=dry_run, owner=owner)

    def export_image(self) -> bytes:
        """Return the database as a plain SQLite file that every tool opens."""
        return imagefile.exported(self.engine)

    def import_image(self, image: bytes) -> dict[str, Any]:
        """Replace everything by the contents of an exported image; gives counts by table.

        Raises:
            CorruptImage: It is damaged or no memory; nothing was changed.
            SchemaNewer: A newer version wrote it; nothing was changed.
        """
        return imagefile.imported(self.engine, image)

    def metrics(self, user_id: str | None = None) -> dict[str, Any]:
        """Return counts: of one user, or of everything."""
        return counted(self.engine, user_id)

    def check(self) -> dict[str, Any]:
        """Check the database and the text index; gives `{ok, problems}`."""
        return imagefile.checked(self.engine)

    def reindex(self) -> dict[str, Any]:
        """Make the text index anew from the fragments; gives `{fragments}`."""
        return {"fragments": self.engine.index.rebuild()}

    def close(self) -> None:
        """Store what is left to store and close; twice does nothing."""
        if self.database.is_open:
            self.engine.flush()
            self.database.close()

    def __enter__(self) -> Self:
        """Return itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()
