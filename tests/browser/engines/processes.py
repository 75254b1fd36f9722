"""Processes of a browser: found below its first one, and ended together."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


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


def kill(pid: int) -> None:
    """End a process and all below it with SIGKILL, and wait until they are gone."""
    doomed = descendants(pid)
    for one in doomed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    end = time.monotonic() + 10
    while any(_parent(one) is not None for one in doomed) and time.monotonic() < end:
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
