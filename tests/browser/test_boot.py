"""Starting: every fault ends in one typed error that says where and what to do; then opening works again."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.browser.engines import only
from tests.browser.scripted import BLANK, ROOT, put_blank, put_engine, replace
from tools.serve import CONTENT_SECURITY_POLICY, Override, StaticServer

WASM = "runtime/pyodide.asm.wasm"
STDLIB = "runtime/python_stdlib.zip"
LOCK = "runtime/pyodide-lock.json"
ASM = "runtime/pyodide.asm.mjs"
HTML = b"<!doctype html><title>Not found, but 200</title>"

# What a test can see of an opening: the error in full, or the storage state.
TRY = """async (options) => {
  window.unhandled ??= [];
  if (!window.watching) {
    window.watching = true;
    addEventListener("unhandledrejection", (event) => window.unhandled.push(String(event.reason)));
    addEventListener("error", (event) => window.unhandled.push(event.message));
  }
  const m = await import("/py-memory/memory.js");
  const stages = [];
  const begun = performance.now();
  const seen = (stage, detail) => { stages.push([stage, detail]); };
  try {
    const memory = await m.openMemory({ onProgress: seen, ...options });
    await memory.close();
    return { storage: memory.storage, stages, unhandled: window.unhandled };
  } catch (error) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return {
      stages, unhandled: window.unhandled, ms: performance.now() - begun,
      boot: error instanceof m.BootError, ours: error instanceof m.PyMemoryError,
      name: error.name, code: error.code, message: error.message, details: error.details,
    };
  }
}"""


@dataclass
class Fault:
    """How the site is broken, and what the error has to say about it."""

    name: str
    put: Callable[[StaticServer], object]
    stage: str
    url: str | None
    says: str
    hint: str = ""
    # Served with the page itself, this stays until the page is loaded anew.
    of_page: bool = False
    # Some browsers say nothing: then the limit on silence ends it.
    silent: bool = False


def override(path: str, **how: Any) -> Callable[[StaticServer], object]:
    """Answer one of our paths in another way."""
    return lambda site: site.overrides.update({ROOT + path: Override(**how)})


def page_for(path: str) -> Callable[[StaticServer], object]:
    """Answer with a page, as servers of single-page applications do for whatever they do not know."""
    return override(path, body=HTML, content_type="text/html")


def missing(path: str) -> Callable[[StaticServer], object]:
    """Have no such file."""
    return override(path, status=404, body=b"")


def wheel_of(site: StaticServer) -> str:
    """Return the path of the wheel that the runtime loads."""
    return next(name for name in site.overrides if name.endswith(".whl"))


def altered_wheel(site: StaticServer) -> None:
    path = wheel_of(site)
    site.overrides[path] = Override(body=site.overrides[path].body + b"\0")


def policy(site: StaticServer, path: str, value: str) -> None:
    known = site.overrides.get(path, Override())
    site.overrides[path] = Override(body=known.body, content_type=known.content_type)
    site.overrides[path].headers["Content-Security-Policy"] = value


NO_WASM = CONTENT_SECURITY_POLICY.replace(" 'wasm-unsafe-eval'", "")
NO_WORKER = CONTENT_SECURITY_POLICY.replace("worker-src 'self'", "worker-src 'none'")

FAULTS = [
    Fault("wasm 404", missing(WASM), "assets", WASM, "answered 404", "assetBase"),
    Fault(
        "wasm of another type",
        override(WASM, content_type="application/octet-stream"),
        "assets",
        WASM,
        "sent it as 'application/octet-stream'",
        "'application/wasm'",
    ),
    Fault(
        "HTML for wasm", override(WASM, body=HTML, content_type="text/html"), "assets", WASM, "page of HTML"
    ),
    Fault("HTML as wasm", override(WASM, body=HTML), "assets", WASM, "page of HTML", "assetBase"),
    Fault("wasm cut", override(WASM, body=b"\0asm\1\0\0\0"), "assets", WASM, "wrong sha256"),
    Fault(
        "wasm that was never a runtime",
        lambda site: replace(site, WASM, b"\0asm\1\0\0\0"),
        "runtime",
        WASM,
        "did not take",
    ),
    Fault(
        "no leave to compile",
        lambda site: policy(site, f"{ROOT}worker.js", NO_WASM),
        "runtime",
        "worker.js",
        "may not be compiled",
        "'wasm-unsafe-eval'",
    ),
    Fault("wheel with a wrong hash", altered_wheel, "assets", ".whl", "wrong sha256"),
    Fault(
        "wheel 404",
        lambda site: site.overrides.update({wheel_of(site): Override(status=404, body=b"")}),
        "assets",
        ".whl",
        "answered 404",
    ),
    Fault("engine that fails", lambda site: put_engine(site, "1 / 0"), "python", ".whl", "did not start"),
    Fault("stdlib 404", missing(STDLIB), "assets", STDLIB, "answered 404"),
    Fault("stdlib cut", override(STDLIB, body=b"PK"), "assets", STDLIB, "wrong sha256"),
    Fault("stdlib empty", lambda site: replace(site, STDLIB, b""), "python", ".whl", "did not start"),
    Fault("lockfile altered", override(LOCK, body=b"{}"), "assets", LOCK, "wrong sha256"),
    Fault("list 404", missing("manifest.json"), "assets", "manifest.json", "answered 404"),
    Fault("HTML for the list", override("manifest.json", body=HTML), "assets", "manifest.json", "not JSON"),
    Fault(
        "list of nothing",
        override("manifest.json", body=b'{"files": {}}'),
        "assets",
        "manifest.json",
        "list of files",
    ),
    Fault("script 404", missing(ASM), "assets", ASM, "answered 404"),
    Fault(
        "script of another type",
        override(ASM, content_type="text/plain"),
        "assets",
        ASM,
        "'text/plain'",
        "javascript",
    ),
    Fault("script altered", override(ASM, body=b"export default 1"), "assets", ASM, "wrong sha256"),
    Fault("script cut", override(ASM, body=b"export default {"), "assets", ASM, "wrong sha256"),
    Fault("asset dropped", override(WASM, drop=True), "assets", WASM, "could not be fetched", "connect-src"),
    Fault(
        "asset cut off on its way",
        override(WASM, body=b"\0asm", headers={"Content-Length": "9600000", "Connection": "close"}),
        "assets",
        WASM,
        "could not be fetched",
        "connect-src",
    ),
    Fault("asset stalled", override(WASM, delay=4), "assets", ROOT, "nothing happened", "timeoutMs"),
    Fault("worker 404", missing("worker.js"), "worker", "worker.js", "answered 404"),
    Fault(
        "HTML for the worker",
        page_for("worker.js"),
        "worker",
        "worker.js",
        "'text/html'",
    ),
    Fault(
        "part of the worker 404",
        missing("boot.js"),
        "worker",
        "boot.js",
        "answered 404",
        silent=True,
    ),
    Fault("worker throws", override("worker.js", body=b"throw 1"), "worker", ROOT, "could not run"),
    Fault("worker is no script", override("worker.js", body=b"export {"), "worker", ROOT, "could not run"),
    Fault("worker never answers", override("worker.js", body=b""), "worker", ROOT, "nothing happened"),
    Fault("worker ends at once", override("worker.js", body=b"close()"), "worker", ROOT, "nothing happened"),
    Fault(
        "worker ends while it starts",
        lambda site: put_engine(site, "import js\njs.close()\nimport missing"),
        "python",
        None,
        "",
    ),
    Fault(
        "no leave for workers",
        lambda site: policy(site, BLANK, NO_WORKER),
        "worker",
        ROOT,
        "Content-Security-Policy",
        "worker-src",
        of_page=True,
    ),
]


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of the shared browser."""
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def scripted(strict_site: StaticServer) -> StaticServer:
    """The strict site with the scripted engine."""
    put_engine(strict_site)
    return strict_site


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_ends_in_one_typed_error(scripted: StaticServer, page: Any, fault: Fault) -> None:
    address = put_blank(scripted)
    whole = dict(scripted.overrides)
    fault.put(scripted)
    page.goto(address)
    limit = {"timeoutMs": 2_000} if fault.silent or "nothing happened" in fault.says else {}
    found = page.evaluate(TRY, limit)

    assert found.get("boot"), found
    assert found["ours"]
    assert (found["name"], found["code"]) == ("BootError", "boot_failed")
    details = found["details"]
    assert details["stage"] == fault.stage, found
    assert fault.url is None or details["url"].endswith(fault.url), found
    assert fault.says in found["message"], found
    assert details["hint"], found
    assert fault.hint in details["hint"], found
    assert found["unhandled"] == []
    assert found["ms"] < 15_000

    scripted.overrides.clear()
    scripted.overrides.update(whole)
    if fault.of_page:
        page.goto(address)
    again = page.evaluate(TRY, {})
    assert again.get("storage", {}).get("mode") == "best-effort", again


