"""Conversations with questions whose evidence is known: a small one of our own, larger ones where present.

The larger ones are measured with and never copied; they stand beside the checkout in `shared/retrieval`.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared" / "retrieval" / "data"

_OWN_TALK = """
2025-03-03T09:00 Mara: Morning Ilya! The greenhouse is finally finished, all glass and cedar.
2025-03-03T09:01 Ilya: Congratulations! What will you plant first?
2025-03-03T09:02 Mara: Saffron crocuses along the south wall, my grandmother grew them in Kashan.
2025-03-03T09:03 Ilya: Lovely. I signed up for a half marathon in Bergen this September.
2025-03-03T09:04 Mara: Brave! How far do you run on a normal day?
2025-03-03T09:05 Ilya: Usually eight kilometres before breakfast, along the harbour.
2025-04-12T18:30 Mara: I adopted a grey parrot yesterday, she is called Pixel.
2025-04-12T18:31 Ilya: Does Pixel talk already?
2025-04-12T18:32 Mara: She only imitates the microwave so far.
2025-04-12T18:33 Ilya: My sister Vera moved to Lisbon, she opened a bakery near the river.
2025-04-12T18:34 Mara: What does she bake?
2025-04-12T18:35 Ilya: Rye bread and cardamom buns, her recipes come from our aunt.
2025-06-20T20:10 Mara: The saffron harvest gave only twelve grams, the rain was too heavy.
2025-06-20T20:11 Ilya: I twisted my ankle on the stairs, no training for three weeks.
2025-06-20T20:12 Mara: Oh no! Is the marathon still possible?
2025-06-20T20:13 Ilya: The doctor thinks so, I swim every evening in the meantime.
2025-09-15T21:00 Ilya: I finished the race in one hour and fifty-two minutes!
2025-09-15T21:01 Mara: Wonderful! I bought tickets for the opera, Turandot on 4 October.
2025-09-15T21:02 Ilya: 我最近开始学中文，老师住在成都。
2025-09-15T21:03 Mara: 太好了，我最喜欢成都的花椒和茶馆。
"""

_OWN_QUESTIONS = (
    ("What did Mara plant in the greenhouse?", (2,)),
    ("Where does Mara's grandmother come from?", (2,)),
    ("Which race did Ilya sign up for?", (3,)),
    ("How far does Ilya run before breakfast?", (5,)),
    ("What is the name of the parrot?", (6,)),
    ("What does Pixel imitate?", (8,)),
    ("Where did Vera move?", (9,)),
    ("What does the bakery sell?", (11,)),
    ("How much saffron was harvested?", (12,)),
    ("Why could Ilya not train?", (13,)),
    ("How does he stay fit while injured?", (15,)),
    ("What was the time of the race?", (16,)),
    ("Which opera will they see?", (17,)),
    ("老师住在哪里", (18,)),
    ("谁喜欢茶馆", (19,)),
)


@dataclass(slots=True)
class Conversation:
    """Sessions of turns, and questions with the ids of the turns that answer them."""

    name: str
    sessions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    questions: list[tuple[str, list[set[str]]]] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """How many turns there are."""
        return sum(len(turns) for turns in self.sessions.values())


def own() -> Conversation:
    """Our own small conversation, in two languages."""
    talk = Conversation("own")
    for number, line in enumerate(_OWN_TALK.strip().splitlines()):
        when, speaker, text = line.split(" ", 2)
        turn = {"id": str(number), "at": f"{when}:00Z", "speaker": speaker.rstrip(":"), "text": text}
        talk.sessions.setdefault(when[:10], []).append(turn)
    talk.questions = [
        (question, [{str(number)} for number in evidence]) for question, evidence in _OWN_QUESTIONS
    ]
    return talk


def shared(name: str) -> list[Conversation]:
    """The conversations of a shared set; none where it is absent."""
    corpus = SHARED / f"{name}.dev.corpus.jsonl"
    if not corpus.exists():
        return []
    talks: dict[str, Conversation] = {}
    for row in _rows(corpus):
        talk = talks.setdefault(row["conv"], Conversation(row["conv"]))
        turn = {"id": row["id"], "at": f"{row['ts']}Z", "speaker": row["speaker"], "text": row["text"]}
        talk.sessions.setdefault(f"{row['conv']}/{row['session']}", []).append(turn)
    for row in _rows(SHARED / f"{name}.dev.queries.jsonl"):
        groups = row.get("groups") or [[one] for one in row["evidence"]]
        talks[row["conv"]].questions.append((row["q"], [set(group) for group in groups]))
    return list(talks.values())


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def recall_at(k: int, answers: list[list[str]], talk: Conversation) -> float:
    """The share of evidence that is among the first k, over all questions."""
    shares: dict[str, list[float]] = defaultdict(list)
    for ids, (_, groups) in zip(answers, talk.questions, strict=True):
        found = [bool(group & set(ids[:k])) for group in groups]
        shares["all"].append(sum(found) / len(found))
    return sum(shares["all"]) / len(shares["all"])
