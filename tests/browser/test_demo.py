"""The demo agent page: its whole story in two languages, its buttons, its manners."""

import base64
import json
import re
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import OpenBrowser
from playwright.sync_api import BrowserContext, Page, expect

from tools.serve import Override, StaticServer

READY_MS = 60_000

WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective), true);
"""


class Visitor:
    """A person with one browser profile at the demo page, and what must not happen there."""

    def __init__(self, context: BrowserContext, url: str) -> None:
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

    def facts(self) -> dict[str, str]:
        rows = self.page.locator("#facts li")
        return {row.locator(".soft").inner_text(): row.locator(".value").inner_text() for row in rows.all()}

    def count(self, name: str) -> int:
        return int(self.page.locator(f"#count-{name}").inner_text().replace(",", ""))

    def behaved(self) -> None:
        """Nothing was refused by the policy, nothing left for another origin, the console is empty."""
        assert self.page.evaluate("violations") == []
        assert self.foreign == []
        assert self.console == []


@pytest.fixture
def visit(strict_site: StaticServer, open_browser: OpenBrowser) -> Iterator:
    def come(profile: Path | None = None, **options) -> Visitor:
        options.setdefault("locale", "en-GB")
        return Visitor(open_browser(profile, **options), strict_site.url + "/")

    return come


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


def test_story_in_english(visit, tmp_path: Path) -> None:
    ann = visit(tmp_path / "ann")
    assert "What is your name?" in ann.page.locator(".greeting").inner_text()
    assert "Nice to meet you, Ann!" in ann.say("Hi, I'm Ann")
    assert "window seats" in ann.say("I prefer window seats")
    booked = ann.say("Book a flight from SHA to PEK on Friday")
    assert "SHA → PEK, Friday" in booked
    assert "likes window seats" in booked  # it uses what it knows
    assert "Saturday" in ann.say("No, actually it's Saturday")
    assert "12 Garden Road, Leeds" in ann.say("My address is 12 Garden Road, Leeds")
    changed = ann.say("No, it's 5 Mill Lane, York")
    assert "5 Mill Lane, York" in changed
    assert "12 Garden Road" in changed
    assert "surer" in ann.say("Maybe my name is Bob")
    assert ann.facts() == {
        "Name": "Ann",
        "Preference": "likes window seats",
        "Flight": "SHA → PEK, Saturday",
        "Address": "5 Mill Lane, York",
    }

    answer = ann.say("What do you remember about window seats?")
    assert "I prefer window seats" in answer
    hit = ann.page.locator("#recall .hit").first
    expect(hit.locator(".hit-body")).to_have_text("I prefer window seats")
    assert hit.locator(".tier").inner_text() == "L3"
    weight, relevance, strength = (float(text) for text in hit.locator(".bar .number").all_inner_texts())
    score = float(re.search(r"\d\.\d\d", hit.locator(".score").inner_text())[0])
    assert weight * relevance * strength == pytest.approx(score, abs=0.02)

    address = ann.say("What is my address?")
    assert "Address: 5 Mill Lane, York" in address
    first = ann.page.locator("#recall .hit")
    assert first.first.locator(".tier").inner_text() == "L1"
    assert ann.page.locator("#recall .hit.stale").count() == 1
    assert "nothing about" in ann.say("What do you remember about zebras?")

    ann.page.locator("#messages .ref").last.click()
    dialog = ann.page.get_by_role("dialog", name="Source")
    expect(dialog).to_contain_text("No, it's 5 Mill Lane, York") if "5 Mill" in dialog.inner_text() else (
        expect(dialog).to_contain_text("12 Garden Road")
    )
    ann.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    ann.behaved()

    messages = ann.page.locator("#messages .message").count()
    ann.page.reload()
    ann.ready()
    assert ann.page.locator("#messages .message").count() == messages
    assert "York" in ann.say("where do I live")
    ann.context.close()

    again = visit(tmp_path / "ann")
    assert again.facts()["Name"] == "Ann"
    again.page.click("#new-conversation")
    greeting = again.page.locator(".greeting")
    expect(greeting).to_contain_text("Welcome back, Ann!")
    everything = again.say("What do you remember about me?")
    for fact in ("Ann", "window seats", "SHA → PEK, Saturday", "5 Mill Lane, York"):
        assert fact in everything
    assert again.count("sessions") == 2
    again.behaved()


def test_story_in_chinese(visit, tmp_path: Path) -> None:
    an = visit(tmp_path / "an", locale="zh-CN")
    assert an.page.locator("html").get_attribute("lang") == "zh-CN"
    assert "很高兴认识您，小安" in an.say("我叫小安")
    assert "靠窗的座位" in an.say("我更喜欢靠窗的座位")
    assert "请不要打电话给我" in an.say("不要打电话给我")
    assert "出发地、目的地和日期" in an.say("我想订机票")
    assert "上海 → 北京, 周五" in an.say("从上海到北京，周五")
    assert "周六" in an.say("不对，是周六")
    an.say("我的地址是上海市浦东新区世纪大道1号")
    assert "南京西路2号" in an.say("不对，是南京西路2号")
    assert "靠窗的座位" in an.say("关于座位你记得什么？")
    assert "南京西路2号" in an.say("我的地址是什么？")
    assert "上海 → 北京, 周六" in an.say("你还记得我的机票吗？")
    an.behaved()
    an.context.close()

    again = visit(tmp_path / "an", locale="zh-CN")
    again.page.click("#new-conversation")
    expect(again.page.locator(".greeting")).to_contain_text("欢迎回来，小安")
    everything = again.say("关于我，你记得什么？")
    for fact in ("小安", "靠窗的座位", "上海 → 北京, 周六", "南京西路2号"):
        assert fact in everything

    # What was said in Chinese answers in English too, and the choice of language stays.
    again.page.click("#language-en")
    assert "南京西路2号" in again.say("What is my address?")
    again.page.reload()
    again.ready()
    expect(again.page.locator("#chat-title")).to_have_text("Conversation")
    again.behaved()


RULES = [
    ("Hello there", "greet", []),
    ("My name is ann", "introduce", [("name", "name", "Ann")]),
    ("I'm tired", "note", []),
    ("I'm Ann and I like green tea.", "introduce", [("name", "name", "Ann"), ("preference", "green tea", "green tea")]),
    ("I hate coriander", "prefer", [("preference", "coriander", "coriander")]),
    ("Please don't call me after nine", "prefer", [("preference", "call me after nine", "call me after nine")]),
    ("My favourite colour is green", "prefer", [("preference", "favourite colour", "green")]),
    ("My delivery address is 12 St. Mary's Rd., London", "address", [("address", "delivery", "12 St. Mary's Rd., London")]),
    ("Book a table for two on Friday at 7 pm", "book", [("book_table", "friday 7 pm two", "Friday")]),
    ("My dog is called Rex", "tell", [("fact", "dog", "dog")]),
    ("No, it's blue", "puzzled", []),
    ("What do you remember about Rex?", "ask", []),
    ("It rains", "note", []),
    ("你好，我是小安", "introduce", [("name", "name", "小安")]),
    ("我是学生", "note", []),
    ("我不喜欢香菜", "prefer", [("preference", "香菜", "香菜")]),
    ("我最喜欢的颜色是绿色", "prefer", [("preference", "favourite 颜色", "绿色")]),
    ("我的收货地址是北京路1号", "address", [("address", "delivery", "北京路1号")]),
    ("订一张周五从SHA到PEK的机票", "book", [("book_flight", "sha pek 周五", "SHA")]),
    ("我的狗叫旺财", "tell", [("fact", "狗", "狗")]),
    ("关于旺财你记得什么", "ask", []),
    ("今天天气真好", "note", []),
]  # fmt: skip


def test_rules(strict_site: StaticServer, page: Page) -> None:
    page.goto(strict_site.url)
    read = page.evaluate(
        """async (texts) => {
          const { understand } = await import("/demo/rules.js");
          return texts.map((text) => understand(text));
        }""",
        [text for text, _, _ in RULES],
    )
    seen = [
        (text, one["act"], [(f["name"], f["key"], next(iter(f["entities"].values()))) for f in one["facts"]])
        for (text, _, _), one in zip(RULES, read, strict=True)
    ]
    assert seen == RULES


def test_picture_and_place(visit) -> None:
    ann = visit()
    ann.page.set_input_files("#picture", [picture_file()])
    expect(ann.page.locator(".preview img")).to_be_visible()
    ann.say("This is my blue backpack")
    assert "blue backpack" in ann.say("What do you remember about my backpack?")
    expect(ann.page.locator("#recall .hit img")).to_be_visible()
    assert ann.count("pictures") == 1

    # Dropped and pasted pictures come the same way; what is no picture is refused.
    ann.page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
          data.items.add(new File([bytes], "dropped.png", { type: "image/png" }));
          document.querySelector("#chat").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
          const other = new DataTransfer();
          other.items.add(new File(["x"], "x.txt", { type: "text/plain" }));
          const paste = new ClipboardEvent("paste", { clipboardData: other, bubbles: true, cancelable: true });
          document.querySelector("#message").dispatchEvent(paste);
        }""",
        base64.b64encode(png(20, 20)).decode(),
    )
    expect(ann.page.locator(".preview")).to_have_count(1)
    expect(ann.page.get_by_role("alert")).to_contain_text("Only pictures")
    ann.answer_to(lambda: ann.page.click("#send"))
    assert ann.count("pictures") == 2

    ann.page.click("#share-place")
    dialog = ann.page.get_by_role("dialog", name="Share a place")
    dialog.get_by_role("button", name="Use my position").click()
    expect(dialog.get_by_role("status")).to_contain_text("type the place instead")
    dialog.get_by_label("Latitude").fill("131")
    dialog.get_by_role("button", name="Share").click()
    expect(dialog.get_by_role("alert")).to_contain_text("from −90 to 90")
    dialog.get_by_label("Latitude").fill("31.2304")
    dialog.get_by_label("Longitude").fill("121.4737")
    dialog.get_by_label("Name of the place").fill("People's Square")
    ann.answer_to(lambda: dialog.get_by_role("button", name="Share").click())
    assert ann.facts()["Place"] == "People's Square (31.2304, 121.4737)"

    ann.context.grant_permissions(["geolocation"])
    ann.context.set_geolocation({"latitude": 53.8, "longitude": -1.55})
    ann.page.click("#share-place")
    dialog.get_by_role("button", name="Use my position").click()
    expect(dialog.get_by_label("Latitude")).to_have_value("53.8")
    ann.answer_to(lambda: dialog.get_by_role("button", name="Share").click())
    assert "People's Square" in ann.say("What do you know about People's Square?")
    ann.behaved()


