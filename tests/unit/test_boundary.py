# ruff: noqa: E501, ARG005, PT017 - tables of cases, one case a line
"""Input at the boundary: a typed error or a documented repair, before anything is written."""

import json
import math
import pickle
from enum import IntEnum, StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import InvalidArgument, PyMemoryError, TooLarge, UserRequired
from py_memory.wire import error_json
from tests.unit.helpers import contents, counts, opened

MARK = "Zx9secretword"


def deep(levels):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def cyclic():
    value = {}
    value["self"] = value
    return value


def refused(memory, verb, kind=InvalidArgument):
    """Show that a call raises its typed error, changes no row and quotes nothing."""
    before = counts(memory), memory.database.connection.total_changes
    with pytest.raises(kind) as caught:
        verb()
    assert (counts(memory), memory.database.connection.total_changes) == before
    assert MARK not in str(caught.value)
    assert MARK not in error_json(caught.value)
    return caught.value


# Repairs


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("half an emoji \ud83d", "half an emoji \ufffd"),
        ("\udc00 alone", "\ufffd alone"),
        ("a pair \ud83d\ude00 joined", "a pair \U0001f600 joined"),
        ("two \ud83d\ud83d", "two \ufffd\ufffd"),
        ("a\x00b", "a\ufffdb"),
        ("tab\tnew\nline\r\n\x1b kept", "tab\tnew\nline\r\n\x1b kept"),
        ("", ""),
        ("\ufeffmark", "\ufeffmark"),
    ],
)
def test_text_that_utf8_cannot_hold_is_repaired_and_all_else_is_kept(memory, session, given_text, stored):
    fragment = session.remember(
        given_text, speaker=given_text, metadata={"a": [given_text]}, source=given_text
    )
    assert (fragment.content, fragment.speaker, fragment.source) == (stored, stored, stored)
    assert fragment.metadata == {"a": [stored]}
    (kept,) = memory.timeline("u_1")
    assert kept == fragment
    json.dumps(kept.to_dict(), ensure_ascii=False).encode()


def test_repaired_text_is_found_and_exported(memory, session):
    session.remember("green \ud83d tea\x00house")
    assert len(memory.search("u_1", "green tea \ud83d")) == 1
    memory.export_json().encode()


@given(st.text(alphabet=st.characters(), max_size=30))
@settings(max_examples=60)
def test_any_text_can_be_remembered_and_comes_back_whole(text):
    with opened() as memory:
        fragment = memory.start_session("u_1").remember(text)
        (kept,) = memory.timeline("u_1")
        assert kept.content == fragment.content
        if not any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in text):
            assert kept.content == text


# Refusals


@pytest.mark.parametrize(
    "content",
    [None, 5, 1.5, True, [MARK], {MARK}, {}, {"lat": 1}, {"lng": 2}, {"text": MARK}, object(), ("a", "b")],
)
def test_content_that_is_neither_text_nor_bytes_nor_a_place_is_refused(memory, session, content):
    refused(memory, lambda: session.remember(content))


@pytest.mark.parametrize(
    "place",
    [
        {"lat": 91, "lng": 0}, {"lat": 0, "lng": -181}, {"lat": math.nan, "lng": 0},
        {"lat": "1", "lng": 0}, {"lat": True, "lng": 0}, {"lat": 10**400, "lng": 0},
        {"lat": 0, "lng": 0, "accuracy": -1}, {"lat": 0, "lng": 0, "accuracy": math.inf},
        {"lat": 0, "lng": 0, "label": 5}, {"lat": 0, "lng": 0, MARK: 1},
    ],
)  # fmt: skip
def test_a_place_outside_the_world_is_refused(memory, session, place):
    refused(memory, lambda: session.remember(place))


