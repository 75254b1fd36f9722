"""WebKitGTK by WebKitWebDriver, on a screen that nobody sees (Xvfb)."""

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.browser.engines import processes
from tests.browser.engines.engine import Engine, EngineError, passing
from tests.browser.engines.page import Context, Download, Message, Page, Request
from tests.browser.engines.webdriver import WebDriver
from tests.browser.engines.webkit_browser import MARK
from tools.environment import find_webkit
from tools.project import Project

BROWSER = Path(__file__).parent / "webkit_browser.py"
ENVIRONMENT = {
    # No sessions, screen readers or graphics cards of this machine.
    "DBUS_SESSION_BUS_ADDRESS": "disabled:",
    "GDK_BACKEND": "x11",
    "GIO_USE_VFS": "local",
    "NO_AT_BRIDGE": "1",
}
EXECUTE = """
const [text, done] = arguments;
(async () => (FUNCTION)(JSON.parse(text)))().then(
  (value) => done(JSON.stringify([value], (_, one) => (one === undefined ? null : one))),
  (error) => done(JSON.stringify({ error: `${error}\\n${error?.stack ?? ""}` })),
);
"""


class WebKit(Engine):
    """WebKitGTK."""

    name = "webkit"

    def __init__(self, project: Project) -> None:
        """Find the driver and put up the screen."""
        super().__init__()
        del project
        driver = find_webkit()
        if driver is None:
            pytest.fail("WebKitGTK's driver is missing: python3 build.py test installs it")
        self._driver = driver
        self._screen = processes.start(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1600x1200x24", "-nolisten", "tcp"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._screen.stdout is not None
        self._display = f":{self._screen.stdout.readline().decode().strip()}"

    def launch(self, profile: Path, **options: Any) -> "WebKitContext":
        return WebKitContext(WebKitProcess(self._driver, self._display, profile, options), options)

    @contextlib.contextmanager
    def browser(self, *, room: int | None = None) -> Iterator["WebKitBrowser"]:
        start = partial(WebKitProcess, self._driver, self._display, options={"room": room})
        with passing("webkit", start) as process:
            yield WebKitBrowser(process)

    def kill(self, context: "WebKitContext") -> None:
        context.process.kill()

    def close(self) -> None:
        super().close()
        self._screen.terminate()
        self._screen.wait(10)
        assert self._screen.stdout is not None
        self._screen.stdout.close()


class WebKitProcess:
    """A driver, the browser that it started, and the session between them."""

    def __init__(self, driver: str, display: str, profile: Path, options: dict[str, Any]) -> None:
        """Start both."""
        self.contexts: list[WebKitContext] = []
        self._folder = Path(tempfile.mkdtemp(prefix="webkit-"))
        self._lines: list[str] = []
        self._current: str | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._process = processes.start(
            [driver, f"--port={port}"],
            env={**os.environ, **ENVIRONMENT, "DISPLAY": display},
            stdout=subprocess.PIPE,
            # The console of the pages goes there.
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        told = {
            "locale": options.get("locale"),
            "dark": options.get("color_scheme") == "dark",
            "room": options.get("room"),
            "downloads": str(self._folder),
            "socket": str(self._folder / "orders"),
        }
        browser = {"binary": sys.executable, "args": [str(BROWSER), str(profile), json.dumps(told)]}
        try:
            self.driver = WebDriver(port, {"webkitgtk:browserOptions": browser})
            self.driver.post("/timeouts", script=None, pageLoad=300_000)
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The first of its processes."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def on_page(self, handle: str) -> WebDriver:
        """Return the driver, its commands going to this window."""
        if self._current != handle:
            self.driver.post("/window", handle=handle)
            self._current = handle
        return self.driver

    def new_window(self) -> str:
        """Open one more window and return its handle; the driver wants to stand in another one for that."""
        if self._current is None:
            self.on_page(self.driver.get("/window/handles")[0])
        return str(self.driver.post("/window/new", type="window")["handle"])

    def forget(self, handle: str) -> None:
        """Know that a window is gone."""
        if self._current == handle:
            self._current = None

    def order(self, **what: Any) -> None:
        """Have the browser do something that WebDriver has no command for."""
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._folder / "orders"))
            line.sendall(json.dumps(what).encode() + b"\n")
            line.recv(100)

    def pump(self) -> None:
        """Tell of what came out of the browser; which window it came from is not said."""
        lines, self._lines = self._lines, []
        for line in lines:
            if line.startswith(MARK):
                self._happened(json.loads(line.removeprefix(MARK)))
            else:
                self._console(line)

    def _happened(self, told: dict[str, Any]) -> None:
        for context in self.contexts:
            if "request" in told:
                context.tell("request", Request(told["request"]))
            if "download" in told:
                found = told["download"]
                context.downloads.append(Download(found["name"], Path(found["file"])))

    def _console(self, line: str) -> None:
        place, _, said = line.rpartition("CONSOLE ")
        del place
        for context in self.contexts:
            if said.startswith("JS ERROR "):
                for page in context.pages:
                    page.tell("pageerror", said.removeprefix("JS ERROR "))
            elif said:
                message = Message(said.partition(" ")[2])
                context.tell("console", message)
                for page in context.pages:
                    page.tell("console", message)

    def close(self) -> None:
        """End it in good order; by force if it does not answer."""
        if self._process.poll() is None:
            with contextlib.suppress(EngineError):
                self.driver.delete()
            end = time.monotonic() + 5
            while len(processes.descendants(self._process.pid)) > 1 and time.monotonic() < end:
                time.sleep(0.02)
        self.kill()

    def kill(self) -> None:
        """End all of its processes at once."""
        if self._process.poll() is None:
            processes.kill(self._process.pid)
        self._process.wait(10)
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class WebKitBrowser:
    """A WebKit that several persons use; every site is a different one, so they share the storage."""

    def __init__(self, process: WebKitProcess) -> None:
        """Take a running browser."""
        self._process = process

    def new_context(self, **options: Any) -> "WebKitContext":
        """Come as another person, to another site."""
        return WebKitContext(self._process, options, whole=False)


