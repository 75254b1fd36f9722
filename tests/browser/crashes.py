"""Kill the browser while several tabs write, and judge what is found when the same person comes back.

What counts as evidence is heard by a server outside the browser. Before a write is made the page tells its
name and the hashes of its content and waits until that was heard; an acknowledgement is told when it was
given. So nothing can be present that was not heard as sent, and what was heard as acknowledged had been:
an acknowledgement that the kill cut off is only not counted.
"""

import json
import os
import random
import signal
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playwright.sync_api import Page
from playwright.sync_api import Error as PlaywrightError

from tests.conftest import OpenBrowser
from tools.serve import CONTENT_SECURITY_POLICY, Override, StaticServer

HERE = Path(__file__).parent / "pages"
PHASES = ("sql", "complete", "reply")
LIMIT_SECONDS = 60.0

Found = list[tuple[str, int, int, str]]


@dataclass(frozen=True)
class Blow:
    """When to kill.

    `kind` is a phase (`sql`: before the SQL commit, `complete`: before IndexedDB's event, `reply`: before
    the answer leaves the worker), `heard` (an acknowledgement has just arrived), `random`, `opening` or
    `import`. A phase is met when `after` others like it have passed. If it is `held`, the worker stands there
    until the end, else it goes on for `delay` seconds. `early` is the first of two places: for
    `complete` before the commit is asked for, for `reply` at the event. `takeover` says how the first owner
    goes before: `closed` tab or `died` worker; the phase is then the next owner's.
    """

    kind: str
    delay: float = 0.0
    after: int = 0
    held: bool = False
    early: bool = False
    takeover: str = ""

    @property
    def plan(self) -> dict[str, Any]:
        """What the worker is told."""
        return {"phase": self.kind, "after": self.after, "early": self.early} if self.kind in PHASES else {}


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


