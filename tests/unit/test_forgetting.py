"""Forgetting: by a selector that is never empty, previewed by the same predicate, undoable."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import EmptySelector
from tests.unit.helpers import START, contents, dump, ids, opened


@pytest.fixture
def lived(memory):
    one = memory.start_session("u_1", session_id="s_1")
    one.remember("green tea", at=START)
    one.remember("black tea with milk", at=START + 1000)
    one.remember(b"picture", at=START + 2000)
    memory.start_session("u_1", session_id="s_2").remember("绿茶 tea", at=START + 3000)
    memory.start_session("u_2", session_id="s_3").remember("green tea", at=START)
    return memory


SELECTORS = [
    ({"all": True}, {"green tea", "black tea with milk", "", "绿茶 tea"}),
    ({"session_id": "s_1"}, {"green tea", "black tea with milk", ""}),
    ({"since": START + 1000}, {"black tea with milk", "", "绿茶 tea"}),
    ({"until": START + 1000}, {"green tea"}),
    ({"since": START + 1000, "until": START + 2000}, {"black tea with milk"}),
    ({"query": "tea"}, {"green tea", "black tea with milk", "绿茶 tea"}),
    ({"query": "milk tea"}, {"black tea with milk"}),
    ({"query": "茶"}, {"绿茶 tea"}),
    ({"query": "zebra"}, set()),
    ({"query": "tea zebra"}, set()),
    ({"type": "image"}, {""}),
    ({"query": "tea", "session_id": "s_2"}, {"绿茶 tea"}),
    ({"all": True, "type": "image"}, {""}),
    ({"ids": []}, set()),
    ({"session_id": "s_3"}, set()),
    ({"ids": ["mf_404"]}, set()),
]


@pytest.mark.parametrize(("selector", "expected"), SELECTORS)
def test_a_preview_tells_exactly_what_is_then_forgotten_and_restored(lived, selector, expected):
    before = contents(lived.timeline("u_1"))
    preview = lived.forget("u_1", preview=True, **selector)
    assert contents(lived.timeline("u_1")) == before
    done = lived.forget("u_1", **selector)
    assert done == preview
    assert done["count"] == len(done["ids"]) == len(expected)
    assert set(contents(lived.trash("u_1"))) == expected
    assert set(contents(lived.timeline("u_1"))) == set(before) - expected
    assert lived.restore("u_1", preview=True, **selector) == preview
    assert lived.restore("u_1", **selector) == preview
    assert contents(lived.timeline("u_1")) == before
    assert lived.trash("u_1") == []
    assert contents(lived.timeline("u_2")) == ["green tea"]
    assert lived.check()["ok"]


@pytest.mark.parametrize(
    "selector",
    [
        {}, {"all": False}, {"preview": True}, {"ids": None}, {"query": None, "since": None},
        {"query": ""}, {"query": "  "}, {"query": "?!"}, {"query": "*"},
        {"query": "", "session_id": "s_1"},
    ],
)  # fmt: skip
def test_an_empty_selector_is_refused_and_nothing_changes(lived, selector):
    before = dump(lived)
    for verb in (lived.forget, lived.restore):
        with pytest.raises(EmptySelector):
            verb("u_1", **selector)
    assert dump(lived) == before


def test_what_is_restored_is_as_it_was(memory, session):
    session.remember("x", metadata={"a": 1}, state={"b": 2}, intents=[{"name": "n", "entities": {"c": 3}}])
    before = memory.export_json()
    memory.forget("u_1", all=True)
    assert '"fragments":[]' in memory.export_json()
    assert '"intents":[]' in memory.export_json()
    memory.restore("u_1", all=True)
    assert memory.export_json() == before


def test_forgetting_twice_counts_nothing(lived):
    assert lived.forget("u_1", query="tea")["count"] == 3
    assert lived.forget("u_1", query="tea")["count"] == 0
    assert lived.restore("u_1", query="tea")["count"] == 3
    assert lived.restore("u_1", query="tea")["count"] == 0


def test_the_trash_lists_the_latest_first_in_pages(memory, session, clock):
    for n in range(7):
        session.remember(f"turn {n}")
    for n in (3, 1, 4):
        clock.forward(hours=1)
        memory.forget("u_1", query=f"turn {n}")
    clock.forward(hours=1)
    memory.forget("u_1", all=True)
    expected = ["turn 6", "turn 5", "turn 2", "turn 0", "turn 4", "turn 1", "turn 3"]
    assert contents(memory.trash("u_1")) == expected
    pages, cursor = [], None
    while True:
        page = memory.trash("u_1", limit=2, cursor=cursor)
        pages += contents(page)
        memory.restore("u_1", ids=[page[0].id])
        cursor = page.cursor
        if cursor is None:
            break
    assert pages == expected


def test_what_is_in_the_trash_says_when_it_was_forgotten(memory, session, clock):
    session.remember("x")
    clock.forward(hours=1)
    memory.forget("u_1", all=True)
    (gone,) = memory.trash("u_1")
    assert gone.deleted_at == clock.iso
    assert memory.metrics("u_1")["forgotten"] == 1


def test_more_rows_than_a_statement_takes_parameters_are_forgotten_at_once(memory, session):
    stored = ids(session.remember_many([{"content": "x"}] * 3000))
    assert memory.forget("u_1", ids=stored)["count"] == 3000
    assert memory.restore("u_1", all=True)["count"] == 3000


WORDS = ["tea", "green", "milk", "garden", "茶", "party"]


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=4), max_size=6),
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
)
@settings(max_examples=40)
def test_a_query_forgets_what_has_all_its_words_and_nothing_else(texts, query):
    with opened() as memory:
        session = memory.start_session("u_1")
        stored = [session.remember(" ".join(text)).id for text in texts]
        expected = [one for one, text in zip(stored, texts, strict=True) if set(query) <= set(text)]
        assert memory.forget("u_1", query=" ".join(query))["ids"] == expected


def test_a_fact_that_was_said_again_outlives_the_forgetting_of_its_first_source(memory, session):
    def tell(text, value):
        fact = {"name": "prefers", "key": "seat", "entities": {"seat": value}}
        return session.remember(text, intents=[fact])

    first = tell("a window seat, please", "window")
    again = tell("as I said, the window", "window")
    assert again.intents[0].outcome == "unchanged"
    memory.forget(session.user_id, ids=[first.id])
    found = memory.find(session.user_id, key="seat")
    assert [one.fragment.id for one in found] == [again.id]
    assert found[0].intent.id == first.intents[0].id
    memory.forget(session.user_id, ids=[again.id])
    assert memory.find(session.user_id, key="seat") == []
    memory.restore(session.user_id, ids=[first.id, again.id])
    assert [one.intent.entities for one in memory.find(session.user_id, key="seat")] == [{"seat": "window"}]


def test_forgetting_by_words_takes_only_what_has_every_word_common_ones_too(memory, session):
    session.remember("the cat sat")
    session.remember("cat alone")

    def count(query):
        return memory.forget(session.user_id, query=query, preview=True)["count"]

    assert count("cat") == 2
    assert count("the cat") == 1
    assert count("what is the cat") == 0