class WebKitContext(Context):
    """A person: the whole browser with its profile, or some windows of it."""

    def __init__(self, process: WebKitProcess, options: dict[str, Any], *, whole: bool = True) -> None:
        """Take what is open already."""
        super().__init__()
        self.process = process
        self._options = options
        self._whole = whole
        self._closed = False
        process.contexts.append(self)
        if whole:
            [first] = process.driver.get("/window/handles")
            self.pages.append(WebKitPage(self, first))
            self._resize(self.pages[0])

    def new_page(self) -> "WebKitPage":
        page = WebKitPage(self, self.process.new_window())
        self.pages.append(page)
        self._resize(page)
        return page

    def _resize(self, page: "WebKitPage") -> None:
        size = self._options.get("viewport") or {"width": 1280, "height": 720}
        self.process.on_page(page.id).post("/window/rect", x=0, y=0, **size)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._whole:
            self.process.close()
        else:
            for page in [*self.pages]:
                page.close()
        self.process.contexts.remove(self)

    def add_init_script(self, script: str) -> None:
        self.process.order(script=script)

    def grant_permissions(self, names: list[str]) -> None:
        """Positions are granted as soon as there is one: see `set_geolocation`."""
        assert names == ["geolocation"]

    def set_geolocation(self, position: dict[str, float]) -> None:
        """Be at this place."""
        self.process.order(position=position)

    def pump(self) -> None:
        self.process.pump()


class WebKitPage(Page):
    """One window of WebKit."""

    def __init__(self, context: WebKitContext, id: str) -> None:  # noqa: A002 - as Firefox's
        """Take a window that is open."""
        super().__init__()
        self.context: WebKitContext = context
        self.id = id

    @property
    def _driver(self) -> WebDriver:
        return self.context.process.on_page(self.id)

    def call(self, function: str, argument: Any) -> Any:
        script = EXECUTE.replace("FUNCTION", function)
        answer = json.loads(self._driver.post("/execute/async", script=script, args=[json.dumps(argument)]))
        self.context.pump()
        if isinstance(answer, dict):
            raise EngineError(answer["error"])
        return answer[0]

    def perform(self, actions: list[dict[str, Any]]) -> None:
        self._driver.post("/actions", actions=actions)

    def goto(self, url: str) -> None:
        self._driver.post("/url", url=url)
        self._loaded()

    def reload(self) -> None:
        self._driver.post("/refresh")
        self._loaded()

    def go_back(self) -> None:
        self._driver.post("/back")
        self._loaded()

    def _loaded(self) -> None:
        """Wait for `load`: the driver comes back before the document's scripts have run."""
        self.wait(lambda: self.evaluate("document.readyState") == "complete", "the document")

    def close(self) -> None:
        if len(self.context.process.driver.get("/window/handles")) == 1:
            # The session ends with its last window.
            self.context.process.new_window()
        self._driver.delete("/window")
        self.context.pages.remove(self)
        self.context.process.forget(self.id)

    def picture(self) -> bytes:
        return base64.b64decode(self._driver.get("/screenshot"))
