"""The demo agent page: its whole story in two languages, pictures and places, data in and out."""

import base64
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.browser.demo_visitor import Visit, Visitor, picture_file, png
from tests.browser.engines import expect
from tools.serve import StaticServer


def test_story_in_english(visit: Visit, tmp_path: Path) -> None:
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
    expect(dialog).to_contain_text("12 Garden Road")
    ann.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    ann.behaved()

    messages = ann.messages()
    ann.page.reload()
    ann.ready()
    assert ann.messages() == messages
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


def test_story_in_chinese(visit: Visit, tmp_path: Path) -> None:
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
    (
        "I'm Ann and I like green tea.",
        "introduce",
        [("name", "name", "Ann"), ("preference", "green tea", "green tea")],
    ),
    ("I hate coriander", "prefer", [("preference", "coriander", "coriander")]),
    ("Please don't call me", "prefer", [("preference", "call me", "call me")]),
    ("My favourite colour is green", "prefer", [("preference", "favourite colour", "green")]),
    ("My work address is 1 St. Mary's Rd.", "address", [("address", "work", "1 St. Mary's Rd")]),
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


def test_rules(strict_site: StaticServer, page: Any) -> None:
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


def test_picture_and_place(visit: Visit) -> None:
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
          const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true });
          document.querySelector("#chat").dispatchEvent(drop);
          const other = new DataTransfer();
          other.items.add(new File(["x"], "x.txt", { type: "text/plain" }));
          const paste = new ClipboardEvent("paste", { clipboardData: other, cancelable: true });
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


def test_export_and_import(visit: Visit, tmp_path: Path) -> None:
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


def test_forget_and_clear_can_be_undone(visit: Visit) -> None:
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


def test_timeline_pages(visit: Visit) -> None:
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
