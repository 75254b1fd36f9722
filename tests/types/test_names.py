"""memory.d.ts names what the engine has: fields of results, options of verbs, settings, error codes."""

import re
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from py_memory import (
    errors,
    forgetting,
    importing,
    listing,
    recalling,
    records,
    remembering,
    scoping,
    sessions,
)
from py_memory.memory import Memory
from py_memory.settings import Settings
from py_memory.wire import MEMORY_VERBS, SESSION_VERBS

WEB = Path(__file__).parents[2] / "web"
DECLARED = (WEB / "memory.d.ts").read_text(encoding="utf-8")
CALL = {"signal", "timeout_ms"}


def snake(name: str) -> str:
    return re.sub("[A-Z]+", lambda letters: f"_{letters[0].lower()}", name)


@cache
def names(interface: str) -> frozenset[str]:
    """Return the names in an interface, those that it extends included, as Python writes them."""
    found = re.search(
        rf"^export interface {interface}(?: extends ([\w, ]+))? {{\n(.*?)^}}",
        DECLARED,
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"memory.d.ts has no interface {interface}"
    own = re.findall(r"^  (?:/\*\*[^*]*\*/ )?(?:readonly )?(\w+)\??[:(]", found[2], re.MULTILINE)
    inherited = [name for parent in (found[1] or "").split(", ") if parent for name in names(parent)]
    return frozenset([*map(snake, own), *inherited])


def of(record: type) -> set[str]:
    return {field.name for field in fields(record)}


@pytest.mark.parametrize(
    ("interface", "known"),
    [
        ("Fragment", of(records.Fragment)),
        ("Intent", of(records.Intent)),
        ("Hit", of(records.Hit)),
        ("Found", of(records.Found)),
        ("Settings", of(Settings)),
        ("IntentInput", remembering._INTENT_OPTIONS),
        ("RememberOptions", remembering.OPTIONS | CALL),
        ("SessionOptions", sessions.OPTIONS | {"user_id"} | CALL),
        ("RecallOptions", recalling.RECALL_OPTIONS | CALL),
        ("SearchOptions", recalling.SEARCH_OPTIONS | {"user_id", "query"} | CALL),
        ("FindOptions", listing.FIND_OPTIONS | {"user_id"} | CALL),
        ("TimelineOptions", listing.TIMELINE_OPTIONS | {"user_id"} | CALL),
        ("Selector", forgetting.OPTIONS | {"user_id"} | CALL),
        ("Filters", scoping.FILTERS - {"session_id"}),
        ("ImportCounts", set(importing._Report().to_dict(dry_run=True)["users"])),
    ],
)
def test_an_interface_has_the_names_that_the_engine_knows(interface: str, known: set[str]) -> None:
    assert names(interface) == known


def test_reports_have_the_names_that_the_engine_gives() -> None:
    with Memory.open(":memory:") as memory:
        session = memory.start_session(user_id="u")
        session.remember("window seat")
        assert names("Metrics") == set(memory.metrics())
        assert names("CheckReport") == set(memory.check())
        assert names("ImportReport") == set(memory.import_json(memory.export_json()))
        assert names("Selected") == set(memory.forget(user_id="u", all=True, preview=True))
        assert names("Why") == set(session.recall("seat")[0].why)


def test_every_verb_is_declared() -> None:
    # exportJSON and importJSON are written with capitals, which `snake` takes for one word.
    assert MEMORY_VERBS - {"start_session"} <= names("Memory")
    assert names("Session") >= SESSION_VERBS


def test_error_codes_are_the_same_everywhere() -> None:
    declared = re.search(r"export type ErrorCode =\n(.*?);", DECLARED, re.DOTALL)
    listed = re.search(
        r"export const CODES = .*?\[(.*?)\]", (WEB / "errors.js").read_text(encoding="utf-8"), re.DOTALL
    )
    assert declared
    assert listed
    codes = list(errors.BY_CODE)
    assert re.findall(r'"(\w+)"', declared[1]) == codes
    assert re.findall(r'"(\w+)"', listed[1]) == codes


def test_every_export_is_documented_with_an_example() -> None:
    parts = re.split(r"^(?=export (?:function|const|class) )", DECLARED, flags=re.MULTILINE)
    for before, after in pairwise(parts):
        comment = before[before.rfind("/**") :]
        assert "```js" in comment, after.split("\n", 1)[0]
    for interface in ("Memory", "Session"):
        body = re.search(rf"^export interface {interface} {{\n(.*?)^}}", DECLARED, re.MULTILINE | re.DOTALL)
        assert body
        for comment, name in re.findall(r"(/\*\*(?:(?!\*/).)*\*/)\s+(\w+)(?:<.*?>)?\(", body[1], re.DOTALL):
            assert "```js" in comment, name
