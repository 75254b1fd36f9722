"""The text index: each user's own, the same after every change, able to be made anew."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import PyMemoryError
from tests.unit.helpers import contents, ids, opened


def scores(memory, user, query):
    return [(hit.fragment.content, hit.score) for hit in memory.search(user, query, touch=False)]


def test_the_index_agrees_with_itself_after_every_kind_of_change(memory, session):
    session.remember_many([{"content": f"tea number {n}"} for n in range(50)])
    memory.forget("u_1", query="number 7")
    memory.restore("u_1", all=True)
    session.remember(b"picture", media_type="image/png")
    session.remember("")
    memory.import_json(memory.export_json())
    assert memory.check() == {"ok": True, "problems": []}


def test_a_damaged_index_is_told_and_made_anew(memory, session):
    session.remember("green tea")
    before = scores(memory, "u_1", "tea")
    memory.database.connection.execute("DELETE FROM text_index_data")
    told = memory.check()
    assert not told["ok"]
    assert memory.reindex() == {"fragments": 1}
    assert memory.check()["ok"]
    assert scores(memory, "u_1", "tea") == before


def test_a_failing_query_is_an_error_and_never_an_empty_answer(memory, session):
    session.remember("green tea")
    memory.database.connection.execute("DROP TABLE text_index")
    with pytest.raises(PyMemoryError):
        memory.search("u_1", "tea")


def test_what_a_forgotten_row_comes_back_with_is_its_words(memory, session):
    fragment = session.remember("green tea")
    memory.forget("u_1", ids=[fragment.id])
    assert memory.search("u_1", "tea") == []
    memory.restore("u_1", ids=[fragment.id])
    assert ids(memory.search("u_1", "tea")) == [fragment.id]


def test_an_index_of_another_analysis_is_made_anew_when_opening(memories, tmp_path):
    path = str(tmp_path / "a.db")
    memory = memories(path)
    memory.start_session("u_1").remember("green tea")
    before = scores(memory, "u_1", "tea")
    with memory.database.atomic() as connection:
        connection.execute("INSERT INTO text_index (text_index) VALUES ('delete-all')")
        connection.execute("UPDATE fragments SET terms = 0")
        connection.execute("UPDATE properties SET value = '0' WHERE name = 'text_analysis'")
    memory.close()
    again = memories(path)
    assert scores(again, "u_1", "tea") == before
    assert again.check()["ok"]


def test_a_query_of_very_many_words_is_answered(memory, session):
    words = [f"w{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(3000)]
    session.remember_many([{"content": " ".join(words[n : n + 30])} for n in range(0, 3000, 30)])
    hits = memory.search("u_1", " ".join(words[:900]), limit=1000)
    assert hits
    assert contents(memory.search("u_1", " ".join(words[60:90]), limit=1)) == [" ".join(words[60:90])]


def test_a_search_gives_as_many_as_were_asked_for(memory, session):
    session.remember_many([{"content": f"tea {n}", "at": n * 10**8} for n in range(700)])
    assert len(memory.search("u_1", "tea", limit=1000)) == 700
    assert len(memory.search("u_1", "tea", limit=650)) == 650
    assert len(memory.search("u_1", "tea")) == 10


def test_words_that_nobody_said_find_nothing(memory, session):
    session.remember("green tea")
    assert memory.search("u_1", "zebra") == []
    assert memory.search("u_1", "斑马") == []
    assert [(hit.tier, hit.why["relevance"]) for hit in session.recall("zebra")] == [("L2", 0.5)]
    assert session.recall("zebra", tiers=["L3"]) == []


@pytest.mark.parametrize("query", ["", "   ", "?!。，", "()"])
def test_a_query_without_words_gives_the_newest(memory, session, clock, query):
    for n in range(12):
        session.remember(f"turn {n}")
        clock.forward(hours=2)
    newest = [f"turn {n}" for n in range(11, 1, -1)]
    assert contents(memory.search("u_1", query)) == newest
    assert contents(session.recall(query)) == newest


@given(
    mine=st.lists(
        st.sampled_from(["green tea", "black tea with milk", "coffee", "tea tea tea", "绿茶"]), max_size=6
    ),
    others=st.lists(
        st.sampled_from(["green tea", "tea tea", "绿茶 绿茶", "coffee coffee", "milk", ""]),
        min_size=1,
        max_size=20,
    ),
)
@settings(max_examples=25)
def test_another_users_rows_never_change_scores(mine, others):
    with opened() as alone, opened() as shared:
        for memory in (alone, shared):
            session = memory.start_session("u_1")
            stranger = memory.start_session("u_2")
            for n in range(max(len(mine), len(others))):
                if n < len(mine):
                    session.remember(mine[n])
                if memory is shared and n < len(others):
                    stranger.remember(others[n])
        for query in ("tea", "green tea milk", "茶", "coffee"):
            assert scores(alone, "u_1", query) == scores(shared, "u_1", query)


TEXTS = ["green tea in the garden", "black tea", "garden party with tea and cake", "what about the garden?",
         "cake recipe", "we went home", "tea"]  # fmt: skip


@given(st.permutations(range(len(TEXTS))))
@settings(max_examples=25)
def test_the_order_of_storing_does_not_change_the_answer(order):
    found = []
    for sequence in (range(len(TEXTS)), order):
        with opened() as memory:
            session = memory.start_session("u_1", session_id="s_1")
            for n in sequence:
                session.remember(TEXTS[n], at=1_700_000_000_000 + n * 60_000)
            found.append([scores(memory, "u_1", query) for query in ("tea garden", "cake", "")])
    assert found[0] == found[1]
