"""Fixtures that several browser tests share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.demo_visitor import Visit, Visitor
from tests.browser.engines import Engine
from tests.conftest import OpenBrowser
from tools.serve import StaticServer


@pytest.fixture(scope="module")
def browser(engine: Engine) -> Iterator[Any]:
    """One browser for a module: every test has its own server, hence its own origin, cache and storage."""
    with engine.browser() as running:
        yield running


@pytest.fixture
def visit(strict_site: StaticServer, open_browser: OpenBrowser) -> Visit:
    """Come to the demo page: visit(profile=folder, **options of the browser)."""

    def come(profile: Path | None = None, **options) -> Visitor:
        options.setdefault("locale", "en-GB")
        return Visitor(open_browser(profile, **options), strict_site.url + "/")

    return come
