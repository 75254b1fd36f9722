"""The main job in the page: remember, close the browser, reopen, recall, export, import elsewhere."""

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenBrowser

from py_memory import Memory
from tools.serve import Override, StaticServer

BLANK = Override(body=b"<!doctype html><meta charset=utf-8><title>blank</title>", content_type="text/html")

HELP = """
const { openMemory } = await import("/py-memory/memory.js");
const base64 = async (bytes) => {
  const blob = bytes instanceof Blob ? bytes : new Blob([bytes]);
  const url = await new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
  return url.slice(url.indexOf(",") + 1);
};
const failing = async (promise) => {
  try { await promise; return null; } catch (error) { return { code: error.code, message: error.message }; }
};
"""

PICTURE = bytes(range(256)) * 40


def run(page: Any, body: str, argument: Any = None) -> Any:
    """Run the body of an async function in the page, with the library at hand."""
    return page.evaluate(f"async (argument) => {{ {HELP} {body} }}", argument)


def visit(open_browser: OpenBrowser, site: StaticServer, profile: Path | None = None) -> Any:
    site.overrides["/blank.html"] = BLANK
    page = open_browser(profile).pages[0]
    page.goto(f"{site.url}/blank.html")
    return page


REMEMBER = """
const memory = await openMemory();
const ann = { userId: "u_1", userName: "Ann", skill: "booking", sessionId: "s_1" };
const session = await memory.startSession(ann);
const fragment = await session.remember("我想订机票", {
  role: "user", speaker: "Ann", state: { step: "address" }, metadata: { source: "chat", userId: "u_2" },
  intents: [{ name: "book_flight", entities: { departure: "SHA", seats: { count: 2 } }, confidence: 0.92 }],
});
const picture = Uint8Array.from(atob(argument), (char) => char.charCodeAt(0));
await session.rememberMany(
  [
    { content: "Look, my blue backpack" },
    { content: picture, mediaType: "image/png", metadata: { width: 1024 } },
    { content: { lat: 31.2304, lng: 121.4737, label: "Shanghai" } },
    { content: "checkout", type: "event", role: "system" },
  ],
  { moment: "backpack" },
);
const other = await memory.startSession({ userId: "u_2", userName: "Bob" });
await other.remember("机票 belongs to Bob alone");
const { outcome } = fragment.intents[0];
await memory.close();
return { fragment, outcome, still: picture.length };
"""

RECALL = """
const memory = await openMemory();
const session = await memory.startSession({ userId: "u_1", sessionId: "s_1" });
const hits = await session.recall("机票", { state: { step: "address" } });
const [withPicture] = await memory.search({ userId: "u_1", query: "backpack" });
const image = withPicture.companions.find(({ type }) => type === "image");
const result = {
  storage: memory.storage,
  hits: hits.map(({ fragment, ...rest }) => ({ content: fragment.content, ...rest })),
  moment: withPicture.companions.map(({ type }) => type),
  picture: await base64(image.data),
  metadata: hits[0].fragment.metadata,
  found: (await memory.find({ userId: "u_1", intent: "book_flight", entities: { "seats.count": 2 } })).map(
    ({ fragment, intent }) => [fragment.content, intent.entities.departure],
  ),
  timeline: (await memory.timeline({ userId: "u_1", order: "oldest" })).map(
    ({ content, type }) => content || type,
  ),
  ofBob: (await memory.search({ userId: "u_2", query: "机票 backpack" })).map(
    ({ fragment }) => fragment.content,
  ),
  json: await (await memory.exportJSON()).text(),
  jsonOfAnn: await (await memory.exportJSON({ userId: "u_1" })).text(),
  image: await base64(await memory.exportImage()),
  metrics: await memory.metrics({ userId: "u_1" }),
};
await memory.close();
return result;
"""


def without_time(exported: str) -> dict[str, Any]:
    file = json.loads(exported)
    del file["exported_at"]
    return file


@pytest.mark.core
def test_remember_close_the_browser_reopen_recall_export_import(
    open_browser: OpenBrowser, site: StaticServer, tmp_path: Path
) -> None:
    profile = tmp_path / "ann"
    page = visit(open_browser, site, profile)
    written = run(page, REMEMBER, base64.b64encode(PICTURE).decode())
    assert written["outcome"] == "created"
    assert written["still"] == len(PICTURE)  # the caller's own bytes were not taken away
    page.context.close()

    page = visit(open_browser, site, profile)
    seen = run(page, RECALL)
    assert seen["storage"]["mode"] in {"persistent", "best-effort"}
    assert seen["hits"][0]["content"] == "我想订机票"
    assert seen["hits"][0]["tier"] == "L1"
    why = seen["hits"][0]["why"]
    assert abs(why["weight"] * why["relevance"] * why["strength"] - seen["hits"][0]["score"]) < 1e-12
    assert why["provenance"]["session"] == "s_1"
    assert written["fragment"]["id"] in seen["hits"][0]["cite"]
    assert seen["metadata"] == {"source": "chat", "userId": "u_2"}
    assert seen["moment"] == ["image", "location", "event"]
    assert base64.b64decode(seen["picture"]) == PICTURE
    assert seen["found"] == [["我想订机票", "SHA"]]
    assert seen["timeline"] == [
        "我想订机票",
        "Look, my blue backpack",
        "image",
        "Shanghai (31.23040, 121.47370)",
        "checkout",
    ]
    assert seen["ofBob"] == ["机票 belongs to Bob alone"]
    assert seen["metrics"]["fragments"] == 5
    assert "Bob" not in seen["jsonOfAnn"]
    page.context.close()

    image = tmp_path / "image.db"
    image.write_bytes(base64.b64decode(seen["image"]))
    with sqlite3.connect(image) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert plain.execute("SELECT data FROM fragments WHERE type = 'image'").fetchone()[0] == PICTURE
    plain.close()

    with Memory.open(str(tmp_path / "python.db")) as memory:
        memory.import_json(seen["json"])
        assert without_time(memory.export_json()) == without_time(seen["json"])
        assert memory.search("u_1", "机票")[0].fragment.id == written["fragment"]["id"]

    fresh = visit(open_browser, site, tmp_path / "fresh")
    again = run(
        fresh,
        """
        const memory = await openMemory();
        const dry = await memory.importJSON(argument, { dryRun: true });
        const empty = (await memory.timeline({ userId: "u_1" })).length;
        const report = await memory.importJSON(argument);
        const twice = await memory.importJSON(new Blob([argument]));
        const json = await (await memory.exportJSON()).text();
        await memory.close();
        return { dry, empty, report, twice, json };
        """,
        seen["json"],
    )
    assert again["dry"]["fragments"] == {"added": 6, "kept": 0, "updated": 0}
    assert again["empty"] == 0
    assert again["report"]["fragments"] == {"added": 6, "kept": 0, "updated": 0}
    assert again["twice"]["fragments"] == {"added": 0, "kept": 6, "updated": 0}
    assert without_time(again["json"]) == without_time(seen["json"])


