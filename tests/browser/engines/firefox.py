"""Firefox by WebDriver BiDi: the browser itself listens, no other program stands in between."""

import base64
import contextlib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.engines import processes
from tests.browser.engines.bidi import BiDi
from tests.browser.engines.engine import Engine, EngineError, passing
from tests.browser.engines.page import Context, Download, Message, Page, Request
from tools.environment import find_firefox
from tools.project import Project

# A browser that does nothing on its own: no first-run pages, no updates, no calls home.
PREFS = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.download.useDownloadDir": True,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.sessionstore.resume_from_crash": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "browser.tabs.warnOnClose": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.disable_open_during_load": False,
    "dom.max_script_run_time": 0,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.prefetch-next": False,
    "remote.active-protocols": 1,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.startup.max_resumed_crashes": -1,
    "toolkit.telemetry.enabled": False,
}
SCHEMES = {"dark": 0, "light": 1}
EVENTS = [
    "browsingContext.downloadEnd",
    "browsingContext.downloadWillBegin",
    "log.entryAdded",
    "network.beforeRequestSent",
]
START_SECONDS = 60


class Firefox(Engine):
    """Firefox, best the ESR of the distribution."""

    name = "firefox"

    def __init__(self, project: Project) -> None:
        """Find the browser."""
        super().__init__()
        del project
        self._executable = find_firefox()
        if self._executable is None:
            pytest.fail("Firefox is missing: python3 build.py test installs it")

    def launch(
        self, profile: Path, *, prefs: dict[str, Any] | None = None, **options: Any
    ) -> "FirefoxContext":
        assert self._executable is not None
        process = FirefoxProcess(self._executable, profile, prefs or {}, options)
        return FirefoxContext(process, None, options)

    @contextlib.contextmanager
    def browser(self, *, room: int | None = None) -> Iterator["FirefoxBrowser"]:
        assert self._executable is not None
        executable = self._executable
        limited = {"dom.quotaManager.temporaryStorage.fixedLimit": room // 1024} if room else {}
        with passing("firefox", lambda profile: FirefoxProcess(executable, profile, limited, {})) as process:
            yield FirefoxBrowser(process)

    def kill(self, context: "FirefoxContext") -> None:
        context.process.kill()


class FirefoxProcess:
    """One running Firefox and the session with it."""

    def __init__(
        self, executable: str, profile: Path, prefs: dict[str, Any], options: dict[str, Any]
    ) -> None:
        """Start it and wait until it listens."""
        self.downloads = Path(tempfile.mkdtemp(prefix="downloads-"))
        self.contexts: list[FirefoxContext] = []
        self._write_prefs(profile, prefs, options)
        command = [executable, "--headless", "--no-remote", "--profile", str(profile)]
        self._log = (profile / "stderr.txt").open("w+", encoding="utf-8")
        self._process = processes.start(
            [*command, "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self.bidi = BiDi(self._address(profile / "stderr.txt"), self._heard)
            self.bidi.call("session.subscribe", events=EVENTS)
            behaviour = {"type": "allowed", "destinationFolder": str(self.downloads)}
            self.bidi.call("browser.setDownloadBehavior", downloadBehavior=behaviour)
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The first of its processes."""
        return self._process.pid

    def _write_prefs(self, profile: Path, prefs: dict[str, Any], options: dict[str, Any]) -> None:
        profile.mkdir(parents=True, exist_ok=True)
        chosen: dict[str, Any] = {
            **PREFS,
            "browser.download.dir": str(self.downloads),
            "browser.download.folderList": 2,
        }
        if options.get("color_scheme"):
            chosen["layout.css.prefers-color-scheme.content-override"] = SCHEMES[options["color_scheme"]]
        if options.get("locale"):
            chosen["intl.accept_languages"] = options["locale"]
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
            for name, value in {**chosen, **prefs}.items()
        ]
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")

    def _address(self, log: Path) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            found = re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text("utf-8", "replace"))
            if found:
                return found[1]
            time.sleep(0.02)
        raise EngineError(f"Firefox did not start: {log.read_text('utf-8', 'replace')[-2000:]}")

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        source = params.get("source") or params
        pages = [page for context in self.contexts for page in context.pages]
        page = next((one for one in pages if one.id == source.get("context")), None)
        if method == "network.beforeRequestSent":
            for context in self.contexts:
                if page is None or page.context is context:
                    context.tell("request", Request(params["request"]["url"]))
        elif method == "browsingContext.downloadWillBegin" and page:
            page.context.begun[params["navigation"]] = params["suggestedFilename"]
        elif method == "browsingContext.downloadEnd" and page and params["status"] == "complete":
            file = Path(params["filepath"])
            name = page.context.begun.pop(params["navigation"], file.name)
            page.context.downloads.append(Download(name, file))
        elif method == "log.entryAdded":
            kind = "pageerror" if params["type"] == "javascript" else "console"
            # An error of a worker that has no page any more belongs to nobody in particular.
            for one in [page] if page else pages:
                said = params["text"] if kind == "pageerror" else Message(params["text"], params["level"])
                one.tell(kind, said)
                one.context.tell("console" if kind == "console" else "weberror", said)

    def close(self) -> None:
        """End it in good order, so that everything is on the disk; by force after ten seconds."""
        if self._process.poll() is None:
            with contextlib.suppress(EngineError):
                self.bidi.call("browser.close")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        self.kill()

    def kill(self) -> None:
        """End all of its processes at once."""
        if self._process.poll() is None:
            processes.kill(self._process.pid)
        self._process.wait(10)
        if hasattr(self, "bidi"):
            self.bidi.close()
        self._log.close()


class FirefoxBrowser:
    """A Firefox that several persons use, each in a user context (a container) of their own."""

    def __init__(self, process: FirefoxProcess) -> None:
        """Take a running browser."""
        self._process = process

    def new_context(self, **options: Any) -> "FirefoxContext":
        """Come as a fresh person."""
        made = self._process.bidi.call("browser.createUserContext")["userContext"]
        return FirefoxContext(self._process, made, options)


class FirefoxContext(Context):
    """A person: the whole browser with its profile, or one container of it."""

    def __init__(self, process: FirefoxProcess, user_context: str | None, options: dict[str, Any]) -> None:
        """Take what is open already."""
        super().__init__()
        self.process = process
        self.begun: dict[str | None, str] = {}
        self._user_context = user_context
        self._options = options
        self._closed = False
        process.contexts.append(self)
        if user_context is None:
            [first] = process.bidi.call("browsingContext.getTree")["contexts"]
            self.pages.append(FirefoxPage(self, first["context"]))
            self._prepare(self.pages[0])

    def new_page(self) -> "FirefoxPage":
        extra = {} if self._user_context is None else {"userContext": self._user_context}
        made = self.process.bidi.call("browsingContext.create", type="window", **extra)
        page = FirefoxPage(self, made["context"])
        self.pages.append(page)
        self._prepare(page)
        return page

    def _prepare(self, page: "FirefoxPage") -> None:
        size = self._options.get("viewport") or {"width": 1280, "height": 720}
        self.process.bidi.call("browsingContext.setViewport", context=page.id, viewport=size)
        if self._options.get("locale"):
            self.process.bidi.call(
                "emulation.setLocaleOverride", contexts=[page.id], locale=self._options["locale"]
            )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._user_context is None:
            self.process.close()
        else:
            with contextlib.suppress(EngineError):
                self.process.bidi.call("browser.removeUserContext", userContext=self._user_context)
        self.process.contexts.remove(self)

    def add_init_script(self, script: str) -> None:
        where = (
            {"userContexts": [self._user_context]}
            if self._user_context
            else {"contexts": [one.id for one in self.pages]}
        )
        self.process.bidi.call(
            "script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}", **where
        )

    def set_offline(self, offline: bool) -> None:
        """Take the network away, or give it back."""
        self.process.bidi.call(
            "emulation.setNetworkConditions",
            networkConditions={"type": "offline"} if offline else None,
            contexts=[one.id for one in self.pages],
        )

    def grant_permissions(self, names: list[str]) -> None:
        """Grant them to the origin of the first page."""
        parts = urlsplit(self.pages[0].url)
        for name in names:
            self.process.bidi.call(
                "permissions.setPermission",
                descriptor={"name": name},
                state="granted",
                origin=f"{parts.scheme}://{parts.netloc}",
            )

    def set_geolocation(self, position: dict[str, float]) -> None:
        """Be at this place."""
        self.process.bidi.call(
            "emulation.setGeolocationOverride",
            coordinates={**position, "accuracy": 1.0},
            contexts=[one.id for one in self.pages],
        )

    def pump(self) -> None:
        self.process.bidi.pump()


class FirefoxPage(Page):
    """One window of Firefox."""

    def __init__(self, context: FirefoxContext, id: str) -> None:  # noqa: A002 - what BiDi calls it
        """Take a window that is open."""
        super().__init__()
        self.context: FirefoxContext = context
        self.id = id

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.context.process.bidi.call(method, context=self.id, **parameters)

    def call(self, function: str, argument: Any) -> Any:
        answered = self.context.process.bidi.call(
            "script.callFunction",
            functionDeclaration=(
                f"async (given) => JSON.stringify(await ({function})(JSON.parse(given)),"
                " (_, value) => value === undefined ? null : value)"
            ),
            arguments=[{"type": "string", "value": json.dumps(argument)}],
            awaitPromise=True,
            userActivation=False,
            target={"context": self.id},
        )
        if answered["type"] == "exception":
            raise EngineError(answered["exceptionDetails"]["text"])
        text = answered["result"].get("value")
        return None if text is None else json.loads(text)

    def perform(self, actions: list[dict[str, Any]]) -> None:
        self._send("input.performActions", actions=actions)

    def goto(self, url: str) -> None:
        self._send("browsingContext.navigate", url=url, wait="complete")

    def reload(self) -> None:
        self._send("browsingContext.reload", wait="complete")

    def go_back(self) -> None:
        before = self.url
        self._send("browsingContext.traverseHistory", delta=-1)
        self.wait(lambda: self.url != before, "the page before")

    def close(self) -> None:
        self.context.pages.remove(self)
        self._send("browsingContext.close")

    def picture(self) -> bytes:
        return base64.b64decode(self._send("browsingContext.captureScreenshot")["data"])
