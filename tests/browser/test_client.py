"""The client: what goes to the worker, what comes back, and what happens to calls that nobody can answer."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.scripted import PRELUDE, ROOT, put_blank, put_engine
from tools.serve import CONTENT_SECURITY_POLICY, StaticServer

SECRET = "a-secret-that-was-told-in-confidence"

Run = Callable[..., Any]

# Firefox logs a promise that was rejected when the runtime broke down; no handler can keep it from that.
TRAP = "RuntimeError: unreachable executed"


@pytest.fixture(scope="module")
def shared(browser: Any, dist: Path) -> Iterator[Run]:
    """The same as `run`, in one page for all tests that leave nothing behind but answered calls."""
    with StaticServer(dist) as site, browser.new_context() as context:
        site.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        put_engine(site)
        page = context.new_page()
        page.goto(put_blank(site))
        yield running(page)


SENT = "const sent = async (promise) => JSON.parse((await promise).args);"


def running(page: Any) -> Run:
    """Give a function that runs the body of an async function in a page."""
    return lambda body, given=None: page.evaluate(f"async (given) => {{ {PRELUDE}\n{SENT}\n{body} }}", given)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of the shared browser."""
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def console(page: Any) -> list[str]:
    """Whatever reaches the console of the page, its workers, or its error handlers."""
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard


@pytest.fixture
def run(strict_site: StaticServer, page: Any, console: list[str]) -> Iterator[Run]:
    """Run the body of an async function in a page with the scripted engine; nothing may reach the console."""
    put_engine(strict_site)
    page.goto(put_blank(strict_site))
    yield running(page)
    page.wait_for_timeout(50)
    assert [line for line in console if line != TRAP] == []


OPENED = """
const memory = await m.openMemory({ name: "one" });
const session = await memory.startSession({ userId: "u" });
"""


def test_names_are_converted_but_never_inside_the_callers_own_data(shared: Run) -> None:
    args = shared(
        OPENED
        + """return await sent(session.remember("x", {
          memoryType: 5, at: new Date(1000), ttlSeconds: undefined,
          metadata: { camelCase: { snake_case: 1 }, when: new Date(0), gone: undefined },
          state: { someStep: 1 }, intents: [{ name: "n", entities: { flightNumber: "SK1" } }],
        }));"""
    )
    assert args == {
        "session_id": "s_1",
        "content": "x",
        "memory_type": 5,
        "at": "1970-01-01T00:00:01.000Z",
        "metadata": {"camelCase": {"snake_case": 1}, "when": "1970-01-01T00:00:00.000Z"},
        "state": {"someStep": 1},
        "intents": [{"name": "n", "entities": {"flightNumber": "SK1"}}],
    }


def test_answers_are_camel_case_but_never_inside_the_callers_own_data(shared: Run) -> None:
    hit = shared(OPENED + "return (await session.recall('q'))[0];")
    assert hit["fragment"] == {"sessionId": "s", "metadata": {"own_key": 1}}
    assert hit["why"] == {"memoryScore": 1}


def test_a_key_named_proto_is_data(shared: Run) -> None:
    args = shared(
        OPENED
        + """const metadata = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}');
        return (await session.remember("x", { metadata })).args;"""
    )
    assert json.loads(args)["metadata"] == {"__proto__": {"a": 1}, "constructor": 2}


def test_lone_surrogates_arrive_as_they_are(shared: Run) -> None:
    text = shared(OPENED + "return (await session.remember('a\\ud800b\\udc00\\u0000')).args;")
    assert '"a\\ud800b\\udc00\\u0000"' in text


@pytest.mark.parametrize(
    "make",
    [
        "new Uint8Array([1, 2, 3])",
        "new Uint8Array([0, 1, 2, 3, 4]).subarray(1, 4)",
        "new Uint8Array([1, 2, 3]).buffer",
        "new DataView(new Uint8Array([1, 2, 3]).buffer)",
        "new Blob([new Uint8Array([1, 2, 3])])",
        "new File([new Uint8Array([1, 2, 3])], 'name.bin')",
    ],
)
def test_bytes_arrive_and_stay_the_callers(shared: Run, make: str) -> None:
    found = shared(
        OPENED
        + f"""const content = {make};
        const answer = await session.remember(content, {{ type: "image" }});
        const [data] = answer.echo;
        const {{ content: placed }} = JSON.parse(answer.args);
        return [placed, data instanceof Uint8Array, [...data], content.byteLength ?? content.size];"""
    )
    assert found[:3] == [{"$binary": 0}, True, [1, 2, 3]]
    assert found[3] == 3, "the caller's own buffer was detached"


