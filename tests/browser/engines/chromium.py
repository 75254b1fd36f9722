"""Chromium by Playwright: its own objects, nothing around them."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright

from tests.browser.engines import processes
from tests.browser.engines.engine import Engine, EngineError
from tools.environment import find_chromium
from tools.project import Project

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Chromium(Engine):
    """Chromium or Chrome."""

    name = "chromium"

    def __init__(self, project: Project, playwright: Callable[[], Playwright]) -> None:
        """Find the browser."""
        super().__init__()
        self._playwright = playwright
        self._executable = find_chromium(project.root)
        self._profiles: dict[int, Path] = {}
        if self._executable is None:
            pytest.fail("Chromium is missing: python3 build.py test installs it")

    def launch(self, profile: Path, *, args: list[str] | None = None, **options: Any) -> BrowserContext:
        context = self._playwright().chromium.launch_persistent_context(
            str(profile),
            executable_path=self._executable,
            headless=True,
            args=[*FLAGS, *(args or [])],
            **options,
        )
        self._profiles[id(context)] = profile
        return context

    @contextlib.contextmanager
    def browser(self, *, room: int | None = None) -> Iterator[Browser]:
        del room
        with self._playwright().chromium.launch(executable_path=self._executable, args=FLAGS) as chromium:
            yield chromium

    def limit(self, page: Any, room: int) -> None:
        origin = page.evaluate("origin")
        page.context.new_cdp_session(page).send(
            "Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": room}
        )

    def kill(self, context: BrowserContext) -> None:
        wanted = f"--user-data-dir={self._profiles[id(context)]}"
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and wanted in _arguments(folder) and "--type=" not in _arguments(folder):
                processes.kill(int(folder.name))
                break
        else:
            raise EngineError("no Chromium runs with this profile")
        with contextlib.suppress(Exception):
            context.close()


def _arguments(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")
    except OSError:
        return ""
