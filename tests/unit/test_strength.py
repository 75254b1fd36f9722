"""Strength: one formula with a half-life, defaults by type code and scope, shared by all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory import Settings
from py_memory.errors import InvalidArgument
from py_memory.strength import memory_score, strength_of
from py_memory.times import HOUR
from tests.unit.helpers import START, contents, shared_cases

OWN = [
    {
        "base_score": 8,
        "decay_rate": 0.9,
        "half_life_hours": 720,
        "age_hours": 1440,
        "access_count": 0,
        "score": 6.48,
    },
    {
        "base_score": 3,
        "decay_rate": 0.9,
        "half_life_hours": 24,
        "age_hours": 48,
        "access_count": 0,
        "score": 2.43,
    },
    {
        "base_score": 6,
        "decay_rate": 0.5,
        "half_life_hours": 10,
        "age_hours": 10,
        "access_count": 1,
        "score": 3.25,
    },
    {
        "base_score": 6,
        "decay_rate": 0.5,
        "half_life_hours": 10,
        "age_hours": 0,
        "access_count": 99,
        "score": 8.0,
    },
    {
        "base_score": 6,
        "decay_rate": 0.5,
        "half_life_hours": 10,
        "age_hours": -9,
        "access_count": 0,
        "score": 6.0,
    },
]
BESIDE = shared_cases("memory.json").get("memory_score", OWN)


@pytest.mark.parametrize("case", OWN)
def test_the_memory_score_is_what_the_formula_says(case):
    given_case = {name: value for name, value in case.items() if name != "score"}
    assert memory_score(**given_case, settings=Settings()) == pytest.approx(case["score"], abs=1e-12)


@pytest.mark.parametrize("case", OWN)
def test_a_recalled_fragment_has_that_score_at_that_age(case, memory, clock):
    recalled(case, memory, clock)


def test_the_cases_beside_the_checkout_are_met_too(memories, clock):
    for case in BESIDE:
        options = {name: value for name, value in case.items() if name != "score"}
        assert memory_score(**options, settings=Settings()) == pytest.approx(case["score"], abs=1e-12)
        recalled(case, memories(), clock)


def recalled(case, memory, clock):
    session = memory.start_session("u_1")
    session.remember(
        "green tea",
        base_score=case["base_score"],
        decay_rate=case["decay_rate"],
        half_life_hours=case["half_life_hours"],
    )
    for _ in range(case["access_count"]):
        session.recall("tea")
    clock.forward(hours=case["age_hours"])
    (hit,) = memory.search("u_1", "tea", touch=False)
    if not case["access_count"]:
        assert hit.why["memory"]["memory_score"] == pytest.approx(case["score"], abs=1e-9)
    else:
        memory.export_json()  # stores what was counted
        (hit,) = memory.search("u_1", "tea", touch=False)
        assert hit.why["memory"]["memory_score"] == pytest.approx(case["score"], abs=1e-9)
    expected = 0.6 + 0.4 * min(1.0, case["score"] / 10)
    assert hit.why["strength"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "half_life"),
    [
        ({}, 720), ({"scope": "semantic"}, 720), ({"scope": "procedural"}, 720), ({"scope": "working"}, 24),
        ({"memory_type": 1}, 720), ({"memory_type": 20}, 720), ({"memory_type": 40}, 720),
        ({"memory_type": 60}, 720), ({"memory_type": 61}, 24), ({"memory_type": 80}, 24),
        ({"memory_type": 81}, 720), ({"memory_type": 100}, 720),
        ({"scope": "working", "memory_type": 1}, 24), ({"memory_type": 70, "half_life_hours": 5}, 5),
    ],
)  # fmt: skip
def test_type_code_and_scope_choose_the_half_life(session, options, half_life):
    assert session.remember("x", **options).half_life_hours == half_life


@pytest.mark.parametrize(
    ("scope", "codes"),
    [("working", (61, 80)), ("episodic", (81, 100)), ("semantic", (21, 40)), ("procedural", (41, 60))],
)
def test_a_scope_implies_a_type_code_in_its_range(session, scope, codes):
    assert codes[0] <= session.remember("x", scope=scope).memory_type <= codes[1]


@pytest.mark.parametrize("code", [0, 101, -1, 1.5, "21", None, True, 10**30, float("nan")])
def test_a_type_code_outside_1_to_100_is_refused(session, code):
    with pytest.raises(InvalidArgument):
        session.remember("x", memory_type=code)


@given(
    base=st.floats(1, 10),
    rate=st.floats(1e-6, 1),
    half_life=st.floats(1e-3, 1e6),
    count=st.integers(0, 50),
    ages=st.lists(st.floats(-1e6, 1e7), min_size=2, max_size=6),
)
@settings(max_examples=60)
def test_strength_never_grows_with_age_and_stays_between_its_floor_and_one(
    base, rate, half_life, count, ages
):
    found = [
        strength_of(base, rate, half_life, count, START, START + int(age * HOUR), Settings())
        for age in sorted(ages)
    ]
    values = [one.strength for one in found]
    assert values == sorted(values, reverse=True)
    assert all(0.6 <= value <= 1 for value in values)
    assert all(one.age_hours >= 0 for one in found)
    assert all(
        one.memory_score == pytest.approx((one.base_score + one.access_bonus) * one.decay) for one in found
    )


def test_age_counts_from_the_last_recall(memory, session, clock):
    session.remember("green tea")
    clock.forward(hours=1000)
    memory.search("u_1", "tea")
    session.remember("something else")  # a write stores the count
    (hit,) = memory.search("u_1", "tea", touch=False)
    assert hit.why["memory"]["age_hours"] == 0
    assert hit.why["memory"]["access_bonus"] == 0.5
    assert hit.fragment.access_count == 1
    assert hit.fragment.last_access_at == clock.iso


def test_what_faded_below_the_limit_is_left_out_kept_and_found_when_asked_for(memory, clock):
    session = memory.start_session("u_1")
    session.remember("green tea", base_score=1, decay_rate=0.5, half_life_hours=1)
    clock.forward(hours=1.7)
    assert contents(session.recall("tea", touch=False)) == ["green tea"]  # 0.307
    clock.forward(hours=0.1)
    assert session.recall("tea") == []  # 0.287
    assert contents(session.recall("tea", min_score=0, touch=False)) == ["green tea"]
    assert contents(memory.timeline("u_1")) == ["green tea"]


def test_age_orders_equals_and_never_buries_an_answer(memory, session, clock):
    old = session.remember("the blue bicycle is in the cellar")
    clock.forward(hours=720 * 5)
    new = session.remember("the blue bicycle is in the garden")
    session.remember("what a day")
    hits = memory.search("u_1", "blue bicycle", touch=False)
    assert [hit.fragment.id for hit in hits[:2]] == [new.id, old.id]
    assert memory.search("u_1", "blue bicycle cellar", touch=False)[0].fragment.id == old.id


def test_a_clock_that_goes_back_makes_nothing_older_or_stronger_than_new(memory, session, clock):
    session.remember("green tea")
    before = memory.search("u_1", "tea", touch=False)[0]
    clock.forward(hours=-1000)
    after = memory.search("u_1", "tea", touch=False)[0]
    assert after.why["memory"]["age_hours"] == 0
    assert after.score == before.score