class Evidence:
    """Hears what pages and workers say, and strikes when it is time; `with` starts and stops it."""

    def __init__(self) -> None:
        """Bind a port."""
        self.sent: dict[str, list[str]] = {}
        self.acked: set[str] = set()
        self.failures: list[dict[str, Any]] = []
        self.imported = False
        self.struck = threading.Event()
        self.enough = threading.Event()
        self._blow: Blow | None = None
        self._strike: Callable[[], None] = lambda: None
        self._heard = 0
        self._workers = 0
        self._connections = 0
        self._lock = threading.Lock()
        evidence = self

        class Handler(_Handler):
            heard_by = evidence

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def arm(self, blow: Blow, strike: Callable[[], None]) -> None:
        """From now on strike as told."""
        with self._lock:
            self._blow, self._strike = blow, strike
            self._heard = self._workers = 0
            self.imported = False
            self.struck.clear()
            self.enough.clear()

    def drained(self) -> None:
        """Wait until all that was said before the end has been heard."""
        until = time.monotonic() + LIMIT_SECONDS
        while self._connections and time.monotonic() < until:
            time.sleep(0.005)
        assert not self._connections, "the killed browser still has connections"
        self._blow = None

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _hear(self, what: str, about: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
        """Return what is answered, and after how many seconds to strike; below 0 before the answer."""
        with self._lock:
            blow = self._blow
            if what == "sent":
                self.sent[about["write"]] = about["hashes"]
            elif what == "acked":
                self.acked.add(about["write"])
            elif what == "imported":
                self.imported = True
            elif what == "failed":
                self.failures.append(about)
            if blow is None or self.struck.is_set():
                return {}, None
            return self._time(what, blow)

    def _time(self, what: str, blow: Blow) -> tuple[dict[str, Any], float | None]:
        first_of_phase = what.partition("/")[0] == "phase"
        if first_of_phase:
            return {}, -1 if blow.held else blow.delay
        if what == "go":
            if blow.takeover == "died":
                return {"phase": "reply", "after": blow.after, "dies": True}, None
            return ({} if blow.takeover else blow.plan), None
        if what == "worker":
            self._workers += 1
            if self._workers > 1:
                return {}, None
            if blow.kind == "opening" or (blow.takeover and blow.kind == "random"):
                return {}, blow.delay
            return (blow.plan if blow.takeover else {}), None
        if what == "importing" and blow.kind == "import":
            return {}, blow.delay
        if what == "acked":
            self._heard += 1
            if self._heard == blow.after:
                self.enough.set()
                if blow.kind == "heard":
                    return {}, -1
                if blow.kind == "random" and not blow.takeover:
                    return {}, blow.delay
        return {}, None

    def _end(self) -> None:
        with self._lock:
            if not self.struck.is_set():
                self._strike()
                self.struck.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    heard_by: Evidence

    def setup(self) -> None:
        with self.heard_by._lock:
            self.heard_by._connections += 1
        super().setup()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        with self.heard_by._lock:
            self.heard_by._connections -= 1

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer, after = self.heard_by._hear(self.path.lstrip("/"), json.loads(body) if body else {})
        if after is not None and after < 0:
            self.heard_by._end()
            self.close_connection = True
            return
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        if after is not None:
            # Beside the connection, on which more may be said before the end.
            threading.Thread(target=self._later, args=(after,), daemon=True).start()

    def _later(self, seconds: float) -> None:
        time.sleep(seconds)
        self.heard_by._end()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


class Chromium:
    """One person's Chromium: started, killed with all its processes, started again."""

    def __init__(self, open_browser: OpenBrowser, profile: Path) -> None:
        """Prepare."""
        self._open = open_browser
        self._profile = profile
        self._group = 0
        self._context: Any = None

    def start(self) -> Page:
        """Start it and return its first page."""
        self._context = self._open(self._profile)
        self._group = next(process for process in _processes() if self._is_main(process))
        assert os.getpgid(self._group) == self._group, "the browser leads no group of its own"
        return self._context.pages[0]

    def another(self) -> Page:
        """Open one more tab."""
        return self._context.new_page()

    def kill(self) -> None:
        """End all its processes at once, from any thread."""
        os.killpg(self._group, signal.SIGKILL)

    def gone(self) -> None:
        """Wait until no process of it is left."""
        until = time.monotonic() + LIMIT_SECONDS
        while any(self._is_mine(process) for process in _processes()):
            assert time.monotonic() < until, "the killed browser still has processes"
            time.sleep(0.005)
        with suppress(PlaywrightError):
            self._context.close()

    def _is_main(self, process: int) -> bool:
        command = _command(process)
        return f"--user-data-dir={self._profile}" in command and not any(
            part.startswith("--type=") for part in command
        )

    def _is_mine(self, process: int) -> bool:
        try:
            return os.getpgid(process) == self._group and _state(process) != "Z"
        except OSError:
            return False


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _command(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return []


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]


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
        ("/py-memory/boot.js", boot.replace(begins, f"globalThis.crashing(pyodide);\n{begins}"), "text/javascript"),
        ("/crashing.json", json.dumps({"evidence": evidence.url}), "application/json"),
        ("/crashing.html", '<!doctype html><script type="module" src="/lab/crashing.js"></script>', "text/html"),
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

    chromium: Chromium
    evidence: Evidence
    address: str
    known: set[str] = field(default_factory=set)
    kills: int = 0
    page: Page | None = None

    def begin(self) -> None:
        """Come for the first time."""
        self.page = self._visit(self.chromium.start())
        self.page.evaluate("() => crashing.open()")

    def strike(self, blow: Blow) -> Record:
        """Let three tabs write, kill, come back, and judge; the memory is open again afterwards."""
        self.kills += 1
        record = Record(blow.kind, blow.takeover, blow.held, blow.early)
        before = set(self.evidence.sent)
        self._write(blow)
        self._wait(self.evidence.struck, blow)
        self.chromium.gone()
        self.evidence.drained()
        assert not self.evidence.failures, self.evidence.failures
        sent = set(self.evidence.sent) - before
        record.sent = len(sent)
        record.acknowledged = len(sent & self.evidence.acked)
        record.in_flight = record.sent - record.acknowledged
        if blow.kind == "import":
            record.in_flight += not self.evidence.imported
        self.page = self._visit(self.chromium.start())
        record.reopened_ms = round(self.page.evaluate("() => crashing.open()"))
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
            first.evaluate("() => crashing.go()") if blow.takeover != "closed" else others[0].evaluate("() => 0")
            if blow.takeover == "closed":
                self._wait(self.evidence.enough, blow)
                first.close()

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


def blows(count: int, seed: int) -> list[Blow]:
    """Return so many, all kinds in turn, with random moments."""
    chance = random.Random(seed)
    made: list[Callable[[], Blow]] = []
    for held in (True, False):
        for phase in PHASES:
            made.append(lambda phase=phase, held=held: _at(chance, phase, held=held))
    some = lambda: chance.choice((*PHASES, "random"))  # noqa: E731
    made[1:1] = [lambda: Blow("random", chance.uniform(0, 0.8), chance.randint(3, 30))]
    made[3:3] = [lambda: _takeover(chance, some(), "closed")]
    made[5:5] = [lambda: Blow("heard", after=chance.randint(3, 60))]
    made[6:6] = [lambda: _takeover(chance, some(), "died")]
    made += [
        lambda: Blow("opening", chance.uniform(0, 1.5)),
        lambda: Blow("import", chance.uniform(0, 0.3)),
    ]
    return [made[number % len(made)]() for number in range(count)]


def _at(chance: random.Random, phase: str, *, held: bool) -> Blow:
    early = phase != "sql" and chance.random() < 0.5
    return Blow(phase, chance.uniform(0, 0.003), chance.randint(3, 60), held, early)


def _takeover(chance: random.Random, kind: str, takeover: str) -> Blow:
    delay = chance.uniform(0, 1.5) if kind == "random" else chance.uniform(0, 0.003)
    early = kind in ("complete", "reply") and chance.random() < 0.5
    return Blow(kind, delay, chance.randint(3, 20), chance.random() < 0.5, early, takeover)


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
    lines = [
        "| killed | kills | writes acknowledged | in flight | of these kept whole | lost | doubled | halves"
        " | altered or never sent | failed checks | reopened in, median |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, name in names.items():
        if some := kinds.get(kind):
            total = lambda field, some=some: sum(getattr(one, field) for one in some)  # noqa: E731
            least = min(one.in_flight for one in some)
            lines.append(
                f"| {name} | {len(some)} | {total('acknowledged'):,} | {total('in_flight'):,} (least {least})"
                f" | {total('present_unacknowledged'):,} | {total('lost')} | {total('doubled')}"
                f" | {total('halves')} | {total('altered') + total('never_sent')} | {total('problems')}"
                f" | {statistics.median(one.reopened_ms for one in some):,.0f} ms |"
            )
    return "\n".join(lines)
