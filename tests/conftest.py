"""Fixtures of the tooling: the built folder, a server for it, a browser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Playwright, sync_playwright

from tests.browser.engines import ENGINES, Engine, start_engine
from tools.project import Project
from tools.serve import CONTENT_SECURITY_POLICY, StaticServer

PROJECT = Project()

OpenBrowser = Callable[..., Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--engine`: which browsers the end-to-end tests run in."""
    parser.addoption(
        "--engine",
        choices=(*ENGINES, "all"),
        help="run the browser tests here; without it all run in chromium, those marked core in each",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the engine a parameter of whatever needs a browser."""
    if "engine_name" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--engine")
    mark = metafunc.definition.get_closest_marker("only")
    able = mark.args if mark else ENGINES
    if chosen is None:
        core = metafunc.definition.get_closest_marker("core")
        wanted = [name for name in ENGINES if name in able] if core else ["chromium"]
        wanted = wanted if "chromium" in wanted else [*able]
    else:
        wanted = [*ENGINES] if chosen == "all" else [chosen]
    metafunc.parametrize(
        "engine_name",
        [
            name if name in able else pytest.param(name, marks=pytest.mark.skip(reason=_because(mark, name)))
            for name in wanted
        ],
        indirect=True,
        scope="session",
    )


def _because(mark: pytest.Mark | None, name: str) -> str:
    assert mark is not None
    return f"not in {name}: {mark.kwargs['because']}"


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


@pytest.fixture(scope="session")
def engine_name(request: pytest.FixtureRequest) -> str:
    """The engine of this run of the test: "chromium", "firefox" or "webkit"."""
    return request.param


@pytest.fixture(scope="session")
def engine(engine_name: str, project: Project, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engine itself: see tests/browser/engines for what it can do."""
    made = start_engine(engine_name, project, lambda: request.getfixturevalue("playwright"))
    yield made
    made.close()


@pytest.fixture
def open_browser(engine: Engine, tmp_path: Path) -> Iterator[OpenBrowser]:
    """Start the engine's browser: open_browser(profile=folder, **options of Engine.launch).

    The same profile folder in a later call is the same person coming back. Without one each call is a
    fresh person. What is still open is closed after the test.
    """
    count = 0
    with ExitStack() as stack:

        def start(profile: Path | None = None, **options: Any) -> Any:
            nonlocal count
            count += 1
            context = engine.launch(profile or tmp_path / f"profile-{count}", **options)
            stack.callback(context.close)
            return context

        yield start


@pytest.fixture
def page(open_browser: OpenBrowser) -> Any:
    """A page of a fresh browser."""
    return open_browser().pages[0]
