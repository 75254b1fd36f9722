# ruff: noqa: E501 - tables of cases, one case a line
"""Isolation: no verb, reading or writing, import included, reaches another user's rows."""

import json

import pytest

from py_memory.errors import ImportInvalid, InvalidArgument, NotFound, PermissionDenied, PyMemoryError
from py_memory.wire import Wire
from tests.unit.helpers import contents, ids, without_time

SECRET = "the vault code is 4711"
STATE = {"step": "vault"}


@pytest.fixture
def two(memory):
    """Ann and Eve; what Ann has, Eve tries to reach."""
    ann = memory.start_session("ann", session_id="s_ann", skill="bank")
    ann.remember(
        SECRET, state=STATE, moment="m", metadata={"kind": "code"}, speaker="Ann",
        intents=[{"name": "vault", "key": "code", "entities": {"code": {"value": 4711}}, "confidence": 0.5}],
    )  # fmt: skip
    ann.remember(b"\x00vault", moment="m")
    memory.start_session("eve", session_id="s_eve", skill="bank").remember(
        "hello vault", state=STATE, moment="m"
    )
    return memory


@pytest.fixture
def untouched(two):
    """Shows in the end that nothing of Ann's has changed."""
    before = two.export_json("ann", include_sensitive=True)
    yield two
    assert without_time(two.export_json("ann", include_sensitive=True)) == without_time(before)
    assert two.trash("ann") == []


def test_no_reading_verb_gives_another_users_rows(untouched):
    memory = untouched
    eve = memory.session("s_eve")
    secret = ids(memory.timeline("ann"))
    answers = [
        *eve.recall("vault code 4711", state=STATE, around=20, limit=1000, min_score=0, include_sensitive=True),
        *eve.recall("", limit=1000), *memory.search("eve", "vault code 4711", around=20, limit=1000),
        *memory.search("eve", "vault", session_id="s_ann"), *memory.search("eve", "", session_id="s_ann"),
        *memory.search("eve", "", speaker="Ann"), *memory.search("eve", "", metadata={"kind": "code"}),
        *memory.timeline("eve", limit=1000), *memory.timeline("eve", session_id="s_ann"),
        *memory.timeline("eve", skill="bank"), *memory.find("eve"), *memory.find("eve", intent="vault"),
        *memory.find("eve", entities={"code.value": 4711}), *memory.find("eve", key="code", history=True),
        *memory.find("eve", session_id="s_ann"), *memory.find("eve", skill="bank"), *memory.trash("eve"),
    ]  # fmt: skip
    shown = [*contents(answers), *(c for one in answers for c in contents(getattr(one, "companions", ())))]
    shown += [text for one in answers for text in contents(getattr(one, "around", ()))]
    assert set(shown) == {"hello vault"}
    text = memory.export_json("eve")
    assert SECRET not in text
    assert not any(one in text for one in [*secret, "ann", "s_ann"])
    assert memory.metrics("eve")["fragments"] == 1
    assert memory.metrics("eve")["sessions"] == 1


def test_a_cursor_of_another_user_reaches_nothing(untouched):
    for n in range(5):
        untouched.session("s_eve").remember(f"mine {n}", intents=[{"name": "n"}])
    for verb in (untouched.timeline, untouched.find):
        cursor = verb("ann", limit=1, **({"history": True} if verb == untouched.find else {})).cursor or "9"
        if verb == untouched.timeline:
            cursor = verb("ann", limit=1).cursor
        assert SECRET not in contents(verb("eve", cursor=cursor, limit=1000))


def test_no_writing_verb_reaches_another_users_rows(untouched):
    memory = untouched
    secret = ids(memory.timeline("ann"))
    assert memory.forget("eve", ids=secret)["count"] == 0
    assert memory.forget("eve", session_id="s_ann")["count"] == 0
    assert memory.forget("eve", query="vault code", preview=True)["ids"] == []
    assert memory.forget("eve", all=True)["count"] == 1
    assert memory.restore("eve", all=True, ids=secret)["count"] == 0
    with pytest.raises(PermissionDenied):
        memory.start_session("eve", session_id="s_ann")
    memory.session("s_eve").remember(
        "x", intents=[{"name": "vault", "key": "code", "namespace": "bank", "entities": {"code": 1}}]
    )


def test_restoring_reaches_only_ones_own(two):
    two.forget("ann", all=True)
    gone = ids(two.trash("ann"))
    assert two.restore("eve", ids=gone)["count"] == 0
    assert two.restore("eve", all=True)["count"] == 0
    assert two.trash("eve") == []
    assert len(two.trash("ann")) == 2


@pytest.mark.parametrize(
    "metadata",
    [
        {"user_id": "ann"}, {"session_id": "s_ann"}, {"id": "mf_1"}, {"owner": "ann"}, {"stored_at": 0},
        {"deleted_at": 1}, {"pinned": True}, {"user": "ann", "scope": "semantic"},
    ],
)  # fmt: skip
def test_metadata_sets_nothing_but_metadata(untouched, metadata):
    memory = untouched
    plain = memory.session("s_eve").remember("hello")
    fragment = memory.session("s_eve").remember("hello", metadata=metadata, state=metadata)
    assert fragment.metadata == metadata
    assert fragment.session_id == "s_eve"
    assert fragment.id != "mf_1"
    assert (fragment.stored_at, fragment.deleted_at) == (plain.stored_at, None)
    assert (fragment.pinned, fragment.scope) == (False, "episodic")
    assert fragment.id in ids(memory.timeline("eve"))
    assert fragment.id not in ids(memory.timeline("ann"))
    intent = {"name": "n", "entities": {**metadata, "fragment_id": "mf_1"}}
    memory.session("s_eve").remember("x", intents=[intent])
    assert contents(memory.find("eve", intent="n")) == ["x"]


