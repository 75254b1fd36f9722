"""Context, Page and Locator of the engines that Playwright does not drive, under Playwright's names."""

import base64
import mimetypes
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.browser.engines.engine import EngineError

IN_PAGE = (Path(__file__).parent / "in_page.js").read_text(encoding="utf-8")
TIMEOUT_MS = 30_000
POLL_SECONDS = 0.03

# The code points of WebDriver for keys that write nothing.
KEYS = {
    "Enter": "\ue007",
    "Tab": "\ue004",
    "Escape": "\ue00c",
    "Shift": "\ue008",
    "Control": "\ue009",
    "Backspace": "\ue003",
    "Delete": "\ue017",
    "ArrowUp": "\ue013",
    "ArrowDown": "\ue015",
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
    "Home": "\ue011",
    "End": "\ue010",
}


@dataclass(frozen=True)
class Message:
    """Something that the console heard."""

    text: str
    type: str = "log"


@dataclass(frozen=True)
class Request:
    """Something that a page asked for."""

    url: str


class Heard:
    """Handlers of events, as `on` of Playwright."""

    def __init__(self) -> None:
        self._handlers: dict[str, list[Callable[[Any], object]]] = {}

    def on(self, event: str, handler: Callable[[Any], object]) -> None:
        """Call the handler with each event of this name; between the calls that a test makes."""
        self._handlers.setdefault(event, []).append(handler)

    def tell(self, event: str, value: Any) -> None:
        """Call the handlers."""
        for handler in self._handlers.get(event, []):
            handler(value)


@dataclass
class Download:
    """A file that the page handed to the person."""

    suggested_filename: str
    file: Path

    def path(self) -> Path:
        """Return where the browser put it."""
        return self.file

    def save_as(self, target: Path) -> None:
        """Copy it."""
        shutil.copyfile(self.file, target)


@dataclass
class Downloads:
    """What `expect_download` gives: `value` is there when its block has ended."""

    found: list[Download] = field(default_factory=list)

    @property
    def value(self) -> Download:
        """Return the file."""
        return self.found[0]


class Context(Heard, ABC):
    """One person: a browser with its own storage."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[Any] = []
        self.downloads: list[Download] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def new_page(self) -> "Page":
        """Open one more window; it is visible, as every window of these browsers."""

    @abstractmethod
    def close(self) -> None:
        """End the browser in good order; doing so twice is fine."""

    @abstractmethod
    def add_init_script(self, script: str) -> None:
        """Run a script in every document that is opened from now on, before the document's own."""

    @abstractmethod
    def pump(self) -> None:
        """Tell the handlers of what has happened in the meantime."""


