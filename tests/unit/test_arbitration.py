# ruff: noqa: E501 - tables of cases, one case a line
"""Changing its mind: what becomes of a keyed statement, and what stays on the timeline."""

import pytest

from tests.unit.helpers import START, contents, counts, shared_cases

HOUR = 3_600_000

OWN = [
    {"slot": "seat", "steps": [["aisle", 0.6, "created"], ["window", 0.9, "updated"], ["aisle", 0.96, "replaced"]]},
    {"slot": "seat", "steps": [["aisle", 0.69, "created"], ["window", 0.851, "updated"]]},
    {"slot": "seat", "steps": [["aisle", 0.7, "created"], ["window", 0.9, "replaced"]]},
    {"slot": "seat", "steps": [["aisle", 0.6, "created"], ["window", 0.85, "replaced"]]},
    {"slot": "seat", "steps": [["aisle", 1.0, "created"], ["window", 0.96, "replaced"]]},
    {
        "slot": "seat",
        "steps": [["aisle", 1.0, "created"], ["window", 0.95, "rejected:existing_confidence_higher"]],
    },
    {"slot": "seat", "steps": [["aisle", 0.5, "created"], ["window", 0.5, "replaced"]]},
    {"slot": "seat", "steps": [["aisle", 0.9, "created"], ["aisle", 0.1, "unchanged"], ["aisle", 1.0, "unchanged"]]},
    {"slot": "credit", "namespace": "refund", "steps": [["low", 0.8, "created"], ["high", 0.79,
     "rejected:existing_confidence_higher"], ["high", 0.8, "replaced"]]},
]  # fmt: skip


def say(session, value, confidence=1.0, *, key="seat", at=None, **more):
    options = {name: more.pop(name) for name in ("scope", "update_reason", "source") if name in more}
    intent = {"name": "prefers", "key": key, "entities": {"value": value}, "confidence": confidence, **more}
    return session.remember(f"the {key} is {value}", intents=[intent], at=at, **options).intents[0]


def now(memory, **options):
    return [found.intent.entities["value"] for found in memory.find("u_1", **options)]


@pytest.mark.parametrize("story", OWN)
def test_each_statement_meets_the_current_one_as_the_table_says(memory, clock, story):
    told(memory, clock, story)


def test_the_stories_beside_the_checkout_go_the_same_way(memories, clock):
    for story in shared_cases("memory.json").get("arbitration", OWN):
        told(memories(), clock, story)


def told(memory, clock, story):
    session = memory.start_session("u_1", skill=story.get("namespace"))
    current = None
    for value, confidence, outcome in story["steps"]:
        clock.forward(ms=1000)
        intent = say(session, value, confidence, key=story["slot"])
        assert intent.outcome == outcome
        assert intent.change_id
        if not outcome.startswith("rejected") and outcome != "unchanged":
            current = value
        assert now(memory, key=story["slot"]) == [current]
    assert memory.check()["ok"]


def test_unchanged_counts_the_evidence(session):
    first = say(session, "aisle", 0.6)
    again = say(session, "aisle", 0.9)
    assert (again.id, again.evidence, again.confidence) == (first.id, 2, 0.6)
    assert again.previous_id is None


def test_replaced_closes_the_old_row_and_makes_a_new_one(memory, session, clock):
    first = say(session, "aisle", 0.9)
    clock.forward(hours=1)
    second = say(session, "window", 0.96)
    assert second.id != first.id
    assert second.previous_id == first.id
    old = {found.intent.id: found.intent for found in memory.find("u_1", history=True)}[first.id]
    assert (old.valid_to, old.replaced_by) == (clock.iso, second.id)
    assert old.entities == {"value": "aisle"}


def test_updated_keeps_the_id_and_leaves_the_old_value_as_a_closed_row(memory, session, clock):
    first = say(session, "aisle", 0.6)
    clock.forward(hours=1)
    second = say(session, "window", 0.9)
    assert second.id == first.id
    history = {found.intent.id: found.intent for found in memory.find("u_1", history=True)}
    closed = history[second.previous_id]
    assert (closed.entities, closed.valid_to, closed.replaced_by) == ({"value": "aisle"}, clock.iso, first.id)
    assert history[first.id].entities == {"value": "window"}


def test_rejected_is_kept_for_audit_and_is_never_current(memory, session):
    say(session, "aisle", 0.9)
    rejected = say(session, "window", 0.5)
    assert now(memory) == ["aisle"]
    assert rejected.id in {found.intent.id for found in memory.find("u_1", history=True)}
    assert now(memory, as_of=START) == ["aisle"]


def test_intents_without_a_key_never_compete(memory, session):
    for value in ("a", "b", "a"):
        assert say(session, value, 0.1, key=None).outcome == "created"
    assert sorted(now(memory)) == ["a", "a", "b"]


