"""The browser is killed while several tabs write: what was acknowledged is there, once and whole."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from playwright.sync_api import Error as PlaywrightError

from tests.browser.crash_evidence import Blow, Evidence
from tests.browser.crash_figures import Record
from tests.browser.crashes import HERE, Story, blows, put_crashing
from tests.browser.engines import Engine, only
from tests.browser.killable import Chromium
from tests.conftest import OpenBrowser
from tools.project import Project
from tools.serve import StaticServer

pytestmark = only("chromium", because="only of Chromium all processes can be killed from outside in one call")


@pytest.fixture
def evidence() -> Iterator[Evidence]:
    """What outlives the browser."""
    with Evidence() as server:
        yield server


Tell = Callable[..., Story]


@pytest.fixture
def story(
    site: StaticServer, evidence: Evidence, engine: Engine, open_browser: OpenBrowser, tmp_path: Path
) -> Tell:
    """Begin with an empty profile: story(mutation)."""

    def begin(mutation: str = "") -> Story:
        address = put_crashing(site, evidence, mutation)
        told = Story(engine, Chromium(open_browser, tmp_path / "profile"), evidence, address)
        told.begin()
        return told

    return begin


def test_ten_kills_lose_and_double_nothing(story: Tell) -> None:
    """The short form of the soak: every phase, both takeovers, opening, importing."""
    told = story()
    for blow in blows(10, seed=1):
        record = told.strike(blow)
        assert record.faults == {}, (blow, record)


CHUNKS = 25


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_soak(story: Tell, project: Project, chunk: int) -> None:
    """Thirteen kills of one profile, one of each sort; all chunks are 325.

    What each came to stays in test-results/crashes/, so that chunks run at different times add up;
    `python -m tests.browser.crash_figures` prints all of it as a table.
    """
    told = story()
    records: list[Record] = []
    folder = project.root / "test-results" / "crashes"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for blow in blows(13, seed=1000 + chunk):
            records.append(told.strike(blow))
            assert records[-1].faults == {}, (blow, records[-1])
    finally:
        (folder / f"{chunk:03}.json").write_text(
            json.dumps([asdict(one) for one in records]), encoding="utf-8"
        )


def test_a_log_that_a_kill_cut_off_is_not_written_on(story: Tell) -> None:
    """Chromium would go on behind half a record, and at the next start delete all of the site's data."""
    told = story()
    told.page.evaluate("() => crashing.once('before')")
    told.end()
    with told.chromium.log().open("ab") as log:
        # The header of a record of 9,000 bytes, of which 20 came.
        log.write(b"\x12\x34\x56\x78" + (9000).to_bytes(2, "little") + b"\x01" + bytes(20))
    assert told.chromium.left_half_a_record()
    for write in ("once", "twice"):
        told.again()
        told.page.evaluate("write => crashing.once(write)", write)
        told.end()
    told.again()
    found = told.page.evaluate("() => crashing.read()")["found"]
    assert {write for write, *_ in found} == {"before", "once", "twice"}


MUTATIONS = {
    "acknowledge_before_complete": [Blow("heard", after=after) for after in (20, 30, 40, 25, 35, 45)],
    "record_in_its_own_transaction": [
        Blow("reply", after=after, held=True, early=True) for after in (10, 11, 12, 13)
    ],
    "no_ledger": [Blow("sql", after=20, held=True, takeover="died") for _ in range(2)],
    "no_fence": [Blow("random", 0.5, after, takeover="frozen") for after in (10, 14, 18, 22)],
    "many_in_two_transactions": [
        Blow("reply", after=after, held=True, early=True) for after in (10, 17, 24, 31, 38, 45, 52, 59)
    ],
}


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_spoilt_engine_is_noticed(story: Tell, mutation: str) -> None:
    """Each fault that the soak looks for is found when it is there."""
    spoilt = (HERE / "crashing_mutations.py").read_text(encoding="utf-8") + f"\n\n{mutation}()\n"
    told = story(spoilt)
    for blow in MUTATIONS[mutation]:
        try:
            record = told.strike(blow)
            print(record)
            faults: object = record.faults
        except PlaywrightError as error:
            faults = str(error).splitlines()[0]
        print(mutation, blow, faults)
        if faults:
            return
    pytest.fail(f"{mutation} was not noticed")
