"""The promised policy: every verb works under it, nothing leaves the origin, nothing is logged."""

import json
from typing import Any

from tests.browser.scripted import put_blank
from tools.serve import CONTENT_SECURITY_POLICY, StaticServer

SECRET = "a-secret-that-was-told-in-confidence"

EVERY_VERB = """async (secret) => {
  const violations = [];
  addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
  const { openMemory } = await import("/py-memory/memory.js");
  const memory = await openMemory({ name: "strict" });
  const session = await memory.startSession({ userId: "u", userName: secret, skill: "talk" });
  const told = ({ code, message, details }) => code + message + JSON.stringify(details);
  const failing = (promise) => promise.then(() => "nothing was refused", told);
  const picture = new Blob([Uint8Array.from({ length: 5000 }, (_, i) => i)], { type: "image/png" });
  const said = await session.remember(secret, { intents: [{ name: "tell", entities: { what: secret } }] });
  await session.rememberMany([
    { content: picture, metadata: { note: secret } },
    { content: { lat: 1, lng: 2, label: secret } },
  ]);
  const refused = [
    await failing(session.remember(secret, { role: secret })),
    await failing(session.remember(secret, { metadata: { [secret]: secret }, at: secret })),
    await failing(session.remember(secret.repeat(100_000))),
    await failing(memory.importJSON(JSON.stringify({ format: secret }))),
    await failing(memory.importJSON(secret)),
    await failing(memory.importImage(new Blob([secret]))),
    await failing(memory.startSession({ userId: "other", sessionId: session.id })),
  ];
  const [hit] = await session.recall(secret.split("-")[1]);
  const found = await memory.find({ userId: "u", intent: "tell", entities: { what: secret } });
  const hits = await memory.search({ userId: "u", query: secret });
  const line = await memory.timeline({ userId: "u" });
  const shown = line.find(({ data }) => data);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([shown.data], { type: shown.mediaType }));
  await new Promise((resolve) => { image.onload = image.onerror = resolve; });
  await memory.forget({ userId: "u", ids: [said.id] });
  const trash = await memory.trash({ userId: "u" });
  await memory.restore({ userId: "u", ids: [said.id] });
  const file = await memory.exportJSON();
  const report = await memory.importJSON(file);
  await memory.importImage(await memory.exportImage());
  await memory.reindex();
  const { ok } = await memory.check();
  const { fragments } = await memory.metrics({ userId: "u" });
  await session.end();
  await memory.close();
  await new Promise((resolve) => setTimeout(resolve, 200));
  return {
    violations, refused, ok, fragments, kept: report.fragments,
    counts: [hit.fragment.content === secret, found.length, hits.length > 0, line.length, trash.length],
    bytes: shown.data.length, media: shown.mediaType,
  };
}"""


def test_every_verb_under_the_policy(strict_site: StaticServer, page: Any) -> None:
    heard: list[str] = []
    addresses: set[str] = set()
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.context.on("request", lambda request: addresses.add(request.url))
    page.goto(put_blank(strict_site))
    found: dict[str, Any] = page.evaluate(EVERY_VERB, SECRET)

    assert found["violations"] == []
    assert found["counts"] == [True, 1, True, 3, 1]
    assert (found["bytes"], found["media"], found["fragments"], found["ok"]) == (5000, "image/png", 3, True)
    assert found["kept"] == {"added": 0, "updated": 0, "kept": 3}
    assert all(code != "nothing was refused" for code in found["refused"])
    assert SECRET not in json.dumps(found["refused"])
    assert not any(SECRET in text for text in heard), "what is remembered reached the console"
    assert heard == []
    assert {address for address in addresses if not address.startswith((strict_site.url, "blob:"))} == set()


def test_a_violation_would_be_seen(strict_site: StaticServer, page: Any) -> None:
    """The watch of the test above can say no."""
    page.goto(put_blank(strict_site))
    seen = page.evaluate(
        """async () => {
          const seen = new Promise((resolve) => addEventListener("securitypolicyviolation", resolve));
          fetch("https://elsewhere.test/").catch(() => {});
          return (await seen).effectiveDirective;
        }"""
    )
    assert seen == "connect-src"


def test_the_worker_runs_under_the_policy_that_its_own_file_brings(
    strict_site: StaticServer, page: Any
) -> None:
    page.goto(put_blank(strict_site))
    header = page.evaluate(
        "async () => (await fetch('/py-memory/worker.js')).headers.get('content-security-policy')"
    )
    assert header == CONTENT_SECURITY_POLICY