@pytest.mark.parametrize(
    "other",
    [
        {"key": "meal"},
        {"subject": "brother"},
        {"namespace": "flights"},
        {"name": "dislikes"},
        {"scope": "semantic"},
    ],
)
def test_only_the_same_slot_competes(memory, session, other):
    say(session, "aisle", 0.9)
    assert say(session, "window", 0.1, **other).outcome == "created"
    assert sorted(now(memory)) == ["aisle", "window"]


def test_another_users_slot_never_competes(memory, session):
    say(session, "aisle", 1.0)
    stranger = memory.start_session("u_2", skill="booking")
    assert say(stranger, "window", 0.1).outcome == "created"
    assert now(memory) == ["aisle"]


def test_a_backdated_statement_lands_in_the_past(memory, session):
    say(session, "aisle", 0.5, at=START)
    say(session, "window", 0.96, at=START + 10 * HOUR)
    late = say(session, "middle", 1.0, at=START + 5 * HOUR)
    assert late.outcome == "created"
    assert late.valid_to is not None
    assert now(memory) == ["window"]
    chain = sorted((found.intent.valid_from, found.intent.entities["value"], found.intent.valid_to)
                   for found in memory.find("u_1", history=True))  # fmt: skip
    assert [value for _, value, _ in chain] == ["aisle", "middle", "window"]
    assert [chain[0][2], chain[1][2]] == [chain[1][0], chain[2][0]]


def test_as_of_shows_replaced_values_and_not_forgotten_ones(memory, session, clock):
    fragment = session.remember(
        "first", intents=[{"name": "prefers", "key": "seat", "entities": {"value": "aisle"}}]
    )
    clock.forward(hours=1)
    between = clock.now
    clock.forward(hours=1)
    say(session, "window", 0.96)
    assert now(memory) == ["window"]
    assert now(memory, as_of=between) == ["aisle"]
    memory.forget("u_1", ids=[fragment.id])
    assert now(memory, as_of=between) == []


def test_as_of_shows_the_value_that_an_update_overwrote(memory, session, clock):
    say(session, "aisle", 0.6)
    clock.forward(hours=1)
    between = clock.now
    clock.forward(hours=1)
    assert say(session, "window", 0.9).outcome == "updated"
    assert now(memory, as_of=between) == ["aisle"]
    assert now(memory, as_of=clock.now) == ["window"]


def test_every_change_has_a_reason_and_an_id_and_no_content(memory, session):
    say(session, "aisle", 0.6, update_reason="inference")
    intent = say(session, "window", 0.9, update_reason="user_correction")
    assert intent.update_reason == "user_correction"
    rows = memory.database.rows("SELECT id, outcome, reason, intent_id, previous_id FROM changes ORDER BY pk")
    assert [row[1:3] for row in rows] == [("created", "inference"), ("updated", "user_correction")]
    assert rows[1][0] == intent.change_id
    assert "window" not in str(memory.database.rows("SELECT * FROM changes"))


def test_what_was_forgotten_no_longer_competes(memory, session):
    old = session.remember("x", intents=[{"name": "prefers", "key": "seat", "entities": {"value": "aisle"}}])
    memory.forget("u_1", ids=[old.id])
    assert now(memory) == []
    assert say(session, "window", 0.5).outcome == "created"
    assert now(memory) == ["window"]
    memory.restore("u_1", ids=[old.id])
    assert now(memory) == ["window"]
    assert memory.check()["ok"]


def test_what_was_forgotten_can_be_said_again(memory, session):
    old = session.remember("x", intents=[{"name": "prefers", "key": "seat", "entities": {"value": "aisle"}}])
    memory.forget("u_1", ids=[old.id])
    again = say(session, "aisle", 0.5)
    assert again.outcome == "created"
    assert now(memory) == ["aisle"]


def test_what_expired_no_longer_competes(memory, session, clock):
    say(session, "aisle", 1.0, scope="working")
    clock.forward(hours=2)
    assert say(session, "window", 0.5, scope="working").outcome == "created"
    assert now(memory) == ["window"]


def test_several_statements_of_one_fragment_are_settled_in_order(memory, session):
    intents = [
        {"name": "prefers", "key": "seat", "entities": {"value": value}, "confidence": 0.96}
        for value in ("a", "b", "b")
    ]
    fragment = session.remember("x", intents=intents)
    assert [intent.outcome for intent in fragment.intents] == ["created", "replaced", "unchanged"]
    assert now(memory) == ["b"]
    assert contents(memory.timeline("u_1")) == ["x"]
    assert counts(memory)["intents"] == 2


def test_values_are_compared_as_json_not_as_text(session):
    say(session, {"a": 1, "b": [1, 2]}, 0.9)
    assert say(session, {"b": [1, 2], "a": 1.0}, 0.9).outcome == "unchanged"
    assert say(session, {"b": [2, 1], "a": 1}, 0.9).outcome == "replaced"


def test_an_intents_source_is_its_own_or_its_fragments(session):
    assert say(session, "a", source="chat").source == "chat"
    fragment = session.remember("x", source="chat", intents=[{"name": "n", "source": "api"}])
    assert fragment.intents[0].source == "api"