@only("chromium", "firefox", because="WebKitGTK has no command that takes the network away")
def test_offline(scripted: StaticServer, page: Any) -> None:
    page.goto(put_blank(scripted))
    page.evaluate("() => import('/py-memory/memory.js')")
    page.context.set_offline(True)
    found = page.evaluate(TRY, {})
    assert found["boot"], found
    assert "offline" in found["message"]
    page.context.set_offline(False)
    assert "storage" in page.evaluate(TRY, {})


@only("chromium", because="the others cannot be told where a name that is not secure leads")
def test_insecure_context(scripted: StaticServer, open_browser: Callable[..., Any]) -> None:
    rules = "--host-resolver-rules=MAP memory.test 127.0.0.1"
    page = open_browser(args=[rules]).pages[0]
    put_blank(scripted)
    page.goto(f"http://memory.test:{scripted.port}{BLANK}")
    found = page.evaluate(TRY, {})
    assert (found["name"], found["code"]) == ("PyMemoryError", "insecure_context")
    assert "https" in found["message"]
    assert ROOT + "worker.js" not in scripted.requests


def test_stages_come_in_order_with_bytes(scripted: StaticServer, page: Any) -> None:
    page.goto(put_blank(scripted))
    found = page.evaluate(TRY, {})
    names = [stage for stage, _ in found["stages"]]
    assert list(dict.fromkeys(names)) == ["worker", "assets", "runtime", "python", "image", "ready"]
    counted = [detail for stage, detail in found["stages"] if stage == "assets" and "total" in detail]
    assert counted
    loaded = [detail["loaded"] for detail in counted]
    assert loaded == sorted(loaded)
    assert all(detail["loaded"] <= detail["total"] for detail in counted)


