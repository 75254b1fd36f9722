"""Listing verbs read through indexes: no table is scanned, and no more rows are read than needed."""

import re

import pytest

from tests.unit.helpers import START, contents, opened

SKILLS = [f"skill_{n}" for n in range(23)]
MINUTE = 60_000
LIMIT = 20

VERBS = {
    "find everything": lambda memory: memory.find("u_1", limit=LIMIT),
    "find an intent": lambda memory: memory.find("u_1", intent="order", limit=LIMIT),
    "find a new key": lambda memory: memory.find("u_1", entities={"brand_new": "yes"}, limit=LIMIT),
    "find a nested key": lambda memory: memory.find("u_1", entities={"deep.er.key": 7}, limit=LIMIT),
    "find a value": lambda memory: memory.find("u_1", entities={"n": 3}, limit=LIMIT),
    "find one of": lambda memory: memory.find("u_1", entities={"n": {"$in": [3, 5, 7]}}, limit=LIMIT),
    "find a range": lambda memory: memory.find("u_1", entities={"rare": {"$gte": 1}}, limit=LIMIT),
    "find what has a key": lambda memory: memory.find(
        "u_1", entities={"rare": {"$exists": True}}, limit=LIMIT
    ),
    "find an intent and a value": lambda memory: memory.find(
        "u_1", intent="order", entities={"city": "SHA"}, limit=LIMIT
    ),
    "find an intent of a namespace": lambda memory: memory.find(
        "u_1", intent="order", namespace="skill_3", limit=LIMIT
    ),
    "find a namespace": lambda memory: memory.find("u_1", namespace="skill_3", limit=LIMIT),
    "find a skill": lambda memory: memory.find("u_1", skill="skill_3", limit=LIMIT),
    "find an intent of a skill": lambda memory: memory.find(
        "u_1", intent="order", skill="skill_3", limit=LIMIT
    ),
    "find a value of a skill": lambda memory: memory.find(
        "u_1", entities={"city": "SHA"}, skill="skill_3", limit=LIMIT
    ),
    "find a session": lambda memory: memory.find("u_1", session_id="s_3", limit=LIMIT),
    "find a key": lambda memory: memory.find("u_1", key="seat", limit=LIMIT),
    "find a subject": lambda memory: memory.find("u_1", subject="brother", limit=LIMIT),
    "find history": lambda memory: memory.find("u_1", key="seat", history=True, limit=LIMIT),
    "find as of": lambda memory: memory.find("u_1", key="seat", as_of=START, limit=LIMIT),
    "timeline": lambda memory: memory.timeline("u_1", limit=LIMIT),
    "timeline, oldest first": lambda memory: memory.timeline("u_1", order="oldest", limit=LIMIT),
    "timeline of a time": lambda memory: memory.timeline(
        "u_1", since=START - 25 * MINUTE, until=START - MINUTE, limit=LIMIT
    ),
    "timeline of pictures": lambda memory: memory.timeline("u_1", types=["image"], limit=LIMIT),
    "timeline of a skill": lambda memory: memory.timeline("u_1", skill="skill_3", limit=LIMIT),
    "timeline of a session": lambda memory: memory.timeline("u_1", session_id="s_3", limit=LIMIT),
    "timeline of a role": lambda memory: memory.timeline("u_1", roles=["tool"], limit=LIMIT),
    "timeline of a speaker": lambda memory: memory.timeline("u_1", speaker="Zoe", limit=LIMIT),
    "trash": lambda memory: memory.trash("u_1", limit=LIMIT),
    "search": lambda memory: memory.search("u_1", "bicycle", touch=False, limit=LIMIT),
    "search nothing": lambda memory: memory.search("u_1", "", touch=False, limit=LIMIT),
    "recall": lambda memory: memory.session("s_3").recall(
        "bicycle", state={"step": 3}, touch=False, limit=LIMIT
    ),
}


# These give the newest of whatever there is.
OF_ALL = {
    "find everything",
    "find an intent",
    "timeline",
    "timeline, oldest first",
    "timeline of a time",
    "search nothing",
}

ASKED_FOR = 30


