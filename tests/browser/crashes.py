"""Kill the browser while several tabs write, and judge what is found when the same person comes back.

What counts as evidence is heard by a server outside the browser. Before a write is made the page tells its
name and the hashes of its content and waits until that was heard; an acknowledgement is told when it was
given. So nothing can be present that was not heard as sent, and what was heard as acknowledged had been:
an acknowledgement that the kill cut off is only not counted.
"""

import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page

from tests.browser.crash_evidence import LIMIT_SECONDS, PHASES, Blow, Evidence
from tests.browser.crash_figures import Found, Record, judge
from tests.browser.engines import Engine
from tests.browser.engines.engine import process_of
from tests.browser.killable import Chromium
from tools.serve import CONTENT_SECURITY_POLICY, Override, StaticServer

HERE = Path(__file__).parent / "pages"


def put_crashing(site: StaticServer, evidence: Evidence, mutation: str = "") -> str:
    """Serve the page and the changed worker, and return the page's address.

    `mutation` is Python that spoils the engine: the harness must notice.
    """
    engine = (HERE / "crashing_engine.py").read_text(encoding="utf-8") + mutation
    prelude = (HERE / "crashing_worker.js").read_text(encoding="utf-8")
    prelude = prelude.replace("EVIDENCE", evidence.url).replace("PYTHON", json.dumps(engine))
    boot = site.root.joinpath("py-memory", "boot.js").read_text(encoding="utf-8")
    begins = "const { dispatch } = pyodide.pyimport("
    assert boot.count(begins) == 1
    worker = site.root.joinpath("py-memory", "worker.js").read_text(encoding="utf-8")
    for path, text, kind in (
        ("/py-memory/worker.js", worker + prelude, "text/javascript"),
        (
            "/py-memory/boot.js",
            boot.replace(begins, f"globalThis.crashing(pyodide);\n{begins}"),
            "text/javascript",
        ),
        ("/crashing.json", json.dumps({"evidence": evidence.url}), "application/json"),
        (
            "/crashing.html",
            '<!doctype html><script type="module" src="/lab/crashing.js"></script>',
            "text/html",
        ),
        ("/favicon.ico", "", "image/x-icon"),
    ):
        site.overrides[path] = Override(body=text.encode(), content_type=kind)
    site.mounts["/lab/"] = HERE
    policy = CONTENT_SECURITY_POLICY.replace("connect-src 'self'", f"connect-src 'self' {evidence.url}")
    assert policy != CONTENT_SECURITY_POLICY
    site.headers["Content-Security-Policy"] = policy
    return f"{site.url}/crashing.html"


