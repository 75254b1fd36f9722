"""Fixtures that several browser tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright

from tests.browser.demo_visitor import Visit, Visitor
from tests.conftest import CHROMIUM_FLAGS, OpenBrowser
from tools.environment import find_chromium
from tools.project import Project
from tools.serve import StaticServer


@pytest.fixture(scope="module")
def browser(playwright: Playwright, project: Project) -> Iterator[Browser]:
    """One browser for a module: every test has its own server, hence its own origin, cache and storage."""
    with playwright.chromium.launch(
        executable_path=find_chromium(project.root), args=CHROMIUM_FLAGS
    ) as chromium:
        yield chromium


@pytest.fixture
def visit(strict_site: StaticServer, open_browser: OpenBrowser) -> Visit:
    """Come to the demo page: visit(profile=folder, **options of the browser)."""

    def come(profile: Path | None = None, **options) -> Visitor:
        options.setdefault("locale", "en-GB")
        return Visitor(open_browser(profile, **options), strict_site.url + "/")

    return come
