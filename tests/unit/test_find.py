# ruff: noqa: E501 - tables of cases, one case a line
"""Find: by what was meant and any entity key, through an index, nothing read that is not asked for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.entities import holds
from tests.unit.helpers import START, contents, ids, opened

FLIGHTS = [
    (
        "book_flight",
        {"departure": "SHA", "arrival": "PEK", "seats": 2, "meal": {"kind": "vegan", "hot": True}},
    ),
    ("book_flight", {"departure": "PEK", "arrival": "SHA", "seats": 4, "stops": ["XIY", "CKG"]}),
    ("book_hotel", {"city": "SHA", "nights": 3, "meal": {"kind": "halal", "hot": None}}),
    ("book_hotel", {"city": "北京", "nights": 1.5, "a.b": {"c": 1}}),
    ("cancel", {}),
]


@pytest.fixture
def booked(memory):
    session = memory.start_session("u_1", session_id="s_1", skill="booking")
    for n, (name, entities) in enumerate(FLIGHTS):
        session.remember(
            f"turn {n}", at=START + n * 1000,
            intents=[{"name": name, "entities": entities, "confidence": 0.5 + n / 10}],
        )  # fmt: skip
    memory.start_session("u_2", skill="booking").remember(
        "stranger", intents=[{"name": "book_flight", "entities": FLIGHTS[0][1]}]
    )
    return memory


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, {0, 1, 2, 3, 4}), ({"intent": "book_flight"}, {0, 1}), ({"intent": "book"}, set()),
        ({"intent": "BOOK_FLIGHT"}, set()), ({"intent": "book%"}, set()), ({"namespace": "booking"}, {0, 1, 2, 3, 4}),
        ({"namespace": "other"}, set()), ({"namespace": ""}, set()), ({"intent": "cancel", "namespace": "booking"}, {4}),
        ({"entities": {"departure": "SHA"}}, {0}), ({"entities": {"departure": "sha"}}, set()),
        ({"entities": {"departure": "SHA", "arrival": "PEK"}}, {0}),
        ({"entities": {"departure": "SHA", "arrival": "SHA"}}, set()),
        ({"entities": {"city": "北京"}}, {3}), ({"entities": {"never_seen_before": 1}}, set()),
        ({"entities": {"meal.kind": "vegan"}}, {0}), ({"entities": {"meal": {"kind": "vegan", "hot": True}}}, {0}),
        ({"entities": {"meal": {"hot": True, "kind": "vegan"}}}, {0}), ({"entities": {"meal": {"kind": "vegan"}}}, set()),
        ({"entities": {"meal.hot": True}}, {0}), ({"entities": {"meal.hot": 1}}, set()),
        ({"entities": {"meal.hot": None}}, {2}), ({"entities": {"a.b.c": 1}}, {3}), ({"entities": {"a.b": {"c": 1}}}, {3}),
        ({"entities": {"seats": 2}}, {0}), ({"entities": {"seats": 2.0}}, {0}), ({"entities": {"seats": "2"}}, set()),
        ({"entities": {"seats": {"$gt": 2}}}, {1}), ({"entities": {"seats": {"$gte": 2}}}, {0, 1}),
        ({"entities": {"seats": {"$lt": 4}}}, {0}), ({"entities": {"seats": {"$lte": 4, "$gt": 2}}}, {1}),
        ({"entities": {"nights": {"$lt": 2}}}, {3}), ({"entities": {"departure": {"$gt": "Q"}}}, {0}),
        ({"entities": {"departure": {"$gt": 1}}}, set()), ({"entities": {"meal": {"$gt": 1}}}, set()),
        ({"entities": {"departure": {"$in": ["SHA", "PEK"]}}}, {0, 1}), ({"entities": {"departure": {"$in": ["X"]}}}, set()),
        ({"entities": {"meal": {"$in": [{"kind": "vegan", "hot": True}]}}}, {0}),
        ({"entities": {"stops": {"$contains": "CKG"}}}, {1}), ({"entities": {"stops": ["XIY", "CKG"]}}, {1}),
        ({"entities": {"stops": ["CKG", "XIY"]}}, set()), ({"entities": {"departure": {"$contains": "S"}}}, set()),
        ({"entities": {"meal": {"$exists": True}}}, {0, 2}), ({"entities": {"meal.hot": {"$exists": True}}}, {0, 2}),
        ({"entities": {"meal": {"$exists": False}}}, {1, 3, 4}),
        ({"entities": {"meal": {"$exists": False}, "city": "北京"}}, {3}),
        ({"min_confidence": 0.75}, {3, 4}), ({"min_confidence": 0.8}, {3, 4}), ({"since": START + 2000, "until": START + 4000}, {2, 3}),
        ({"session_id": "s_1", "intent": "cancel"}, {4}), ({"session_id": "s_2"}, set()), ({"skill": "booking", "intent": "cancel"}, {4}),
        ({"skill": "cooking"}, set()), ({"role": "user", "intent": "cancel"}, {4}), ({"role": "assistant"}, set()),
        ({"subject": ""}, {0, 1, 2, 3, 4}), ({"subject": "brother"}, set()), ({"key": "seat"}, set()),
    ],
)  # fmt: skip
def test_every_condition_finds_what_meets_it_newest_first(booked, options, found):
    expected = [f"turn {n}" for n in sorted(found, reverse=True)]
    assert contents(booked.find("u_1", **options)) == expected
    assert contents(booked.find("u_1", history=True, **options)) == expected
    assert contents(booked.find("u_1", as_of=START + 10**6, **options)) == expected


def test_what_is_found_carries_intent_and_fragment(booked):
    (found,) = booked.find("u_1", entities={"meal.kind": "vegan"})
    assert (found.intent.name, found.intent.entities) == FLIGHTS[0]
    assert found.intent.fragment_id == found.fragment.id
    assert found.fragment.intents == (found.intent,)


VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2.5, "a", "b", "é", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y", "x.y", "é"]), inner, max_size=2),
    max_leaves=5,
)  # fmt: skip
ENTITIES = st.dictionaries(st.sampled_from(["x", "y", "x.y", "é"]), VALUES, max_size=3)
PATHS = st.sampled_from(["x", "y", "x.y", "x.x", "y.x.y", "é", "e\u0301", "z"])
CONDITIONS = st.dictionaries(
    PATHS,
    st.one_of(
        VALUES,
        st.builds(lambda v: {"$in": v}, st.lists(VALUES, min_size=1, max_size=3)),
        st.builds(lambda v: {"$contains": v}, VALUES),
        st.builds(lambda v: {"$exists": v}, st.booleans()),
        st.builds(
            lambda o, v: {o: v},
            st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
            st.sampled_from([0, 1, 2.5, "a"]),
        ),
    ),
    min_size=1,
    max_size=2,
)


@given(stored=st.lists(ENTITIES, min_size=1, max_size=6), asked=CONDITIONS)
@settings(max_examples=120)
def test_the_index_finds_exactly_what_looking_at_every_row_finds(stored, asked):
    with opened() as memory:
        session = memory.start_session("u_1")
        for n, entities in enumerate(stored):
            session.remember(f"turn {n}", intents=[{"name": "n", "entities": entities}])
        expected = [
            f"turn {n}"
            for n, entities in reversed(list(enumerate(stored)))
            if all(
                holds(entities, path, operator, operand)
                for path, wanted in asked.items()
                for operator, operand in (
                    wanted.items()
                    if isinstance(wanted, dict) and any(k.startswith("$") for k in wanted)
                    else [("$eq", wanted)]
                )
            )
        ]
        assert contents(memory.find("u_1", entities=asked)) == expected


@pytest.mark.parametrize("limit", [1, 3, 7])
@pytest.mark.parametrize(
    "options",
    [{}, {"entities": {"even": True}}, {"entities": {"n": {"$gte": 5}}}, {"history": True, "intent": "n"}],
)
def test_pages_hold_everything_once(memory, session, limit, options):
    for n in range(20):
        session.remember(f"turn {n}", intents=[{"name": "n", "entities": {"n": n, "even": n % 2 == 0}}])
    whole = contents(memory.find("u_1", **options))
    pages, cursor = [], None
    while True:
        page = memory.find("u_1", limit=limit, cursor=cursor, **options)
        assert len(page) <= limit
        pages += contents(page)
        cursor = page.cursor
        if cursor is None:
            break
        session.remember("newer, not on this walk", intents=[{"name": "other", "entities": {}}])
    assert pages == whole


def test_many_intents_of_one_fragment_are_each_found(memory, session):
    session.remember("x", intents=[{"name": "n", "entities": {"i": i}} for i in range(5)])
    found = memory.find("u_1", intent="n")
    assert [one.intent.entities["i"] for one in found] == [4, 3, 2, 1, 0]
    assert len(set(ids(found))) == 1
    assert len(memory.find("u_1", entities={"i": 3})) == 1


def test_subjects_and_keys_are_found(memory, session):
    session.remember(
        "x", intents=[{"name": "prefers", "key": "seat", "subject": "brother", "entities": {"v": 1}}]
    )
    session.remember("y", intents=[{"name": "prefers", "key": "seat", "entities": {"v": 2}}])
    assert contents(memory.find("u_1", subject="brother")) == ["x"]
    assert contents(memory.find("u_1", subject="")) == ["y"]
    assert contents(memory.find("u_1", key="seat")) == ["y", "x"]
    assert contents(memory.find("u_1", key="seat", subject="brother", intent="prefers")) == ["x"]


def test_a_forgotten_fragments_intents_are_not_found_and_come_back_with_it(booked):
    booked.forget("u_1", query="turn 0")
    assert contents(booked.find("u_1", intent="book_flight")) == ["turn 1"]
    assert contents(booked.find("u_1", intent="book_flight", history=True)) == ["turn 1"]
    booked.restore("u_1", all=True)
    assert contents(booked.find("u_1", intent="book_flight")) == ["turn 1", "turn 0"]


def test_very_many_conditions_and_values_are_answered(memory, session):
    session.remember("x", intents=[{"name": "n", "entities": {f"k{n}": n for n in range(3000)}}])
    assert contents(memory.find("u_1", entities={f"k{n}": n for n in range(3000)})) == ["x"]
    assert contents(memory.find("u_1", entities={f"k{n}": n for n in range(3001)})) == []
    assert contents(memory.find("u_1", entities={"k7": {"$in": list(range(40_000))}})) == ["x"]
    assert contents(memory.find("u_1", history=True, entities={"k7": {"$in": list(range(8, 40_000))}})) == []


def test_composed_and_decomposed_values_are_the_same_value(memory, session):
    session.remember(
        "x", intents=[{"name": "n", "entities": {"place": "cafe\u0301", "tags": ["cafe\u0301"]}}]
    )
    assert contents(memory.find("u_1", entities={"place": "café"})) == ["x"]
    assert contents(memory.find("u_1", entities={"place": {"$in": ["café"]}})) == ["x"]
    assert contents(memory.find("u_1", entities={"tags": {"$contains": "café"}})) == ["x"]
