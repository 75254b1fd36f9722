"""A person at the demo page, for its tests."""

import struct
import zlib
from collections.abc import Callable
from typing import Any

from tests.browser.engines import expect

READY_MS = 60_000

WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective), true);
"""


class Visitor:
    """A person with one browser profile at the demo page, and what must not happen there."""

    def __init__(self, context: Any, url: str) -> None:
        self.context = context
        self.url = url
        self.page = context.pages[0]
        self.console: list[str] = []
        self.foreign: list[str] = []
        context.add_init_script(WATCH)
        context.on("console", lambda message: self.console.append(message.text))
        context.on("request", self._requested)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.goto(url)
        self.ready()

    def _requested(self, request) -> None:
        if not request.url.startswith((self.url, "blob:" + self.url.rstrip("/"), "data:")):
            self.foreign.append(request.url)

    def another_tab(self) -> Any:
        """Go on in one more tab; gives the page that was looked at before."""
        before, self.page = self.page, self.context.new_page()
        self.page.goto(self.url)
        self.ready()
        return before

    def ready(self) -> None:
        expect(self.page.locator("#send")).to_be_enabled(timeout=READY_MS)

    def say(self, text: str) -> str:
        """Send a message and return what the assistant answers."""
        self.page.fill("#message", text)
        return self.answer_to(lambda: self.page.press("#message", "Enter"))

    def answer_to(self, act) -> str:
        answers = self.page.locator("#messages .agent:not(.greeting)")
        count = answers.count()
        act()
        expect(answers).to_have_count(count + 1, timeout=15_000)
        self.ready()
        return answers.last.locator(".bubble > .text").inner_text()

    def messages(self) -> list[str]:
        """What is seen of the conversation; the greeting is made anew each time."""
        return self.page.locator("#messages .message:not(.greeting) .bubble").all_inner_texts()

    def facts(self) -> dict[str, str]:
        rows = self.page.locator("#facts li")
        return {row.locator(".soft").inner_text(): row.locator(".value").inner_text() for row in rows.all()}

    def count(self, name: str) -> int:
        return int(self.page.locator(f"#count-{name}").inner_text().replace(",", ""))

    def behaved(self) -> None:
        """Nothing was refused by the policy, nothing left for another origin, the console is empty."""
        assert self.page.evaluate("violations") == []
        assert self.foreign == []
        assert not self.console, self.console


def png(width: int = 60, height: int = 40) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (x * 4, y * 6, 120)) for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def picture_file(name: str = "backpack.png") -> dict:
    return {"name": name, "mimeType": "image/png", "buffer": png()}


Visit = Callable[..., Visitor]
