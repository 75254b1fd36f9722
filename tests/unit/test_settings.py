"""Settings: defaults as documented, bounds, unknown names refused; every accepted value works."""

from dataclasses import fields

import pytest

from py_memory import Settings
from py_memory.errors import InvalidArgument, TooLarge
from tests.unit.helpers import opened


def test_the_defaults_are_the_documented_ones():
    found = Settings()
    assert (found.exact_weight, found.near_weight, found.meaning_weight) == (1.0, 0.7, 0.3)
    assert (found.relevance_floor, found.strength_floor, found.min_score) == (0.5, 0.6, 0.3)
    assert (found.base_score, found.decay_rate) == (5.0, 0.9)
    assert (found.half_life_hours, found.half_life_hours_short) == (720.0, 24.0)
    assert (found.access_bonus, found.access_bonus_max) == (0.5, 2.0)
    assert found.working_ttl_seconds == 3600
    assert (found.max_text_bytes, found.max_blob_bytes) == (1024**2, 64 * 1024**2)


@pytest.mark.parametrize(
    "given",
    [
        {"no_such_setting": 1}, {"max_text_bytes": "big"}, {"max_text_bytes": 0}, {"max_text_bytes": -1},
        {"max_text_bytes": 1.5},
        {"exact_weight": 1.01}, {"relevance_floor": -0.1}, {"min_score": float("nan")},
        {"half_life_hours": float("inf")}, {"base_score": 11}, {"base_score": True}, {"decay_rate": 0},
        {"half_life_hours": 0}, {"half_life_hours": 1e7}, {"working_ttl_seconds": 2**52},
        {"max_json_depth": 65}, [], "fast", 5,
    ],
)  # fmt: skip
def test_what_is_no_setting_is_refused_when_opening(given):
    with pytest.raises(InvalidArgument), opened(settings=given):
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decay_rate", 1e-6), ("decay_rate", 1), ("half_life_hours", 1e-3), ("half_life_hours", 1e6),
        ("base_score", 1), ("base_score", 10), ("working_ttl_seconds", 0), ("relevance_floor", 0),
        ("relevance_floor", 1), ("strength_floor", 0), ("strength_floor", 1), ("access_bonus", 0),
        ("near_window_ms", 0), ("neighbour_pause_ms", 0), ("posting_budget", 1), ("max_json_depth", 1),
    ],
)  # fmt: skip
def test_each_bound_of_a_setting_is_one_that_works(name, value):
    with opened(settings={name: value}) as memory:
        session = memory.start_session("u_1")
        session.remember("green tea", scope="working")
        assert [hit.fragment.content for hit in session.recall("tea", min_score=0)] == ["green tea"]


def test_an_open_memory_tells_its_settings():
    with opened(settings={"near_weight": 0.5}) as memory:
        assert memory.settings.near_weight == 0.5
        assert memory.settings.exact_weight == 1.0
    with opened(settings=Settings(near_weight=0.4)) as memory:
        assert memory.settings.near_weight == 0.4


def test_the_size_limits_are_settings():
    with opened(settings={"max_text_bytes": 8, "max_blob_bytes": 4}) as memory:
        session = memory.start_session("u_1")
        session.remember("12345678")
        session.remember(b"1234")
        with pytest.raises(TooLarge):
            session.remember("123456789")
        with pytest.raises(TooLarge):
            session.remember("中文字")  # nine bytes
        with pytest.raises(TooLarge):
            session.remember(b"12345")


def test_weights_and_floors_change_the_score_as_the_formula_says():
    with opened(settings={"near_weight": 0.5, "relevance_floor": 0.4, "strength_floor": 0.2}) as memory:
        session = memory.start_session("u_1")
        session.remember("green tea")
        (hit,) = session.recall("unrelated")
        assert hit.tier == "L2"
        assert hit.score == 0.5 * 0.4 * (0.2 + 0.8 * 0.5)


def test_every_setting_is_a_number():
    assert {type(field.default) for field in fields(Settings)} == {int, float}