def test_bytes_are_those_of_the_moment_of_the_call(shared: Run) -> None:
    found = shared(
        OPENED
        + """const bytes = new Uint8Array([1, 2, 3]);
        const answer = session.remember(bytes);
        bytes.fill(9);
        return [...(await answer).echo[0]];"""
    )
    assert found == [1, 2, 3]


def test_options_are_those_of_the_moment_of_the_call(shared: Run) -> None:
    args = shared(
        OPENED
        + """const metadata = { step: 1 };
        const answer = session.remember("x", { metadata });
        metadata.step = 2;
        return await sent(answer);"""
    )
    assert args["metadata"] == {"step": 1}


def test_the_type_of_a_blob_becomes_the_media_type_unless_one_is_given(shared: Run) -> None:
    first, second = shared(
        OPENED
        + """const blob = new Blob(["x"], { type: "image/png" });
        const named = session.remember(blob, { mediaType: "image/webp" });
        return [await sent(session.remember(blob)), await sent(named)];"""
    )
    assert (first["media_type"], second["media_type"]) == ("image/png", "image/webp")


def test_a_place_goes_as_json(shared: Run) -> None:
    place = {"lat": 59.9, "lng": 10.7, "accuracy": 5, "label": "Oslo"}
    assert shared(OPENED + "return await sent(session.remember(given))", place)["content"] == place


def test_many_keep_their_contents_apart(shared: Run) -> None:
    args, ids = shared(
        OPENED
        + """const many = await session.rememberMany([
          { content: "a", memoryType: 1 },
          { content: new Blob(["b"], { type: "audio/ogg" }) },
          { content: new Uint8Array(1) },
        ], { moment: "m" });
        return [JSON.parse(many[0].args), many.map(({ id }) => id)];"""
    )
    assert args["items"] == [
        {"content": "a", "memory_type": 1},
        {"content": {"$binary": 0}, "media_type": "audio/ogg"},
        {"content": {"$binary": 1}},
    ]
    assert (args["moment"], ids) == ("m", ["mf_0", "mf_1", "mf_2"])


def test_pages_are_lists_with_a_cursor(shared: Run) -> None:
    found = shared(
        OPENED
        + """const pages = ["find", "timeline", "trash"].map((verb) => memory[verb]({ userId: "u" }));
        return (await Promise.all(pages)).map((page) => [Array.isArray(page), page.length, page.cursor]);"""
    )
    assert found == [[True, 1, "next"]] * 3


def test_files_out_and_in(shared: Run) -> None:
    found = shared(
        OPENED
        + """const json = await memory.exportJSON({ userId: "u" });
        const image = await memory.exportImage();
        const text = async (file) => (await sent(memory.importJSON(file, { dryRun: true })));
        return {
          out: [json.type, await json.text(), image.type, await image.text()],
          in: [await text(new Blob(["\\ufeff{}"])), await text("{}"), await text({ format: "ö" })],
          image: [...(await memory.importImage(image)).echo[0]],
        };"""
    )
    assert found["out"] == [
        "application/json",
        '{"format": "py-memory"}',
        "application/vnd.sqlite3",
        "SQLite",
    ]
    assert [args["text"] for args in found["in"]] == ["{}", "{}", '{"format":"ö"}']
    assert all(args["dry_run"] is True for args in found["in"])
    assert bytes(found["image"]) == b"SQLite"


