"""The four tables: constraints, cascades, and migrations that leave all or nothing."""

import os
import sqlite3

import pytest

from py_memory import Memory, schema
from py_memory.database import Database
from py_memory.errors import CorruptImage, PyMemoryError, SchemaNewer
from tests.unit.helpers import contents, counts, dump, opened


@pytest.fixture
def filled(memories):
    memory = memories()
    session = memory.start_session("u_1", session_id="s_1")
    session.remember("green tea", intents=[{"name": "likes", "entities": {"drink": "tea"}, "key": "drink"}])
    session.remember(b"\x89PNG", media_type="image/png", request_id="r_1")
    memory.start_session("u_2", session_id="s_2").remember("black tea")
    return memory


def refused(memory, sql, *params):
    with pytest.raises(sqlite3.IntegrityError):
        memory.database.connection.execute(sql, params)


def test_the_four_tables_have_the_documented_fields(memory):
    fields = {
        table: {row[1] for row in memory.database.rows(f"PRAGMA table_info({table})")}
        for table in ("users", "sessions", "fragments", "intents")
    }
    assert fields["users"] >= set("id name core profile created_at updated_at".split())
    assert fields["sessions"] >= set(
        "id user_id skill started_at last_active_at ended_at summary frozen".split()
    )
    assert fields["fragments"] >= set(
        """
        id session_id type role speaker content data media_type metadata moment context_signature
        state_signature memory_type scope base_score decay_rate half_life_hours access_count
        last_access_at expires_at pinned sensitive token_count summary source happened_at stored_at
        updated_at deleted_at
        """.split()
    )
    assert fields["intents"] >= set(
        """
        id fragment_id name namespace subject key entities confidence evidence valid_from valid_to
        replaced_by update_reason source created_at updated_at
        """.split()
    )


def test_blobs_are_blobs_times_are_whole_milliseconds_and_ids_are_text(filled):
    rows = filled.database.rows(
        "SELECT typeof(id), typeof(happened_at), typeof(stored_at), typeof(context_signature), typeof(data)"
        " FROM fragments ORDER BY pk"
    )
    assert rows == [
        ("text", "integer", "integer", "blob", "null"),
        ("text", "integer", "integer", "blob", "blob"),
        ("text", "integer", "integer", "blob", "null"),
    ]
    assert all(fragment.id.startswith("mf_") for user in ("u_1", "u_2") for fragment in filled.timeline(user))


def test_version_and_kind_are_written_in_the_file(memory):
    assert memory.database.row("PRAGMA user_version")[0] == schema.SCHEMA_VERSION
    assert memory.database.row("PRAGMA application_id")[0] == schema.APPLICATION_ID
    assert memory.database.row("PRAGMA foreign_keys")[0] == 1


@pytest.mark.cpython_only
def test_a_file_gives_its_free_pages_back_piece_by_piece(memories, tmp_path):
    memory = memories(str(tmp_path / "a.db"))
    assert memory.database.row("PRAGMA auto_vacuum")[0] == 2


def test_foreign_keys_hold(filled):
    refused(filled, "UPDATE sessions SET user_id = 'nobody' WHERE id = 's_1'")
    refused(filled, "UPDATE fragments SET session_id = 'nothing'")
    refused(filled, "UPDATE fragments SET user_id = 'u_2' WHERE user_id = 'u_1'")
    refused(filled, "UPDATE intents SET fragment_id = 'nothing'")
    refused(filled, "UPDATE intents SET user_id = 'u_2'")


@pytest.mark.parametrize(
    "change",
    [
        "type = 'video'", "role = 'robot'", "memory_type = 0", "memory_type = 101", "scope = 'eternal'",
        "base_score = 0", "base_score = 11", "decay_rate = 0", "decay_rate = 1.1", "half_life_hours = 0",
        "access_count = -1", "pinned = 2", "sensitive = 2", "context_signature = x'00'",
        "state_signature = x'00'", "content = NULL", "happened_at = 'today'", "happened_at = 1.5",
        "id = NULL", "id = (SELECT max(id) FROM fragments)",
    ],
)  # fmt: skip
def test_checks_hold_for_fragments(filled, change):
    refused(filled, f"UPDATE fragments SET {change} WHERE pk = 1")


