"""What is found after a kill against what was sent and acknowledged, and the figures of many kills."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Found = list[tuple[str, int, int, str]]


@dataclass
class Record:
    """What one kill came to; all counts are of writes."""

    kind: str
    takeover: str
    held: bool
    early: bool
    sent: int = 0
    acknowledged: int = 0
    in_flight: int = 0
    present_unacknowledged: int = 0
    rows: int = 0
    half_records: bool = False
    """Whether the browser's own log ended within a record."""
    reopened_ms: int = 0
    lost: int = 0
    doubled: int = 0
    halves: int = 0
    altered: int = 0
    never_sent: int = 0
    problems: int = 0

    @property
    def faults(self) -> dict[str, int]:
        """What must all be nothing."""
        names = ("lost", "doubled", "halves", "altered", "never_sent", "problems")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def judge(record: Record, found: Found, sent: dict[str, list[str]], wanted: set[str]) -> None:
    """Compare what is there with what was sent and what has to be there."""
    writes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for write, row, of, content in found:
        writes[write][row] += 1
        hashes = sent.get(write)
        if hashes is None:
            record.never_sent += 1
        elif of != len(hashes) or row >= of or hashes[row] != content:
            record.altered += 1
    record.lost += len(wanted - set(writes))
    for write, rows in writes.items():
        record.doubled += max(rows.values()) > 1
        record.halves += len(rows) < len(sent.get(write, ()))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(records: Iterable[Record]) -> str:
    """Return the figures as they stand in the documentation."""
    kinds: defaultdict[str, list[Record]] = defaultdict(list)
    for one in records:
        kinds[one.kind].append(one)
        kinds["all"].append(one)
        if one.takeover:
            kinds["takeover"].append(one)
    names = {
        "sql": "before the SQL commit",
        "complete": "before `complete`",
        "reply": "before the reply",
        "heard": "an acknowledgement just heard",
        "random": "at random",
        "opening": "while opening",
        "import": "while importing an image",
        "all": "**all**",
        "takeover": "of these after a takeover",
    }
    heads = (
        "killed|kills|acknowledged|in flight|of these kept whole|lost|doubled|halves|other faults|log cut off"
        "|reopened in, median"
    ).split("|")
    lines = [_row(heads), _row(["---"] * len(heads))]
    for kind, name in names.items():
        if some := kinds.get(kind):
            total = lambda field, some=some: sum(getattr(one, field) for one in some)  # noqa: E731
            others = total("altered") + total("never_sent") + total("problems")
            least = min(one.in_flight for one in some)
            cells = [name, len(some), total("acknowledged"), f"{total('in_flight'):,} (least {least})"]
            cells += [total(one) for one in ("present_unacknowledged", "lost", "doubled", "halves")]
            cells += [others, total("half_records")]
            cells += [f"{statistics.median(one.reopened_ms for one in some):,.0f} ms"]
            lines.append(_row(f"{one:,}" if isinstance(one, int) else one for one in cells))
    return "\n".join(lines)


def main() -> None:
    """Print the figures of all chunks that were run: `python -m tests.browser.crash_figures`."""
    folder = Path(__file__).parents[2] / "test-results" / "crashes"
    files = sorted(folder.glob("*.json"))
    print(table(Record(**one) for file in files for one in json.loads(file.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
