# ruff: noqa: PT012 - what is undone is a block
"""Transactions: nested by savepoints, all kept or nothing; the two profiles; closing."""

import sqlite3

import pytest

from py_memory import Memory
from py_memory.database import Database
from py_memory.errors import Closed, Internal, PyMemoryError, StorageBlocked
from tests.unit.helpers import contents, counts, dump, opened


class Stop(Exception):
    pass


@pytest.fixture
def database():
    found = Database(":memory:")
    found.connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
    yield found
    found.close()


def add(database, *numbers):
    for n in numbers:
        database.connection.execute("INSERT INTO t VALUES (?)", (n,))


def kept(database):
    return [row[0] for row in database.rows("SELECT n FROM t ORDER BY n")]


def test_what_is_done_in_a_transaction_is_kept(database):
    with database.atomic():
        add(database, 1, 2)
    assert kept(database) == [1, 2]
    assert not database.connection.in_transaction


def test_an_error_undoes_all_of_a_transaction(database):
    with pytest.raises(Stop), database.atomic():
        add(database, 1)
        raise Stop
    assert kept(database) == []
    assert not database.connection.in_transaction


def test_an_inner_transaction_is_undone_alone(database):
    with database.atomic():
        add(database, 1)
        with pytest.raises(Stop), database.atomic():
            add(database, 2)
            with database.atomic():
                add(database, 3)
            raise Stop
        add(database, 4)
    assert kept(database) == [1, 4]


def test_an_outer_transaction_takes_its_inner_ones_along(database):
    with pytest.raises(Stop), database.atomic():
        with database.atomic():
            add(database, 1)
        raise Stop
    assert kept(database) == []


def test_an_inner_transaction_can_be_repeated_after_it_was_undone(database):
    with database.atomic():
        for attempt in range(3):
            try:
                with database.atomic():
                    add(database, 1)
                    if attempt < 2:
                        raise Stop
            except Stop:
                continue
    assert kept(database) == [1]


def test_what_sqlite_refuses_in_a_transaction_is_a_typed_error(database):
    with pytest.raises(PyMemoryError), database.atomic():
        add(database, 1, 1)
    assert kept(database) == []


def test_a_transaction_that_sqlite_undid_itself_leaves_nothing_open(database):
    add(database, 1)
    with pytest.raises(PyMemoryError), database.atomic():
        add(database, 2)
        database.connection.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
    assert kept(database) == [1]
    with database.atomic():
        add(database, 5)
    assert kept(database) == [1, 5]


def test_verbs_join_a_callers_transaction_and_are_undone_with_it(memory):
    session = memory.start_session("u_1")
    session.remember("before", intents=[{"name": "likes"}])
    memory.search("u_1", "before", touch=False)  # what is known of the user's text is now in memory
    before, scores = dump(memory), [hit.score for hit in memory.search("u_1", "before", touch=False)]
    with pytest.raises(Stop), memory.database.atomic():
        session.remember("green tea, more words, and before")
        memory.forget("u_1", query="before")
        memory.start_session("u_9", session_id="s_9").remember("of a user who is undone")
        raise Stop
    assert dump(memory) == before
    assert [hit.score for hit in memory.search("u_1", "before", touch=False)] == scores
    assert memory.check()["ok"]


def test_a_user_who_was_undone_shares_nothing_with_the_next_one(memory):
    with pytest.raises(Stop), memory.database.atomic():
        memory.start_session("u_1").remember("green tea")
        raise Stop
    memory.start_session("u_2").remember("black tea")
    memory.start_session("u_1").remember("white tea")
    assert contents(memory.search("u_1", "tea")) == ["white tea"]
    assert contents(memory.search("u_2", "tea")) == ["black tea"]
    memory.reindex()
    assert contents(memory.search("u_1", "tea")) == ["white tea"]


def test_a_savepoint_in_a_callers_transaction_undoes_one_verb_alone(memory):
    session = memory.start_session("u_1")
    with memory.database.atomic():
        session.remember("kept")
        with pytest.raises(Stop), memory.database.atomic():
            session.remember("dropped")
            raise Stop
    assert contents(memory.timeline("u_1")) == ["kept"]


def test_every_write_verb_is_one_transaction(tmp_path, clock):
    commits = []
    with opened(str(tmp_path / "a.db"), clock=clock) as memory:
        memory.database.connection.set_trace_callback(
            lambda sql: commits.append(sql) if sql.startswith(("BEGIN", "COMMIT", "ROLLBACK")) else None
        )

        def one(verb):
            commits.clear()
            verb()
            assert commits == ["BEGIN IMMEDIATE", "COMMIT"]

        one(lambda: memory.start_session("u_1", session_id="s_1"))
        session = memory.session("s_1")
        one(lambda: session.remember("a", intents=[{"name": "n", "key": "k"}], request_id="r"))
        one(
            lambda: session.remember_many(
                [{"content": "b"}, {"content": b"c"}, {"content": {"lat": 1, "lng": 2}}]
            )
        )
        session.recall("a")
        one(lambda: memory.forget("u_1", all=True))
        one(lambda: memory.restore("u_1", all=True))
        text = memory.export_json()
        one(lambda: memory.import_json(text))
        one(session.end)
        memory.database.connection.set_trace_callback(None)


def test_reading_verbs_write_nothing(tmp_path, clock):
    with opened(str(tmp_path / "a.db"), clock=clock) as memory:
        session = memory.start_session("u_1")
        session.remember("green tea", intents=[{"name": "likes"}], state={"a": 1})
        changes = memory.database.connection.total_changes
        session.recall("tea", state={"a": 1}, around=2)
        memory.search("u_1", "tea")
        memory.find("u_1")
        memory.timeline("u_1")
        memory.trash("u_1")
        memory.metrics()
        memory.forget("u_1", all=True, preview=True)
        assert memory.database.connection.total_changes == changes