def fill(memory, user, others, *, prefix):
    """Store thirty turns that every verb asks for, and others of 23 skills that none does, mixed."""
    sessions = [
        memory.start_session(user, session_id=f"{prefix}_{n}", skill=name) for n, name in enumerate(SKILLS)
    ]
    every = others // ASKED_FOR + 1
    items = {session.id: [] for session in sessions}
    for n in range(ASKED_FOR + others):
        if n % every == 0:
            session, item = sessions[3], asked_for(n)
        else:
            session, item = sessions[n % 23 if n % 23 != 3 else 4], other(n)
        items[session.id].append(item | {"at": START - n * MINUTE})
    for session in sessions:
        session.remember_many(items[session.id])
    sessions[5].remember_many([{"content": "forgotten"} for _ in range(ASKED_FOR)])
    memory.forget(user, query="forgotten")


def asked_for(n):
    entities = {"brand_new": "yes", "deep": {"er": {"key": 7}}, "rare": n, "n": 3, "city": "SHA"}
    return {
        "content": "the blue bicycle",
        "role": "tool",
        "speaker": "Zoe",
        "state": {"step": 3},
        "type": "image",
        "intents": [
            {"name": "order", "entities": entities},
            {"name": "prefers", "key": "seat", "subject": f"friend {n}"},
            {"name": "knows", "subject": "brother"},
        ],
    }


def other(n):
    # Each of them meets one condition of the verbs that ask for two.
    name, city = ("order", "PEK") if n % 2 else ("look", "SHA")
    return {
        "content": f"turn {n} of many",
        "role": "assistant" if n % 2 else "user",
        "speaker": "Ann",
        "intents": [{"name": name, "entities": {"n": 1000 + n % 100, "city": city}}],
    }


@pytest.fixture(scope="module")
def alone():
    """What is asked for and nothing else."""
    with opened() as memory:
        fill(memory, "u_1", 0, prefix="s")
        yield memory


@pytest.fixture(scope="module")
def crowded():
    """The same among two hundred times as many of the same user, and another user's beside them."""
    with opened() as memory:
        fill(memory, "u_1", 6_000, prefix="s")
        fill(memory, "u_2", 1_000, prefix="t")
        yield memory


def statements(memory, verb):
    """Return the SQL that a verb really runs, its values put in."""
    seen = []
    connection = memory.database.connection
    connection.set_trace_callback(seen.append)
    try:
        verb(memory)
    finally:
        connection.set_trace_callback(None)
    # What a virtual table asks of its own tables is its affair, and shows as a comment.
    return [sql for sql in seen if sql.lstrip().upper().startswith(("SELECT", "WITH"))]


TABLES = "fragments|intents|sessions|users|changes|requests|calls|intent_terms"


@pytest.mark.parametrize("name", VERBS)
def test_no_listing_verb_scans_a_table(crowded, name):
    found = statements(crowded, VERBS[name])
    assert found
    for sql in found:
        # A table goes by its other name in a plan.
        names = {alias or table for table, alias in re.findall(rf"\b({TABLES})(?: AS (\w+))?", sql)}
        plan = [step for *_, step in crowded.database.rows(f"EXPLAIN QUERY PLAN {sql}")]
        made = {step.split()[1] for step in plan if step.startswith(("MATERIALIZE", "CO-ROUTINE"))}
        for step in plan:
            if step.startswith("SCAN"):
                assert step.split()[1] not in names - made, f"{step}: {sql}"


def steps(memory, verb):
    """Count the steps that SQLite's machine takes for a verb."""
    count = 0

    def step():
        nonlocal count
        count += 1
        return 0

    verb(memory)  # statements are prepared and sizes known
    memory.database.connection.set_progress_handler(step, 1)
    try:
        verb(memory)
    finally:
        memory.database.connection.set_progress_handler(None, 0)
    return count


@pytest.mark.parametrize("name", VERBS)
def test_rows_visited_stay_under_five_times_the_rows_returned(alone, crowded, name):
    verb = VERBS[name]
    # Where there is nothing else, a verb visits the rows that it returns and no other.
    there, here = verb(alone), verb(crowded)
    assert len(here) == len(there) == LIMIT
    if name not in OF_ALL:
        assert set(contents(here)) == set(contents(there)) <= {"the blue bicycle", "forgotten"}
    assert steps(crowded, verb) <= 2 * steps(alone, verb) + 200
