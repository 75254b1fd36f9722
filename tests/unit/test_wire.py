# ruff: noqa: E501, PT017 - tables of cases, one case a line
"""The wire: one verb as JSON in and JSON out, bytes beside it, every failure typed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import InvalidArgument, NotFound, PyMemoryError
from py_memory.wire import MEMORY_VERBS, SESSION_VERBS, WRITING_VERBS, Wire, error_json, parsed
from tests.unit.helpers import counts, dump, opened

MARK = "Zx9secretword"
PNG = b"\x89PNG\x00\xff"


@pytest.fixture
def wire(memory):
    found = Wire(memory)
    found.call("start_session", {"user_id": "u_1", "session_id": "s_1", "skill": "booking"}, [])
    return found


def call(wire, method, binary=(), **args):
    text, out = wire.call(method, args, list(binary))
    return json.loads(text), out


def test_a_session_crosses_as_its_id(wire):
    found, _ = call(wire, "start_session", user_id="u_2", session_id="s_2")
    assert found == {"id": "s_2", "user_id": "u_2", "skill": ""}


def test_what_is_remembered_comes_back_as_json(wire, memory):
    found, out = call(
        wire, "session.remember", session_id="s_1", content="我想订机票", intents=[{"name": "book"}]
    )
    assert (found["content"], found["data"], out) == ("我想订机票", None, [])
    assert found["intents"][0]["outcome"] == "created"
    (kept,) = memory.timeline("u_1")
    assert kept.id == found["id"]


def test_bytes_go_beside_the_json_both_ways(wire):
    found, out = call(
        wire, "session.remember", [PNG], session_id="s_1", content={"$binary": 0}, media_type="image/png"
    )
    assert (found["data"], out) == ({"$binary": 0}, [PNG])
    items = [{"content": {"$binary": 1}}, {"content": "text"}, {"content": {"$binary": 0}}]
    many, out = call(wire, "session.remember_many", [b"a", b"b"], session_id="s_1", items=items, moment="m")
    assert [one["data"] for one in many] == [{"$binary": 0}, None, {"$binary": 1}]
    assert out == [b"b", b"a"]
    page, out = call(wire, "timeline", user_id="u_1")
    assert sorted(out) == sorted([PNG, b"a", b"b"])
    assert page["cursor"] is None
    hits, out = call(wire, "search", user_id="u_1", query="text", limit=1)
    assert hits[0]["fragment"]["data"] is None
    assert [one["data"] for one in hits[0]["companions"]] == [{"$binary": 0}, {"$binary": 1}]
    assert out == [b"b", b"a"]
    page, out = call(wire, "timeline", user_id="u_1", include_data=False)
    assert out == []


def test_metadata_that_looks_like_bytes_is_only_metadata(wire):
    tricky = {"$binary": 0, "data": {"$binary": 7}, "fragment": {"data": 1}, "companions": [1]}
    found, out = call(
        wire, "session.remember", session_id="s_1", content="x", metadata=tricky, state=tricky,
        intents=[{"name": "n", "entities": {"deep": tricky}}],
    )  # fmt: skip
    assert (found["metadata"], out) == (tricky, [])
    (again,), _ = call(wire, "search", user_id="u_1", query="x")
    assert again["fragment"]["metadata"] == tricky
    assert again["fragment"]["intents"][0]["entities"] == {"deep": tricky}


def test_lists_that_page_carry_their_cursor(wire):
    for n in range(3):
        call(wire, "session.remember", session_id="s_1", content=f"turn {n}", intents=[{"name": "n"}])
    for method in ("timeline", "find"):
        page, _ = call(wire, method, user_id="u_1", limit=2)
        assert len(page["items"]) == 2
        rest, _ = call(wire, method, user_id="u_1", limit=2, cursor=page["cursor"])
        assert (len(rest["items"]), rest["cursor"]) == (1, None)


def test_a_hit_crosses_with_its_why(wire, memory):
    call(wire, "session.remember", session_id="s_1", content="green tea")
    (there,), _ = call(wire, "session.recall", session_id="s_1", query="tea", touch=False)
    (here,) = memory.session("s_1").recall("tea", touch=False)
    assert there == json.loads(json.dumps(here.to_dict()))


def test_files_cross(wire, memory):
    call(wire, "session.remember", [PNG], session_id="s_1", content={"$binary": 0})
    text, _ = call(wire, "export_json", user_id="u_1")
    assert json.loads(text)["users"][0]["id"] == "u_1"
    report, _ = call(wire, "import_json", text=text, dry_run=True)
    assert report["fragments"]["kept"] == 1
    reference, (image,) = call(wire, "export_image")
    assert reference == {"$binary": 0}
    assert image[:6] == b"SQLite"
    report, _ = call(wire, "import_image", [image], image={"$binary": 0})
    assert report["fragments"] == counts(memory)["fragments"] == 1


def test_every_verb_can_be_called(wire):
    call(wire, "session.remember", session_id="s_1", content="green tea")
    for method in sorted(MEMORY_VERBS - {"import_json", "import_image", "export_image"}):
        args = {"user_id": "u_1"} if method not in ("check", "reindex") else {}
        args |= {"forget": {"all": True}, "restore": {"all": True}, "search": {"query": "tea"}}.get(
            method, {}
        )
        call(wire, method, **args)
    call(wire, "session.end", session_id="s_1")
    assert {f"session.{name}" for name in SESSION_VERBS} | MEMORY_VERBS | {"start_session"} >= WRITING_VERBS


WRONG = [
    ("no_such_verb", {}), ("", {}), ("close", {}), ("__init__", {}), ("session.close", {}), ("session.", {}),
    ("session._remember", {}), ("database", {}), ("engine", {}), ("open", {}), ("session.__class__", {}),
    ("search", {"user_id": "u_1", MARK: 1}), ("search", {"self": 1, "user_id": "u_1"}), ("check", {"user_id": "u_1"}),
    ("export_image", {MARK: 1}), ("import_json", {}), ("import_image", {"image": {"$binary": 0}}),
    ("import_image", {"image": MARK}), ("session.remember", {"session_id": "s_1"}),
    ("session.remember", {"session_id": "s_1", "content": {"$binary": 0}}),
    ("session.remember", {"session_id": "s_1", "content": {"$binary": -1}}),
    ("session.remember", {"session_id": "s_1", "content": {"$binary": MARK}}),
    ("session.remember", {"session_id": "s_1", "content": {"$binary": True}}),
    ("session.remember", {"session_id": "s_1", "content": {"$binary": 0, "x": 1}}),
    ("session.remember", {"session_id": "s_1", "content": "x", "metadata": {"a": b"x"}}),
    ("session.remember_many", {"session_id": "s_1", "items": MARK}), ("session.remember_many", {"session_id": "s_1"}),
    ("session.remember_many", {"session_id": "s_1", "items": [5]}), ("session.recall", {"query": "x"}),
    ("session.recall", {"session_id": 5}), ("session.end", {"session_id": "s_1", "at": MARK}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "args"), WRONG)
def test_what_cannot_be_called_is_a_typed_error_and_changes_nothing(wire, memory, method, args):
    before = dump(memory)
    with pytest.raises(InvalidArgument) as caught:
        wire.call(method, args, [])
    assert dump(memory) == before
    assert MARK not in error_json(caught.value)


def test_a_session_that_is_not_there_is_not_found(wire):
    with pytest.raises(NotFound):
        wire.call("session.remember", {"session_id": "s_404", "content": "x"}, [])


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", "null", '{"a": NaN}', "[" * 100_000, '{"a":' * 3_000, '{"a": Infinity}']
)
def test_arguments_that_are_no_object_are_refused(text):
    with pytest.raises(InvalidArgument):
        parsed(text)


def test_half_an_emoji_from_javascript_is_repaired_on_its_way(wire):
    args = parsed(
        '{"session_id": "s_1", "content": "half \\ud83d and whole \\ud83d\\ude00", "metadata": {"\\ud800": "\\udc00"}}'
    )
    text, _ = wire.call("session.remember", args, [])
    text.encode()
    assert json.loads(text)["content"] == "half \ufffd and whole \U0001f600"


def test_an_error_crosses_as_code_message_and_details(wire):
    with pytest.raises(PyMemoryError) as caught:
        wire.call("timeline", {"user_id": "u_1", "limit": 0}, [])
    told = json.loads(error_json(caught.value))
    assert told["code"] == "invalid_argument"
    assert told["details"] == {"option": "limit"}
    assert "limit" in told["message"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from([MARK, "u_1", "s_1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "$binary", "name", "$gt", "lat", "lng"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(
    """
    user_id session_id content query limit cursor since until as_of state metadata intents entities items ids
    all preview type types role order text image owner dry_run at moment request_id around tiers time_zone
    """.split()
)


@given(
    method=st.sampled_from(
        [*sorted(MEMORY_VERBS), "start_session", *(f"session.{name}" for name in sorted(SESSION_VERBS))]
    ),
    args=st.dictionaries(NAMES, VALUES, max_size=4),
    known=st.booleans(),
)
@settings(max_examples=250)
def test_no_call_fails_with_anything_but_a_typed_error(method, args, known):
    with opened() as memory:
        wire = Wire(memory)
        wire.call("start_session", {"user_id": "u_1", "session_id": "s_1"}, [])
        wire.call("session.remember", {"session_id": "s_1", "content": "x", "intents": [{"name": "n"}]}, [])
        if known:
            args = args | ({"session_id": "s_1"} if method.startswith("session.") else {"user_id": "u_1"})
        before = dump(memory)
        try:
            text, _ = wire.call(method, args, [b"x"])
            text.encode()
        except PyMemoryError as exc:
            assert exc.code not in ("internal", "corrupt_image") or method == "import_image"
            assert MARK not in error_json(exc)
            assert dump(memory) == before
        assert memory.check()["ok"]
