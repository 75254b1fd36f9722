"""Time words in a query: English and Chinese, in the user's zone, across changes of the clock."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.times import iso, system_zones, to_ms
from py_memory.timewords import time_words, without
from tests.unit.helpers import contents, opened

THURSDAY = "2024-05-16T10:00:00Z"


def read(query: str, now: str = THURSDAY, zone: str = "UTC") -> list[tuple[str, str]]:
    words = time_words(query, to_ms(now, "now"), zone, system_zones)
    return [(iso(word.start)[:16], iso(word.end)[:16]) for word in words]


def days(first: str, after: str) -> list[tuple[str, str]]:
    return [(f"{first}T00:00", f"{after}T00:00")]


@pytest.mark.parametrize(
    ("query", "first", "after"),
    [
        ("what did I say yesterday", "2024-05-15", "2024-05-16"),
        ("the day before yesterday", "2024-05-14", "2024-05-15"),
        ("three days ago", "2024-05-13", "2024-05-14"),
        ("2 weeks ago", "2024-04-29", "2024-05-06"),
        ("last week", "2024-05-06", "2024-05-13"),
        ("last month", "2024-04-01", "2024-05-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("on Monday", "2024-05-13", "2024-05-14"),
        ("last Friday", "2024-05-10", "2024-05-11"),
        ("last weekend", "2024-05-11", "2024-05-13"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in december", "2023-12-01", "2024-01-01"),
        ("on 7 May 2023", "2023-05-07", "2023-05-08"),
        ("May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("the 3rd of July", "2023-07-03", "2023-07-04"),
        ("2023-05-08", "2023-05-08", "2023-05-09"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("christmas 2022", "2022-12-25", "2022-12-26"),
        ("in July last year", "2023-07-01", "2023-08-01"),
        ("7 July last year", "2023-07-07", "2023-07-08"),
        ("christmas last year", "2023-12-25", "2023-12-26"),
        ("去年七月", "2023-07-01", "2023-08-01"),
        ("去年7月", "2023-07-01", "2023-08-01"),
        ("前年十月一日", "2022-10-01", "2022-10-02"),
        ("去年国庆", "2023-10-01", "2023-10-02"),
        ("今年五一", "2024-05-01", "2024-05-02"),
        ("昨天", "2024-05-15", "2024-05-16"),
        ("前天", "2024-05-14", "2024-05-15"),
        ("大前天", "2024-05-13", "2024-05-14"),
        ("三天前", "2024-05-13", "2024-05-14"),
        ("二十一天前", "2024-04-25", "2024-04-26"),
        ("上周三", "2024-05-08", "2024-05-09"),
        ("上星期天", "2024-05-12", "2024-05-13"),
        ("上上周五", "2024-05-03", "2024-05-04"),
        ("这周一", "2024-05-13", "2024-05-14"),
        ("上周", "2024-05-06", "2024-05-13"),
        ("上个月", "2024-04-01", "2024-05-01"),
        ("去年", "2023-01-01", "2024-01-01"),
        ("前年", "2022-01-01", "2023-01-01"),
        ("2024年5月", "2024-05-01", "2024-06-01"),
        ("2023年12月25日", "2023-12-25", "2023-12-26"),
        ("十月三日", "2023-10-03", "2023-10-04"),
        ("五一", "2024-05-01", "2024-05-02"),
        ("五一前后", "2024-04-26", "2024-05-07"),
        ("双十一", "2023-11-11", "2023-11-12"),
    ],
)
def test_a_time_word_is_a_range_of_days(query: str, first: str, after: str) -> None:
    assert read(query) == days(first, after)


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("yesterday afternoon", "2024-05-15T12:00", "2024-05-15T18:00"),
        ("this morning", "2024-05-16T05:00", "2024-05-16T12:00"),
        ("昨天下午", "2024-05-15T12:00", "2024-05-15T18:00"),
        ("昨晚", "2024-05-15T18:00", "2024-05-16T04:00"),
    ],
)
def test_parts_of_a_day(query: str, start: str, end: str) -> None:
    assert read(query) == [(start, end)]


@pytest.mark.parametrize(
    "query",
    ["I may go", "march on", "the second row", "version 3.12", "周报", "月亮", "一天一苹果", "五一二三", ""],
)
def test_words_that_only_look_like_times(query: str) -> None:
    assert [span for span in read(query) if not query.startswith("五一")] == []


def test_the_zone_decides_which_day_it_is() -> None:
    late = "2024-05-16T20:00:00Z"  # the next morning in Shanghai
    assert read("yesterday", late, "UTC") == days("2024-05-15", "2024-05-16")
    assert read("昨天", late, "Asia/Shanghai") == [("2024-05-15T16:00", "2024-05-16T16:00")]


def test_a_day_on_which_the_clock_jumps_has_its_own_length() -> None:
    spring = read("yesterday", "2024-04-01T10:00:00Z", "Europe/Paris")
    autumn = read("yesterday", "2024-10-28T10:00:00Z", "Europe/Paris")
    assert spring == [("2024-03-30T23:00", "2024-03-31T22:00")]
    assert autumn == [("2024-10-26T22:00", "2024-10-27T23:00")]


def test_a_word_with_two_readings_says_so() -> None:
    def doubt(query: str) -> list[bool]:
        return [word.ambiguous for word in time_words(query, to_ms(THURSDAY, "now"), "UTC", system_zones)]

    assert doubt("last Wednesday") == [True]  # yesterday, or that of the week before
    assert doubt("last Friday") == [False]
    assert doubt("上周三") == [False]


def test_the_rest_of_the_query_stays() -> None:
    query = "我上周三说过什么"
    assert without(query, time_words(query, to_ms(THURSDAY, "now"), "UTC", system_zones)).split() == [
        "我",
        "说过什么",
    ]


@given(st.text(max_size=80))
@settings(max_examples=150)
def test_no_query_breaks_it_and_every_range_has_a_length(query: str) -> None:
    for word in time_words(query, to_ms(THURSDAY, "now"), "UTC", system_zones):
        assert word.start < word.end
        assert 0 <= word.begins < word.ends


NOTES = [
    ("2024-05-01", "climbed the hill with Lena"),
    ("2024-05-08", "我在看一本关于猫的书"),
    ("2024-05-08", "noodles for dinner"),
    ("2024-05-15", "a long meeting about the budget"),
    ("2024-03-02", "a short meeting about the budget"),
]


def test_a_query_about_nothing_but_a_time_is_answered_with_that_time() -> None:
    with opened(clock=lambda: to_ms(THURSDAY, "now")) as memory:
        session = memory.start_session("u")
        for day, text in NOTES:
            session.remember(text, at=f"{day}T12:00:00Z")
        assert set(contents(memory.search("u", "上周三我说过什么"))) == {
            "我在看一本关于猫的书",
            "noodles for dinner",
        }
        assert contents(memory.search("u", "what did I do yesterday")) == ["a long meeting about the budget"]
        assert contents(memory.search("u", "五一前后我做了什么")) == ["climbed the hill with Lena"]
        assert contents(memory.search("u", "what did I say in June 2022")) == []


def test_a_time_in_a_query_about_something_raises_what_happened_then() -> None:
    with opened(clock=lambda: to_ms(THURSDAY, "now")) as memory:
        session = memory.start_session("u")
        for day, text in NOTES:
            session.remember(text, at=f"{day}T12:00:00Z")
        hits = memory.search("u", "the meeting about the budget yesterday")
        assert hits[0].fragment.content == "a long meeting about the budget"
        assert "day" in hits[0].why["signals"]
        assert hits[0].why["times"][0]["since"] == "2024-05-15T00:00:00.000Z"
        older = memory.search("u", "the meeting about the budget in March 2024")
        assert older[0].fragment.content == "a short meeting about the budget"


def test_a_time_and_nothing_else_finds_what_happened_then_and_what_has_the_word() -> None:
    with opened(clock=lambda: to_ms(THURSDAY, "now")) as memory:
        session = memory.start_session("u")
        session.remember("we bought a tree", at="2023-12-25T12:00:00Z")
        session.remember("plans for christmas", at="2023-06-01T12:00:00Z")
        session.remember("nothing of the kind", at="2023-06-02T12:00:00Z")
        for query in ("christmas", "Christmas!"):
            assert contents(memory.search("u", query))[:2] == ["we bought a tree", "plans for christmas"]
        assert contents(memory.search("u", "what did I do at christmas")) == ["we bought a tree"]
