"""The demo page reminds of an export: when it is due, and that it leaves people in peace."""

import time

import pytest

from tests.browser.demo_visitor import Visit, Visitor
from tests.browser.engines import expect
from tests.browser.scripted import BLANK, put_blank
from tools.serve import StaticServer

DAY_MS = 86_400_000
EXPORTED = "py-memory.demo.exported"
DISMISSED = "py-memory.demo.reminder-dismissed"

WRITE = """
async ({ count, at }) => {
  const { openMemory } = await import("/py-memory/memory.js");
  const memory = await openMemory({ name: "agent_memory" });
  const session = await memory.startSession({ userId: "me", sessionId: "other" });
  await session.rememberMany(Array.from({ length: count }, (_, n) => ({ content: `note ${n}`, at })));
  await memory.close();
}
"""

NO_LOCAL_STORAGE = """
Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("refused", "SecurityError"); },
});
"""


@pytest.fixture(autouse=True)
def blank(strict_site: StaticServer) -> None:
    put_blank(strict_site)


def now() -> int:
    return int(time.time() * 1000)


def keep(visitor: Visitor, key: str, at: int) -> None:
    visitor.page.evaluate("([key, at]) => localStorage.setItem(key, at)", [key, str(at)])


def come_again(visitor: Visitor) -> None:
    visitor.page.reload()
    visitor.ready()


def write(visitor: Visitor, count: int, at: int) -> None:
    """Remember in another tab, without a conversation."""
    other = visitor.context.new_page()
    other.goto(visitor.url.rstrip("/") + BLANK)
    other.evaluate(WRITE, {"count": count, "at": at})
    other.close()
    expect(visitor.page.locator("#count-fragments")).not_to_have_text("0")


def test_a_week_without_an_export_is_told_until_there_is_one(visit: Visit) -> None:
    ann = visit()
    reminder = ann.page.locator("#reminder")
    keep(ann, EXPORTED, now() - 8 * DAY_MS)
    come_again(ann)
    expect(reminder).to_be_hidden()  # nothing is there that could be lost
    ann.say("My name is Ann")
    expect(reminder).to_contain_text("The last export was 8 days ago.")
    expect(reminder).to_contain_text("A browser may clear what a site keeps")
    ann.page.click("#language-zh")
    expect(reminder).to_contain_text("上次导出是 8 天前")
    with ann.page.expect_download() as download:
        ann.page.click("#reminder-export")
    assert '"Ann"' in download.value.path().read_text("utf-8")
    expect(reminder).to_be_hidden()
    expect(ann.page.locator("#export-json")).to_be_focused()
    come_again(ann)
    expect(reminder).to_be_hidden()
    keep(ann, EXPORTED, now() - 6 * DAY_MS)
    come_again(ann)
    expect(reminder).to_be_hidden()
    ann.behaved()


def test_fifty_new_memories_are_enough(visit: Visit) -> None:
    ann = visit()
    reminder = ann.page.locator("#reminder")
    keep(ann, EXPORTED, now() - DAY_MS)
    write(ann, 49, now())
    expect(ann.page.locator("#count-fragments")).to_have_text("49")
    come_again(ann)
    expect(reminder).to_be_hidden()
    write(ann, 1, now())
    expect(reminder).to_contain_text("50 memories or more")
    with ann.page.expect_download():
        ann.page.click("#export-image")
    expect(reminder).to_be_hidden()
    ann.behaved()


def test_what_was_never_exported_counts_from_the_first_memory(visit: Visit) -> None:
    ann = visit()
    write(ann, 1, now() - 8 * DAY_MS)
    expect(ann.page.locator("#reminder")).to_contain_text("Nothing has been exported yet.")


def test_dismissed_it_stays_away_for_a_day(visit: Visit) -> None:
    ann = visit()
    reminder = ann.page.locator("#reminder")
    keep(ann, EXPORTED, now() - 8 * DAY_MS)
    ann.say("It rains")
    ann.page.get_by_role("button", name="Not today").click()
    expect(reminder).to_be_hidden()
    ann.say("It pours")
    expect(reminder).to_be_hidden()
    come_again(ann)
    expect(reminder).to_be_hidden()
    keep(ann, DISMISSED, now() - DAY_MS + 60_000)
    come_again(ann)
    expect(reminder).to_be_hidden()
    keep(ann, DISMISSED, now() - DAY_MS)
    come_again(ann)
    expect(reminder).to_be_visible()
    ann.behaved()


@pytest.mark.parametrize("way", ["#reminder-later", "#reminder-export"])
def test_where_nothing_can_be_kept_once_on_a_page_is_enough(visit: Visit, way: str) -> None:
    ann = visit()
    reminder = ann.page.locator("#reminder")
    ann.context.add_init_script(NO_LOCAL_STORAGE)
    come_again(ann)
    write(ann, 1, now() - 8 * DAY_MS)
    expect(reminder).to_be_visible()
    ann.page.click(way)
    expect(reminder).to_be_hidden()
    ann.say("It rains")
    expect(reminder).to_be_hidden()
    come_again(ann)
    expect(reminder).to_be_visible()
    ann.behaved()
