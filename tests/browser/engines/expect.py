"""Assertions that wait: Playwright's own for its locators, the same names for ours."""

import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator as PlaywrightLocator
from playwright.sync_api import expect as of_playwright

from tests.browser.engines.page import POLL_SECONDS, Locator, matches

TIMEOUT_MS = 5_000


def expect(locator: Any) -> Any:
    """Begin an assertion that is tried until it holds or its timeout (milliseconds) is over."""
    return of_playwright(locator) if isinstance(locator, PlaywrightLocator) else Expectation(locator)


class Expectation:
    """What can be expected of a locator."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator

    def _holds(self, look: Callable[[], tuple[bool, Any]], told: str, timeout: float | None) -> None:
        end = time.monotonic() + (TIMEOUT_MS if timeout is None else timeout) / 1000
        while True:
            holds, seen = look()
            if holds:
                return
            if time.monotonic() > end:
                raise AssertionError(f"{self._locator}: expected {told}, found {seen!r}")
            time.sleep(POLL_SECONDS)

    def _state(self, name: str, wanted: bool, timeout: float | None) -> None:
        def look() -> tuple[bool, Any]:
            state = self._locator.act("state")
            return state["attached"] and state[name] == wanted, state

        self._holds(look, f"{name} to be {wanted}", timeout)

    def _text(self, act: str, wanted: Any, *, whole: bool, invert: bool, timeout: float | None) -> None:
        def look() -> tuple[bool, Any]:
            text = self._locator.act(act)
            return text is not None and matches(text, wanted, whole=whole) != invert, text

        self._holds(look, f"{'not ' if invert else ''}the text {wanted!r}", timeout)

    def to_be_enabled(self, *, timeout: float | None = None) -> None:
        self._state("enabled", True, timeout)

    def to_be_disabled(self, *, timeout: float | None = None) -> None:
        self._state("enabled", False, timeout)

    def to_be_visible(self, *, timeout: float | None = None) -> None:
        self._state("visible", True, timeout)

    def to_be_focused(self, *, timeout: float | None = None) -> None:
        self._state("focused", True, timeout)

    def to_have_count(self, count: int, *, timeout: float | None = None) -> None:
        def look() -> tuple[bool, Any]:
            found = self._locator.count()
            return found == count, found

        self._holds(look, f"{count} elements", timeout)

    def to_have_value(self, value: str, *, timeout: float | None = None) -> None:
        self._text("value", value, whole=True, invert=False, timeout=timeout)

    def to_have_text(self, text: Any, *, timeout: float | None = None) -> None:
        self._text("text_content", text, whole=True, invert=False, timeout=timeout)

    def not_to_have_text(self, text: Any, *, timeout: float | None = None) -> None:
        self._text("text_content", text, whole=True, invert=True, timeout=timeout)

    def to_contain_text(
        self, text: Any, *, use_inner_text: bool = False, timeout: float | None = None
    ) -> None:
        act = "inner_text" if use_inner_text else "text_content"
        self._text(act, text, whole=False, invert=False, timeout=timeout)

    def not_to_contain_text(self, text: Any, *, timeout: float | None = None) -> None:
        self._text("text_content", text, whole=False, invert=True, timeout=timeout)
