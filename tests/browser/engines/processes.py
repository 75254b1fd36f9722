"""Processes of a browser: found below its first one, and ended together."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program that does not outlive the tests: on Linux it dies with them, also by SIGKILL.

    A `preexec_fn` could ask for that too, but not safely beside threads, of which the servers have some.
    """
    setpriv = shutil.which("setpriv")
    dying = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
    return subprocess.Popen([*dying, *command], stdin=subprocess.DEVNULL, **options)


def descendants(pid: int) -> list[int]:
    """Return a process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            parent = _parent(int(folder.name))
            if parent is not None:
                children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for one in found:
        found.extend(children.get(one, []))
    return found


def _parent(pid: int) -> int | None:
    try:
        # The name in parentheses may have spaces in it.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[1])


def alive(pids: list[int]) -> list[int]:
    """Return those that have not ended."""
    return [pid for pid in pids if _parent(pid) is not None]


def kill(pid: int) -> None:
    """End a process and all below it with SIGKILL, and wait until they are gone."""
    doomed = descendants(pid)
    for one in doomed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    end = time.monotonic() + 10
    while alive(doomed) and time.monotonic() < end:
        time.sleep(0.01)


def busiest(pid: int, work: Callable[[], object]) -> int:
    """Return which process below `pid` does the work: it is repeated until one of them stands out."""
    begun = {one: _ticks(one) for one in descendants(pid)}
    for attempt in range(20):
        work()
        used = sorted(((_ticks(one) - before, one) for one, before in begun.items()), reverse=True)
        if attempt and used[0][0] > 3 * used[1][0]:
            break
        if attempt % 4 == 3:
            # Something else was busy, as browsers are when they have just started.
            begun = {one: _ticks(one) for one in descendants(pid)}
    return used[0][1]


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
