"""One person's Chromium, all of whose processes can be killed at once, and from any thread."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page

from tests.conftest import OpenBrowser

LIMIT_SECONDS = 60.0
_BLOCK = 32_768


class Chromium:
    """One person's Chromium: started, killed with all its processes, started again."""

    def __init__(self, open_browser: OpenBrowser, profile: Path) -> None:
        """Prepare."""
        self._open = open_browser
        self._profile = profile
        self._group = 0
        self._context: Any = None

    def start(self) -> Page:
        """Start it and return its first page."""
        self._context = self._open(self._profile)
        self._group = next(process for process in _processes() if self._is_main(process))
        assert os.getpgid(self._group) == self._group, "the browser leads no group of its own"
        return self._context.pages[0]

    def another(self) -> Page:
        """Open one more tab."""
        return self._context.new_page()

    def kill(self) -> None:
        """End all its processes at once, from any thread."""
        os.killpg(self._group, signal.SIGKILL)

    def gone(self) -> None:
        """Wait until no process of it is left."""
        until = time.monotonic() + LIMIT_SECONDS
        while any(self._is_mine(process) for process in _processes()):
            assert time.monotonic() < until, "the killed browser still has processes"
            time.sleep(0.005)
        with suppress(PlaywrightError):
            self._context.close()

    def log(self) -> Path:
        """Return the log file of the databases of the only site that was visited."""
        return max(self._profile.glob("Default/IndexedDB/*.leveldb/*.log"))

    def left_half_a_record(self) -> bool:
        """Whether the log ends within a record: 7 bytes stand before each part, in blocks of 32 KiB."""
        data = self.log().read_bytes()
        at, begun = 0, False
        while at < len(data):
            left = _BLOCK - at % _BLOCK
            if left < 7:
                at += left
                continue
            length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6 : at + 7]
            at += 7 + length
            begun = kind in (b"\x02", b"\x03")
        return at > len(data) or begun

    def _is_main(self, process: int) -> bool:
        command = _command(process)
        return f"--user-data-dir={self._profile}" in command and not any(
            part.startswith("--type=") for part in command
        )

    def _is_mine(self, process: int) -> bool:
        try:
            return os.getpgid(process) == self._group and _state(process) != "Z"
        except OSError:
            return False


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _command(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return []


def _state(process: int) -> str:
    return (
        Path(f"/proc/{process}/stat")
        .read_text(encoding="ascii", errors="replace")
        .rpartition(")")[2]
        .split()[0]
    )
