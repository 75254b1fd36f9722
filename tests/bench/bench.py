"""Measure py-memory in Chromium: ratios side by side in one run, written to docs/benchmarks.md.

`python3 build.py bench` runs all; `--quick` runs small sizes and writes nothing.
"""

import argparse
import datetime as dt
import itertools
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]

import tabs  # noqa: E402  # found once the path is set
from playwright.sync_api import BrowserContext, Page, sync_playwright  # noqa: E402

from tests.browser.engines.chromium import FLAGS  # noqa: E402
from tools.environment import find_chromium  # noqa: E402
from tools.serve import Override, StaticServer  # noqa: E402

HERE = Path(__file__).parent
BLANK = Override(body=b"<!doctype html><meta charset=utf-8><title>bench</title>", content_type="text/html")


@dataclass
class Report:
    """Rows of the table: what, the figure, the bound, whether it holds."""

    rows: list[tuple[str, str, str, bool | None]] = field(default_factory=list)

    def add(self, what: str, figure: str, bound: str = "", holds: bool | None = None) -> None:
        """Print a row and keep it."""
        self.rows.append((what, figure, bound, holds))
        mark = {True: "ok", False: "OVER", None: ""}[holds]
        print(f"{what:62} {figure:34} {bound:14} {mark}", flush=True)

    @property
    def missed(self) -> int:
        """How many bounds do not hold."""
        return sum(holds is False for *_, holds in self.rows)

    def markdown(self) -> str:
        """The table as it stands in the docs."""
        marks = {True: "yes", False: "**no**", None: ""}
        lines = ["| what | measured | bound | holds |", "|---|---|---|---|"]
        lines += [
            f"| {what} | {figure} | {bound} | {marks[holds]} |" for what, figure, bound, holds in self.rows
        ]
        return "\n".join(lines)


class Bench:
    """A server, a browser profile, and pages that run one job each."""

    def __init__(self, server: StaticServer, context: BrowserContext, profile: str) -> None:
        self.server = server
        self.context = context
        self.profile = profile

    def page(self) -> Page:
        page = self.context.new_page()
        page.goto(f"{self.server.url}/blank.html")
        return page

    def run(self, job: str, page: Page | None = None, **arguments: Any) -> Any:
        """Run one exported function of bench.js, in a page of its own unless one is given."""
        own = page or self.page()
        own.set_default_timeout(0)
        script = f"async (given) => (await import('/bench/bench.js')).{job}(given)"
        try:
            return own.evaluate(script, arguments)
        finally:
            if page is None:
                own.close()

    def renderers(self) -> dict[int, int]:
        """Resident bytes of each of this browser's renderer processes."""
        found: dict[int, int] = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes().replace(b"\x00", b" ").decode(errors="replace")
                if "--type=renderer" not in line or not self._is_ours(int(process.name)):
                    continue
                status = (process / "status").read_text()
            except OSError:
                continue
            size = re.search(r"VmRSS:\s+(\d+) kB", status)
            if size:
                found[int(process.name)] = int(size[1]) * 1024
        return found

    def _is_ours(self, pid: int) -> bool:
        while pid > 1:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            if self.profile in line:
                return True
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return False


def p50(values: list[float]) -> float:
    return statistics.median(values)


def p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def bench_writes(bench: Bench, report: Report, sizes: tuple[int, int], rounds: int) -> None:
    small, large = (bench.run("writes", size=size, rounds=rounds) for size in sizes)
    for one in (small, large):
        ours, raw, whole = p50(one["ours"]), p50(one["raws"]), p50(one["whole"])
        size = f"{one['size']:,}"
        report.add(
            f"durable remember at {size} fragments, p50 / p95",
            f"{ours:.1f} / {p95(one['ours']):.1f} ms, {one['pages']} pages",
        )
        report.add(
            f"… against a raw strict put of as many pages ({raw:.1f} ms)",
            f"{ours / raw:.2f} ×",
            "≤ 3 ×",
            ours / raw <= 3,
        )
        last = one is large
        report.add(
            f"… against saving the whole image of {one['imageBytes'] / 1e6:.1f} MB ({whole:.0f} ms)",
            f"{ours / whole:.3f} ×",
            "≤ 0.2 ×" if last else "",
            ours / whole <= 0.2 if last else None,
        )
    ratio = p50(large["ours"]) / p50(small["ours"])
    report.add(
        f"remember at {sizes[1]:,} against {sizes[0]:,} fragments, p50",
        f"{ratio:.2f} ×",
        "≤ 1.5 ×",
        ratio <= 1.5,
    )