class Page(Heard, ABC):
    """One window with one document."""

    context: Any

    def __init__(self) -> None:
        super().__init__()
        self.timeout = TIMEOUT_MS
        self.keyboard = Keyboard(self)

    @abstractmethod
    def call(self, function: str, argument: Any) -> Any:
        """Call an async function in the page with one JSON value and return its JSON answer.

        Raises:
            EngineError: it threw, or the page is gone.
        """

    @abstractmethod
    def perform(self, actions: list[dict[str, Any]]) -> None:
        """Press keys and move the pointer, as WebDriver writes it."""

    @abstractmethod
    def goto(self, url: str) -> None:
        """Open an address and wait until it is loaded."""

    @abstractmethod
    def reload(self) -> None:
        """Load the document again."""

    @abstractmethod
    def go_back(self) -> None:
        """Go back in history, to a page that the browser may have kept whole."""

    @abstractmethod
    def close(self) -> None:
        """Close the window."""

    @abstractmethod
    def picture(self) -> bytes:
        """Return a PNG of what is seen."""

    @property
    def url(self) -> str:
        """The address of the document."""
        return str(self.evaluate("location.href"))

    def title(self) -> str:
        """Return the title of the document."""
        return str(self.evaluate("document.title"))

    def set_default_timeout(self, milliseconds: float) -> None:
        """Wait so long for elements; 0 is without end. Nothing limits `evaluate`."""
        self.timeout = milliseconds or 3_600_000

    def evaluate(self, source: str, argument: Any = None) -> Any:
        """Evaluate an expression, or call a function with the argument, and return what it promises."""
        body = f"const made = ({source.strip().removesuffix(';')}\n);"
        return self.call(
            f"async (given) => {{ {body} return typeof made === 'function' ? made(given) : made; }}", argument
        )

    def wait_for_function(self, source: str, *, arg: Any = None, timeout: float | None = None) -> None:
        """Wait until it answers something true."""
        self.wait(lambda: self.evaluate(source, arg), f"nothing true from {source!r}", timeout)

    def wait_for_timeout(self, milliseconds: float) -> None:
        """Let time pass."""
        end = time.monotonic() + milliseconds / 1000
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
        self.context.pump()

    def wait(self, look: Callable[[], Any], told: str, timeout: float | None = None) -> Any:
        """Look until there is an answer.

        Raises:
            EngineError: there was none in time.
        """
        end = time.monotonic() + (self.timeout if timeout is None else timeout or 3_600_000) / 1000
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > end:
                raise EngineError(f"waited in vain: {told}")
            time.sleep(POLL_SECONDS)

    def screenshot(self, *, path: Path | str | None = None, **_: Any) -> bytes:
        """Return a PNG of what is seen, and write it to the path."""
        data = self.picture()
        if path is not None:
            Path(path).write_bytes(data)
        return data

    def locator(self, selector: str) -> "Locator":
        """Return what the CSS selector selects."""
        return Locator(self, []).locator(selector)

    def get_by_role(self, role: str, *, name: str | None = None) -> "Locator":
        """Return what has this ARIA role and a name with this text in it."""
        return Locator(self, []).get_by_role(role, name=name)

    def get_by_label(self, text: str) -> "Locator":
        """Return the fields whose label has this text in it."""
        return Locator(self, []).get_by_label(text)

    def click(self, selector: str) -> None:
        """Click the one element of this selector."""
        self.locator(selector).click()

    def fill(self, selector: str, text: str) -> None:
        """Give a field this text."""
        self.locator(selector).fill(text)

    def press(self, selector: str, key: str) -> None:
        """Press a key in a field."""
        self.locator(selector).press(key)

    def set_input_files(self, selector: str, files: Any) -> None:
        """Choose files: paths, or dicts with name, mimeType and buffer."""
        self.locator(selector).set_input_files(files)

    @contextmanager
    def expect_download(self, *, timeout: float | None = None) -> Iterator[Downloads]:
        """Wait at the end of the block for a file that the page hands over."""
        found = Downloads()
        before = len(self.context.downloads)
        yield found

        def look() -> bool:
            self.context.pump()
            return len(self.context.downloads) > before

        self.wait(look, "no download", timeout)
        found.found.append(self.context.downloads[before])


