"""The browsers that the end-to-end tests run in, behind one set of names: those of Playwright's sync API.

`chromium` hands out Playwright's own objects. `firefox` (WebDriver BiDi) and `webkit` (WebKitWebDriver with a
small browser of our own, because MiniBrowser keeps nothing under automation) hand out a Context, Page and
Locator that know the part of Playwright's names that the tests use. What only one of them can do is a method
of the engine, or a test that says so with `@only("chromium", because="...")`.

A test with two tabs, in every engine:

    from tests.browser.engines import Engine, expect, only

    @pytest.mark.core                                   # CI runs it in firefox and webkit too
    def test_another_tab_takes_over(engine: Engine, open_browser, site, tmp_path):
        profile = tmp_path / "ann"
        context = open_browser(profile)                 # starts the browser on this profile folder
        first, second = context.pages[0], context.new_page()
        for page in (first, second):
            page.goto(f"{site.url}/blank.html")
        first.evaluate("async (name) => { globalThis.m = await (await import('/x.js')).open(name); }", "one")
        engine.freeze(first)                            # stops answering; engine.thaw(first) lets it go on
        assert second.evaluate("() => m.ready()") is True
        engine.thaw(first)
        first.close()                                   # as a person closes a tab
        engine.kill(context)                            # SIGKILL of every process of the browser
        again = open_browser(profile).pages[0]          # the same person comes back

`page.evaluate(source, argument)` takes an expression or a function, awaits what it answers, and passes JSON
both ways. Work that has to go on while another tab is looked at is begun without waiting for it, and asked
for later: `page.evaluate("() => { globalThis.write = m.remember('x'); }")`, then `page.evaluate("write")`.
"""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Playwright

from tests.browser.engines.chromium import Chromium
from tests.browser.engines.engine import Engine, EngineError
from tests.browser.engines.expect import expect
from tests.browser.engines.firefox import Firefox
from tests.browser.engines.page import Context, Locator, Page
from tests.browser.engines.webkit import WebKit
from tools.project import Project

ENGINES = ("chromium", "firefox", "webkit")

__all__ = [
    "ENGINES",
    "Context",
    "Engine",
    "EngineError",
    "Locator",
    "Page",
    "expect",
    "only",
    "start_engine",
]


def only(*names: str, because: str) -> pytest.MarkDecorator:
    """Mark a test that only these engines can run; the reason is shown wherever it is left out."""
    assert set(names) < set(ENGINES)
    assert because
    return pytest.mark.only(*names, because=because)


def start_engine(name: str, project: Project, playwright: Callable[[], Playwright]) -> Engine:
    """Return the engine of this name; its driver starts with the first browser."""
    kinds: dict[str, Callable[[], Any]] = {
        "chromium": lambda: Chromium(project, playwright),
        "firefox": lambda: Firefox(project),
        "webkit": lambda: WebKit(project),
    }
    return kinds[name]()