def bench_bulk(bench: Bench, report: Report, count: int) -> None:
    runs = [bench.run("bulk", count=count) for _ in range(3)]
    rate = count / (p50([run["ms"] for run in runs]) / 1000)
    report.add(
        f"rememberMany of {count:,}, one durable call", f"{rate:,.0f} fragments/s", "≥ 2,000/s", rate >= 2000
    )


def bench_recall(bench: Bench, report: Report, rounds: int) -> None:
    result = bench.run("recalls", rounds=rounds)
    times = result["times"]
    report.add(
        f"recall of ten hits at {result['fragments']:,} fragments, p50 / p95",
        f"{p50(times):.1f} / {p95(times):.1f} ms",
    )


def bench_boot(bench: Bench, report: Report, size: int, times: int) -> None:
    ours, stock = [], []
    for _ in range(times):
        stock.append(bench.run("stock")["ms"])
        run = bench.run("boot", size=size)
        assert run["correct"], "the booted memory gave a wrong hit"
        ours.append(run["ms"])
    ratio = p50(ours) / p50(stock)
    report.add(f"stock loadPyodide and import sqlite3, median of {times}", f"{p50(stock):,.0f} ms")
    report.add(
        f"boot, image of {size:,} fragments restored, one correct hit",
        f"{p50(ours):,.0f} ms, {ratio:.2f} × stock",
        "≤ 0.6 ×",
        ratio <= 0.6,
    )


class Collector:
    """Collects the garbage of a page and of its worker, so that what is left is what is held."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session = page.context.new_cdp_session(page)
        self._worker = ""
        self._answers: dict[int, Any] = {}
        self._asked = 0
        self._session.on("Target.attachedToTarget", self._attached)
        self._session.on("Target.receivedMessageFromTarget", self._received)
        self._session.send(
            "Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        )

    def collect(self) -> None:
        """Collect twice: what the first round sets free may hold more."""
        for _ in range(2):
            self._session.send("HeapProfiler.collectGarbage")
            self._ask_worker("HeapProfiler.collectGarbage")
        self._page.wait_for_timeout(1_000)

    def _attached(self, event: dict[str, Any]) -> None:
        self._worker = event["sessionId"]

    def _received(self, event: dict[str, Any]) -> None:
        answer = json.loads(event["message"])
        self._answers[answer.get("id")] = answer

    def _ask_worker(self, method: str) -> None:
        self._asked += 1
        message = json.dumps({"id": self._asked, "method": method})
        self._session.send("Target.sendMessageToTarget", {"sessionId": self._worker, "message": message})
        deadline = time.monotonic() + 20
        while self._asked not in self._answers:
            assert time.monotonic() < deadline, "the worker does not answer the debugger"
            self._page.wait_for_timeout(20)


def bench_memory(bench: Bench, report: Report, inserts: int) -> None:
    page = bench.page()
    collector = Collector(page)
    for warm in range(2):
        bench.run("soak", page=page, count=inserts, seed=10 + warm)
    # Nothing else in this browser is as large as a page with Python in its worker.
    ours = max(bench.renderers().items(), key=itemgetter(1))[0]
    sizes: list[int] = []
    for batch in range(4):
        collector.collect()
        sizes.append(bench.renderers()[ours])
        if batch < 3:
            bench.run("soak", page=page, count=inserts, seed=100 + batch)
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{ours}/status").read_text())
    growth = p50([after - start for start, after in itertools.pairwise(sizes)]) / 1e6
    page.close()
    report.add("peak memory of page and worker together", f"{int(peak[1]) / 1024:.0f} MiB" if peak else "?")
    report.add(
        f"growth over {inserts:,} durable inserts, garbage collected, median of 3",
        f"{growth:.2f} MB",
        "≤ 3.7 MB",
        growth <= 3.7,
    )


def bench_soak(bench: Bench, report: Report, writes: int) -> None:
    """Many writes, one after the other, each durable: what each leaves behind."""
    page = bench.page()
    collector = Collector(page)
    bench.run("soak", page=page, count=1_000, seed=9)
    ours = max(bench.renderers().items(), key=itemgetter(1))[0]

    def state() -> tuple[int, int, int]:
        collector.collect()
        kept = bench.run("stored", page=page)
        return bench.renderers()[ours], kept["image"], kept["usage"]

    before, started = state(), time.monotonic()
    for batch in range(10):
        bench.run("soak", page=page, count=writes // 10, seed=1_000 + batch)
        print(f"soak: {(batch + 1) * writes // 10:,} writes, {time.monotonic() - started:.0f} s", flush=True)
    heap, image, usage = (after - start for start, after in zip(before, state(), strict=True))
    page.close()
    row = image / writes
    report.add(f"{writes:,} durable writes: the image grows per write by", f"{row:,.0f} bytes")
    # The image itself is held in memory, once.
    report.add(
        "… page and worker grow per write, garbage collected, against that",
        f"{heap / writes / row:.2f} ×",
        "≤ 2 ×",
        heap / writes / row <= 2,
    )
    report.add("… the browser's storage grows per write, against that", f"{usage / writes / row:.2f} ×")


def bench_opening(bench: Bench, report: Report, size: int, times: int) -> None:
    bench.run("grown", name="large", size=size)
    runs = [bench.run("opening", name="large") for _ in range(times)]
    ratio = p50([run["ours"] / run["bare"] for run in runs])
    report.add(
        f"opening an image of {runs[0]['bytes'] / 1e6:.0f} MB, checked"
        f" ({p50([run['ours'] for run in runs]):.0f} ms), against a bare read of its records",
        f"{ratio:.2f} ×",
        "≤ 1.5 ×",
        ratio <= 1.5,
    )


def bench_sealing(bench: Bench, report: Report, rows: int, rounds: int, count: int, size: int) -> None:
    written = bench.run("sealing", size=rows, rounds=rounds, count=count)
    opened = bench.run("unsealing", size=size, rounds=3 if rounds < 100 else 7)
    for what, (plain, sealed) in (
        (f"durable remember at {rows:,} fragments, with a passphrase against without", written["single"]),
        (f"rememberMany of {count:,}, likewise", written["bulk"]),
        (f"boot and an image of {opened['bytes'] / 1e6:.0f} MB, likewise", opened["times"]),
    ):
        ratio = p50(sealed) / p50(plain)
        times = " against ".join(f"{p50(one):,.{1 if p50(one) < 100 else 0}f}" for one in (sealed, plain))
        report.add(what, f"{times} ms, {ratio:.2f} ×")


def machine() -> str:
    """Say on what this was measured."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())
        model = found[1] if found else model
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}"