@pytest.mark.parametrize(
    ("call", "option"),
    [
        ("session.remember('x', { metadata: { a: NaN } })", "metadata"),
        ("session.remember('x', { metadata: { a: [Infinity] } })", "metadata"),
        ("session.remember('x', { metadata: { a: new Map() } })", "metadata"),
        ("session.remember('x', { metadata: { a: 1n } })", "metadata"),
        ("session.remember('x', { metadata: { a: () => 1 } })", "metadata"),
        ("session.remember('x', { metadata: { a: new Uint8Array(1) } })", "metadata"),
        ("session.remember('x', { at: new Date(NaN) })", "at"),
        ("session.remember('x', { memory_type: 5 })", "memory_type"),
        ("session.remember('x', 5)", "options"),
        ("session.remember('x', null)", "options"),
        ("session.remember({ $binary: 0 })", "$binary"),
        ("session.remember('x', given.loop())", "metadata"),
        ("session.remember('x', { sessionId: 'other' })", "sessionId"),
        ("session.remember('x', { content: 'other' })", "content"),
        ("session.rememberMany([], { sessionId: 'other' })", "sessionId"),
        ("session.recall('x', { sessionId: 'other' })", "sessionId"),
        ("session.recall('x', { query: 'other' })", "query"),
        ("session.end({ sessionId: 'other' })", "sessionId"),
        ("session.remember('x', { metadata: { get a() { throw new Error('marker'); } } })", "options"),
        ("session.remember('x', { get role() { throw 1; } })", "options"),
        ("session.remember('x', new Proxy({}, { ownKeys() { throw 1; } }))", "options"),
        ("session.recall('x', { state: { toJSON() { throw new Error('marker'); } } })", "options"),
        ("session.rememberMany('x')", "items"),
        ("session.rememberMany(['x'])", "items"),
        ("session.recall('x', { signal: 1 })", "signal"),
        ("session.recall('x', { timeoutMs: 0 })", "timeoutMs"),
        ("memory.importJSON(5)", "file"),
        ("m.openMemory({ nmae: 'x' })", "nmae"),
        ("m.openMemory({ name: '' })", "name"),
        ("m.openMemory({ durability: 'no' })", "durability"),
        ("m.openMemory({ clock: 1.5 })", "clock"),
        ("m.openMemory({ timeoutMs: -1 })", "timeoutMs"),
        ("m.openMemory({ onProgress: 1 })", "onProgress"),
        ("m.openMemory({ name: 'new', assetBase: 'http://[' })", "assetBase"),
        ("m.openMemory('x')", "options"),
    ],
)
def test_what_cannot_be_sent_is_refused(shared: Run, call: str, option: str) -> None:
    error, seen = shared(
        OPENED
        + f"""const metadata = {{}};
        metadata.self = metadata;
        given = {{ loop: () => ({{ metadata }}) }};
        await memory.check();
        return [await failing({call}), (await memory.check()).seen];"""
    )
    assert error["ours"]
    assert error["code"] == "invalid_argument"
    assert error["details"]["option"] == option
    assert seen[-2:] == ["check", "check"], "it came to the engine"


def test_errors_of_the_engine_arrive_whole(shared: Run) -> None:
    error = shared(
        OPENED
        + """const refuse = { code: "too_large", message: "Shorten it.", details: { limit_bytes: 5 } };
        return await failing(session.remember("x", { metadata: { refuse } }));"""
    )
    told = {"code": "too_large", "message": "Shorten it.", "details": {"limitBytes": 5}}
    assert error == {"ours": True, **told}


def test_calls_are_served_in_the_order_they_were_made(run: Run) -> None:
    """Though a Blob takes a moment to read."""
    ids = run(
        OPENED
        + """const big = new Blob([new Uint8Array(5_000_000)]);
        const calls = [big, "b", "c"].map((content) => session.remember(content));
        return (await Promise.all(calls)).map(({ id }) => id);"""
    )
    assert ids == ["mf_1", "mf_2", "mf_3"]


def test_abort_and_timeout_reject_and_what_had_not_begun_is_dropped(run: Run) -> None:
    found = run(
        OPENED
        + """const controller = new AbortController();
        const slow = session.remember("x", { metadata: { sleep: 0.4 } });
        const late = failing(session.remember("y", { timeoutMs: 50 }));
        const aborted = failing(session.remember("z", { signal: controller.signal }));
        const before = failing(session.remember("w", { signal: AbortSignal.abort() }));
        setTimeout(() => controller.abort(), 50);
        const answers = [await late, await aborted, await before];
        return { answers, slow: (await slow).id, next: (await session.remember("n")).id };"""
    )
    assert [answer["code"] for answer in found["answers"]] == ["timeout", "aborted", "aborted"]
    assert all("may still happen" in answer["message"] for answer in found["answers"])
    assert (found["slow"], found["next"]) == ("mf_1", "mf_2"), "a dropped call was made all the same"


def test_a_write_that_comes_too_late_for_its_caller_is_still_told(run: Run) -> None:
    found = run(
        OPENED
        + """const changes = [];
        memory.on("change", (change) => changes.push(change));
        const late = await failing(session.remember("x", { metadata: { sleep: 0.2 }, timeoutMs: 50 }));
        await session.recall("q");
        return [late.code, changes];"""
    )
    assert found == ["timeout", [{"verb": "remember", "userId": "u", "sessionId": "s_1", "ids": ["mf_1"]}]]


DEATHS = ["raise", "close", "uncaught", "abort"]


