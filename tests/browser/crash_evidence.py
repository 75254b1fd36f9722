"""A server outside the browser hears what pages and workers say, and kills the browser when it is time."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from tools.serve import LocalServer

PHASES = ("sql", "complete", "reply")
LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Blow:
    """When to kill.

    `kind` is a phase (`sql`: before the SQL commit, `complete`: before IndexedDB's event, `reply`: before
    the answer leaves the worker), `heard` (an acknowledgement has just arrived), `random`, `opening` or
    `import`. A phase is met when `after` others like it have passed. If it is `held`, the worker stands there
    until the end, else it goes on for `delay` seconds. `early` is the first of two places: for
    `complete` before the commit is asked for, for `reply` at the event. `takeover` says how the first owner
    goes before: `closed` tab or `died` worker, and the phase is then the next owner's; or `frozen` before an
    SQL commit until the next owner has written, and killed `delay` seconds after it thawed. (Within a
    transaction of IndexedDB a frozen owner holds up the next one's for longer than a test can wait.)
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


class Evidence(LocalServer):
    """Hears what pages and workers say, and strikes when it is time; `with` starts and stops it."""

    def __init__(self) -> None:
        """Bind a port."""
        self.sent: dict[str, list[str]] = {}
        self.acked: set[str] = set()
        self.failures: list[dict[str, Any]] = []
        self.imported = False
        self.struck = threading.Event()
        self.enough = threading.Event()
        self.thawed = threading.Event()
        self._blow: Blow | None = None
        self._strike: Callable[[], None] = lambda: None
        self._heard = 0
        self._workers = 0
        self._connections = 0
        self._lock = threading.Lock()
        evidence = self

        class Handler(_Handler):
            heard_by = evidence

        super().__init__(Handler)

    def arm(self, blow: Blow, strike: Callable[[], None]) -> None:
        """From now on strike as told."""
        with self._lock:
            self._blow, self._strike = blow, strike
            self._heard = self._workers = 0
            self.imported = False
            self.struck.clear()
            self.enough.clear()
            self.thawed.clear()

    def drained(self) -> None:
        """Wait until all that was said before the end has been heard."""
        until = time.monotonic() + LIMIT_SECONDS
        while self._connections and time.monotonic() < until:
            time.sleep(0.005)
        assert not self._connections, "the killed browser still has connections"
        self._blow = None

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
        if what.startswith("phase/"):
            if blow.takeover == "frozen":
                self.enough.set()
                return {"frozen": True}, None
            return {}, -1 if blow.held else blow.delay
        if what == "go":
            if blow.takeover == "frozen":
                return {"phase": "sql", "after": blow.after}, None
            if blow.takeover == "died":
                return {"phase": "reply", "after": blow.after, "dies": True}, None
            return ({} if blow.takeover else blow.plan), None
        if what == "worker":
            self._workers += 1
            if self._workers > 1:
                return {}, None
            if blow.takeover == "frozen":
                return {}, None
            if blow.kind == "opening" or (blow.takeover and blow.kind == "random"):
                return {}, blow.delay
            return (blow.plan if blow.takeover else {}), None
        if what == "importing" and blow.kind == "import":
            return {}, blow.delay
        if what == "acked":
            self._heard += 1
            if self._heard == blow.after and blow.takeover != "frozen":
                self.enough.set()
                if blow.kind == "heard":
                    return {}, -1
                if blow.kind == "random" and not blow.takeover:
                    return {}, blow.delay
        return {}, None

    def acknowledged(self, more: int) -> None:
        """Wait until so many more writes have been acknowledged."""
        until, wanted = time.monotonic() + LIMIT_SECONDS, len(self.acked) + more
        while len(self.acked) < wanted:
            assert time.monotonic() < until, "nobody took over from the frozen owner"
            time.sleep(0.01)

    def end(self) -> None:
        """Strike now, if it has not been done."""
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
            self.heard_by.end()
            self.close_connection = True
            return
        if "frozen" in answer:
            self.heard_by.thawed.wait(LIMIT_SECONDS)
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
        self.heard_by.end()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""
