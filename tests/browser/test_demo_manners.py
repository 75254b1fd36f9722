"""The demo agent page: hostile text, keyboard, names, contrast, layout, and what it says when things fail."""

import re

import pytest
from conftest import OpenBrowser

from tests.browser.demo_visitor import READY_MS, Visit, picture_file
from tests.browser.engines import expect
from tools.serve import Override, StaticServer

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def test_remembered_text_is_text(visit: Visit) -> None:
    ann = visit()
    ann.say(f"I like {HOSTILE}")
    ann.say("What do you remember about img?")
    ann.page.locator("#recall .source").first.click()
    expect(ann.page.get_by_role("dialog")).to_contain_text(HOSTILE)
    assert ann.page.locator("#chat img, #memory img, dialog img, body script").count() == 0
    ann.page.reload()
    ann.ready()
    assert ann.page.locator("#messages .you .text").first.inner_text() == f"I like {HOSTILE}"
    assert "1" not in ann.page.title()
    ann.behaved()


def test_keyboard_alone(visit: Visit) -> None:
    ann = visit()
    keyboard = ann.page.keyboard
    keyboard.press("Tab")
    expect(ann.page.locator(".skip")).to_be_focused()
    keyboard.press("Enter")
    expect(ann.page.locator("#message")).to_be_focused()
    keyboard.type("My name is Ann")
    ann.answer_to(lambda: keyboard.press("Enter"))
    keyboard.type("line one")
    keyboard.press("Shift+Enter")
    keyboard.type("line two")
    ann.answer_to(lambda: keyboard.press("Enter"))
    expect(ann.page.locator("#messages .you").last).to_contain_text("line one\nline two", use_inner_text=True)
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
    for _ in range(40):
        keyboard.press("Tab")
        if str(ann.page.evaluate(focused)).startswith("Open where this comes from: Name"):
            break
    keyboard.press("Enter")
    dialog = ann.page.get_by_role("dialog", name="Source")
    expect(dialog).to_be_visible()
    assert ann.page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert ann.page.evaluate(focused).startswith("Open where this comes from: Name")
    for _ in range(40):
        keyboard.press("Tab")
        if str(ann.page.evaluate(focused)).startswith("Forget: My name is Ann"):
            break
    keyboard.press("Enter")
    expect(ann.page.get_by_role("button", name="Undo")).to_be_focused()
    keyboard.press("Enter")
    expect(ann.page.locator("#facts")).to_contain_text("Ann")
    ann.behaved()


UNNAMED = """() => {
  const named = (node) =>
    node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.length ||
    document.getElementById(node.getAttribute("aria-labelledby"))?.textContent;
  const visible = (node) => node.offsetParent !== null;
  const kinds = "button, input, textarea, dialog, section, aside, main, [role=log]";
  const bad = [...document.querySelectorAll(kinds)]
    .filter((node) => visible(node) && !named(node)).map((node) => node.outerHTML.slice(0, 120));
  bad.push(...[...document.querySelectorAll("img:not([alt])")].map((node) => node.outerHTML.slice(0, 120)));
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  bad.push(...ids.filter((id, index) => ids.indexOf(id) !== index));
  for (const node of document.querySelectorAll("[aria-controls], [aria-labelledby]")) {
    for (const name of ["aria-controls", "aria-labelledby"]) {
      const id = node.getAttribute(name);
      if (id && !document.getElementById(id)) bad.push(`${name}=${id}`);
    }
  }
  return bad;
}"""

CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colour, below) => {
    canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return `rgb(${r},${g},${b})`;
  };
  const light = (colour) => {
    const [r, g, b] = colour.match(/\\d+/g).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    const chain = [];
    for (let at = node; at; at = at.parentElement) chain.unshift(getComputedStyle(at).backgroundColor);
    return chain.reduce((below, colour) => over(colour, below), "rgb(255,255,255)");
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const words = [...node.childNodes].filter((one) => one.nodeType === 3 && one.data.trim());
    if (!words.length || node.offsetParent === null) continue;
    if (node.closest(".unseen, .skip, :disabled, script, .pending")) continue;
    const below = ground(node);
    const [a, b] = [light(over(getComputedStyle(node).color, below)), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push([node.className, node.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_names_contrast_and_layout(visit: Visit, scheme: str, width: int) -> None:
    ann = visit(color_scheme=scheme, viewport={"width": width, "height": 760})
    ann.say("My name is Ann")
    ann.say("No, it's Anna")
    ann.page.set_input_files("#picture", [picture_file()])
    ann.say("https://example.org/" + "very-long-word-" * 12)
    ann.say("What is my name?")
    ann.page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {})))")
    roles = {"main": 1, "banner": 1, "complementary": 1, "log": 1}
    views = ["#view-chat", "#view-memory"] if width < 860 else [None]
    for view in views:
        if view:
            ann.page.click(view)
        assert ann.page.evaluate(UNNAMED) == []
        assert ann.page.evaluate(CONTRAST) == []
        assert ann.page.evaluate("document.documentElement.scrollWidth") <= width
        outside = ann.page.evaluate(
            """(width) => [...document.querySelectorAll("main *, aside *")]
              .filter((node) => !node.closest(".tries, .unseen, pre") && node.getClientRects().length)
              .filter((node) => node.getBoundingClientRect().right > width + 1)
              .map((node) => node.outerHTML.slice(0, 90))""",
            width,
        )
        assert outside == []
        for role, count in roles.items():
            found = ann.page.get_by_role(role).count()
            assert found == (count if width >= 860 else min(count, found))
    assert ann.page.locator("h1").count() == 1
    ann.behaved()


def test_second_tab_that_cannot_share_is_told_and_can_retry(visit: Visit) -> None:
    ann = visit()
    ann.context.add_init_script("delete globalThis.BroadcastChannel")
    ann.page.reload()
    ann.ready()
    other = ann.context.new_page()
    other.goto(ann.url)
    alert = other.get_by_role("alert")
    expect(alert).to_contain_text("Another tab or window", timeout=READY_MS)
    expect(alert).to_contain_text("already_open")
    expect(other.locator("#send")).to_be_disabled()
    ann.page.close()
    other.get_by_role("button", name="Try again").click()
    expect(other.locator("#send")).to_be_enabled(timeout=READY_MS)


def test_failed_start_says_what_to_do(strict_site: StaticServer, open_browser: OpenBrowser) -> None:
    strict_site.overrides["/py-memory/runtime/pyodide.asm.wasm"] = Override(status=404)
    page = open_browser(locale="en-GB").pages[0]
    page.goto(strict_site.url)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("could not start", timeout=READY_MS)
    expect(alert).to_contain_text("pyodide.asm.wasm")
    strict_site.overrides.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#send")).to_be_enabled(timeout=READY_MS)


FLIP = """
async () => {
  const answered = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
  const db = await answered(indexedDB.open("py-memory:agent_memory"));
  const pages = db.transaction("pages", "readwrite").objectStore("pages");
  const record = await answered(pages.get(3));
  record[2000] ^= 1;
  await answered(pages.put(record, 3));
  db.close();
}
"""


def test_what_cannot_be_opened_can_still_be_had(visit: Visit) -> None:
    ann = visit()
    ann.say("I'm Ann")
    ann.page.goto(f"{ann.url}demo/icon.svg")
    ann.page.wait_for_timeout(300)
    ann.page.evaluate(FLIP)
    ann.page.goto(ann.url)
    alert = ann.page.get_by_role("alert").first
    expect(alert).to_contain_text("left untouched", timeout=READY_MS)
    expect(alert).to_contain_text("corrupt_image")
    with ann.page.expect_download(timeout=READY_MS) as download:
        ann.page.get_by_role("button", name="Download what is stored").click()
    assert download.value.path().read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_what_can_be_read_is_recovered_on_the_persons_word(visit: Visit, scheme: str, width: int) -> None:
    ann = visit(color_scheme=scheme, viewport={"width": width, "height": 760})
    ann.say("My name is Ann")
    ann.page.goto(f"{ann.url}demo/icon.svg")
    ann.page.wait_for_timeout(300)
    ann.page.evaluate(FLIP)
    ann.page.goto(ann.url)
    recover = ann.page.get_by_role("button", name="Recover what can be read")
    expect(recover).to_be_visible(timeout=READY_MS)
    assert ann.page.evaluate(UNNAMED) == []
    assert ann.page.evaluate(CONTRAST) == []
    recover.click()
    dialog = ann.page.get_by_role("dialog", name="Replace the damaged memory?")
    expect(dialog).to_contain_text("can be read", timeout=READY_MS)
    assert ann.page.evaluate(UNNAMED) == []
    assert ann.page.evaluate(CONTRAST) == []
    assert ann.page.evaluate("document.documentElement.scrollWidth") <= width
    dialog.get_by_role("button", name="Cancel").click()
    ann.page.reload()
    expect(ann.page.get_by_role("alert").first).to_contain_text("corrupt_image", timeout=READY_MS)
    recover.click()
    expect(dialog).to_be_visible(timeout=READY_MS)
    dialog.get_by_role("button", name="Replace it").click()
    expect(ann.page.locator("#send")).to_be_enabled(timeout=READY_MS)
    expect(ann.page.get_by_role("status").last).to_contain_text("replaced by what could be read")
    ann.ready()
    assert ann.page.locator("#messages .you .text").first.inner_text() == "My name is Ann"


def test_what_could_not_be_saved_is_not_shown_as_if_it_were(visit: Visit) -> None:
    ann = visit()
    ann.say("My name is Ann")
    long = "x" * 1_100_000
    ann.page.evaluate("(text) => { document.querySelector('#message').value = text; }", long)
    ann.page.press("#message", "Enter")
    expect(ann.page.get_by_role("alert")).to_contain_text("too large")
    expect(ann.page.locator("#messages .you")).to_have_count(1)
    assert ann.page.evaluate("document.querySelector('#message').value.length") == len(long)
    ann.page.fill("#message", "short again")
    ann.answer_to(lambda: ann.page.get_by_role("button", name="Try again").click())
    ann.behaved()


def test_keeping_data_and_storage_state(visit: Visit) -> None:
    ann = visit()
    ann.say("My name is Ann")
    storage = ann.page.locator("#storage")
    expect(storage).to_contain_text("in this browser")
    before = int(storage.locator("dd").last.inner_text().replace(",", ""))
    ann.say("It rains")
    expect(storage.locator("dd").last).not_to_have_text(str(before))
    ann.page.click("#keep")
    expect(ann.page.locator("#keep-answer")).to_contain_text(re.compile("promise"))
    ann.behaved()


def test_a_page_without_storage_says_that_nothing_is_kept(visit: Visit, strict_site: StaticServer) -> None:
    worker = strict_site.root / "py-memory" / "worker.js"
    strict_site.overrides["/py-memory/worker.js"] = Override(
        body=worker.read_bytes()
        + b"\nObject.defineProperty(globalThis, 'indexedDB', { value: undefined, configurable: true });\n",
        content_type="text/javascript",
    )
    ann = visit()
    banner = ann.page.locator("#unkept")
    expect(banner).to_be_visible()
    expect(banner).to_contain_text("Export a copy")
    ann.say("My name is Ann")
    expect(banner).to_be_visible()
    expect(ann.page.locator("#storage")).to_contain_text("only while this page is open")
    ann.page.click("#language-zh")
    expect(banner).to_contain_text("导出")
