"""Stop a page's whole process, as a system does that freezes a tab: its worker stops with it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

_BUSY = "() => { const end = performance.now() + 300; while (performance.now() < end); }"


def renderer_of(page: Page) -> int:
    """Return the process id of a page's renderer: the one that works when the page does.

    The browser tells which renderers there are, but not whose they are.
    """
    browser = page.context.browser
    assert browser is not None
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    renderers = [int(process["id"]) for process in found if process["type"] == "renderer"]
    before = {process: _ticks(process) for process in renderers}
    page.evaluate(_BUSY)
    return max(renderers, key=lambda process: _ticks(process) - before[process])


@contextmanager
def frozen(page: Page) -> Iterator[None]:
    """Keep the page's process stopped for a while."""
    process = renderer_of(page)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _ticks(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
