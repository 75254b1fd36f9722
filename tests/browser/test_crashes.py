"""The browser is killed while several tabs write: what was acknowledged is there, once and whole."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.browser.crashes import Blow, Chromium, Evidence, Record, Story, blows, put_crashing, table
from tests.conftest import OpenBrowser
from tools.project import Project
from tools.serve import StaticServer


@pytest.fixture
def evidence() -> Iterator[Evidence]:
    """What outlives the browser."""
    with Evidence() as server:
        yield server


Tell = Callable[..., Story]


@pytest.fixture
def story(site: StaticServer, evidence: Evidence, open_browser: OpenBrowser, tmp_path: Path) -> Tell:
    """Begin with an empty profile: story(mutation)."""

    def begin(mutation: str = "") -> Story:
        address = put_crashing(site, evidence, mutation)
        told = Story(Chromium(open_browser, tmp_path / "profile"), evidence, address)
        told.begin()
        return told

    return begin


def test_ten_kills_lose_and_double_nothing(story: Tell) -> None:
    """The short form of the soak: every phase, takeovers, opening."""
    told = story()
    for blow in blows(10, seed=1):
        record = told.strike(blow)
        print(record)
        assert record.faults == {}, (blow, record)