def downloaded(visitor: Visitor, button: str, folder: Path) -> Path:
    with visitor.page.expect_download() as download:
        visitor.page.click(button)
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_export_and_import(visit, tmp_path: Path) -> None:
    ann = visit()
    ann.say("My name is Ann")
    ann.page.set_input_files("#picture", [picture_file()])
    ann.say("This is my blue backpack")
    exported = downloaded(ann, "#export-json", tmp_path)
    image = downloaded(ann, "#export-image", tmp_path)
    ann.behaved()

    data = json.loads(exported.read_text("utf-8"))
    assert data["format"] == "py-memory"
    [kept] = [base64.b64decode(row["data"]) for row in data["fragments"] if row["type"] == "image"]
    assert kept == png()
    with closing(sqlite3.connect(image)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        blobs = database.execute("SELECT data FROM fragments WHERE type = 'image'").fetchall()
        assert [bytes(blob) for (blob,) in blobs] == [png()]

    bob = visit()
    bob.page.set_input_files("#import-file", exported)
    dialog = bob.page.get_by_role("dialog", name="Import this file?")
    expect(dialog).to_contain_text(f"{len(data['fragments'])} memories")
    dialog.get_by_role("button", name="Import").click()
    expect(bob.page.get_by_role("status").filter(has_text="Imported")).to_be_visible()
    assert bob.facts() == {"Name": "Ann"}
    assert "blue backpack" in bob.say("What do you remember about the backpack?")
    bob.page.set_input_files("#import-file", exported)
    expect(dialog).to_contain_text("nothing new")
    dialog.get_by_role("button", name="Cancel").click()
    damaged = {"name": "x.json", "mimeType": "application/json", "buffer": b'{"format": "py-memory"'}
    bob.page.set_input_files("#import-file", damaged)
    expect(bob.page.get_by_role("alert")).to_contain_text("Nothing was imported")
    bob.behaved()

    eve = visit()
    eve.say("My name is Eve")
    eve.page.set_input_files("#import-file", image)
    replace = eve.page.get_by_role("dialog", name="Replace the whole memory?")
    replace.get_by_role("button", name="Replace").click()
    expect(eve.page.locator("#facts")).to_contain_text("Ann")
    expect(eve.page.locator("#messages")).to_contain_text("This is my blue backpack")
    eve.page.get_by_role("button", name="Undo").click()
    expect(eve.page.locator("#facts")).to_contain_text("Eve")
    assert eve.facts() == {"Name": "Eve"}
    eve.behaved()


def test_forget_and_clear_can_be_undone(visit) -> None:
    ann = visit()
    ann.say("My name is Ann")
    ann.say("My secret hobby is juggling")
    assert "juggling" in ann.say("What do you remember about my hobby?")
    before = ann.count("fragments")
    ann.page.get_by_role("button", name="Forget: My secret hobby is juggling").click()
    undo = ann.page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    # The answers that repeat it are gone with it.
    expect(ann.page.locator("body")).not_to_contain_text("juggling")
    assert ann.count("fragments") == before - 3
    undo.click()
    expect(ann.page.locator("#facts")).to_contain_text("juggling")
    assert ann.count("fragments") == before

    ann.page.click("#clear")
    dialog = ann.page.get_by_role("dialog", name="Forget everything?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Cancel").click()
    assert ann.count("fragments") == before
    ann.page.click("#clear")
    dialog.get_by_role("button", name="Forget everything").click()
    expect(ann.page.locator("#count-fragments")).to_have_text("0")
    expect(ann.page.locator("#facts")).to_contain_text("No facts yet")
    undo.click()
    expect(ann.page.locator("#count-fragments")).to_have_text(str(before))
    assert ann.facts()["Name"] == "Ann"
    expect(ann.page.locator("#messages")).to_contain_text("juggling")
    ann.behaved()


def test_timeline_pages(visit) -> None:
    ann = visit()
    for number in range(10):
        ann.say(f"Note number {number}")
    rows = ann.page.locator("#timeline li:not(.day)")
    expect(rows).to_have_count(8)
    ann.page.get_by_role("button", name="Show older").click()
    expect(rows).to_have_count(10)
    expect(rows.last).to_contain_text("Note number 0")
    ann.page.get_by_label("Answers too").check()
    expect(ann.page.locator("#timeline li.assistant").first).to_be_visible()
    ann.behaved()


HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def test_remembered_text_is_text(visit) -> None:
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


def test_keyboard_alone(visit) -> None:
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
  const bad = [...document.querySelectorAll("button, input, textarea, dialog, section, aside, main, [role=log]")]
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
    if (!words.length || node.offsetParent === null || node.closest(".unseen, .skip, :disabled, script, .pending")) continue;
    const below = ground(node);
    const [a, b] = [light(over(getComputedStyle(node).color, below)), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push([node.className, node.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_names_contrast_and_layout(visit, scheme: str, width: int) -> None:
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
              .filter((node) => node.getBoundingClientRect().right > width + 1).map((node) => node.outerHTML.slice(0, 90))""",
            width,
        )
        assert outside == []
        for role, count in roles.items():
            found = ann.page.get_by_role(role).count()
            assert found == (count if width >= 860 else min(count, found))
    assert ann.page.locator("h1").count() == 1
    ann.behaved()


def test_second_tab_is_told_and_can_retry(visit) -> None:
    ann = visit()
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


def test_what_could_not_be_saved_is_not_shown_as_if_it_were(visit) -> None:
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


def test_keeping_data_and_storage_state(visit) -> None:
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