@pytest.mark.parametrize(
    "options",
    [
        {"type": "video"}, {"type": 5}, {"type": [MARK]}, {"role": MARK}, {"role": None}, {"role": ""},
        {"speaker": 5}, {"at": MARK}, {"at": math.nan}, {"state": MARK}, {"state": [1]},
        {"metadata": MARK}, {"metadata": [1]}, {"metadata": {1: 2}}, {"metadata": {"a": math.nan}},
        {"metadata": {"a": math.inf}}, {"metadata": {"a": 2**53}}, {"metadata": {"a": -(10**400)}},
        {"metadata": {"a": b"x"}}, {"metadata": {"a": {1}}}, {"metadata": {"a": object()}},
        {"metadata": deep(33)}, {"metadata": deep(5000)}, {"metadata": cyclic()}, {"state": deep(33)},
        {"state": {"a": math.nan}}, {"media_type": 5}, {"scope": MARK}, {"scope": None},
        {"base_score": 0}, {"base_score": 10.1}, {"base_score": math.nan}, {"base_score": "5"},
        {"base_score": 10**400}, {"half_life_hours": 0}, {"half_life_hours": math.inf},
        {"half_life_hours": -1}, {"decay_rate": 0}, {"decay_rate": 1.01}, {"decay_rate": True},
        {"ttl_seconds": -1}, {"ttl_seconds": math.nan}, {"ttl_seconds": 10**12}, {"ttl_seconds": "60"},
        {"pinned": 1}, {"pinned": "yes"}, {"sensitive": None}, {"source": 5}, {"moment": 5},
        {"moment": ""}, {"moment": "a\x00b"}, {"moment": "x" * 300}, {"request_id": 5},
        {"request_id": ""}, {"update_reason": 5}, {"intents": MARK}, {"intents": {"name": MARK}},
        {"intents": [MARK]}, {"intents": [{}]}, {"intents": [{"name": ""}]}, {"intents": [{"name": 5}]},
        {"intents": [{"name": "a", MARK: 1}]}, {"intents": [{"name": "a", "entities": MARK}]},
        {"intents": [{"name": "a", "entities": {"b": math.nan}}]},
        {"intents": [{"name": "a", "entities": deep(33)}]},
        {"intents": [{"name": "a", "confidence": 1.1}]}, {"intents": [{"name": "a", "confidence": "1"}]},
        {"intents": [{"name": "a", "key": 5}]}, {"intents": [{"name": "a", "subject": "\ud800"}]},
        {"intents": [{"name": "a", "namespace": "a\nb"}]}, {"intents": [{"name": "a", "source": 5}]},
        {MARK: 1}, {"user_id": "u_2"}, {"session_id": "s_2"}, {"id": "mf_1"}, {"stored_at": 0},
    ],
)  # fmt: skip
def test_an_option_that_is_not_as_it_must_be_is_refused_before_anything_is_written(memory, session, options):
    session.remember("there before")
    error = refused(memory, lambda: session.remember(f"content with {MARK}", **options))
    assert error.code == "invalid_argument"
    refused(memory, lambda: session.remember_many([{"content": "fine"}, {"content": MARK, **options}]))


@pytest.mark.parametrize(
    "items",
    [None, 5, "text", b"bytes", {"content": MARK}, [MARK], [None], [{}], [{"role": "user"}], [[MARK, {}]]],
)
def test_items_that_are_no_objects_with_content_are_refused(memory, session, items):
    refused(memory, lambda: session.remember_many(items))


def test_no_items_are_no_error_and_write_nothing_but_that_the_session_lives(memory, session):
    assert session.remember_many([]) == []
    assert counts(memory)["fragments"] == 0


def test_sizes_are_limited_by_their_bytes_and_say_the_limit(memories):
    memory = memories(settings={"max_text_bytes": 100, "max_blob_bytes": 50, "max_json_bytes": 60})
    session = memory.start_session("u_1")
    session.remember("x" * 100, metadata={"a": "y" * 50})
    session.remember(b"x" * 50)
    session.remember(memoryview(b"x" * 50))
    for content, options in (
        ("x" * 101, {}), ("界" * 34, {}), ("\U0001f600" * 26, {}), (b"x" * 51, {}), (bytearray(51), {}),
        ("x", {"speaker": "x" * 101}), ("x", {"metadata": {"a": MARK * 5}}), ("x", {"state": {"a": "界" * 20}}),
        ("x", {"intents": [{"name": "n", "entities": {"a": "x" * 60}}]}), ("x", {"source": MARK * 20}),
    ):  # fmt: skip
        error = refused(memory, lambda c=content, o=options: session.remember(c, **o), TooLarge)
        assert error.details["limit"] in (100, 50, 60)
    refused(memory, lambda: session.recall("x" * 101), TooLarge)
    refused(memory, lambda: memory.search("u_1", "界" * 34), TooLarge)


def test_the_default_limits_hold(memory, session):
    session.remember("x" * 1024**2)
    refused(memory, lambda: session.remember("x" * (1024**2 + 1)), TooLarge)


def test_json_as_deep_as_the_limit_is_kept(memory, session):
    fragment = session.remember("x", metadata=deep(32), state=deep(32))
    assert fragment.metadata == deep(32)
    assert memory.timeline("u_1")[0].metadata == deep(32)


def test_the_largest_numbers_that_javascript_keeps_are_kept(session):
    values = {"a": 2**53 - 1, "b": -(2**53) + 1, "c": 1e308, "d": 5e-324, "e": -0.0}
    assert session.remember("x", metadata=values).metadata == values