@pytest.mark.parametrize("verb", ["search", "find", "timeline", "trash", "forget", "export_image"])
def test_a_closed_memory_says_so(memories, verb):
    memory = memories()
    session = memory.start_session("u_1")
    memory.close()
    memory.close()
    options = {"forget": {"all": True}}.get(verb, {})
    with pytest.raises(Closed):
        getattr(memory, verb)(*([] if verb == "export_image" else ["u_1"]), **options)
    with pytest.raises(Closed):
        session.remember("x")
    with pytest.raises(Closed):
        session.recall("x")


def test_closing_stores_what_was_counted(tmp_path, clock):
    path = str(tmp_path / "a.db")
    with opened(path, clock=clock) as memory:
        session = memory.start_session("u_1")
        session.remember("green tea")
        session.recall("tea")
    with opened(path, clock=clock) as memory:
        (fragment,) = memory.timeline("u_1")
        assert fragment.access_count == 1


@pytest.mark.cpython_only
def test_a_path_that_cannot_be_opened_is_a_typed_error(tmp_path):
    for path in (str(tmp_path), str(tmp_path / "no" / "such" / "folder" / "a.db")):
        with pytest.raises(StorageBlocked) as caught:
            Memory.open(path)
        assert str(tmp_path) not in str(caught.value)


@pytest.mark.cpython_only
def test_two_connections_on_one_file_see_each_other_and_rank_by_what_is_there(tmp_path, clock):
    path = str(tmp_path / "a.db")
    with opened(path, clock=clock) as one, opened(path, clock=clock) as two:
        session = one.start_session("u_1", session_id="s_1")
        session.remember("green tea")
        assert contents(two.search("u_1", "tea", touch=False)) == ["green tea"]
        two.session("s_1").remember("black tea with milk and a long list of other words")
        first = [(hit.fragment.id, hit.score) for hit in one.search("u_1", "tea", touch=False)]
        second = [(hit.fragment.id, hit.score) for hit in two.search("u_1", "tea", touch=False)]
        assert first == second
        assert len(first) == 2


# The owned profile


@pytest.fixture
def owned(memories, tmp_path):
    return memories(str(tmp_path / "owned.db"), owned=True)


def test_the_owned_profile_has_the_log_to_itself(owned):
    pragma = {
        name: owned.database.row(f"PRAGMA {name}")[0]
        for name in ("journal_mode", "locking_mode", "wal_autocheckpoint", "synchronous", "page_size",
                     "auto_vacuum", "cache_spill", "foreign_keys")
    }  # fmt: skip
    assert pragma == {
        "journal_mode": "wal", "locking_mode": "exclusive", "wal_autocheckpoint": 0, "synchronous": 0,
        "page_size": 4096, "auto_vacuum": 2, "cache_spill": 0, "foreign_keys": 1,
    }  # fmt: skip


def test_no_verb_leaves_a_statement_open_that_would_keep_the_log_from_being_folded(owned):
    def folds():
        busy = owned.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        assert busy == 0

    session = owned.start_session("u_1", session_id="s_1")
    folds()
    item = {"name": "likes", "entities": {"drink": {"kind": "tea"}}, "key": "drink", "confidence": 0.5}
    session.remember("green tea", intents=[item], state={"a": 1}, moment="m", request_id="r")
    session.remember("green tea", intents=[item], state={"a": 1}, moment="m", request_id="r")
    folds()
    session.remember_many([{"content": f"tea {n}"} for n in range(300)])
    folds()
    refused = [
        lambda: session.remember("x", role="robot"),
        lambda: session.remember_many([{"content": "fine"}, {"content": 5}]),
        lambda: owned.forget("u_1"),
        lambda: owned.import_json("{"),
        lambda: owned.import_image(b"x" * 5000),
        lambda: owned.timeline("u_1", cursor="?"),
        lambda: owned.session("s_404"),
        lambda: owned.start_session("u_2", session_id="s_1"),
    ]
    for verb in refused:
        with pytest.raises(PyMemoryError) as caught:
            verb()
        folds()
        del caught
    for verb in (
        lambda: session.recall("tea", state={"a": 1}, around=3),
        lambda: owned.search("u_1", "tea"),
        lambda: owned.find("u_1", entities={"drink.kind": "tea"}),
        lambda: owned.timeline("u_1", limit=5),
        lambda: owned.forget("u_1", query="tea"),
        lambda: owned.trash("u_1"),
        lambda: owned.restore("u_1", all=True),
        owned.metrics,
        owned.check,
        owned.reindex,
        owned.export_image,
        lambda: owned.import_json(owned.export_json()),
        lambda: owned.import_image(owned.export_image()),
        session.end,
    ):
        verb()
        folds()


def test_a_detached_log_is_found_again(owned):
    session = owned.start_session("u_1", session_id="s_1")
    session.remember("green tea")
    if not hasattr(sqlite3.Connection, "setconfig"):
        # Before Python 3.12 there is no way: that is said, and nothing is closed.
        with pytest.raises(Internal):
            owned.database.detach()
        assert owned.database.is_open
        return
    owned.database.detach()
    assert not owned.database.is_open
    owned.database.attach()
    owned.engine.after_undo()
    assert contents(owned.search("u_1", "tea")) == ["green tea"]
    owned.database.fold()
    assert counts(owned)["fragments"] == 1
