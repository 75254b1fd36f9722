"""One build at a time in one folder: an exclusive lock on a file, freed by the system when a process ends."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[str]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`, waiting for whoever holds it now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        told = False
        while True:
            try:
                _try_lock(file)
                break
            except OSError:
                if not told:
                    print("build: waiting for another build of this folder", flush=True)
                    told = True
                time.sleep(0.2)
        yield