def main() -> int:
    """Run all, print the table, write it down; gives how many bounds do not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    quick = parser.parse_args().quick
    chromium = find_chromium(ROOT)
    assert chromium, "Chromium is missing"
    report = Report()
    with (
        StaticServer(ROOT / "dist") as server,
        tempfile.TemporaryDirectory() as profile,
        sync_playwright() as driver,
    ):
        server.mounts["/bench/"] = HERE
        server.mounts["/stock/"] = ROOT / "node_modules" / "pyodide"
        server.overrides["/blank.html"] = BLANK
        context = driver.chromium.launch_persistent_context(
            profile, executable_path=chromium, headless=True, args=FLAGS
        )
        version = subprocess.run([chromium, "--version"], capture_output=True, text=True, check=True).stdout
        bench = Bench(server, context, profile)
        large = 2_000 if quick else 20_000
        bench_writes(bench, report, (500 if quick else 1_000, large), 40 if quick else 200)
        bench_recall(bench, report, 20 if quick else 100)
        bench_boot(bench, report, large, 1 if quick else 7)
        bench_bulk(bench, report, 1_000 if quick else 10_000)
        bench_opening(bench, report, 4_000 if quick else 92_000, 1 if quick else 5)
        bench_sealing(
            bench,
            report,
            rows=500 if quick else 1_000,
            rounds=20 if quick else 200,
            count=1_000 if quick else 10_000,
            size=4_000 if quick else 34_000,
        )
        bench_memory(bench, report, 100 if quick else 1_000)
        bench_soak(bench, report, 500 if quick else 100_000)
        context.close()
        with driver.chromium.launch(executable_path=chromium, args=FLAGS) as browser:
            tabs.measure(browser, server.url, report, quick=quick)
    if not quick:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        today = dt.datetime.now(tz=dt.UTC).date()
        (ROOT / "docs" / "benchmarks.md").write_text(
            "# How fast it is\n\n"
            f"Measured on {today} at commit {commit} with {version.strip()}, {machine()}.\n"
            "Absolute times vary by about 40 % from run to run; ratios were taken side by side in one run.\n"
            "Written by `python3 build.py bench`.\n\n" + report.markdown() + "\n",
            encoding="utf-8",
        )
    return report.missed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
