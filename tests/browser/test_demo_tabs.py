"""The demo page in several tabs: they work as one, and say so when the memory is closed."""

from playwright.sync_api import expect

from tests.browser.demo_visitor import READY_MS, Visit


def test_two_tabs_work_as_one_and_the_second_goes_on(visit: Visit) -> None:
    ann = visit()
    ann.say("My name is Ann")
    first = ann.page
    ann.page = ann.context.new_page()
    ann.page.goto(ann.url)
    ann.ready()
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