@dataclass
class Story:
    """One profile that is killed again and again; `known` are the writes that were found last."""

    engine: Engine
    chromium: Chromium
    evidence: Evidence
    address: str
    known: set[str] = field(default_factory=set)
    kills: int = 0
    page: Page | None = None

    def begin(self) -> None:
        """Come for the first time."""
        self.again()

    def again(self) -> int:
        """Come and open the memory; return how many milliseconds that took."""
        self.page = self._visit(self.chromium.start())
        return round(self.page.evaluate("() => crashing.open()"))

    def end(self) -> None:
        """Kill the browser now, and wait until it is gone and all was heard."""
        self.chromium.kill()
        self.chromium.gone()
        self.evidence.drained()

    def strike(self, blow: Blow) -> Record:
        """Let three tabs write, kill, come back, and judge; the memory is open again afterwards."""
        self.kills += 1
        record = Record(blow.kind, blow.takeover, blow.held, blow.early)
        before = set(self.evidence.sent)
        self._write(blow)
        self._wait(self.evidence.struck, blow)
        self.chromium.gone()
        self.evidence.drained()
        record.half_records = self.chromium.left_half_a_record()
        assert not self.evidence.failures, self.evidence.failures
        sent = set(self.evidence.sent) - before
        record.sent = len(sent)
        record.acknowledged = len(sent & self.evidence.acked)
        record.in_flight = record.sent - record.acknowledged
        if blow.kind == "import":
            record.in_flight += not self.evidence.imported
        record.reopened_ms = self.again()
        self._judge(record, sent, replaced=blow.kind == "import")
        # Writing goes on, and what is written now is there after one more, clean, opening.
        extra = f"{self.kills}.after"
        self.page.evaluate("write => crashing.once(write)", extra)
        self.known.add(extra)
        self.page.evaluate("() => crashing.close()")
        self._visit(self.page)
        self.page.evaluate("() => crashing.open()")
        self._judge(record, set(), replaced=False)
        return record

    def _visit(self, page: Page) -> Page:
        page.goto(self.address)
        page.wait_for_function("() => globalThis.crashing")
        return page

    def _write(self, blow: Blow) -> None:
        first = self.page
        assert first is not None
        others = [self._visit(self.chromium.another()) for _ in range(2)]
        writer = str(self.kills)
        if blow.kind == "opening":
            first.evaluate("() => crashing.close()")
            self.evidence.arm(blow, self.chromium.kill)
            # The kill may come while the browser is asked.
            with suppress(PlaywrightError):
                for number, page in enumerate([first, *others]):
                    page.evaluate(
                        "w => void crashing.open().then(() => crashing.write(w, 2))", f"{writer}.{number}"
                    )
            return
        for page in others:
            page.evaluate("() => crashing.open()")
        self.evidence.arm(blow, self.chromium.kill)
        with suppress(PlaywrightError):
            if blow.kind == "import":
                first.evaluate("w => void crashing.replace(w)", writer)
                return
            for number, page in enumerate([first, *others]):
                page.evaluate("w => crashing.write(w, 3)", f"{writer}.{number}")
            if blow.takeover == "closed":
                self._wait(self.evidence.enough, blow)
                first.close()
                return
            first.evaluate("() => crashing.go()")
            if blow.takeover == "frozen":
                self._wait(self.evidence.enough, blow)
                with self.engine.frozen(first, process_of(first)):
                    self.evidence.acknowledged(10)
                    self.evidence.thawed.set()
                time.sleep(blow.delay)
                self.evidence.end()

    def _wait(self, event: threading.Event, blow: Blow) -> None:
        assert event.wait(LIMIT_SECONDS), (blow, self.evidence.failures)

    def _judge(self, record: Record, sent: set[str], *, replaced: bool) -> None:
        assert self.page is not None
        told = self.page.evaluate("() => crashing.read()")
        found: Found = [tuple(one) for one in told["found"]]
        present, acked = {write for write, *_ in found}, sent & self.evidence.acked
        wanted = self.known | acked
        if replaced:
            undone, after = ({one for one in sent if part in one} for part in (".before.", ".after."))
            happened = self.evidence.imported or not present & undone
            wanted = self.known | (acked & after if happened else acked & undone)
            # All of the image and nothing of what it replaced, or the other way round.
            record.halves += len(present & (undone if happened else after))
        judge(record, found, self.evidence.sent, wanted)
        record.problems += len(told["problems"])
        record.present_unacknowledged += len((present & sent) - acked)
        record.rows = len(found)
        self.known = present


def blows(count: int, seed: int) -> list[Blow]:
    """Return so many, all thirteen sorts in turn, with random moments."""
    chance = random.Random(seed)
    sorts: list[Callable[[], Blow]] = [
        lambda: _at(chance, "sql", held=True),
        lambda: _at(chance, "complete", held=False),
        lambda: _at(chance, "reply", held=True),
        lambda: _takeover(chance, "closed"),
        lambda: _takeover(chance, "died"),
        lambda: Blow("heard", after=chance.randint(3, 60)),
        lambda: Blow("random", chance.uniform(0, 0.8), chance.randint(3, 30)),
        lambda: Blow("opening", chance.uniform(0, 2.0)),
        lambda: Blow("import", chance.uniform(0, 0.3)),
        lambda: _at(chance, "complete", held=True),
        lambda: _at(chance, "sql", held=False),
        lambda: _at(chance, "reply", held=False),
        lambda: Blow("random", chance.uniform(0, 0.5), chance.randint(3, 20), takeover="frozen"),
    ]
    return [sorts[number % len(sorts)]() for number in range(count)]


def _at(chance: random.Random, phase: str, *, held: bool) -> Blow:
    early = phase != "sql" and chance.random() < 0.5
    return Blow(phase, chance.uniform(0, 0.003), chance.randint(3, 60), held, early)


def _takeover(chance: random.Random, takeover: str) -> Blow:
    kind = chance.choice((*PHASES, "random"))
    delay = chance.uniform(0, 2.0) if kind == "random" else chance.uniform(0, 0.003)
    early = kind in ("complete", "reply") and chance.random() < 0.5
    return Blow(kind, delay, chance.randint(3, 20), chance.random() < 0.5, early, takeover)
