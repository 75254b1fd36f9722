"""Fixtures that several browser tests share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.demo_visitor import Visit, Visitor
from tests.browser.engines import Engine
from tests.browser.lab import CLEAN, SETUP, Lab, laboratory
from tests.conftest import OpenBrowser
from tools.project import Project
from tools.serve import StaticServer


@pytest.fixture(scope="module")
def browser(engine: Engine) -> Iterator[Any]:
    """One browser for a module: every test has its own server, hence its own origin, cache and storage."""
    with engine.browser() as running:
        yield running


@pytest.fixture(scope="module")
def shared_lab(request: pytest.FixtureRequest, project: Project, dist: Path, engine: Engine) -> Iterator[Lab]:
    """A page with Python for all tests of a module; what the module calls `PREPARE` has run there."""
    with laboratory(project, dist, engine) as one:
        one.run(SETUP)
        one.run(getattr(request.module, "PREPARE", ""))
        yield one


@pytest.fixture
def lab(shared_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The shared page with a name of this test's own."""
    shared_lab.run(CLEAN, NAME=request.node.name[:150])
    yield shared_lab
    shared_lab.run(CLEAN)


@pytest.fixture
def visit(strict_site: StaticServer, open_browser: OpenBrowser) -> Visit:
    """Come to the demo page: visit(profile=folder, **options of the browser)."""

    def come(profile: Path | None = None, **options) -> Visitor:
        options.setdefault("locale", "en-GB")
        return Visitor(open_browser(profile, **options), strict_site.url + "/")

    return come