class Keyboard:
    """The keys, for whatever has the focus."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, key: str) -> None:
        """Press and let go: "Enter", "a", "Shift+Enter"."""
        parts = [KEYS.get(part, part) for part in key.split("+")] if len(key) > 1 else [key]
        self._send(
            [{"type": "keyDown", "value": part} for part in parts]
            + [{"type": "keyUp", "value": part} for part in reversed(parts)]
        )

    def type(self, text: str) -> None:
        """Press one key after the other."""
        self._send(
            [{"type": kind, "value": char} for char in text for kind in ("keyDown", "keyUp")],
        )

    def _send(self, steps: list[dict[str, Any]]) -> None:
        self._page.perform([{"type": "key", "id": "keys", "actions": steps}])


class Locator:
    """Elements that are looked for when they are used."""

    def __init__(self, page: Page, steps: list[list[Any]]) -> None:
        self.page = page
        self.steps = steps

    def _then(self, kind: str, detail: Any) -> "Locator":
        return Locator(self.page, [*self.steps, [kind, detail]])

    def act(self, name: str, detail: Any = None) -> Any:
        """Do one thing of in_page.js once."""
        return self.page.call(f"async (given) => ({IN_PAGE})(given)", [self.steps, name, detail])

    def _when_there(self, name: str, detail: Any = None) -> Any:
        return self.page.wait(
            lambda: [one for one in [self.act(name, detail)] if one is not None], f"{self}"
        )[0]

    def __str__(self) -> str:
        return " > ".join(f"{kind} {detail}" for kind, detail in self.steps)

    def locator(self, selector: str) -> "Locator":
        """Return what the CSS selector selects inside."""
        return self._then("css", selector)

    def get_by_role(self, role: str, *, name: str | None = None) -> "Locator":
        """Return what has this ARIA role and a name with this text in it."""
        return self._then("role", [role, name])

    def get_by_label(self, text: str) -> "Locator":
        """Return the fields whose label has this text in it."""
        return self._then("label", text)

    def filter(self, *, has_text: str) -> "Locator":
        """Keep those with this text in them."""
        return self._then("text", has_text)

    def nth(self, index: int) -> "Locator":
        """Keep one of them."""
        return self._then("nth", index)

    @property
    def first(self) -> "Locator":
        """The first of them."""
        return self.nth(0)

    @property
    def last(self) -> "Locator":
        """The last of them."""
        return self.nth(-1)

    def count(self) -> int:
        """Return how many there are now."""
        return int(self.act("count"))

    def all(self) -> list["Locator"]:
        """Return one locator for each that is there now."""
        return [self.nth(index) for index in range(self.count())]

    def all_inner_texts(self) -> list[str]:
        """Return the texts of those that are there now."""
        return list(self.act("texts"))

    def inner_text(self) -> str:
        """Return its text as it is seen."""
        return str(self._when_there("inner_text"))

    def get_attribute(self, name: str) -> str | None:
        """Return one of its attributes."""
        found: str | None = self._when_there("attribute", name)[0]
        return found

    def click(self) -> None:
        """Click in its middle, once it is there and nothing covers it."""
        x, y = self._when_there("place")
        self.page.perform(
            [
                {
                    "type": "pointer",
                    "id": "mouse",
                    "parameters": {"pointerType": "mouse"},
                    "actions": [
                        {"type": "pointerMove", "x": x, "y": y},
                        {"type": "pointerDown", "button": 0},
                        {"type": "pointerUp", "button": 0},
                    ],
                }
            ]
        )

    def check(self) -> None:
        """Tick it, unless it is ticked."""
        if not self._when_there("state").get("checked"):
            self.click()

    def fill(self, text: str) -> None:
        """Give it this text."""
        self._when_there("fill", text)

    def press(self, key: str) -> None:
        """Give it the focus and press a key."""
        self._when_there("focus")
        self.page.keyboard.press(key)

    def set_input_files(self, files: Any) -> None:
        """Choose files: paths, or dicts with name, mimeType and buffer."""
        given = files if isinstance(files, Sequence) and not isinstance(files, str) else [files]
        self._when_there("files", [_file(one) for one in given])


def _file(one: Any) -> dict[str, str]:
    if isinstance(one, dict):
        name, kind, data = one["name"], one["mimeType"], one["buffer"]
    else:
        name, data = Path(one).name, Path(one).read_bytes()
        kind = mimetypes.guess_type(name)[0] or ""
    return {"name": name, "type": kind, "base64": base64.b64encode(data).decode()}


def matches(text: str, wanted: str | re.Pattern[str], *, whole: bool) -> bool:
    """Return whether a text is, or has in it, what is wanted; white space counts as one space."""
    if isinstance(wanted, re.Pattern):
        return bool(wanted.search(text))
    text, wanted = " ".join(text.split()), " ".join(wanted.split())
    return text == wanted if whole else wanted in text
