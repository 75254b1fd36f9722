"""Several tabs: the second one's cost, contention, and how soon another takes over."""

import os
import re
import signal
import statistics
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page

from tests.browser.engines.engine import process_of

JOB = "async ([job, given]) => (await import('/bench/tabs.js'))[job](given)"
ENDS = ("closed", "killed", "frozen")


class Tabs:
    """Pages of one browser, each with the same memory."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url

    def blank(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(0)
        page.goto(f"{self.url}/blank.html")
        return page

    def run(self, page: Page, job: str, **given: Any) -> Any:
        return page.evaluate(JOB, [job, given])

    def opened(self, name: str) -> Page:
        page = self.blank()
        self.run(page, "open", name=name)
        return page


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def private_bytes(process: int) -> int:
    text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(kib) * 1024 for kib in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE))


def second_tab(tabs: Tabs, report: Any, times: int) -> None:
    """Time and memory that one more tab costs, and what its calls cost."""
    owner = tabs.blank()
    first = tabs.run(owner, "open", name="second")["ms"]
    opening, grown = [], []
    for _ in range(times):
        page = tabs.blank()
        process = process_of(page)
        before = private_bytes(process)
        opening.append(tabs.run(page, "open", name="second")["ms"])
        page.wait_for_timeout(500)
        grown.append((private_bytes(process) - before) / 1e6)
        page.close()
    report.add(
        f"a second tab is open, median / p95 of {times}; the first took {first:,.0f} ms",
        f"{statistics.median(opening):.0f} / {p95(opening):.0f} ms",
        "≤ 300 ms",
        p95(opening) <= 300,
    )
    growth = statistics.median(grown)
    report.add("… and its page has grown by (private memory)", f"{growth:.1f} MB", "≤ 10 MB", growth <= 10)
    other = tabs.opened("second")
    rounds = 10 * times
    tabs.run(owner, "calls", rounds=rounds)
    mine = statistics.median(tabs.run(owner, "calls", rounds=rounds))
    theirs = statistics.median(tabs.run(other, "calls", rounds=rounds))
    report.add(
        f"a durable remember from the second tab against one from the owner ({mine:.1f} ms), p50",
        f"{theirs / mine:.2f} ×",
    )
    for page in (owner, other):
        page.close()


def contention(tabs: Tabs, report: Any, seconds: int) -> None:
    """Four tabs write at once: nothing acknowledged is lost or there twice."""
    pages = [tabs.opened("contention") for _ in range(4)]
    for number, page in enumerate(pages):
        page.evaluate(
            "([tab, ms]) => { window.job = import('/bench/tabs.js').then((m) => m.contend({ tab, ms })); }",
            [number, seconds * 1000],
        )
    acknowledged = [text for page in pages for text in page.evaluate("() => window.job")]
    found = Counter(tabs.run(pages[-1], "contents"))
    lost = sum(text not in found for text in acknowledged)
    twice = sum(count > 1 for count in found.values())
    strange = len(found.keys() - set(acknowledged))
    report.add(
        f"four tabs write for {seconds} s: acknowledged, per second",
        f"{len(acknowledged):,}, {len(acknowledged) / seconds:.0f}/s",
    )
    report.add(
        "… of them lost / there twice / never acknowledged",
        f"{lost} / {twice} / {strange}",
        "0 / 0 / 0",
        lost == twice == strange == 0,
    )
    for page in pages:
        page.close()


def takeover(tabs: Tabs, report: Any, end: str, times: int, limit: float) -> None:
    """How long the longest call of another tab takes while the owner goes away."""
    waits, held_up = [], 0
    for number in range(times):
        name = f"takeover-{end}-{number}"
        owner, other = tabs.opened(name), tabs.opened(name)
        process = process_of(owner)
        tabs.run(other, "wait")
        other.wait_for_timeout(200)
        if end == "closed":
            owner.close()
        elif end == "killed":
            os.kill(process, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGSTOP)
        other.wait_for_timeout(100)
        longest = tabs.run(other, "took")
        if longest is None:
            held_up += 1
        else:
            waits.append(longest / 1000)
        if end == "frozen":
            os.kill(process, signal.SIGCONT)
            time.sleep(0.2)
        for page in (owner, other):
            with suppress(Error):
                page.close()
    if held_up:
        report.add(
            f"… {end} in the middle of a write, told `storage_blocked`, and not counted below", str(held_up)
        )
    if not waits:
        report.add(
            f"another tab's call while the owner is {end}", "never answered", f"p95 ≤ {limit:.0f} s", False
        )
        return
    report.add(
        f"another tab's call while the owner is {end}, p50 / p95 of {len(waits)}",
        f"{statistics.median(waits):.1f} / {p95(waits):.1f} s",
        f"p95 ≤ {limit:.0f} s",
        p95(waits) <= limit,
    )


def measure(browser: Browser, url: str, report: Any, *, quick: bool) -> None:
    """All of it, into the report."""
    tabs = Tabs(browser.new_context(), url)
    second_tab(tabs, report, 3 if quick else 20)
    contention(tabs, report, 2 if quick else 10)
    for end in ENDS:
        takeover(tabs, report, end, 2 if quick else 20, 10 if end == "frozen" else 3)
