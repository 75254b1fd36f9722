"""Real input: whole conversations in the page, the browser closed and reopened, their questions recalled."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenBrowser
from conversations import Conversation, own, recall_at, shared

from py_memory import Memory
from py_memory.times import to_ms
from tools.serve import Override, StaticServer

BLANK = Override(body=b"<!doctype html><meta charset=utf-8><title>blank</title>", content_type="text/html")

LOAD = """
async ({ sessions, clock }) => {
  const { openMemory } = await import("/py-memory/memory.js");
  const memory = await openMemory({ name: "talk", clock });
  const ids = {};
  for (const [sessionId, turns] of Object.entries(sessions)) {
    const session = await memory.startSession({ userId: "u", sessionId, at: turns[0].at });
    const stored = await session.rememberMany(
      turns.map(({ text, speaker, at }) => ({ content: text, speaker, at })),
    );
    stored.forEach((fragment, i) => (ids[fragment.id] = turns[i].id));
    await session.end();
  }
  await memory.close();
  return ids;
}
"""

ASK = """
async ({ questions, clock }) => {
  const { openMemory } = await import("/py-memory/memory.js");
  const memory = await openMemory({ name: "talk", clock });
  const session = await memory.startSession({ userId: "u", sessionId: "asking" });
  const answers = [];
  for (const question of questions) {
    const hits = await session.recall(question, { limit: 50, touch: false });
    answers.push(hits.map(({ fragment, score }) => [fragment.id, score]));
  }
  await memory.close();
  return answers;
}
"""


def conversations() -> list[Conversation]:
    return [own(), *shared("locomo")]


def in_python(talk: Conversation, clock: int) -> list[list[tuple[str, float]]]:
    with Memory.open(":memory:", clock=lambda: clock) as memory:
        ids: dict[str, str] = {}
        for session_id, turns in talk.sessions.items():
            session = memory.start_session("u", session_id=session_id, at=turns[0]["at"])
            stored = session.remember_many(
                {"content": turn["text"], "speaker": turn["speaker"], "at": turn["at"]} for turn in turns
            )
            ids |= {fragment.id: turn["id"] for fragment, turn in zip(stored, turns, strict=True)}
            session.end()
        asking = memory.start_session("u", session_id="asking")
        return [
            [(ids[hit.fragment.id], hit.score) for hit in asking.recall(question, limit=50, touch=False)]
            for question, _ in talk.questions
        ]


def blank(open_browser: OpenBrowser, site: StaticServer, profile: Path) -> Any:
    page = open_browser(profile).pages[0]
    page.goto(f"{site.url}/blank.html")
    return page


@pytest.mark.parametrize("talk", conversations(), ids=lambda talk: talk.name)
def test_recall_after_reopening_is_the_same_as_in_cpython(
    talk: Conversation, open_browser: OpenBrowser, site: StaticServer, tmp_path: Path
) -> None:
    site.overrides["/blank.html"] = BLANK
    clock = max(to_ms(turn["at"], "at") for turns in talk.sessions.values() for turn in turns) + 86_400_000
    page = blank(open_browser, site, tmp_path / "profile")
    ids = page.evaluate(LOAD, {"sessions": talk.sessions, "clock": clock})
    assert len(ids) == talk.turns
    page.context.close()

    page = blank(open_browser, site, tmp_path / "profile")
    asked = [question for question, _ in talk.questions]
    answers = page.evaluate(ASK, {"questions": asked, "clock": clock})

    expected = in_python(talk, clock)
    assert len(answers) == len(expected) == len(asked)
    for got, wanted in zip(answers, expected, strict=True):
        assert [ids[fragment] for fragment, _ in got] == [turn for turn, _ in wanted]
        assert all(abs(a - b) < 1e-9 for (_, a), (_, b) in zip(got, wanted, strict=True))
    found = recall_at(10, [[ids[fragment] for fragment, _ in hits] for hits in answers], talk)
    print(json.dumps({"conversation": talk.name, "turns": talk.turns, "R@10": round(found, 3)}))
    assert found >= 0.60
