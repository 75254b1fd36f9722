# ruff: noqa: E501 - tables of cases, one case a line
"""Remembering: content types, options and their defaults, moments, requests answered once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import Closed, InvalidArgument, NotFound, PermissionDenied, PyMemoryError
from py_memory.times import iso
from tests.unit.helpers import START, contents, counts, dump, ids, opened

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_text_has_the_documented_defaults(session, clock):
    fragment = session.remember("我想订机票")
    assert fragment.to_dict() | {"id": "", "context_signature": "", "token_count": 0} == {
        "id": "", "session_id": "s_1", "type": "text", "role": "user", "speaker": None, "content": "我想订机票",
        "media_type": None, "metadata": {}, "moment": None, "context_signature": "", "state_signature": None,
        "memory_type": 81, "scope": "episodic", "base_score": 5.0, "decay_rate": 0.9, "half_life_hours": 720.0,
        "access_count": 0, "last_access_at": None, "expires_at": None, "pinned": False, "sensitive": False,
        "token_count": 0, "summary": None, "source": None, "happened_at": clock.iso, "stored_at": clock.iso,
        "updated_at": clock.iso, "deleted_at": None, "data": None, "intents": [],
    }  # fmt: skip
    assert fragment.token_count > 0


def test_every_option_is_stored_and_comes_back(memory, session):
    fragment = session.remember(
        "green tea", type="event", role="tool", speaker="kettle", at="2020-01-02T03:04:05.006Z",
        state={"step": 1}, metadata={"a": {"b": [1, None, "ü"]}}, media_type="text/plain", memory_type=33,
        scope="semantic", base_score=7.5, half_life_hours=12, decay_rate=0.5, ttl_seconds=60, pinned=True,
        sensitive=True, source="sensor", moment="m_1",
    )  # fmt: skip
    assert (fragment.type, fragment.role, fragment.speaker) == ("event", "tool", "kettle")
    assert fragment.happened_at == "2020-01-02T03:04:05.006Z"
    assert fragment.expires_at == iso(START + 60_000)
    assert (fragment.memory_type, fragment.scope, fragment.base_score) == (33, "semantic", 7.5)
    assert (fragment.half_life_hours, fragment.decay_rate) == (12, 0.5)
    assert (fragment.pinned, fragment.sensitive, fragment.source, fragment.moment) == (
        True,
        True,
        "sensor",
        "m_1",
    )
    assert memory.timeline("u_1") == [fragment]


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_all_roles_can_speak(memory, session, role):
    session.remember("x", role=role)
    assert memory.timeline("u_1", roles=[role])[0].role == role


@pytest.mark.parametrize("kind", ["text", "image", "audio", "location", "event"])
@pytest.mark.parametrize("content", ["words", PNG])
def test_all_types_take_text_and_bytes(memory, session, kind, content):
    session.remember(content, type=kind)
    (kept,) = memory.timeline("u_1", types=[kind])
    assert (kept.data or kept.content) == content


@pytest.mark.parametrize(
    ("content", "options", "kind"),
    [
        ("words", {}, "text"), (PNG, {}, "image"), (PNG, {"media_type": "image/png"}, "image"),
        (PNG, {"media_type": "audio/ogg"}, "audio"), ({"lat": 1, "lng": 2}, {}, "location"),
        (bytearray(PNG), {}, "image"), (memoryview(PNG), {}, "image"), (b"", {}, "image"),
    ],
)  # fmt: skip
def test_the_type_follows_from_the_content(session, content, options, kind):
    assert session.remember(content, **options).type == kind


def test_bytes_come_back_as_they_were(memory, session):
    session.remember(PNG, media_type="image/png", metadata={"width": 1024})
    (kept,) = memory.timeline("u_1")
    assert kept.data == PNG
    assert (kept.content, kept.media_type, kept.metadata) == ("", "image/png", {"width": 1024})
    assert memory.timeline("u_1", include_data=False)[0].data is None


def test_a_place_is_metadata_with_a_readable_content(memory, session):
    fragment = session.remember({"lat": 48.8584, "lng": 2.2945, "accuracy": 5, "label": "Eiffel Tower"})
    assert fragment.metadata == {
        "location": {"lat": 48.8584, "lng": 2.2945, "accuracy": 5, "label": "Eiffel Tower"}
    }
    assert "Eiffel Tower" in fragment.content
    assert "48.8584" in fragment.content
    assert ids(memory.search("u_1", "eiffel")) == [fragment.id]


def test_metadata_given_with_a_place_is_kept_and_not_changed(session):
    given_metadata = {"trip": 7}
    fragment = session.remember({"lat": 1, "lng": 2}, metadata=given_metadata)
    assert fragment.metadata["trip"] == 7
    assert given_metadata == {"trip": 7}


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ({"scope": "working"}, 3600),
        ({"scope": "working", "ttl_seconds": 60}, 60),
        ({"ttl_seconds": 0.5}, 0.5),
    ],
)
def test_what_has_a_time_to_live_is_gone_from_every_verb_after_it(memory, session, clock, options, after):
    fragment = session.remember(
        "green tea", state={"a": 1}, moment="m", intents=[{"name": "likes", "entities": {"a": 1}}], **options
    )
    session.remember("beside", moment="m")

    def seen():
        return {
            "recall": fragment.id in ids(session.recall("tea", state={"a": 1}, touch=False)),
            "search": fragment.id in ids(memory.search("u_1", "tea", touch=False)),
            "timeline": fragment.id in ids(memory.timeline("u_1")),
            "find": fragment.id in ids(memory.find("u_1", entities={"a": 1})),
            "history": fragment.id in ids(memory.find("u_1", history=True)),
            "as_of": fragment.id in ids(memory.timeline("u_1", as_of=START)),
            "export": fragment.id in memory.export_json(),
            "companions": any(
                fragment.id in ids(hit.companions) for hit in memory.search("u_1", "beside", touch=False)
            ),
            "around": any(
                fragment.id in ids(hit.around)
                for hit in memory.search("u_1", "beside", around=3, touch=False)
            ),
        }

    assert set(seen().values()) == {True}
    clock.forward(ms=int(after * 1000) - 1)
    assert set(seen().values()) == {True}
    clock.forward(ms=1)
    assert set(seen().values()) == {False}
    memory.forget("u_1", ids=[fragment.id])
    assert fragment.id not in ids(memory.trash("u_1"))


def test_nothing_expires_unless_asked(session):
    assert session.remember("x").expires_at is None
    assert session.remember("x", scope="working", ttl_seconds=0).expires_at is None


def test_many_are_stored_in_order_and_ids_rise(memory, session):
    many = session.remember_many([{"content": f"turn {n}", "role": "assistant"} for n in range(40)])
    assert contents(many) == [f"turn {n}" for n in range(40)]
    assert ids(many) == sorted(ids(many))
    assert contents(memory.timeline("u_1", order="oldest")) == contents(many)


@given(
    good=st.lists(st.text(max_size=5), max_size=5),
    bad=st.sampled_from([5, None, {"lat": 100, "lng": 0}, object()]),
    place=st.integers(0, 5),
)
@settings(max_examples=30)
def test_many_are_stored_all_or_none(good, bad, place):
    with opened() as memory:
        session = memory.start_session("u_1")
        before = dump(memory)
        items = [{"content": text} for text in good]
        items.insert(min(place, len(items)), {"content": bad})
        with pytest.raises(PyMemoryError):
            session.remember_many(items)
        assert dump(memory) == before


def test_many_are_undone_when_the_database_refuses_the_last(memory, session):
    memory.database.connection.execute(
        "CREATE TRIGGER full BEFORE INSERT ON fragments WHEN new.content = 'last'"
        " BEGIN SELECT raise(ABORT, 'full'); END"
    )
    before = dump(memory)
    item = {"name": "n", "key": "k"}
    with pytest.raises(PyMemoryError):
        session.remember_many([{"content": "first", "intents": [item]}, {"content": "last"}])
    assert dump(memory) == before
    assert memory.search("u_1", "first") == []
    assert memory.check()["ok"]


# Moments

MOMENT = [
    {"content": "a sunset at the beach", "intents": [{"name": "saw", "entities": {"what": "sunset"}}]},
    {"content": PNG, "media_type": "image/png"},
    {"content": {"lat": 36.1, "lng": -5.3, "label": "Beach"}},
    {"content": "photo taken", "type": "event", "role": "system"},
]


def test_text_picture_place_and_event_of_a_moment_come_back_together(memory, session):
    session.remember("something else entirely")
    stored = session.remember_many(MOMENT, moment="m_1")
    assert {fragment.moment for fragment in stored} == {"m_1"}
    for verb in (session.recall, lambda query: memory.search("u_1", query)):
        hit = next(hit for hit in verb("sunset") if hit.fragment.id == stored[0].id)
        assert ids(hit.companions) == ids(stored[1:])
        assert [one.type for one in hit.companions] == ["image", "location", "event"]
        assert hit.companions[0].data == PNG


@pytest.mark.parametrize("broken", range(4))
def test_a_moment_is_stored_together_or_not_at_all(memory, session, broken):
    before = dump(memory)
    items = [dict(item) for item in MOMENT]
    items[broken]["role"] = "robot"
    with pytest.raises(InvalidArgument):
        session.remember_many(items, moment="m_1")
    assert dump(memory) == before


def test_a_moment_is_one_sessions_own(memory, session):
    session.remember("here", moment="m_1")
    memory.start_session("u_1", session_id="s_2").remember("elsewhere", moment="m_1")
    memory.start_session("u_2").remember("a stranger", moment="m_1")
    (hit,) = memory.search("u_1", "here")
    assert hit.companions == ()


def test_what_is_forgotten_or_sensitive_does_not_come_along(memory, session):
    gone = session.remember("green tea", moment="m")
    session.remember("my password", moment="m", sensitive=True)
    session.remember("black coffee", moment="m")
    memory.forget("u_1", ids=[gone.id])
    hit = memory.search("u_1", "coffee", around=5)[0]
    assert contents(hit.companions) == []
    assert contents(hit.around) == []
    hit = memory.search("u_1", "coffee", around=5, include_sensitive=True)[0]
    assert contents(hit.companions) == ["my password"]
    assert contents(hit.around) == ["my password"]


# Requests


def test_a_repeated_request_is_answered_and_not_applied_again(memory, session):
    item = {"name": "likes", "key": "drink", "entities": {"drink": "tea"}}
    first = session.remember("green tea", intents=[item], request_id="r_1")
    rows = counts(memory)
    again = session.remember("green tea", intents=[item], request_id="r_1")
    assert again == first
    assert again.intents[0].outcome == "created"
    assert counts(memory) == rows


def test_a_repeated_request_of_many_gives_the_same_ids(memory, session):
    items = [{"content": "a"}, {"content": b"b"}]
    first = session.remember_many(items, request_id="r_1")
    assert session.remember_many(items, request_id="r_1") == first
    assert counts(memory)["fragments"] == 2


def test_a_request_that_failed_can_be_repeated(memory, session):
    with pytest.raises(InvalidArgument):
        session.remember("x", role="robot", request_id="r_1")
    session.remember("x", request_id="r_1")
    assert counts(memory)["fragments"] == 1


def test_request_ids_are_each_users_own(memory, session):
    session.remember("mine", request_id="r_1")
    other = memory.start_session("u_2").remember("yours", request_id="r_1")
    assert other.content == "yours"


# Sessions


def test_a_session_starts_resumes_and_ends(memory, clock):
    session = memory.start_session("u_1", user_name="Ann", skill="booking", session_id="s_1")
    assert (session.id, session.user_id, session.skill) == ("s_1", "u_1", "booking")
    session.remember("before")
    clock.forward(hours=1)
    session.end()
    session.end()
    with pytest.raises(Closed):
        session.remember("too late")
    assert contents(session.recall("before")) == ["before"]
    resumed = memory.start_session("u_1", session_id="s_1")
    assert resumed.skill == "booking"
    resumed.remember("after")
    assert counts(memory)["sessions"] == 1
    assert counts(memory)["users"] == 1


def test_a_session_gets_an_id_of_its_own(memory):
    one, two = memory.start_session("u_1"), memory.start_session("u_1")
    assert one.id != two.id
    assert memory.session(one.id).user_id == "u_1"


@pytest.mark.usefixtures("session")
def test_a_session_id_of_another_user_is_refused_and_nothing_is_written(memory):
    before = dump(memory)
    with pytest.raises(PermissionDenied):
        memory.start_session("u_2", session_id="s_1", user_name="Eve")
    assert dump(memory) == before


def test_a_session_that_is_not_there_is_not_found(memory):
    with pytest.raises(NotFound):
        memory.session("s_404")


@pytest.mark.usefixtures("session")
def test_a_session_freezes_the_core_and_profile_of_its_start(memory):
    rows = memory.database.rows
    memory.database.connection.execute("UPDATE users SET core = 'core text', profile = 'profile text'")
    memory.start_session("u_1", session_id="s_2")
    memory.database.connection.execute("UPDATE users SET core = 'changed'")
    memory.start_session("u_1", session_id="s_2")
    assert rows("SELECT frozen FROM sessions WHERE id = 's_2'") == [
        ('{"core":"core text","profile":"profile text"}',)
    ]
    memory.session("s_2").end()
    memory.start_session("u_1", session_id="s_2")
    assert rows("SELECT frozen FROM sessions WHERE id = 's_2'") == [
        ('{"core":"changed","profile":"profile text"}',)
    ]


@pytest.mark.usefixtures("session")
def test_a_users_name_is_kept_and_can_be_given_anew(memory):
    memory.start_session("u_1")
    assert memory.database.row("SELECT name FROM users")[0] == "Ann"
    memory.start_session("u_1", user_name="Anna")
    assert memory.database.row("SELECT name FROM users")[0] == "Anna"


# The clock


def test_a_clock_that_goes_back_keeps_ids_rising_and_loses_nothing(memory, session, clock):
    found = [session.remember("green tea one").id]
    clock.forward(hours=-48)
    found.append(session.remember("green tea two").id)
    clock.forward(hours=-48)
    found.append(session.remember("green tea three").id)
    assert found == sorted(found)
    assert sorted(ids(memory.search("u_1", "tea"))) == found
    assert len(session.recall("tea")) == 3
    assert len(memory.timeline("u_1")) == 3


def test_what_is_said_to_happen_in_the_future_is_found_but_is_not_near(memory, session):
    fragment = session.remember("dentist appointment", at=START + 10**10)
    (hit,) = session.recall("dentist")
    assert (hit.fragment.id, hit.tier) == (fragment.id, "L3")
    assert hit.why["memory"]["age_hours"] == 0
    assert ids(memory.timeline("u_1", until=START)) == []


def test_what_expires_does_not_come_back_when_the_clock_is_right_again(memory, session, clock):
    session.remember("green tea", ttl_seconds=60)
    clock.forward(hours=1)
    assert memory.search("u_1", "tea") == []
    session.remember("later")
    assert contents(memory.timeline("u_1")) == ["later"]
