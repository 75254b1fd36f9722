# ruff: noqa: E501 - tables of cases, one case a line
"""Text analysis: what becomes searchable, in every script, and the original kept as it was."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.stems import stem
from py_memory.text import normalise, query_terms, terms
from tests.unit.helpers import contents, opened, shared_cases

# Each line: what was said, and words by which it must be the first answer among all these lines.
OWN = {
    "我明天要去广州出差，住在珠江边": ["广州", "珠", "出差", "去广州", "明天"],
    "他喜欢用Rust写游戏引擎": ["Rust", "rust", "游戏", "引擎", "写游戏"],
    "折扣代码是 SPRING-30，月底失效": ["SPRING-30", "spring-30", "spring", "折扣代码", "月底"],
    "昨日、大阪のたこ焼きを食べました": ["大阪", "たこ焼き", "た", "食べました"],
    "부산에서 비빔밥을 먹고 싶어요": ["부산", "비빔밥", "비"],
    "ฉันชอบดื่มกาแฟเย็นตอนเช้า": ["กาแฟ", "ดื่ม"],
    "Er wohnt in der Königstraße in Köln": ["Köln", "koln", "KÖLN", "Konigstrasse", "königstraße"],
    "Trần Thị Hạnh opened a bakery": ["Tran", "Trần", "Hanh", "bakery", "bakeries"],
    "Jalapen\u0303o salsa with cre\u0300me frai\u0302che": ["jalapeño", "jalapeno", "crème", "fraiche"],
    "Мы купили велосипед для сына": ["велосипед", "ВЕЛОСИПЕД", "купили"],
    "الكتاب على الطاولة": ["الكتاب", "الطاولة"],
    "הספר על השולחן": ["הספר", "השולחן"],
    "मुझे चाय पसंद है": ["चाय", "पसंद"],
    "ＫＯＤＡＫ　フィルム １２３": ["kodak", "KODAK", "123", "フィルム"],
    "Graduation day 🎓🥳 finally": ["🎓", "🥳", "graduation"],
    "contact: billing+eu@shop.example.com or +49 30 1234567": [
        "billing+eu@shop.example.com", "BILLING+EU@shop.example.com", "shop.example.com", "1234567", "billing",
    ],
    "see get_user_profile_v3 and getUserProfile in profile.service.ts": [
        "get_user_profile_v3", "getUserProfile", "profile.service.ts", "get_user",
    ],
    "release 10.4.2-rc1 fixes bug #4711": ["10.4.2-rc1", "10.4.2", "4711", "#4711"],
    "C# and F# beat Objective-C here": ["C#", "F#", "objective-c"],
    "the children were singing carols": ["child sing", "sang carol", "carols", "singing"],
    "path is /srv/data/reports/2026/quarterly-summary-final-version.xlsx": [
        "quarterly-summary-final-version.xlsx", "quarterly", "xlsx", "reports", "srv", "summary",
    ],
    "don't forget mother's birthday": ["don't forget", "mother", "mother's", "birthday"],
}  # fmt: skip
EXPECTED = [(said, query) for said, queries in OWN.items() for query in queries]


@pytest.fixture(scope="module")
def said():
    with opened() as memory:
        session = memory.start_session("u_1")
        session.remember_many([{"content": one} for one in OWN])
        yield session


@pytest.mark.parametrize(("expected", "query"), EXPECTED)
def test_what_was_said_is_the_first_answer_to_its_words(said, expected, query):
    assert contents(said.recall(query, tiers=["L3"], touch=False))[0] == expected


@pytest.mark.parametrize(("expected", "query"), EXPECTED)
def test_searching_the_history_says_the_same_as_recalling(said, expected, query):
    assert contents(said.recall(query, touch=False))[0] == expected


def test_the_cases_beside_the_checkout_are_met_too():
    cases = shared_cases("search.json")
    documents = cases.get("documents", {"a": "green tea", "b": "black coffee"})
    queries = cases.get("queries", [{"query": "tea", "first": ["a"]}, {"query": "^", "first": []}])
    with opened() as memory:
        session = memory.start_session("u_1")
        names = {session.remember(text).id: name for name, text in documents.items()}
        for case in queries:
            for hits in (
                session.recall(case["query"], touch=False),
                memory.search("u_1", case["query"], touch=False),
            ):
                if case["first"]:
                    assert names[hits[0].fragment.id] in case["first"], case["query"]
                elif not case["query"].strip():
                    assert len(hits) == 10


@pytest.mark.parametrize("text", OWN)
def test_the_original_is_kept(text):
    with opened() as memory:
        fragment = memory.start_session("u_1").remember(text)
        assert memory.timeline("u_1")[0].content == fragment.content == text


@pytest.mark.parametrize("text", OWN)
def test_composed_decomposed_and_full_width_forms_give_the_same_terms(text):
    once = terms(unicodedata.normalize("NFC", text))
    assert terms(unicodedata.normalize("NFD", text)) == once
    assert terms(unicodedata.normalize("NFKD", text)) == once


@given(st.text(max_size=60))
@settings(max_examples=150)
def test_normalising_twice_changes_nothing_that_is_searched(text):
    assert terms(normalise(text)) == terms(normalise(normalise(text)))


WORDS = st.text(
    alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd"], max_codepoint=0x9FFF), min_size=1, max_size=12
)


@given(st.lists(WORDS, min_size=1, max_size=8))
@settings(max_examples=120)
def test_what_was_stored_is_found_by_any_of_its_words(words):
    with opened() as memory:
        session = memory.start_session("u_1")
        fragment = session.remember(" ".join(words))
        for word in words:
            found = [hit.fragment.id for hit in memory.search("u_1", word, touch=False)]
            assert found == [fragment.id]


@given(st.text(max_size=60))
@settings(max_examples=150)
def test_no_term_holds_a_character_that_the_index_would_split_at(text):
    for term in (*terms(text), *query_terms(text)):
        assert term
        assert not any(char in term for char in "'\"\\ \t\n\x00")


@given(st.text(max_size=40))
@settings(max_examples=150)
def test_a_query_asks_only_for_terms_that_its_own_text_has(text):
    had = set(terms(text))
    for term in query_terms(text):
        assert term in had or (term.endswith("*") and any(one.startswith(term[:-1]) for one in had))


def test_every_part_of_a_long_name_is_found(memory, session):
    parts = [f"part{chr(97 + n)}" for n in range(26)]
    session.remember("/".join(parts))
    for part in parts:
        assert len(memory.search("u_1", part)) == 1, part


def test_stop_words_are_left_out_unless_the_query_has_nothing_else():
    assert query_terms("what is the name of the cat") == ["name", "cat"]
    assert query_terms("to be or not to be") != []


@pytest.mark.parametrize(
    "forms",
    [
        "run runs running ran", "go went going goes gone", "city cities", "child children", "colour color",
        "hop hops hopped hopping", "decide decided deciding", "national nationally",
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(forms):
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("words", ["policy police", "wander wand", "apple apply", "sing single"])
def test_words_that_only_look_alike_are_kept_apart(words):
    assert len({stem(word) for word in words.split()}) == 2


@pytest.mark.parametrize(
    "text",
    [
        "a-" * 50_000, "a." * 50_000, "'" * 100_000, "中" * 100_000, "aB" * 50_000, "🎉" * 50_000,
        "a\u0301" * 50_000, "x" * 200_000, "a1" * 50_000, "x' " * 50_000, "aaA" * 50_000 + " aA",
    ],
)  # fmt: skip
def test_the_worst_text_is_analysed_in_time(text):
    started = time.perf_counter()
    terms(text)
    query_terms(text)
    assert time.perf_counter() - started < 5
