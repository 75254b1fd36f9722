"""Fixtures of the tooling: the built folder, a server for it, a browser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright

from tools.environment import find_chromium
from tools.project import Project
from tools.serve import CONTENT_SECURITY_POLICY, StaticServer

PROJECT = Project()

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

OpenBrowser = Callable[..., BrowserContext]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is under tests/browser needs a browser: nobody has to remember to say so."""
    for item in items:
        if PROJECT.root / "tests" / "browser" in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def project() -> Project:
    """This checkout."""
    return PROJECT


@pytest.fixture(scope="session")
def dist(project: Project) -> Path:
    """The built folder dist/."""
    if not (project.dist / "py-memory" / "manifest.json").exists():
        pytest.fail("dist/ is missing: run python3 build.py first")
    return project.dist


@pytest.fixture(scope="session")
def pyodide_wheels(project: Project) -> Path:
    """The folder with the wheels that tests load into Pyodide."""
    folder = project.cache / "pyodide-wheels"
    if not (folder / "stamp").exists():
        pytest.fail("wheels for Pyodide are missing: python3 build.py test fetches them")
    return folder


@pytest.fixture
def site(dist: Path) -> Iterator[StaticServer]:
    """A server of dist/ with nothing special in its answers; see StaticServer for what can be changed."""
    with StaticServer(dist) as server:
        yield server


@pytest.fixture
def strict_site(site: StaticServer) -> StaticServer:
    """The same under the content security policy that the product promises to work with."""
    site.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return site


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's driver, once for all tests."""
    with sync_playwright() as driver:
        yield driver


@pytest.fixture
def open_browser(playwright: Playwright, tmp_path: Path) -> Iterator[OpenBrowser]:
    """Start Chromium: open_browser(profile=folder, **options of launch_persistent_context).

    The same profile folder in a later call is the same person coming back. Without one each call is a
    fresh person. What is still open is closed after the test.
    """
    executable = find_chromium(PROJECT.root)
    if executable is None:
        pytest.fail("Chromium is missing: python3 build.py test installs it")
    count = 0
    with ExitStack() as stack:

        def start(
            profile: Path | None = None, args: list[str] | None = None, **options: object
        ) -> BrowserContext:
            nonlocal count
            count += 1
            context = playwright.chromium.launch_persistent_context(
                str(profile or tmp_path / f"profile-{count}"),
                executable_path=executable,
                headless=True,
                args=[*CHROMIUM_FLAGS, *(args or [])],
                **options,
            )
            stack.callback(context.close)
            return context

        yield start


@pytest.fixture
def page(open_browser: OpenBrowser) -> Page:
    """A page of a fresh browser."""
    return open_browser().pages[0]