@pytest.mark.parametrize("user", [None, ""])
def test_every_verb_must_be_told_whose_memory_it_is(memory, user):
    for verb in (
        memory.start_session, memory.find, memory.timeline, memory.trash,
        lambda u: memory.search(u, "x"), lambda u: memory.forget(u, all=True),
        lambda u: memory.restore(u, all=True),
    ):  # fmt: skip
        refused(memory, lambda v=verb: v(user), UserRequired)
    refused(memory, lambda: memory.search(query="x"), UserRequired)
    refused(memory, lambda: memory.export_json(user_id=""), UserRequired)


@pytest.mark.parametrize(
    "user", [5, True, b"u", ["u_1"], "  ", "a\x00b", "a\nb", "\ud800", "x" * 257, "界" * 90]
)
def test_what_is_no_id_is_refused(memory, user):
    for verb in (
        memory.start_session, memory.find, memory.timeline, memory.trash, memory.export_json, memory.metrics,
        lambda u: memory.search(u, "x"), lambda u: memory.forget(u, all=True), memory.session,
        lambda u: memory.start_session("u_1", session_id=u), lambda u: memory.timeline("u_1", session_id=u),
        lambda u: memory.forget("u_1", ids=[u]), lambda u: memory.find("u_1", intent=u),
        lambda u: memory.find("u_1", key=u), lambda u: memory.timeline("u_1", skill=u),
        lambda u: memory.start_session("u_1", skill=u),
    ):  # fmt: skip
        refused(memory, lambda v=verb: v(user))


VERBS = {
    "recall": lambda memory, session, **options: session.recall("x", **options),
    "search": lambda memory, session, **options: memory.search("u_1", "x", **options),
    "find": lambda memory, session, **options: memory.find("u_1", **options),
    "timeline": lambda memory, session, **options: memory.timeline("u_1", **options),
    "trash": lambda memory, session, **options: memory.trash("u_1", **options),
    "forget": lambda memory, session, **options: memory.forget("u_1", **{"all": True, **options}),
    "restore": lambda memory, session, **options: memory.restore("u_1", **{"all": True, **options}),
    "start_session": lambda memory, session, **options: memory.start_session("u_1", **options),
}