@pytest.mark.parametrize("die", DEATHS)
def test_a_call_at_which_the_worker_dies_is_repeated_once_and_the_others_are_answered(
    run: Run, die: str
) -> None:
    found = run(
        OPENED
        + """const closed = [];
        memory.on("closed", (event) => closed.push(event));
        const calls = [session.recall("a", { metadata: given }), session.remember("b"), memory.metrics()];
        const answers = await Promise.all(calls.map(failing));
        const after = (await session.remember("c")).id;
        await memory.close();
        return { answers, after, closed };""",
        {"die": die, "secret": SECRET},
    )
    first, *others = found["answers"]
    # An exception outside any call leaves time for the answer to it, or not.
    assert first["code"] == "owner_lost" or die == "uncaught"
    assert others == ["nothing was refused"] * 2
    assert SECRET not in json.dumps(found)
    assert found["after"].startswith("mf_")
    assert found["closed"] == [{"code": "closed"}]


def test_nothing_that_the_engine_says_reaches_the_console(run: Run, page: Any) -> None:
    """Prints, logs, rejected promises and failed tasks: the fixture asserts an empty console."""
    answer = run(
        OPENED + "return (await session.remember('x', { metadata: given })).id",
        {"die": "chatter", "secret": SECRET},
    )
    page.wait_for_timeout(300)
    assert answer == "mf_1"


def test_close_answers_what_was_called_before_and_refuses_what_comes_after(run: Run) -> None:
    found = run(
        OPENED
        + """const slow = { metadata: { sleep: 0.1 } };
        const before = [session.remember("x", slow), session.remember(new Blob(["y"]))];
        const closing = memory.close();
        const after = await failing(session.remember("z"));
        await closing;
        const twice = memory.close() === closing;
        const ids = (await Promise.all(before)).map(({ id }) => id);
        return { ids, after: after.code, twice, ever: (await failing(memory.check())).code };"""
    )
    assert found == {"ids": ["mf_1", "mf_2"], "after": "closed", "twice": True, "ever": "closed"}


def test_closing_and_opening_in_one_breath_gives_a_fresh_memory(run: Run, strict_site: StaticServer) -> None:
    """As a component that is mounted, unmounted and mounted again does."""
    found = run(
        """const first = m.openMemory({ name: "one" });
        const gone = first.then((memory) => memory.close());
        const same = m.openMemory({ name: "one" }) === first;
        const memory = await first;
        const closing = memory.close();
        const second = m.openMemory({ name: "one" });
        const third = m.openMemory({ name: "one" });
        await Promise.all([gone, closing]);
        memory.close();
        const answer = [same, second === third, second !== first, (await second) !== memory];
        answer.push((await second.then((two) => two.startSession({ userId: "u" }))).id);
        answer.push(m.openMemory({ name: "one" }) === second);
        await (await second).close();
        return answer;"""
    )
    assert found == [True, True, True, True, "s_1", True]
    assert strict_site.requests.count(f"{ROOT}manifest.json") == 2


def test_the_raw_image_can_be_had_beside_an_open_memory(run: Run) -> None:
    found = run(
        OPENED
        + """const file = await m.exportRaw({ name: "one" });
        return [file.type, await file.text(), (await session.remember("x")).id];"""
    )
    assert found == ["application/vnd.sqlite3", "SQLite", "mf_1"]


def test_async_dispose_closes(run: Run) -> None:
    code = run(OPENED + "await memory[Symbol.asyncDispose](); return (await failing(memory.check())).code;")
    assert code == "closed"


def test_events(run: Run) -> None:
    found = run(
        OPENED
        + """const heard = [];
        const note = (event) => memory.on(event, (data) => heard.push([event, data]));
        const off = ["change", "storage"].map(note);
        memory.on("change", () => { throw new Error("a listener's own fault"); });
        const own = [];
        addEventListener("error", (event) => { own.push(event.message); event.preventDefault(); });
        await session.remember("x");
        await session.recall("q");
        const { generation } = memory.storage;
        off.forEach((end) => end());
        await session.remember("y");
        const unknown = await failing((async () => memory.on("chang", () => {}))());
        return { heard, generation, own, unknown: unknown.code };"""
    )
    changes = [data for event, data in found["heard"] if event == "change"]
    assert changes == [{"verb": "remember", "userId": "u", "sessionId": "s_1", "ids": ["mf_1"]}]
    assert [data["generation"] for event, data in found["heard"] if event == "storage"] == [1]
    assert found["generation"] == 1
    assert found["own"][0].endswith("a listener's own fault")
    assert found["unknown"] == "invalid_argument"


def test_the_module_exports_what_its_types_declare(shared: Run, dist: Path) -> None:
    declared = {
        line.split("(")[0].split(":")[0].split()[2]
        for line in (dist / "py-memory" / "memory.d.ts").read_text(encoding="utf-8").splitlines()
        if line.startswith(("export function", "export const", "export class"))
    }
    assert set(shared("return Object.keys(m)")) == declared
    assert shared("return m.CODES.length") == 26
