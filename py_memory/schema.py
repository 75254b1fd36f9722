"""The four tables, what stands beside them, and the numbered migrations that make them."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress

from py_memory.database import Database
from py_memory.errors import CorruptImage, SchemaNewer

APPLICATION_ID = 0x70796D65  # "pyme", so that `file` and other tools can tell the image

# All characters of a prepared term are token characters; the ascii tokenizer takes every
# character beyond ASCII as one too, so that FTS5 never splits what `text` has analysed.
TEXT_INDEX = """
CREATE VIRTUAL TABLE text_index USING fts5(
    terms, content='', tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'"
)
"""

_FIRST = (
    """
    CREATE TABLE users (
        pk INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        name TEXT,
        core TEXT NOT NULL DEFAULT '',
        profile TEXT NOT NULL DEFAULT '',
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE sessions (
        pk INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        skill TEXT NOT NULL DEFAULT '',
        started_at INTEGER NOT NULL,
        last_active_at INTEGER NOT NULL,
        ended_at INTEGER,
        summary TEXT,
        frozen TEXT,
        UNIQUE (id, user_id)
    ) STRICT
    """,
    "CREATE INDEX sessions_of_user ON sessions (user_id, last_active_at)",
    # `user_id` stands here too, held to the session's by the foreign key, so that every query
    # can bind rows to their user without a join; and the session's `skill`, which never changes,
    # so that one skill's can be listed by time. `terms` counts the indexed terms.
    """
    CREATE TABLE fragments (
        pk INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        skill TEXT NOT NULL DEFAULT '',
        type TEXT NOT NULL CHECK (type IN ('text', 'image', 'audio', 'location', 'event')),
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
        speaker TEXT,
        content TEXT NOT NULL,
        media_type TEXT,
        metadata TEXT NOT NULL DEFAULT '{}',
        moment TEXT,
        context_signature BLOB NOT NULL CHECK (length(context_signature) = 32),
        state_signature BLOB CHECK (length(state_signature) = 32),
        memory_type INTEGER NOT NULL CHECK (memory_type BETWEEN 1 AND 100),
        scope TEXT NOT NULL CHECK (scope IN ('working', 'episodic', 'semantic', 'procedural')),
        base_score REAL NOT NULL CHECK (base_score BETWEEN 1 AND 10),
        decay_rate REAL NOT NULL CHECK (decay_rate > 0 AND decay_rate <= 1),
        half_life_hours REAL NOT NULL CHECK (half_life_hours > 0),
        access_count INTEGER NOT NULL DEFAULT 0 CHECK (access_count >= 0),
        last_access_at INTEGER,
        expires_at INTEGER,
        pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
        sensitive INTEGER NOT NULL DEFAULT 0 CHECK (sensitive IN (0, 1)),
        token_count INTEGER NOT NULL DEFAULT 0,
        summary TEXT,
        source TEXT,
        happened_at INTEGER NOT NULL,
        stored_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER,
        terms INTEGER NOT NULL DEFAULT 0,
        data BLOB,
        UNIQUE (id, user_id),
        FOREIGN KEY (session_id, user_id) REFERENCES sessions (id, user_id) ON DELETE CASCADE
    ) STRICT
    """,
    """
    CREATE INDEX fragments_timeline ON fragments (user_id, happened_at, pk, terms)
    WHERE deleted_at IS NULL
    """,
    """
    CREATE INDEX fragments_media ON fragments (user_id, type, happened_at, pk)
    WHERE deleted_at IS NULL AND type <> 'text'
    """,
    """
    CREATE INDEX fragments_skill ON fragments (user_id, skill, happened_at, pk)
    WHERE deleted_at IS NULL AND skill <> ''
    """,
    """
    CREATE INDEX fragments_speaker ON fragments (user_id, speaker, happened_at, pk)
    WHERE deleted_at IS NULL AND speaker IS NOT NULL
    """,
    # Users and assistants are about half each; what tools and systems said is rare.
    """
    CREATE INDEX fragments_role ON fragments (user_id, role, happened_at, pk)
    WHERE deleted_at IS NULL AND role NOT IN ('user', 'assistant')
    """,
    "CREATE INDEX fragments_of_session ON fragments (session_id, happened_at, pk)",
    """
    CREATE INDEX fragments_state ON fragments (state_signature, happened_at, pk)
    WHERE state_signature IS NOT NULL
    """,
    """
    CREATE INDEX fragments_moment ON fragments (session_id, moment) WHERE moment IS NOT NULL
    """,
    "CREATE INDEX fragments_expiry ON fragments (expires_at) WHERE expires_at IS NOT NULL",
    """
    CREATE INDEX fragments_trash ON fragments (user_id, deleted_at, pk)
    WHERE deleted_at IS NOT NULL
    """,
    """
    CREATE TABLE intents (
        pk INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        fragment_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        scope TEXT NOT NULL,
        name TEXT NOT NULL,
        namespace TEXT NOT NULL DEFAULT '',
        subject TEXT NOT NULL DEFAULT '',
        key TEXT,
        entities TEXT NOT NULL DEFAULT '{}',
        confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
        evidence INTEGER NOT NULL DEFAULT 1 CHECK (evidence >= 0),
        valid_from INTEGER NOT NULL,
        valid_to INTEGER,
        replaced_by TEXT,
        update_reason TEXT,
        source TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        FOREIGN KEY (fragment_id, user_id) REFERENCES fragments (id, user_id) ON DELETE CASCADE
    ) STRICT
    """,
    "CREATE INDEX intents_of_fragment ON intents (fragment_id)",
    "CREATE INDEX intents_of_user ON intents (user_id, pk)",
    """
    CREATE UNIQUE INDEX intents_slot ON intents (user_id, namespace, scope, name, subject, key)
    WHERE key IS NOT NULL AND valid_to IS NULL
    """,
    """
    CREATE INDEX intents_history ON intents (user_id, namespace, scope, name, subject, key, valid_from)
    WHERE key IS NOT NULL
    """,
    # What `find` asks for, as 64-bit hashes of (user, kind, path, value): one narrow index
    # answers any entity key, nested or not; hits are rechecked against the row.
    """
    CREATE TABLE intent_terms (
        hash INTEGER NOT NULL,
        closed INTEGER NOT NULL,
        intent INTEGER NOT NULL REFERENCES intents (pk) ON DELETE CASCADE,
        PRIMARY KEY (hash, closed, intent)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX intent_terms_of ON intent_terms (intent)",
    # What the derived tables were made by, so that they are made again when that changes.
    """
    CREATE TABLE properties (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # Ids and outcomes only, never content.
    """
    CREATE TABLE changes (
        pk INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        at INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        reason TEXT,
        intent_id TEXT,
        previous_id TEXT,
        fragment_id TEXT
    ) STRICT
    """,
    "CREATE INDEX changes_of_user ON changes (user_id, at)",
    "CREATE INDEX changes_of_intent ON changes (intent_id, pk)",
    # A repeated request (its reply was lost) is answered from here and not applied again.
    """
    CREATE TABLE requests (
        user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        fragment_ids TEXT NOT NULL,
        outcomes TEXT NOT NULL,
        PRIMARY KEY (user_id, id)
    ) STRICT, WITHOUT ROWID
    """,
    TEXT_INDEX,
    "CREATE VIRTUAL TABLE text_terms USING fts5vocab(text_index, instance)",
    "CREATE VIRTUAL TABLE text_counts USING fts5vocab(text_index, row)",
)

# The ledger of calls between tabs (`ledger`), and requests by age, so that old ones can go.
_SECOND = (
    """
    CREATE TABLE calls (
        client TEXT NOT NULL,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,
        answer TEXT NOT NULL,
        PRIMARY KEY (client, number)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX requests_by_age ON requests (at)",
)


def _run(statements: tuple[str, ...]) -> Callable[[sqlite3.Connection], None]:
    def migrate(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    return migrate


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_run(_FIRST), _run(_SECOND))
"""Migration n takes the schema from version n to n + 1."""

SCHEMA_VERSION = len(MIGRATIONS)

_HEADER_BYTES = 100


def migrate(
    database: Database,
    migrations: tuple[Callable[[sqlite3.Connection], None], ...] = MIGRATIONS,
) -> None:
    """Bring the schema up to date, each step in one transaction, verified afterwards.

    A file keeps an untouched copy beside it (`<path>.before-v<n>`) until the last step succeeded;
    an owned image needs none, for the stored one changes only when the transaction is kept.

    Raises:
        SchemaNewer: The database was written by a newer version; it is left as it is.
        CorruptImage: It is someone else's database, or a step did not leave what it should.
    """
    version = version_of(database)
    target = len(migrations)
    if version or database.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
        _refuse_other(database.row("PRAGMA application_id")[0], version, target)
    if version == target:
        return
    copy = _copy_of(database, version)
    for step in range(version, target):
        with database.atomic() as connection:
            migrations[step](connection)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={step + 1}")
            _verify(database, step + 1)
    if copy is not None:
        with suppress(OSError):
            os.unlink(copy)


def refuse_unread(path: str) -> None:
    """Refuse a file that is no memory, or a newer one's, before SQLite touches a byte of it.

    Opening sets the journal mode, which is written into the file. One that has a log already is
    left to `migrate`: what it says of itself may stand in the log, and setting the mode changes nothing.

    Raises:
        SchemaNewer, CorruptImage: As `migrate` raises them.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER_BYTES)
    except (OSError, ValueError):
        return
    if head and (len(head) < _HEADER_BYTES or not head.startswith(b"SQLite format 3\x00")):
        message = "This is no SQLite file; open another path."
        raise CorruptImage(message, kind="header")
    if head[18:20] == b"\x01\x01":
        version, application = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
        _refuse_other(application, version, SCHEMA_VERSION)


def _refuse_other(application: int, version: int, target: int) -> None:
    if application != APPLICATION_ID or version == 0:
        message = "This SQLite file holds something else; open another path."
        raise CorruptImage(message, kind="foreign")
    if version > target:
        message = (
            f"This memory has schema {version}; this version of py-memory knows up to {target}."
            " Update py-memory."
        )
        raise SchemaNewer(message, schema=version, known=target)


def version_of(database: Database) -> int:
    """Return the schema version that the file carries."""
    return int(database.row("PRAGMA user_version")[0])


def structure_of(database: Database) -> set[tuple[str, ...]]:
    """Return the tables, indexes and whatever else there is, as they were declared.

    How FTS5 declares its own tables differs between versions of SQLite, so those count by name.
    """
    return {
        (kind, name, "" if name.startswith("text_index_") else sql)
        for kind, name, sql in database.rows(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
        )
    }


def _copy_of(database: Database, version: int) -> str | None:
    if version == 0 or database.owned or database.path in (":memory:", ""):
        return None
    database.fold()
    copy = f"{database.path}.before-v{version + 1}"
    shutil.copyfile(database.path, copy)
    return copy


def _verify(database: Database, version: int) -> None:
    broken = database.rows("PRAGMA foreign_key_check")
    checked = database.row("PRAGMA quick_check(1)")[0]
    if broken or checked != "ok" or version_of(database) != version:
        message = f"The migration to schema {version} left the database inconsistent; it was undone."
        raise CorruptImage(message, kind="migration", schema=version)
