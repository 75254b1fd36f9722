"""Timeline: what happened, by when it happened, in pages that hold everything once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import InvalidArgument
from py_memory.times import iso
from tests.unit.helpers import START, contents, ids, opened


@pytest.fixture
def lived(memory):
    session = memory.start_session("u_1", session_id="s_1", skill="booking")
    for n in (3, 1, 4, 0, 2):
        session.remember(
            f"turn {n}",
            at=START + n * 1000,
            role="assistant" if n % 2 else "user",
            type="event" if n == 4 else "text",
            speaker="Ann" if n < 2 else None,
        )
    memory.start_session("u_1", session_id="s_2", skill="cooking").remember("pot", at=START + 2500)
    memory.start_session("u_2").remember("stranger", at=START + 1500)
    return memory


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["turn 4", "turn 3", "pot", "turn 2", "turn 1", "turn 0"]),
        ({"order": "newest", "limit": 2}, ["turn 4", "turn 3"]),
        ({"order": "oldest"}, ["turn 0", "turn 1", "turn 2", "pot", "turn 3", "turn 4"]),
        ({"since": START + 2000, "until": START + 3000}, ["pot", "turn 2"]),
        ({"since": iso(START + 4000)}, ["turn 4"]),
        ({"until": START}, []),
        ({"roles": ["assistant"]}, ["turn 3", "turn 1"]),
        ({"types": ["event"]}, ["turn 4"]),
        ({"types": ["event", "text"], "roles": ["user"], "until": START + 2001}, ["turn 2", "turn 0"]),
        ({"speaker": "Ann"}, ["turn 1", "turn 0"]),
        ({"skill": "cooking"}, ["pot"]),
        ({"session_id": "s_2"}, ["pot"]),
        ({"session_id": "s_1", "skill": "cooking"}, []),
    ],
)
def test_fragments_come_by_when_they_happened(lived, options, expected):
    assert contents(lived.timeline("u_1", **options)) == expected


@given(
    offsets=st.lists(st.integers(0, 3), max_size=14),
    limit=st.integers(1, 5),
    order=st.sampled_from(["newest", "oldest"]),
)
@settings(max_examples=30)
def test_pages_hold_everything_once_however_many_share_a_millisecond(offsets, limit, order):
    with opened() as memory:
        session = memory.start_session("u_1")
        for n, offset in enumerate(offsets):
            session.remember(f"turn {n}", at=START + offset)
        whole = ids(memory.timeline("u_1", order=order, limit=1000))
        pages, cursor = [], None
        for _ in range(len(offsets) + 1):
            page = memory.timeline("u_1", order=order, limit=limit, cursor=cursor)
            pages += ids(page)
            cursor = page.cursor
            if cursor is None:
                break
        assert pages == whole
        assert len(whole) == len(offsets)


def test_a_page_says_whether_more_follows(lived):
    assert lived.timeline("u_1", limit=6).cursor is None
    first = lived.timeline("u_1", limit=5)
    assert contents(lived.timeline("u_1", limit=5, cursor=first.cursor)) == ["turn 0"]


def test_a_cursor_stays_right_when_something_happens_or_is_forgotten_meanwhile(lived):
    first = lived.timeline("u_1", limit=2)
    lived.session("s_1").remember("newest", at=START + 9000)
    lived.forget("u_1", ids=[first[-1].id])
    assert contents(lived.timeline("u_1", limit=2, cursor=first.cursor)) == ["pot", "turn 2"]


def test_as_of_leaves_out_what_was_told_later(memory, session, clock):
    session.remember("told at once", at=START - 5000)
    clock.forward(hours=1)
    session.remember("told later", at=START - 6000)
    assert contents(memory.timeline("u_1", as_of=START)) == ["told at once"]


def test_intents_come_with_their_fragment(memory, session):
    session.remember(
        "x", intents=[{"name": "a"}, {"name": "b", "key": "k", "confidence": 0.5, "entities": {"v": 1}}]
    )
    session.remember("y", intents=[{"name": "b", "key": "k", "confidence": 1.0, "entities": {"v": 2}}])
    told = {one.content: [intent.name for intent in one.intents] for one in memory.timeline("u_1")}
    assert told == {"x": ["a"], "y": ["b"]}


def test_a_cursor_of_the_other_order_is_refused(lived):
    for order, other in (("newest", "oldest"), ("oldest", "newest")):
        cursor = lived.timeline("u_1", order=order, limit=1).cursor
        with pytest.raises(InvalidArgument, match="other 'order'"):
            lived.timeline("u_1", order=other, cursor=cursor)