def test_the_sqlite_file_goes_into_a_fresh_profile_and_into_python(
    open_browser: OpenBrowser, site: StaticServer, tmp_path: Path
) -> None:
    page = visit(open_browser, site)
    made = run(
        page,
        """
        const memory = await openMemory();
        const session = await memory.startSession({ userId: "u" });
        for (let i = 0; i < 30; i++) await session.remember(`note ${i} about apples`);
        const image = await base64(await memory.exportImage());
        await memory.close();
        return image;
        """,
    )
    page.context.close()
    file = tmp_path / "a.db"
    file.write_bytes(base64.b64decode(made))
    with Memory.open(str(file)) as memory:
        assert len(memory.search("u", "apples", limit=50)) == 30

    fresh = visit(open_browser, site, tmp_path / "b")
    count = run(
        fresh,
        """
        const bytes = Uint8Array.from(atob(argument), (char) => char.charCodeAt(0));
        const memory = await openMemory();
        await memory.importImage(bytes);
        const refused = await failing(memory.importImage(new Uint8Array([1, 2, 3])));
        await memory.close();
        const back = await openMemory();
        const hits = await back.search({ userId: "u", query: "apples", limit: 50 });
        await back.close();
        return [hits.length, refused.code];
        """,
        made,
    )
    assert count == [30, "corrupt_image"]


def test_forget_and_restore_survive_reopening(open_browser: OpenBrowser, site: StaticServer) -> None:
    page = visit(open_browser, site)
    seen = run(
        page,
        """
        const open = () => openMemory();
        let memory = await open();
        const session = await memory.startSession({ userId: "u" });
        const { id } = await session.remember("the secret garden");
        await session.remember("the open field");
        const preview = await memory.forget({ userId: "u", query: "garden", preview: true });
        const refused = await failing(memory.forget({ userId: "u" }));
        await memory.forget({ userId: "u", ids: [id] });
        await memory.close();
        memory = await open();
        const hits = await memory.search({ userId: "u", query: "garden" });
        const gone = hits.map(({ fragment }) => fragment.content);
        const trash = (await memory.trash({ userId: "u" })).map((fragment) => fragment.content);
        await memory.restore({ userId: "u", ids: [id] });
        const back = (await memory.search({ userId: "u", query: "garden" }))[0].fragment.content;
        await memory.close();
        return { preview: preview.count, refused: refused.code, gone, trash, back };
        """,
    )
    assert seen["preview"] == 1
    assert seen["refused"] == "empty_selector"
    assert "the secret garden" not in seen["gone"]
    assert seen["trash"] == ["the secret garden"]
    assert seen["back"] == "the secret garden"


def test_errors_are_the_same_as_in_python_and_quote_nothing(
    open_browser: OpenBrowser, site: StaticServer
) -> None:
    page = visit(open_browser, site)
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    seen = run(
        page,
        """
        const memory = await openMemory({ settings: { maxTextBytes: 100 } });
        const session = await memory.startSession({ userId: "u" });
        let deep = {};
        for (let i = 0; i < 5000; i++) deep = { deep };
        const errors = {
          large: await failing(session.remember("marker".repeat(100))),
          number: await failing(session.remember("marker", { metadata: { n: 2 ** 60 } })),
          deep: await failing(session.remember("marker", { metadata: deep })),
          option: await failing(session.remember("marker", { marker: 1 })),
          type: await failing(session.remember("marker", { type: "smell" })),
          user: await failing(memory.timeline({})),
          session: await failing(memory.startSession({})),
          content: await failing(session.remember(42)),
        };
        const surrogate = await session.remember("half \\ud83d emoji and \\u0000");
        const count = (await memory.timeline({ userId: "u" })).length;
        await memory.close();
        errors.closed = await failing(session.remember("marker"));
        return { errors, count, repaired: surrogate.content };
        """,
    )
    codes = {name: error["code"] for name, error in seen["errors"].items()}
    assert codes == {
        "large": "too_large",
        "number": "invalid_argument",
        "deep": "invalid_argument",
        "option": "invalid_argument",
        "type": "invalid_argument",
        "user": "user_required",
        "session": "user_required",
        "content": "invalid_argument",
        "closed": "closed",
    }
    assert not any("markermarker" in error["message"] for error in seen["errors"].values())
    assert seen["count"] == 1
    assert seen["repaired"] == "half \ufffd emoji and \ufffd"
    assert not [line for line in heard if "marker" in line]
