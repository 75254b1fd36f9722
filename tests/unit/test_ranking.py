"""Ranking: each signal does what its name says, and real conversations are found well enough."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from py_memory import Memory
from tests.conversations import Conversation, own, recall_at, shared
from tests.unit.helpers import START, contents, opened

Said = Callable[..., Memory]

FLOORS = {"locomo": 0.82, "memorybank-en": 0.98, "memorybank-zh": 0.98, "madial-zh": 0.60, "madial-en": 0.58}


@pytest.fixture
def said() -> Iterator[Said]:
    with ExitStack() as stack:
        yield lambda *turns, **options: stack.enter_context(spoken(*turns, **options))


def spoken(*turns: tuple[str, str], at: str = "2024-05-16T10:{minute:02d}:00Z") -> Memory:
    memory = Memory.open(":memory:", clock=lambda: START)
    session = memory.start_session("u")
    for minute, (speaker, text) in enumerate(turns):
        session.remember(text, speaker=speaker, at=at.format(minute=minute))
    return memory


def signals(memory, query: str) -> dict[str, dict[str, float]]:
    return {hit.fragment.content: hit.why["signals"] for hit in memory.search("u", query)}


def test_more_of_the_words_count_for_more(said: Said) -> None:
    memory = said(("A", "a red bicycle in the yard"), ("A", "a red kite"), ("A", "the yard was swept"))
    assert contents(memory.search("u", "red bicycle yard"))[0] == "a red bicycle in the yard"
    found = signals(memory, "red bicycle yard")
    assert found["a red bicycle in the yard"]["coverage"] > 0.999
    assert found["a red kite"]["coverage"] < 1.0


def test_a_name_asks_for_what_that_person_said(said: Said) -> None:
    memory = said(("Lena", "I like figs"), ("Omar", "I like figs and plums"), ("Omar", "Lena is late"))
    hits = memory.search("u", "what fruit like figs does Lena enjoy")
    assert hits[0].fragment.speaker == "Lena"
    assert "speaker" in hits[0].why["signals"]
    assert contents(memory.search("u", "Lena"))  # a name alone is still a word


def test_an_answer_beside_the_word_is_found(said: Said) -> None:
    memory = said(("A", "Which bank holds the mortgage?"), ("B", "Nordea does"), ("A", "thanks"))
    found = signals(memory, "bank mortgage")
    assert "neighbours" in found["Nordea does"]
    assert "question" in found["Which bank holds the mortgage?"]


def test_what_was_stored_for_one_millisecond_is_no_conversation(said: Said) -> None:
    memory = said(("A", "Which bank holds the mortgage?"), ("B", "Nordea does"), at="2024-05-16T10:00:00Z")
    assert contents(memory.search("u", "bank mortgage")) == ["Which bank holds the mortgage?"]


def test_a_pause_ends_the_neighbourhood(said: Said) -> None:
    memory = said(
        ("A", "Which bank holds the mortgage?"), ("B", "Nordea does"), at="2024-05-16T{minute:02d}:00:00Z"
    )
    assert contents(memory.search("u", "bank mortgage")) == ["Which bank holds the mortgage?"]


def test_single_characters_find_what_is_said_in_other_words(said: Said) -> None:
    memory = said(("A", "他每天练琴"), ("A", "她在厨房做饭"), ("A", "猫睡着了"))
    assert contents(memory.search("u", "钢琴课"))[0] == "他每天练琴"


def test_a_weight_of_none_switches_a_signal_off() -> None:
    with opened(
        settings={"rank_next": 0, "rank_previous": 0, "rank_two_away": 0, "rank_session": 0}
    ) as memory:
        session = memory.start_session("u")
        session.remember("Which bank holds the mortgage?", at="2024-05-16T10:00:00Z")
        session.remember("Nordea does", at="2024-05-16T10:01:00Z")
        assert contents(memory.search("u", "bank mortgage")) == ["Which bank holds the mortgage?"]


def found_in(talk: Conversation) -> tuple[float, int]:
    with opened() as memory:
        ids: dict[str, str] = {}
        for session_id, turns in talk.sessions.items():
            session = memory.start_session("u", session_id=session_id)
            stored = session.remember_many(
                [{"content": turn["text"], "speaker": turn["speaker"], "at": turn["at"]} for turn in turns]
            )
            ids |= {fragment.id: turn["id"] for fragment, turn in zip(stored, turns, strict=True)}
        answers = [
            [ids[hit.fragment.id] for hit in memory.search("u", question, touch=False)]
            for question, _ in talk.questions
        ]
    return recall_at(10, answers, talk), len(talk.questions)


def test_our_own_conversation_is_found() -> None:
    assert found_in(own())[0] >= 0.9


@pytest.mark.cpython_only
def test_the_floors_of_the_development_sets_hold_where_they_are_present() -> None:
    for name, floor in FLOORS.items():
        scores = [found_in(talk) for talk in shared(name)]
        if scores:
            mean = sum(score * count for score, count in scores) / sum(count for _, count in scores)
            assert mean >= floor, name
