"""Calls that are made again because their answer was lost: applied once, answered alike."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory import Memory, PyMemoryError
from py_memory.ledger import KEPT_MS, REQUESTS_KEPT_MS, Call
from py_memory.wire import WRITING_VERBS, Wire
from tests.unit.helpers import dump, opened

SECRET = "Zx9secretword"


@pytest.fixture
def wire(memory):
    found = Wire(memory)
    found.call("start_session", {"user_id": "u_1", "session_id": "s_1", "skill": "booking"}, [])
    found.call("session.remember", {"session_id": "s_1", "content": f"older {SECRET}"}, [])
    return found


def noted(memory):
    return memory.database.rows("SELECT client, number FROM calls ORDER BY client, number")


def portable():
    with opened() as other:
        other.start_session("u_9").remember("from elsewhere")
        return other.export_json()


CASES = {
    "start_session": {"user_id": "u_2", "skill": "x"},
    "forget": {"user_id": "u_1", "query": "older"},
    "restore": {"user_id": "u_1", "query": "older"},
    "reindex": {},
    "session.remember": {
        "session_id": "s_1",
        "content": f"new {SECRET}",
        "intents": [{"name": "n", "key": "k", "entities": {"v": 1}}],
    },
    "session.remember_many": {"session_id": "s_1", "items": [{"content": SECRET}, {"content": "b"}]},
    "session.end": {"session_id": "s_1"},
    "import_json": {},
    "import_image": {"image": {"$binary": 0}},
}


def test_there_is_a_case_for_every_verb_that_writes():
    assert set(CASES) == WRITING_VERBS


@pytest.mark.parametrize("method", sorted(CASES))
def test_a_write_that_is_called_again_is_answered_and_not_applied_again(wire, memory, method):
    args = dict(CASES[method])
    if method == "import_json":
        args["text"] = portable()
    if method == "restore":
        wire.call("forget", {"user_id": "u_1", "query": "older"}, [])
    binary = []
    if method == "import_image":
        with opened() as other:
            other.start_session("u_7").remember("from elsewhere")
            binary = [other.export_image()]
    call = Call("tab", 1, 0)
    first = wire.answer(method, args, binary, call)
    before = dump(memory)
    again = wire.answer(method, args, binary, call)
    assert dump(memory) == before
    assert (again.text, again.parts, again.change) == (first.text, first.parts, first.change)
    assert noted(memory) == [("tab", 1)]
    assert SECRET not in json.dumps(memory.database.rows("SELECT * FROM calls")), "content in the ledger"
    # Another call is another write.
    assert wire.answer(method, args, binary, Call("tab", 2, 0)).text is not None


def test_bytes_come_back_again(wire):
    args = {"session_id": "s_1", "content": {"$binary": 0}, "media_type": "image/png"}
    first = wire.answer("session.remember", args, [b"\x89PNG"], Call("tab", 1, 0))
    again = wire.answer("session.remember", args, [b"\x89PNG"], Call("tab", 1, 0))
    assert (again.text, again.parts) == (first.text, first.parts) == (first.text, [b"\x89PNG"])


def test_a_call_that_failed_leaves_nothing_and_can_be_made_again(wire, memory):
    before = dump(memory)
    for _ in range(2):
        with pytest.raises(PyMemoryError):
            wire.answer("session.remember", {"session_id": "s_1", "content": 5}, [], Call("tab", 1, 0))
    assert dump(memory) == before
    good = {"session_id": "s_1", "content": "good"}
    assert "good" in wire.answer("session.remember", good, [], Call("tab", 1, 0)).text


def test_what_a_page_has_answers_to_is_let_go_of_and_only_that(wire, memory):
    for client, number, answered in (("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("a", 5, 1), ("b", 2, 1)):
        wire.answer(
            "session.remember",
            {"session_id": "s_1", "content": f"{client}{number}"},
            [],
            Call(client, number, answered),
        )
    assert noted(memory) == [("a", 2), ("a", 5), ("b", 2)]


def test_readings_and_previews_are_not_noted(wire, memory):
    for method, args in (
        ("search", {"user_id": "u_1", "query": "older"}),
        ("forget", {"user_id": "u_1", "query": "older", "preview": True}),
        ("import_json", {"text": portable(), "dry_run": True}),
        ("metrics", {}),
    ):
        assert wire.answer(method, args, [], Call("tab", 1, 0)).change is None
    assert noted(memory) == []


def test_changes_name_ids_and_never_content(wire):
    found = {
        method: wire.answer(method, {**CASES[method]}, []).change
        for method in ("session.remember", "session.remember_many", "forget", "start_session", "session.end")
    }
    assert SECRET not in json.dumps(found)
    assert found["session.remember"]["verb"] == "remember"
    assert found["session.remember"]["user_id"] == "u_1"
    assert found["session.remember"]["session_id"] == "s_1"
    assert [len(change.get("ids", ())) for change in found.values()] == [1, 2, 1, 0, 0]
    assert found["start_session"]["session_id"].startswith("s")
    assert found["session.end"] == {"verb": "end", "user_id": "u_1", "session_id": "s_1"}


def test_old_notes_go_with_the_first_write(tmp_path):
    path = str(tmp_path / "m.db")
    now = [1_000_000_000_000]
    session = {"session_id": "s_1"}
    with Memory.open(path, clock=lambda: now[0]) as memory:
        wire = Wire(memory)
        wire.call("start_session", {"user_id": "u_1", **session}, [])
        wire.answer("session.remember", {**session, "content": "x"}, [], Call("tab", 1, 0))
        wire.call("session.remember", {**session, "content": "y", "request_id": "r"}, [])
    for passed, calls, requests in ((KEPT_MS, 1, 1), (KEPT_MS + 1, 0, 1), (REQUESTS_KEPT_MS + 1, 0, 0)):
        now[0] = 1_000_000_000_000 + passed
        with Memory.open(path, clock=lambda: now[0]) as memory:
            Wire(memory).call("session.end", {**session}, [])
            count = memory.database.row(
                "SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM requests)"
            )
            assert tuple(count) == (calls, requests)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 6)), max_size=25))
def test_however_often_calls_are_made_each_is_applied_once(made):
    with opened() as memory:
        wire = Wire(memory)
        wire.call("start_session", {"user_id": "u", "session_id": "s"}, [])
        for client, number in made:
            wire.answer(
                "session.remember",
                {"session_id": "s", "content": f"{client}{number}"},
                [],
                Call(client, number, 0),
            )
        kept = sorted(one.content for one in memory.timeline("u", limit=100))
        assert kept == sorted({f"{client}{number}" for client, number in made})
