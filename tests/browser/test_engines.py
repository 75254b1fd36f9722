"""The browsers themselves: what the other tests rely on holds in every engine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.browser.engines import Engine, expect, processes
from tests.browser.scripted import put_blank
from tests.conftest import OpenBrowser
from tools.project import Project
from tools.serve import Override, StaticServer

pytestmark = pytest.mark.core

COUNT = """async (step) => {
  const db = await new Promise((resolve, reject) => {
    const request = indexedDB.open("counter", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("numbers");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const transaction = db.transaction("numbers", "readwrite", { durability: "strict" });
  const numbers = transaction.objectStore("numbers");
  const asked = numbers.get("n");
  asked.onsuccess = () => numbers.put((asked.result ?? 0) + step, "n");
  await new Promise((resolve) => { transaction.oncomplete = resolve; });
  db.close();
  return (asked.result ?? 0) + step;
}"""

FORM = b"""<!doctype html><meta charset="utf-8"><title>Form</title>
<main><h1>Form</h1><label>Name <input id="name"></label><label><input type="checkbox"> Sure</label>
<input type="file" id="file"><button id="go">Go</button><button hidden>Hidden</button>
<button id="late" disabled>Late</button><p id="heard"></p></main>
<script>
  const heard = document.querySelector("#heard");
  const say = (text) => { heard.textContent += text + ";"; };
  document.querySelector("#go").onclick = () => say("clicked");
  document.querySelector("#late").onclick = () => say("late");
  document.querySelector("#name").onkeydown = ({ key }) => say(key);
  document.querySelector("#file").onchange = async ({ target }) => say(await target.files[0].text());
  setTimeout(() => { document.querySelector("#late").disabled = false; }, 500);
</script>"""

ALONE = """
import sys
from pathlib import Path
from playwright.sync_api import sync_playwright
from tests.browser.engines import start_engine
from tools.project import Project

with sync_playwright() as playwright:
    engine = start_engine(sys.argv[1], Project(), lambda: playwright)
    page = engine.launch(Path(sys.argv[2])).pages[0]
    print(page.evaluate("1 + 1"), flush=True)
    sys.stdin.read()
"""


def test_storage_outlives_the_browser_and_its_death(
    engine: Engine, open_browser: OpenBrowser, site: StaticServer, tmp_path: Path
) -> None:
    address = put_blank(site)
    for kill in (False, True, False):
        context = open_browser(tmp_path / "ann")
        page = context.pages[0]
        page.goto(address)
        counted = page.evaluate(COUNT, 1)
        if kill:
            engine.kill(context)
        else:
            context.close()
    assert counted == 3
    stranger = open_browser().pages[0]
    stranger.goto(address)
    assert stranger.evaluate(COUNT, 1) == 1


def test_two_tabs_of_one_person(open_browser: OpenBrowser, site: StaticServer) -> None:
    context = open_browser()
    first, second = context.pages[0], context.new_page()
    for page in (first, second):
        page.goto(put_blank(site))
        assert page.evaluate("document.visibilityState") == "visible"
    first.evaluate(
        """() => new Promise((granted) => {
          navigator.locks.request("one", () => { granted(); return new Promise(() => {}); });
        })"""
    )
    first.evaluate(
        """() => { globalThis.talk = new BroadcastChannel("talk");
          talk.onmessage = ({ data, target }) => target.postMessage(data + 1); }"""
    )
    answer = """async () => {
      const channel = new BroadcastChannel("talk");
      const answered = new Promise((resolve) => { channel.onmessage = ({ data }) => resolve(data); });
      channel.postMessage(1);
      return [await answered, await navigator.locks.request("one", { ifAvailable: true }, (lock) => !!lock)];
    }"""
    assert second.evaluate(answer) == [2, False]
    first.close()
    assert second.evaluate("navigator.locks.request('one', (lock) => !!lock)") is True
    assert context.pages == [second]


def test_a_frozen_page_stands_still(engine: Engine, open_browser: OpenBrowser, site: StaticServer) -> None:
    context = open_browser()
    first, second = context.pages[0], context.new_page()
    for page in (first, second):
        page.goto(put_blank(site))
    beat = """() => { const beat = new BroadcastChannel("beat");
      setInterval(() => beat.postMessage(1), 20); }"""
    first.evaluate(beat)
    second.evaluate(
        """() => { globalThis.beats = 0;
          new BroadcastChannel("beat").onmessage = () => { beats += 1; }; }"""
    )
    second.wait_for_function("() => beats > 3")
    engine.freeze(first)
    time.sleep(0.2)
    before = second.evaluate("beats")
    time.sleep(0.5)
    assert second.evaluate("beats") == before
    engine.thaw(first)
    second.wait_for_function("(before) => beats > before + 3", arg=before)


def test_people_do_not_see_each_others_storage(browser: Any, site: StaticServer) -> None:
    with browser.new_context() as ann:
        page = ann.new_page()
        page.goto(put_blank(site))
        assert page.evaluate(COUNT, 1) == 1
        page.reload()
        assert page.evaluate(COUNT, 1) == 2


def test_values_events_and_faults(page: Any, site: StaticServer) -> None:
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    site.overrides["/worker.js"] = Override(body=b"console.log('from a worker');")
    page.goto(put_blank(site))
    given = {"text": 'quote " \\ \u2028 机票 \U0001f600', "list": [1, 2.5, None, True]}
    assert page.evaluate("(given) => given", given) == given
    assert page.evaluate("1 + 1") == 2
    assert page.evaluate("() => undefined") is None
    assert page.evaluate("({ a: undefined })") == {"a": None}
    assert page.evaluate("Promise.resolve([7])") == [7]
    with pytest.raises(Exception, match="told why"):
        page.evaluate("async () => { throw new Error('told why'); }")
    page.evaluate("() => { console.log('one line'); new Worker('/worker.js'); }")
    page.evaluate("() => { setTimeout(() => { throw new Error('thrown later'); }); }")
    end = time.monotonic() + 10
    while len(heard) < 3 and time.monotonic() < end:
        page.wait_for_timeout(50)
    assert {"one line", "from a worker"} <= set(heard)
    assert "thrown later" in " ".join(heard)
    assert f"{site.url}/blank.html" in asked


def test_a_person_at_a_form(page: Any, site: StaticServer) -> None:
    site.overrides["/form.html"] = Override(body=FORM, content_type="text/html")
    page.goto(f"{site.url}/form.html")
    page.fill("#name", "Ann")
    expect(page.get_by_label("Name")).to_have_value("Ann")
    page.press("#name", "Enter")
    page.keyboard.type("x")
    page.get_by_role("button", name="go").click()
    page.click("#late")
    page.get_by_label("Sure").check()
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"bytes"})
    expect(page.locator("#heard")).to_have_text("Enter;x;clicked;late;bytes;")
    assert page.evaluate("document.querySelector('[type=checkbox]').checked") is True
    assert page.locator("#name").count() == 1
    assert page.get_by_role("button").count() == 3
    assert page.locator("button").last.get_attribute("id") == "late"
    assert page.screenshot().startswith(b"\x89PNG")
    assert page.title() == "Form"


def test_a_run_that_is_killed_leaves_no_browser_behind(
    engine: Engine, project: Project, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ALONE, engine.name, str(tmp_path / "ann")],
        cwd=project.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"2\n"
        begun = processes.descendants(run.pid)
        assert len(begun) > 3
        run.kill()
        run.wait()
        left = processes.alive(begun)
        end = time.monotonic() + 20
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left = processes.alive(left)
    for one in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    assert left == []