@pytest.mark.parametrize("name", ["user_id", "session_id", "id", "owner", "stored_at", "deleted_at", "skill"])
def test_an_option_cannot_set_ids_owners_or_times_of_storing(untouched, name):
    with pytest.raises(InvalidArgument):
        untouched.session("s_eve").remember("x", **{name: "ann"})
    with pytest.raises(InvalidArgument):
        untouched.session("s_eve").remember_many([{"content": "x", name: "ann"}])
    with pytest.raises(InvalidArgument):
        untouched.session("s_eve").remember("x", intents=[{"name": "n", name: "ann"}])


@pytest.mark.parametrize(
    "user", ["an", "ann ", "ANN", "ann%", "a_n", "*", "' OR 1=1 --", "ann\u200b", "ａｎｎ"]
)
def test_ids_are_compared_as_they_are(two, user):
    assert two.timeline(user) == []
    assert two.search(user, "vault") == []
    assert two.find(user) == []
    assert two.forget(user, all=True)["count"] == 0
    assert '"fragments":[]' in two.export_json(user)


def changed(memory, user, change):
    """Return a user's export with something in it changed."""
    file = json.loads(memory.export_json(user, include_sensitive=True))
    change(file)
    return json.dumps(file)


def into_anns_session(file):
    file["fragments"][0]["session_id"] = "s_ann"
    file["fragments"][0]["id"] = "mf_new"


def into_anns_session_without_it(file):
    into_anns_session(file)
    file["sessions"] = []


def session_of_ann(file):
    file["sessions"][0]["user_id"] = "ann"


def takes_anns_session_id(file):
    file["sessions"][0]["id"] = "s_ann"
    file["fragments"] = []


def session_to_ann_under_a_new_id(file):
    file["sessions"].append(file["sessions"][0] | {"id": "s_new", "user_id": "ann"})


@pytest.mark.parametrize(
    "change",
    [
        into_anns_session,
        into_anns_session_without_it,
        session_of_ann,
        takes_anns_session_id,
        session_to_ann_under_a_new_id,
    ],
)
def test_a_file_of_one_user_cannot_reach_another(untouched, change):
    with pytest.raises(ImportInvalid) as caught:
        untouched.import_json(changed(untouched, "eve", change))
    assert SECRET not in str(caught.value)


def test_a_file_cannot_take_the_id_of_another_users_fragment(untouched):
    stolen = ids(untouched.timeline("ann"))[0]
    with pytest.raises(ImportInvalid):
        untouched.import_json(changed(untouched, "eve", lambda file: file["fragments"][0].update(id=stolen)))


def test_a_file_cannot_attach_an_intent_to_another_users_fragment(untouched):
    memory = untouched
    memory.session("s_eve").remember("x", intents=[{"name": "n"}])
    stolen = ids(memory.timeline("ann"))[0]

    def attach(file):
        file["intents"][0].update(fragment_id=stolen, id="in_new")

    with pytest.raises(ImportInvalid):
        memory.import_json(changed(memory, "eve", attach))
    with pytest.raises(ImportInvalid):
        memory.import_json(changed(memory, "eve", attach), owner="eve")


def test_a_file_given_to_an_owner_reaches_only_that_owner(memories, untouched):
    other = memories()
    other.start_session("someone", session_id="s_new").remember("from elsewhere", intents=[{"name": "n"}])
    text = other.export_json("someone")
    untouched.import_json(text, owner="eve")
    assert "from elsewhere" in contents(untouched.timeline("eve"))
    assert untouched.timeline("someone") == []
    with pytest.raises(ImportInvalid):
        untouched.import_json(text, owner="bob")  # its ids are Eve's now
    with pytest.raises(ImportInvalid):
        untouched.import_json(untouched.export_json(), owner="eve")  # a file of several users


def test_a_file_given_to_an_owner_cannot_take_the_users_own_place(untouched):
    text = untouched.export_json("ann")
    with pytest.raises(ImportInvalid):
        untouched.import_json(text, owner="eve")
    assert contents(untouched.timeline("eve")) == ["hello vault"]


def test_a_request_id_never_answers_with_another_users_rows(untouched):
    first = untouched.session("s_eve").remember("mine", request_id="r_1")
    other = untouched.start_session("bob", session_id="s_bob").remember("yours", request_id="r_1")
    assert other.id != first.id
    assert other.content == "yours"


def test_the_wire_is_bound_to_users_the_same_way(untouched):
    wire = Wire(untouched)
    for method, args in (
        ("search", {"query": "vault"}), ("timeline", {}), ("find", {"intent": "vault"}),
        ("forget", {"all": True}), ("start_session", {"session_id": "s_ann"}),
    ):  # fmt: skip
        with pytest.raises(PyMemoryError):
            wire.call(method, args, [])
    text, _ = wire.call("search", {"user_id": "eve", "query": "vault"}, [])
    assert SECRET not in text
    with pytest.raises(NotFound):
        wire.call("session.recall", {"session_id": "s_404", "query": "vault"}, [])
    with pytest.raises(InvalidArgument):
        wire.call("session.recall", {"session_id": "s_eve", "query": "vault", "user_id": "ann"}, [])