@pytest.mark.parametrize("change", ["confidence = 1.1", "confidence = -0.1", "evidence = -1", "name = NULL"])
def test_checks_hold_for_intents(filled, change):
    refused(filled, f"UPDATE intents SET {change}")


def test_one_slot_has_one_current_row(filled):
    row = filled.database.row("SELECT fragment_id, user_id, scope, name, key FROM intents")
    refused(
        filled,
        "INSERT INTO intents (id, fragment_id, user_id, scope, name, key, confidence, valid_from,"
        " created_at, updated_at) VALUES ('in_2', ?, ?, ?, ?, ?, 1, 0, 0, 0)",
        *row,
    )


def test_a_user_takes_everything_along(filled):
    filled.database.connection.execute("DELETE FROM users WHERE id = 'u_1'")
    left = counts(filled)
    assert [left.pop(table) for table in ("users", "sessions", "fragments")] == [1, 1, 1]
    assert set(left.values()) == {0}
    assert contents(filled.timeline("u_2")) == ["black tea"]


def test_a_session_takes_its_fragments_and_their_intents_along(filled):
    filled.database.connection.execute("DELETE FROM sessions WHERE id = 's_1'")
    left = counts(filled)
    assert (left["users"], left["sessions"], left["fragments"]) == (2, 1, 1)
    assert (left["intents"], left["intent_terms"]) == (0, 0)


# Migrations


def adds_a_column(connection):
    connection.execute("ALTER TABLE users ADD COLUMN mood TEXT")
    connection.execute("UPDATE users SET mood = 'calm'")


def fails_half_way(connection):
    connection.execute("ALTER TABLE users ADD COLUMN trust REAL")
    connection.execute("DELETE FROM fragments")
    message = "disk I/O error"
    raise sqlite3.OperationalError(message)


def leaves_orphans(connection):
    connection.execute("PRAGMA defer_foreign_keys=ON")
    connection.execute("UPDATE sessions SET user_id = 'nobody'")


@pytest.fixture
def old(tmp_path, clock):
    """The path of a memory of today's schema, closed."""
    path = str(tmp_path / "old.db")
    with opened(path, clock=clock) as memory:
        memory.start_session("u_1", session_id="s_1").remember("kept through it all")
    return path


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def copy_beside(path):
    return [name for name in os.listdir(os.path.dirname(path)) if ".before-v" in name]


def test_migrations_run_in_order_each_raising_the_version(old):
    database = Database(old)
    seen = []

    def second(connection):
        seen.append(connection.execute("PRAGMA user_version").fetchone()[0])
        connection.execute("UPDATE users SET mood = 'glad'")

    schema.migrate(database, (*schema.MIGRATIONS, adds_a_column, second))
    assert seen == [schema.SCHEMA_VERSION + 1]
    assert schema.version_of(database) == schema.SCHEMA_VERSION + 2
    assert database.rows("SELECT mood FROM users") == [("glad",)]
    database.close()
    assert copy_beside(old) == []


def test_a_migration_that_fails_half_way_is_undone_and_the_untouched_copy_is_there(old, clock):
    with opened(old, clock=clock) as memory:
        before = dump(memory)
    original = bytes_of(old)
    database = Database(old)
    with pytest.raises(PyMemoryError):
        schema.migrate(database, (*schema.MIGRATIONS, fails_half_way))
    assert schema.version_of(database) == schema.SCHEMA_VERSION
    database.close()
    (name,) = copy_beside(old)
    copy = os.path.join(os.path.dirname(old), name)
    assert bytes_of(copy) == original
    with opened(old, clock=clock) as memory:
        assert dump(memory) == before
    with opened(copy, clock=clock) as memory:
        assert dump(memory) == before


def test_a_chain_that_fails_later_keeps_the_steps_that_succeeded_and_the_first_copy(old):
    original = bytes_of(old)
    database = Database(old)
    with pytest.raises(PyMemoryError):
        schema.migrate(database, (*schema.MIGRATIONS, adds_a_column, fails_half_way))
    assert schema.version_of(database) == schema.SCHEMA_VERSION + 1
    assert database.rows("SELECT mood FROM users") == [("calm",)]
    (name,) = copy_beside(old)
    assert bytes_of(os.path.join(os.path.dirname(old), name)) == original
    schema.migrate(database, (*schema.MIGRATIONS, adds_a_column, adds_a_column_to_sessions))
    assert schema.version_of(database) == schema.SCHEMA_VERSION + 2
    database.close()


