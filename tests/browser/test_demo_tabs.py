"""The demo page in several tabs: they work as one, and say so when the memory is closed."""

from pathlib import Path

from tests.browser.demo_visitor import READY_MS, Visit
from tests.browser.engines import expect
from tests.browser.scripted import put_blank
from tests.browser.test_tabs import newer
from tools.serve import StaticServer


def test_two_tabs_work_as_one_and_the_second_goes_on(visit: Visit) -> None:
    ann = visit()
    ann.say("My name is Ann")
    first = ann.another_tab()
    first.fill("#message", "half a sent")
    ann.say("I prefer window seats")
    expect(first.locator("#messages .message:not(.greeting)")).to_have_count(4)
    expect(first.locator("#facts")).to_contain_text("window seats")
    assert first.input_value("#message") == "half a sent"
    ann.page.fill("#message", "It is typed")
    first.close()
    expect(ann.page.locator("#boot")).to_be_hidden()
    assert ann.page.input_value("#message") == "It is typed"
    ann.page.press("#message", "Enter")
    expect(ann.page.locator("#messages .message:not(.greeting)")).to_have_count(6, timeout=READY_MS)
    ann.ready()
    ann.behaved()


FOCUSED = "document.activeElement.getAttribute('aria-label')"
WRITTEN = """
async () => {
  const { openMemory } = await import("/py-memory/memory.js");
  const memory = await openMemory({ name: "agent_memory" });
  const session = await memory.startSession({ userId: "me", sessionId: "other" });
  await session.remember("It snows");
  await memory.close();
}
"""


def test_what_another_tab_writes_leaves_the_focus_where_it_was(
    visit: Visit, strict_site: StaticServer
) -> None:
    ann = visit()
    ann.say("My name is Ann")
    other = ann.context.new_page()
    other.goto(put_blank(strict_site))
    rows = ann.page.locator("#timeline li:not(.day)")
    expect(rows).to_have_count(1)
    for number, opener in enumerate(("#facts button", "#timeline li:last-child button.entry")):
        ann.page.focus(opener)
        name = ann.page.evaluate(FOCUSED)
        other.evaluate(WRITTEN)
        expect(rows).to_have_count(2 + 2 * number)
        assert ann.page.evaluate(FOCUSED) == name
        ann.page.keyboard.press("Enter")
        dialog = ann.page.get_by_role("dialog", name="Source")
        expect(dialog).to_be_visible()
        other.evaluate(WRITTEN)
        expect(rows).to_have_count(3 + 2 * number)
        ann.page.keyboard.press("Escape")
        expect(ann.page.locator("dialog")).to_have_count(0)
        assert ann.page.evaluate(FOCUSED) == name
    ann.behaved()


OPEN_NEWER = """
async () => {
  const { openMemory } = await import("/newer/memory.js");
  window.memory = await openMemory({ name: "agent_memory" });
}
"""


def test_an_outdated_page_offers_a_reload(visit: Visit, strict_site: StaticServer, dist: Path) -> None:
    ann = visit()
    ann.say("My name is Ann")
    newer(strict_site, dist)
    other = ann.context.new_page()
    other.goto(f"{ann.url}demo/icon.svg")
    other.evaluate(OPEN_NEWER)
    alert = ann.page.get_by_role("alert").filter(has_text="A newer version of this page")
    expect(alert).to_be_visible()
    expect(ann.page.locator("#send")).to_be_disabled()
    expect(ann.page.locator("#export-json")).to_be_disabled()
    expect(ann.page.locator("#messages")).to_contain_text("My name is Ann")
    ann.page.keyboard.press("Escape")
    expect(alert).to_be_visible()  # nothing else can be done here
    other.close()
    ann.page.get_by_role("button", name="Reload").click()
    expect(ann.page.locator("#facts")).to_contain_text("Ann", timeout=READY_MS)
    ann.ready()
    expect(alert).to_have_count(0)


DELETE = """() => new Promise((resolve, reject) => {
  const request = indexedDB.deleteDatabase("py-memory:agent_memory");
  request.onsuccess = () => resolve();
  request.onerror = () => reject(request.error);
})"""


def test_a_memory_that_was_closed_stays_told_and_can_be_opened_again(visit: Visit) -> None:
    ann = visit()
    ann.say("My name is Ann")
    owner = ann.another_tab()
    owner.evaluate(DELETE)
    owner.close()
    ann.page.fill("#message", "It rains")
    ann.page.press("#message", "Enter")
    alert = ann.page.get_by_role("alert").filter(has_text="storage_lost")
    expect(alert).to_be_visible(timeout=READY_MS)
    expect(ann.page.locator("#send")).to_be_disabled()
    expect(ann.page.locator("#messages .you")).to_have_count(1)  # not shown as if it were saved
    assert ann.page.input_value("#message") == "It rains"
    ann.page.get_by_role("button", name="Open again").click()
    ann.ready()
    expect(ann.page.locator("#count-fragments")).to_have_text("0")
    assert ann.page.input_value("#message") == "It rains"