def test_each_file_is_asked_for_once(scripted: StaticServer, page: Any) -> None:
    page.goto(put_blank(scripted))
    assert "storage" in page.evaluate(TRY, {})
    asked = Counter(path.removeprefix(ROOT) for path in scripted.requests if path.startswith(ROOT))
    twice = {path for path, count in asked.items() if count > 1}
    both = {"errors.js", "passphrase.js", "protocol.js"}
    assert twice <= both, "the page and the worker each load these three"
    assert max(asked.values()) == 2
    assert {WASM, STDLIB, LOCK, ASM} <= asked.keys()


def test_an_old_file_in_the_cache_is_asked_for_anew(scripted: StaticServer, page: Any) -> None:
    right = scripted.find(ROOT + STDLIB)
    assert right
    fresh_for_long = {"Cache-Control": "max-age=3600"}
    scripted.overrides[ROOT + STDLIB] = Override(body=b"PK of the version before", headers=fresh_for_long)
    address = put_blank(scripted)
    page.goto(address)
    page.evaluate(f"() => fetch('{ROOT}{STDLIB}').then((response) => response.text())")
    del scripted.overrides[ROOT + STDLIB]
    assert "storage" in page.evaluate(TRY, {})


def test_an_old_script_in_the_cache_heals_with_the_second_opening(scripted: StaticServer, page: Any) -> None:
    old = b"export default 'the version before'"
    scripted.overrides[ROOT + ASM] = Override(body=old, headers={"Cache-Control": "max-age=3600"})
    page.goto(put_blank(scripted))
    page.evaluate(f"() => import('{ROOT}{ASM}')")
    del scripted.overrides[ROOT + ASM]
    found = page.evaluate(TRY, {})
    assert found.get("boot"), found
    assert "openMemory again" in found["details"]["hint"]
    assert "storage" in page.evaluate(TRY, {})


def test_two_calls_at_once_are_one_memory(scripted: StaticServer, page: Any) -> None:
    page.goto(put_blank(scripted))
    same = page.evaluate(
        """async () => {
          const { openMemory } = await import("/py-memory/memory.js");
          const [a, b] = [openMemory({ name: "x" }), openMemory({ name: "x" })];
          const other = openMemory({ name: "y" });
          const answer = [a === b, (await a) === (await b), (await other) !== (await a)];
          await Promise.all([(await a).close(), (await other).close()]);
          return answer;
        }"""
    )
    assert same == [True, True, True]
    assert len([path for path in scripted.requests if path.endswith("manifest.json")]) == 2


def test_a_slow_start_that_moves_is_no_failure(scripted: StaticServer, page: Any) -> None:
    """The limit is on silence, not on the whole: files that come late one after the other reset it."""
    scripted.overrides[ROOT + "manifest.json"].delay = 4
    scripted.overrides[wheel_of(scripted)].delay = 4
    page.goto(put_blank(scripted))
    begun = time.monotonic()
    found = page.evaluate(TRY, {"timeoutMs": 6_000})
    assert "storage" in found, found
    assert time.monotonic() - begun > 8