def adds_a_column_to_sessions(connection):
    connection.execute("ALTER TABLE sessions ADD COLUMN mood TEXT")


def test_what_a_migration_leaves_is_verified_and_orphans_undo_it(old):
    database = Database(old)
    with pytest.raises(PyMemoryError):
        schema.migrate(database, (*schema.MIGRATIONS, leaves_orphans))
    assert schema.version_of(database) == schema.SCHEMA_VERSION
    assert database.rows("SELECT user_id FROM sessions") == [("u_1",)]
    database.close()


def test_a_newer_schema_is_refused_and_its_bytes_stay(old):
    database = Database(old)
    schema.migrate(database, (*schema.MIGRATIONS, adds_a_column))
    database.close()
    original = bytes_of(old)
    with pytest.raises(SchemaNewer) as caught:
        Memory.open(old)
    assert caught.value.details == {"schema": schema.SCHEMA_VERSION + 1, "known": schema.SCHEMA_VERSION}
    assert "Update py-memory" in str(caught.value)
    assert bytes_of(old) == original


def test_a_newer_image_in_rollback_format_is_refused_and_its_bytes_stay(tmp_path):
    path = str(tmp_path / "newer.db")
    with opened() as memory:
        memory.database.connection.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION + 1}")
        image = memory.export_image()
    with open(path, "wb") as file:
        file.write(image)
    with pytest.raises(SchemaNewer):
        Memory.open(path)
    assert bytes_of(path) == image


@pytest.mark.parametrize("version", [0, 1, 7])
def test_someone_elses_database_is_refused_and_its_bytes_stay(tmp_path, version):
    path = str(tmp_path / "other.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.execute(f"PRAGMA user_version={version}")
    connection.commit()
    connection.close()
    original = bytes_of(path)
    with pytest.raises(CorruptImage) as caught:
        Memory.open(path)
    assert caught.value.details["kind"] == "foreign"
    assert bytes_of(path) == original


@pytest.mark.parametrize(
    "text", [b"not a database at all, but long enough to look at" * 90, b"x", b"SQLite format 3\x00"]
)
def test_a_file_that_is_no_database_is_refused_and_its_bytes_stay(tmp_path, text):
    path = str(tmp_path / "notes.txt")
    with open(path, "wb") as file:
        file.write(text)
    with pytest.raises(CorruptImage):
        Memory.open(path)
    assert bytes_of(path) == text


def test_an_image_kept_elsewhere_needs_no_copy_beside_it(tmp_path):
    path = str(tmp_path / "owned.db")
    database = Database(path, owned=True)
    schema.migrate(database)
    schema.migrate(database, (*schema.MIGRATIONS, adds_a_column))
    database.close()
    assert copy_beside(path) == []


def test_opening_again_changes_nothing(old, clock):
    with opened(old, clock=clock):
        pass
    first = bytes_of(old)
    with opened(old, clock=clock):
        pass
    assert bytes_of(old) == first


def test_what_is_still_in_the_log_is_in_the_untouched_copy(old, clock):
    database = Database(old)
    database.connection.execute("UPDATE fragments SET content = 'changed at last'")
    with pytest.raises(PyMemoryError):
        schema.migrate(database, (*schema.MIGRATIONS, fails_half_way))
    (name,) = copy_beside(old)
    with opened(os.path.join(os.path.dirname(old), name), clock=clock) as memory:
        assert contents(memory.timeline("u_1")) == ["changed at last"]
    database.close()


def test_a_database_that_another_program_left_with_orphans_is_not_migrated(old):
    connection = sqlite3.connect(old)
    connection.execute("DELETE FROM users")
    connection.commit()
    connection.close()
    database = Database(old)
    with pytest.raises(CorruptImage) as caught:
        schema.migrate(database, (*schema.MIGRATIONS, adds_a_column))
    assert caught.value.details["kind"] == "migration"
    assert schema.version_of(database) == schema.SCHEMA_VERSION
    assert "mood" not in {row[1] for row in database.rows("PRAGMA table_info(users)")}
    database.close()
