# ruff: noqa: E501 - tables of cases, one case a line
"""The JSON file: out in stable order and in again, byte for byte, merged, or refused whole."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import ImportInvalid, InvalidArgument, PyMemoryError, UnsupportedFormat, UserRequired
from tests.unit.helpers import START, Clock, contents, counts, dump, ids, opened, without_time

MARK = "Zx9secretword"


def live(memory):
    session = memory.start_session("u_1", user_name="Ann", skill="booking", session_id="s_1")
    session.remember(
        f"我想订机票 {MARK}", speaker="Ann", at=START - 5000, state={"step": 1}, metadata={"b": 1, "a": [None, 1.5]},
        intents=[
            {"name": "book", "entities": {"to": {"city": "SHA"}}, "confidence": 0.6, "key": "seat"},
            {"name": "book", "entities": {"to": {"city": "PEK"}}, "confidence": 0.9, "key": "seat"},
            {"name": "note", "subject": "brother", "source": "api"},
        ],
        source="chat", moment="m_1", update_reason="inference",
    )  # fmt: skip
    session.remember(b"\x89PNG\x00\xff", media_type="image/png", moment="m_1", pinned=True)
    session.remember({"lat": 1.5, "lng": -2.25, "label": "Café"}, scope="semantic", memory_type=30)
    session.remember("soon gone", ttl_seconds=3600)
    session.remember("my password", sensitive=True, intents=[{"name": "secret"}])
    session.end()
    memory.start_session("u_2", session_id="s_2").remember("another user")
    memory.start_session("u_3", user_name="no sessions")
    return memory


@pytest.fixture
def lived(memory):
    return live(memory)


def test_the_file_says_what_it_is_and_has_the_documented_fields(lived, clock):
    text = lived.export_json()
    file = json.loads(text)
    assert list(file) == [
        "format",
        "version",
        "exported_at",
        "includes_sensitive",
        "users",
        "sessions",
        "fragments",
        "intents",
    ]
    assert (file["format"], file["version"], file["exported_at"]) == ("py-memory", 1, clock.iso)
    assert set(file["users"][0]) == set("id name core profile created_at updated_at".split())
    assert set(file["sessions"][0]) == set(
        "id user_id skill started_at last_active_at ended_at summary frozen".split()
    )
    assert set(file["fragments"][0]) == set(
        """
        id session_id type role speaker content data media_type metadata moment context_signature
        state_signature memory_type scope base_score decay_rate half_life_hours access_count
        last_access_at expires_at pinned sensitive token_count summary source happened_at stored_at
        updated_at deleted_at
        """.split()
    )
    assert set(file["intents"][0]) == set(
        """
        id fragment_id name namespace subject key entities confidence evidence valid_from valid_to
        replaced_by update_reason source created_at updated_at
        """.split()
    )
    picture = next(row for row in file["fragments"] if row["type"] == "image")
    assert picture["data"] == "iVBORwD/"
    assert picture["stored_at"].endswith("Z")


def test_sensitive_rows_are_in_the_file_only_when_asked_for_and_the_file_says_so(lived):
    plain, full = json.loads(lived.export_json()), json.loads(lived.export_json(include_sensitive=True))
    assert (plain["includes_sensitive"], full["includes_sensitive"]) == (False, True)
    assert "my password" not in lived.export_json()
    assert "secret" not in [row["name"] for row in plain["intents"]]
    assert {row["content"] for row in full["fragments"]} - {row["content"] for row in plain["fragments"]} == {
        "my password"
    }


def test_forgotten_and_expired_rows_are_not_in_the_file(lived, clock):
    lived.forget("u_1", type="image")
    clock.forward(hours=2)
    rows = [row["content"] for row in json.loads(lived.export_json("u_1"))["fragments"]]
    assert len(rows) == 2


def test_one_users_file_has_nothing_of_another(lived):
    file = json.loads(lived.export_json("u_2"))
    assert [row["id"] for row in file["users"]] == ["u_2"]
    assert [row["content"] for row in file["fragments"]] == ["another user"]
    assert json.loads(lived.export_json("u_404"))["users"] == []


@pytest.mark.parametrize("user", [None, "u_1", "u_2", "u_3"])
def test_export_import_export_is_the_same_to_the_byte(memories, lived, user):
    text = lived.export_json(user, include_sensitive=True)
    other = memories()
    other.import_json(text)
    assert without_time(other.export_json(user, include_sensitive=True)) == without_time(text)
    assert other.check()["ok"]
    for one in [user] if user else ["u_1", "u_2"]:
        assert other.timeline(one) == lived.timeline(one)
        assert [hit.score for hit in other.search(one, "机票 user", touch=False)] == [
            hit.score for hit in lived.search(one, "机票 user", touch=False)
        ]
        assert [(found.intent, found.fragment) for found in other.find(one, history=True)] == [
            (found.intent, found.fragment) for found in lived.find(one, history=True)
        ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=3)
INTENTS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"])},
    optional={
        "entities": OBJECTS,
        "key": st.sampled_from(["k", "l"]),
        "confidence": st.floats(0, 1),
        "subject": st.sampled_from(["s"]),
        "namespace": st.sampled_from(["", "n"]),
    },
)
ITEMS = st.fixed_dictionaries(
    {"content": st.text(max_size=20) | st.binary(max_size=20)},
    optional={
        "metadata": OBJECTS, "state": OBJECTS, "intents": st.lists(INTENTS, max_size=3),
        "at": st.integers(-(10**12), 4 * 10**12), "speaker": st.text(max_size=4), "base_score": st.floats(1, 10),
        "scope": st.sampled_from(["working", "semantic", "episodic"]), "half_life_hours": st.floats(0.01, 10**5),
        "ttl_seconds": st.sampled_from([0, 10, 1000]), "sensitive": st.booleans(), "moment": st.sampled_from(["m"]),
    },
)  # fmt: skip


@given(
    turns=st.lists(st.tuples(st.sampled_from("ab"), ITEMS, st.integers(-50, 5000)), max_size=6),
    forgotten=st.sampled_from([None, {"type": "image"}, {"all": True}]),
)
@settings(max_examples=60)
def test_any_memory_survives_export_and_import(turns, forgotten):
    clock = Clock()
    with opened(clock=clock) as one, opened(clock=clock) as two:
        for user, item, later in turns:
            clock.forward(ms=later)
            one.start_session(user, session_id=f"s_{user}").remember(**item)
        if forgotten:
            one.forget("a", **forgotten)
        one.search("a", "x")
        text = one.export_json(include_sensitive=True)
        report = two.import_json(text)
        assert without_time(two.export_json(include_sensitive=True)) == without_time(text)
        rows = counts(two)
        assert {table: report[table]["added"] for table in ("users", "sessions", "fragments", "intents")} == {
            table: rows[table] for table in ("users", "sessions", "fragments", "intents")
        }
        before = dump(two)
        again = two.import_json(text)
        assert dump(two) == before
        assert sum(again[table]["added"] for table in ("users", "sessions", "fragments", "intents")) == 0
        assert two.check()["ok"]


def test_importing_ones_own_export_changes_nothing(lived):
    text = lived.export_json(include_sensitive=True)
    before = dump(lived)
    report = lived.import_json(text)
    assert dump(lived) == before
    assert report["fragments"] == {"added": 0, "kept": 6, "updated": 0}


def test_a_dry_run_counts_what_an_import_does_and_changes_nothing(memories, lived):
    text = lived.export_json()
    other = memories()
    other.start_session("u_1", session_id="s_1")
    before = dump(other)
    dry = other.import_json(text, dry_run=True)
    assert dump(other) == before
    assert other.search("u_1", "机票") == []
    real = other.import_json(text)
    assert (dry.pop("dry_run"), real.pop("dry_run")) == (True, False)
    assert dry == real
    assert dry["users"] == {"added": 2, "kept": 1, "updated": 0}
    assert dry["sessions"] == {"added": 2, "kept": 1, "updated": 0}
    assert dry["fragments"] == {"added": 5, "kept": 0, "updated": 0}


def test_an_import_merges_into_a_store_that_holds_part_of_it(memories, lived):
    part = lived.export_json("u_1")
    lived.start_session("u_1", session_id="s_1").remember("said later")
    whole = lived.export_json()
    other = memories()
    other.import_json(part)
    other.start_session("u_1", session_id="s_own").remember("only here")
    report = other.import_json(whole)
    assert report["fragments"] == {"added": 2, "kept": 4, "updated": 0}
    assert {"said later", "only here", "soon gone"} <= set(contents(other.timeline("u_1")))
    assert contents(other.timeline("u_2")) == ["another user"]
    assert contents(other.search("u_1", "later"))[0] == "said later"


def test_what_was_forgotten_here_stays_forgotten(lived):
    text = lived.export_json("u_1")
    gone = lived.forget("u_1", query="机票")["ids"]
    lived.import_json(text)
    assert ids(lived.trash("u_1")) == gone
    assert lived.search("u_1", "机票") == []


def say(memory, value, confidence, at, **options):
    intent = {"name": "prefers", "key": "seat", "entities": {"value": value}, "confidence": confidence}
    return (
        memory.start_session("u_1", session_id="s_1")
        .remember(value, intents=[intent], at=at, **options)
        .intents[0]
    )


def current(memory):
    return [found.intent.entities["value"] for found in memory.find("u_1", key="seat")]


def test_of_two_current_values_in_one_slot_the_later_stated_stays(memories):
    one, two = memories(), memories()
    say(one, "aisle", 0.9, START)
    say(two, "window", 0.9, START + 1000)
    newer, older = two.export_json(), one.export_json()
    one.import_json(newer)
    two.import_json(older)
    assert current(one) == current(two) == ["window"]
    assert len(one.find("u_1", key="seat", history=True)) == 2
    before = dump(one)
    one.import_json(newer)
    assert dump(one) == before


def test_a_value_changed_elsewhere_reaches_a_store_that_holds_the_old_one(memories, clock):
    one, two = memories(), memories()
    say(one, "aisle", 0.6, START)
    two.import_json(one.export_json())
    clock.forward(hours=1)
    assert say(one, "window", 0.9, START + 1000).outcome == "updated"
    assert current(two) == ["aisle"]
    assert two.import_json(one.export_json())["intents"] == {"added": 1, "kept": 0, "updated": 1}
    assert current(two) == current(one) == ["window"]
    assert json.loads(two.export_json())["intents"] == json.loads(one.export_json())["intents"]
    before = dump(two)
    two.import_json(one.export_json())
    assert dump(two) == before
    assert two.check()["ok"]


def test_an_older_file_never_undoes_what_was_said_since(memories, clock):
    memory = memories()
    say(memory, "aisle", 0.6, START)
    old = memory.export_json()
    clock.forward(hours=1)
    say(memory, "window", 0.9, START + 1000)
    clock.forward(hours=1)
    say(memory, "middle", 0.97, START + 2000)
    before = dump(memory)
    memory.import_json(old)
    assert current(memory) == ["middle"]
    assert dump(memory) == before


# Refusals


def refused(memory, text, kind=ImportInvalid):
    before = dump(memory)
    for options in ({}, {"dry_run": True}):
        with pytest.raises(kind) as caught:
            memory.import_json(text, **options)
    assert dump(memory) == before
    assert MARK not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("version", [0, 2, "1", 1.5, None, True, [1], 10**30])
def test_an_unknown_version_is_refused_with_the_reason(lived, version):
    file = json.loads(lived.export_json()) | {"version": version}
    error = refused(lived, json.dumps(file), UnsupportedFormat)
    assert error.details["known"] == 1
    assert "Update py-memory" in str(error)


@pytest.mark.parametrize(
    "text",
    ['{"version": 1}', "[]", "1", "null", '"x"', '{"format": "other", "version": 1}', '{"format": null}'],
)
def test_another_format_is_refused(lived, text):
    refused(lived, text, UnsupportedFormat)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "not json",
        "[" * 100_000,
        '{"a":' * 5_000,
        "NaN",
        '{"format": NaN}',
        "\x00",
        "{}{}",
        "\ud800",
    ],
)
def test_what_is_no_json_is_refused(lived, text):
    refused(lived, text)


@pytest.mark.parametrize("text", [None, 5, b"{}", ["{}"], {"format": "py-memory"}])
def test_what_is_no_text_is_refused(lived, text):
    refused(lived, text)


def test_a_file_that_was_cut_short_is_refused_wherever_it_was_cut(memories, lived):
    text = lived.export_json()
    memory = memories()
    empty = dump(memory)
    for end in range(0, len(text) - 2, max(1, len(text) // 200)):
        with pytest.raises(PyMemoryError) as caught:
            memory.import_json(text[:end])
        assert MARK not in str(caught.value)
    assert dump(memory) == empty


BROKEN = {
    "users": [("id", [5, None, "", "a\x00"]), ("created_at", [None, MARK, 10**20]), ("name", [5, [1]]), ("core", [None, 5])],
    "sessions": [("id", [None, 5]), ("user_id", ["nobody", None, 5]), ("started_at", [MARK, None]), ("ended_at", [MARK, []]),
                 ("skill", [None, 5]), ("frozen", ["{}", 5, [1]])],
    "fragments": [
        ("id", [None, 5, ""]), ("session_id", ["s_404", None]), ("type", ["video", None, 5]), ("role", ["robot", []]),
        ("content", [None, 5, [MARK]]), ("metadata", [None, "{}", [1], {"a": 2**60}]), ("context_signature", [None, "00", "zz" * 32, 5, "é"]),
        ("state_signature", ["00", 5]), ("memory_type", [0, 101, "5", 1.5, None, True]), ("scope", ["x", None]),
        ("base_score", [0, 11, "5", None, True, 1e400]), ("decay_rate", [0, 2, None]), ("half_life_hours", [0, -1, None]),
        ("access_count", [-1, 1.5, None, 2**60]), ("pinned", [1, 0, None, "true"]), ("sensitive", [1, None]),
        ("data", [5, "?", "iVBOR", [1], "é"]), ("happened_at", [None, MARK, True]), ("stored_at", [None]), ("updated_at", [None]),
        ("expires_at", [MARK]), ("token_count", [-1, None]), ("moment", [5]), ("speaker", [5]), ("media_type", [5]),
        ("deleted_at", [MARK]),
    ],
    "intents": [("id", [None, 5]), ("fragment_id", ["mf_404", None]), ("name", [None, 5]), ("namespace", [None, 5]),
                ("entities", [None, [], "{}"]), ("confidence", [2, -1, "1", None]), ("evidence", [-1, 1.5, None]),
                ("valid_from", [None, MARK]), ("valid_to", [MARK]), ("key", [5]), ("subject", [5]), ("created_at", [None])],
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        (table, field, value)
        for table, fields in BROKEN.items()
        for field, values in fields
        for value in values
    ],
)
def test_a_field_that_is_not_as_it_must_be_refuses_the_whole_file(memories, lived, table, field, value):
    file = json.loads(lived.export_json())
    file[table][-1][field] = value
    memory = memories()
    error = refused(memory, json.dumps(file))
    if "row" in error.details:
        assert error.details["table"] == table


@pytest.mark.parametrize("table", ["users", "sessions", "fragments", "intents"])
def test_a_table_or_field_too_many_or_too_few_refuses_the_whole_file(memories, lived, table):
    memory = memories()

    def broken(change):
        file = json.loads(lived.export_json())
        change(file)
        refused(memory, json.dumps(file))

    broken(lambda file: file.pop(table))
    broken(lambda file: file.update({table: {}}))
    broken(lambda file: file.update({table: None}))
    broken(lambda file: file[table].append(None))
    broken(lambda file: file[table].append([MARK]))
    broken(lambda file: file[table][0].pop("id"))
    broken(lambda file: file[table][0].update({MARK: 1}))
    broken(lambda file: file[table].append(file[table][0]))
    broken(lambda file: file.update({MARK: []}))


def test_missing_rows_that_others_belong_to_refuse_the_whole_file(memories, lived):
    memory = memories()
    for table, gone in (
        ("users", "u_2"),
        ("sessions", "s_2"),
        ("fragments", ids(lived.find("u_1", intent="note"))[0]),
    ):
        file = json.loads(lived.export_json())
        file[table] = [row for row in file[table] if row["id"] != gone]
        refused(memory, json.dumps(file))


def test_a_deep_or_large_file_is_refused_or_read_and_never_breaks(memories, lived):
    memory = memories(settings={"max_text_bytes": 1000, "max_blob_bytes": 100})
    file = json.loads(lived.export_json())
    file["fragments"][0]["content"] = MARK * 200
    refused(memory, json.dumps(file))
    file = json.loads(lived.export_json())
    file["fragments"][0]["data"] = "A" * 400
    refused(memory, json.dumps(file))
    deep = 1
    for _ in range(150):
        deep = [deep]
    file = json.loads(lived.export_json())
    file["fragments"][0]["metadata"] = {"a": deep}
    refused(memory, json.dumps(file))


def test_a_mark_at_the_start_line_ends_and_the_order_of_keys_do_not_matter(memories, lived):
    text = lived.export_json()
    turned = json.dumps(dict(reversed(json.loads(text).items())), indent=2)
    memory = memories()
    memory.import_json("\ufeff" + turned.replace("\n", "\r\n"))
    assert without_time(memory.export_json()) == without_time(text)


def test_the_options_are_checked(lived):
    text = lived.export_json("u_2")
    with pytest.raises(InvalidArgument):
        lived.import_json(text, dry_run="yes")
    with pytest.raises(UserRequired):
        lived.import_json(text, owner="")
    with pytest.raises(InvalidArgument):
        lived.import_json(text, owner=5)
    with pytest.raises(InvalidArgument):
        lived.export_json(include_sensitive="yes")


FLIPS = st.tuples(
    st.integers(0, 10**6),
    st.sampled_from(['"', "{", "]", ",", "0", "\\", "x", "\x00", "\ud800", "null", "-"]),
)


@given(st.lists(FLIPS, min_size=1, max_size=3))
@settings(max_examples=60)
def test_a_damaged_file_is_refused_whole_or_is_still_a_whole_file(flips):
    with opened() as one, opened() as two:
        text = live(one).export_json()
        for number, change in flips:
            place = number % len(text)
            text = text[:place] + change + text[place + 1 :]
        empty = dump(two)
        try:
            two.import_json(text)
        except PyMemoryError:
            assert dump(two) == empty
        else:
            assert two.check()["ok"]
            again = two.export_json()
            two.import_json(again)
            assert without_time(two.export_json()) == without_time(again)
