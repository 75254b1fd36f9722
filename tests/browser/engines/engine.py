"""What every engine can do, and what a test has to know about it."""

import contextlib
import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.browser.engines import processes

# The process of a page that runs this is the one that uses the processor.
SPIN = "() => { const end = performance.now() + 250; while (performance.now() < end); }"


class EngineError(Exception):
    """The page threw, a wait ran out, or the browser is gone; the message says which."""


def process_of(page: Any) -> int:
    """Return the process in which a page and its workers run."""
    return processes.busiest(os.getpid(), lambda: page.evaluate(SPIN))


@contextlib.contextmanager
def passing(name: str, start: Callable[[Path], Any]) -> Iterator[Any]:
    """Start a browser on a profile of its own and end both; gives its process."""
    profile = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    process = start(profile)
    try:
        yield process
    finally:
        process.close()
        shutil.rmtree(profile, ignore_errors=True)


class Engine(ABC):
    """One kind of browser."""

    name: str

    def __init__(self) -> None:
        self._stopped: dict[int, int] = {}

    @abstractmethod
    def launch(self, profile: Path, **options: Any) -> Any:
        """Start a browser whose storage is kept in this folder and return its context.

        Options, in every engine: `locale`, `color_scheme` ("light" or "dark"), `viewport` (a dict with
        width and height); in Chromium and nowhere else `args`; in Firefox and nowhere else `prefs`.
        """

    @abstractmethod
    def browser(self, *, room: int | None = None) -> AbstractContextManager[Any]:
        """Start a browser that nobody comes back to; its `new_context()` gives a fresh person.

        With `room` a site may store about so many bytes; in Chromium `limit` has to be called too.
        WebKit's contexts share one storage: there every test has its own origin because it has its own
        server.
        """

    def limit(self, page: Any, room: int) -> None:
        """Let the page's site store so many bytes from now on; only Chromium can change it on the way."""
        assert page
        assert room

    @abstractmethod
    def kill(self, context: Any) -> None:
        """End every process of the browser at once with SIGKILL, as a crash or a power cut does."""

    def freeze(self, page: Any, process: int | None = None) -> None:
        """Stop a page, its workers too, in the middle of whatever it does (SIGSTOP for its process).

        The lock, the connection and the open transaction that it has stay with it. Freezing as Chromium
        does it to pages in the background (Page.setWebLifecycleState) does nothing here: Playwright keeps
        every page visible.
        """
        stopped = self._stopped[id(page)] = process or process_of(page)
        os.kill(stopped, signal.SIGSTOP)

    def thaw(self, page: Any) -> None:
        """Let a frozen page go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._stopped.pop(id(page)), signal.SIGCONT)

    @contextlib.contextmanager
    def frozen(self, page: Any, process: int | None = None) -> Iterator[None]:
        """Keep a page stopped for a while; with its process known before (`process_of`) it stops at once."""
        self.freeze(page, process)
        try:
            yield
        finally:
            self.thaw(page)

    def crash(self, page: Any) -> None:
        """End the page's process with SIGKILL; the browser and its other pages go on."""
        os.kill(process_of(page), signal.SIGKILL)

    def close(self) -> None:
        """End what outlives single browsers, and let go on what a test left frozen."""
        for pid in self._stopped.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