READ = [
    (("recall", "search", "find", "timeline", "trash"), "limit", [0, -1, 1001, 1.5, "10", None, True, 10**30, math.nan]),
    (("recall", "search", "find", "timeline"), "since", [MARK, math.nan, [], True]),
    (("recall", "search", "find", "timeline"), "until", [MARK, {}, 10**18]),
    (("recall", "search", "find", "timeline"), "as_of", [MARK, object()]),
    (("recall", "search", "find", "timeline"), "speaker", [5, [MARK]]),
    (("recall", "search", "find", "timeline"), "role", [MARK, 5, [MARK], {"a": 1}]),
    (("recall", "search", "find", "timeline"), "type", [MARK, 5, [MARK]]),
    (("recall", "search"), "min_score", [-1, math.nan, "0", True]),
    (("recall", "search"), "include_sensitive", [1, "yes", None]),
    (("recall", "search"), "touch", [1, "no"]),
    (("recall", "search"), "around", [-1, 21, 1.5, "2", True]),
    (("recall", "search", "find", "timeline"), "include_data", [0, "no"]),
    (("recall", "search"), "metadata", [MARK, {"a": {"b": 1}}, {"a": [1]}, {"a": math.nan}, {"a": 2**60},
                                      {f"k{n}": n for n in range(101)}]),
    (("recall",), "tiers", ["L4", [], [MARK], 5]),
    (("recall",), "state", [MARK, [1], {"a": math.nan}]),
    (("recall",), "signature_window", [MARK, 5]),
    (("find", "timeline", "trash"), "cursor", [MARK, "1:2:3", "", [], {}, 1.5, "9" * 30, "9" * 5000, True]),
    (("timeline",), "order", [MARK, 5, None]),
    (("find",), "min_confidence", [MARK, 2, -1, math.nan]),
    (("find",), "history", [1, "yes"]),
    (("find",), "entities", [MARK, [1], {"a": {"$gt": [1]}}, {"a": {"$regex": "x"}}, {"a": {"$in": []}},
                             {"a": {"$in": 5}}, {"a": {"$exists": 1}}, {"a": {"$gt": None}}, {"a": math.nan},
                             {"a": {"$lt": True}}, {1: 2}, {"a": {"$in": [1], "b": 2}}, deep(40)]),
    (("forget", "restore"), "all", [1, "yes"]),
    (("forget", "restore"), "preview", [1, "no"]),
    (("forget", "restore"), "ids", [5, {"a": 1}, [5], [MARK, None]]),
    (("forget", "restore"), "query", [5, [MARK]]),
    (("forget", "restore"), "type", [MARK]),
    (("forget", "restore"), "since", [MARK]),
    (("start_session",), "user_name", [5, [MARK]]),
    (("start_session",), "at", [MARK, math.nan]),
    (("recall", "search", "find", "timeline", "trash", "forget", "restore", "start_session"), MARK, [1]),
    (("recall", "search", "find", "timeline", "trash", "forget", "restore", "start_session"), "user", ["u_2"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "option", "value"),
    [(verb, option, value) for verbs, option, values in READ for verb in verbs for value in values],
)
def test_an_option_of_a_verb_that_is_not_as_it_must_be_is_refused(memory, session, verb, option, value):
    session.remember("x", intents=[{"name": "n", "entities": {"a": 1}}])
    refused(memory, lambda: VERBS[verb](memory, session, **{option: value}))


@pytest.mark.parametrize("query", [None, 5, b"x", ["x"], {"a": 1}])
def test_a_query_that_is_no_text_is_refused(memory, session, query):
    refused(memory, lambda: session.recall(query))
    refused(memory, lambda: memory.search("u_1", query))


@given(st.text(max_size=40))
@settings(max_examples=80)
def test_no_query_raises(query):
    with opened() as memory:
        session = memory.start_session("u_1")
        session.remember('NOT a problem AND not OR maybe NEAR you, 你好 (world) "quoted" col:value*')
        session.recall(query)
        memory.search("u_1", query)


@pytest.mark.parametrize(
    "query",
    ["", " ", "\x00", "*", '"', "'", "^", "()", "NOT", "a AND", "NEAR(a b)", "col:value", "-x", "x*", "{}",
     "%_", "\\", ";--", "?!。，", "\ud800", "' OR 1=1 --", "a" * 5000, "a " * 5000, "é" * 3000, "\u202e", "🏳️‍🌈"],
)  # fmt: skip
def test_the_syntax_of_a_query_never_matters(memory, session, query):
    session.remember("green tea")
    session.recall(query)
    memory.search("u_1", query)
    memory.timeline("u_1")


def test_results_are_plain_data(session):
    fragment = session.remember("green tea", metadata={"a": [1, {"b": None}]}, intents=[{"name": "likes"}])
    assert pickle.loads(pickle.dumps(fragment)) == fragment
    (hit,) = session.recall("tea")
    assert json.loads(json.dumps(hit.to_dict()))["fragment"]["content"] == "green tea"
    with pytest.raises(AttributeError):
        fragment.content = "other"


SECRETS = st.sampled_from(
    [
        "role",
        "type",
        "scope",
        "at",
        "metadata",
        "state",
        "intents",
        "moment",
        "ttl_seconds",
        "speaker",
        "what",
    ]
)
ODD = st.sampled_from(
    [MARK, [MARK], {MARK: MARK}, {"a": {MARK}}, MARK * 100, b"" + MARK.encode(), -1, math.nan]
)


@given(option=SECRETS, value=ODD, content=st.sampled_from([MARK, {"lat": MARK, "lng": 1}, [MARK], MARK * 99]))
@settings(max_examples=100)
def test_no_error_quotes_what_was_to_be_remembered(option, value, content):
    with opened(settings={"max_text_bytes": 600}) as memory:
        session = memory.start_session("u_1")
        for verb in (
            lambda: session.remember(content, **{option: value}),
            lambda: session.remember_many([{"content": content, option: value}]),
            lambda: session.recall(MARK, **{option: value}),
            lambda: memory.search("u_1", MARK, **{option: value}),
            lambda: memory.find("u_1", entities={MARK: value}, intent=content),
            lambda: memory.forget("u_1", query=MARK, **{option: value}),
            lambda: memory.import_json(f'{{"format": "{MARK}", "{MARK}": "{MARK}"'),
        ):
            try:
                verb()
            except PyMemoryError as exc:
                assert MARK not in str(exc)
                assert MARK not in error_json(exc)


def test_a_refused_call_leaves_what_was_there_searchable(memory, session):
    session.remember("green tea")
    refused(memory, lambda: session.remember_many([{"content": "black tea"}, {"content": 5}]))
    assert contents(memory.search("u_1", "tea")) == ["green tea"]
    assert memory.check() == {"ok": True, "problems": []}


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


def test_members_of_an_enumeration_are_what_they_stand_for(memory, session):
    values = {"colour": Colour.RED, "level": Level.HIGH}
    fragment = session.remember(
        "x", metadata=values, state=values, intents=[{"name": Colour.RED, "entities": values}]
    )
    assert fragment.metadata == {"colour": "red", "level": 3}
    assert contents(memory.search("u_1", "x", metadata=values)) == ["x"]
    assert contents(memory.find("u_1", intent="red", entities={"level": 3})) == ["x"]
    assert contents(memory.find("u_1", intent=Colour.RED, entities=values)) == ["x"]
