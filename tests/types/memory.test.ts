// Compile-time tests of memory.d.ts: run by the type checker, never executed.
import {
  BootError,
  CODES,
  PyMemoryError,
  exportRaw,
  openMemory,
  recover,
  type CheckReport,
  type ErrorCode,
  type Found,
  type Fragment,
  type Hit,
  type ImportReport,
  type Memory,
  type Metrics,
  type Page,
  type RecoveryReport,
  type Selected,
  type Session,
  type Stage,
  type StorageState,
} from "../../web/memory.js";

type IsExact<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function exact<A, B>(same: IsExact<A, B>): void;
declare function is<T>(value: T): void;
type Answer<F extends (...given: never[]) => unknown> = Awaited<ReturnType<F>>;

// The checker of exactness can say no.
exact<1, 1>(true);
exact<1, number>(false);
exact<any, number>(false);

// What comes back.
exact<ReturnType<typeof openMemory>, Promise<Memory>>(true);
exact<ReturnType<typeof exportRaw>, Promise<Blob>>(true);
exact<ReturnType<typeof recover>, Promise<{ image: Blob; report: RecoveryReport }>>(true);
exact<Answer<Memory["startSession"]>, Session>(true);
exact<Answer<Memory["search"]>, Hit[]>(true);
exact<Answer<Memory["find"]>, Page<Found>>(true);
exact<Answer<Memory["timeline"]>, Page<Fragment>>(true);
exact<Answer<Memory["trash"]>, Page<Fragment>>(true);
exact<Answer<Memory["forget"]>, Selected>(true);
exact<Answer<Memory["restore"]>, Selected>(true);
exact<Answer<Memory["exportJSON"]>, Blob>(true);
exact<Answer<Memory["exportImage"]>, Blob>(true);
exact<Answer<Memory["importJSON"]>, ImportReport>(true);
exact<Answer<Memory["metrics"]>, Metrics>(true);
exact<Answer<Memory["check"]>, CheckReport>(true);
exact<Answer<Memory["reindex"]>, { fragments: number }>(true);
exact<Answer<Memory["changePassphrase"]>, void>(true);
exact<Answer<Memory["close"]>, void>(true);
exact<Answer<Session["remember"]>, Fragment>(true);
exact<Answer<Session["rememberMany"]>, Fragment[]>(true);
exact<Answer<Session["recall"]>, Hit[]>(true);
exact<Answer<Session["end"]>, void>(true);
exact<Fragment["data"], Uint8Array<ArrayBuffer> | null>(true);
exact<Page<Found>["cursor"], string | null>(true);
exact<StorageState["mode"], "persistent" | "best-effort" | "memory">(true);
exact<(typeof CODES)[number], ErrorCode>(true);

export async function used(bytes: Uint8Array, file: File): Promise<void> {
  await using memory = await openMemory({
    name: "agent_memory",
    settings: { maxTextBytes: 1000 },
    timeZone: "Europe/Oslo",
    durability: "relaxed",
    passphrase: "secret",
    clock: 0,
    assetBase: new URL("https://example.org/py-memory/"),
    timeoutMs: 1000,
    onProgress: (stage, detail) => {
      is<Stage>(stage);
      is<number | undefined>(detail.loaded);
    },
  });
  await openMemory();
  // @ts-expect-error unknown option
  await openMemory({ nmae: "x" });
  // @ts-expect-error a wrong value
  await openMemory({ durability: "eventual" });
  // @ts-expect-error a passphrase is a text
  await openMemory({ passphrase: bytes });
  await openMemory({ fallback: "memory" });
  // @ts-expect-error there is no other fallback
  await openMemory({ fallback: "disk" });
  // @ts-expect-error the clock is a fixed time
  await openMemory({ clock: () => 0 });
  // @ts-expect-error snake_case belongs to Python
  await openMemory({ settings: { max_text_bytes: 1 } });

  await exportRaw({ name: "agent_memory", passphrase: "secret", assetBase: "/py-memory/" });
  // @ts-expect-error nothing is written
  await exportRaw({ durability: "strict" });

  await memory.changePassphrase({ passphrase: "old", newPassphrase: "new", timeoutMs: 10 });
  // @ts-expect-error which one?
  await memory.changePassphrase({ newPassphrase: "new" });
  const { report } = await recover({ name: "agent_memory", replace: true });
  is<boolean>(report.complete);
  is<number | undefined>(report.tables["fragments"]?.lost);
  // @ts-expect-error yes or no
  await recover({ replace: "yes" });

  const off = memory.on("change", (change) => {
    is<string>(change.verb);
    // @ts-expect-error a change tells no content
    change.content;
  });
  exact<typeof off, () => void>(true);
  memory.on("storage", (state) => is<number>(state.generation));
  memory.on("closed", ({ code }) => is<ErrorCode>(code));
  // @ts-expect-error no such event
  memory.on("changed", () => {});
  // @ts-expect-error read only
  memory.storage = null;

  const session = await memory.startSession({ userId: "u", userName: "Ann", skill: "s", sessionId: "1", at: 0 });
  // @ts-expect-error whose?
  await memory.startSession({});
  // @ts-expect-error read only
  session.id = "2";

  const fragment = await session.remember("text", {
    role: "user",
    speaker: "Ann",
    at: new Date(),
    state: { step: ["address", 1] },
    metadata: { any_case: { atAll: null, when: new Date() } },
    intents: [{ name: "book", entities: { departure: "SHA" }, confidence: 0.9, key: "k", subject: "s" }],
    scope: "working",
    ttlSeconds: 0,
    requestId: "r",
    timeoutMs: 10,
    signal: AbortSignal.timeout(10),
  });
  is<string | null | undefined>(fragment.intents[0]?.outcome);
  await session.remember(bytes, { type: "image", mediaType: "image/png" });
  await session.remember(bytes.buffer as ArrayBuffer);
  await session.remember(new DataView(new ArrayBuffer(1)));
  await session.remember(file);
  await session.remember({ lat: 1, lng: 2, accuracy: 3, label: "x" });
  // @ts-expect-error no content
  await session.remember();
  // @ts-expect-error not a content
  await session.remember(5);
  // @ts-expect-error half a place
  await session.remember({ lat: 1 });
  // @ts-expect-error unknown role
  await session.remember("x", { role: "robot" });
  // @ts-expect-error snake_case belongs to Python
  await session.remember("x", { memory_type: 5 });
  // @ts-expect-error JSON has no functions
  await session.remember("x", { metadata: { f: () => 1 } });
  // @ts-expect-error an intent has a name
  await session.remember("x", { intents: [{ entities: {} }] });

  await session.rememberMany([{ content: "a" }, { content: file, at: 5 }], { moment: "m", requestId: "r" });
  // @ts-expect-error each item has a content
  await session.rememberMany([{ role: "user" }]);
  // @ts-expect-error the request is the whole call's
  await session.rememberMany([{ content: "a", requestId: "r" }]);

  const [hit] = await session.recall("q", { state: "s", tiers: ["L1", "L3"], limit: 3, around: 2, minScore: 0, touch: false });
  await session.recall();
  if (hit) {
    exact<typeof hit.why.provenance.fragment, string>(true);
    is<"L1" | "L2" | "L3">(hit.tier);
    is<number>(hit.why.memory.memoryScore);
  }
  // @ts-expect-error no such tier
  await session.recall("q", { tiers: ["L4"] });
  // @ts-expect-error a session recalls in itself
  await session.recall("q", { sessionId: "x" });
  await session.end({ at: "2026-01-01T00:00:00Z" });

  await memory.search({ userId: "u", query: "q", type: ["text", "image"], since: 0, until: new Date(), asOf: "2026-01-01" });
  // @ts-expect-error whose?
  await memory.search({ query: "q" });
  // @ts-expect-error the query is an option here
  await memory.search("q");
  const found = await memory.find({
    userId: "u",
    intent: "i",
    entities: { "price.eur": { $gt: 1, $lt: 5 }, city: "SHA", tag: { $in: ["a", "b"] } },
    cursor: null,
  });
  is<number | undefined>(found[0]?.intent.confidence);
  await memory.find({ userId: "u", cursor: found.cursor });
  // @ts-expect-error no such order
  await memory.timeline({ userId: "u", order: "random" });
  await memory.timeline({ userId: "u", order: "oldest", types: ["event"], roles: ["tool"] });

  const { count, ids } = await memory.forget({ userId: "u", ids: [fragment.id], preview: true });
  is<number>(count);
  await memory.restore({ userId: "u", ids });
  // @ts-expect-error whose?
  await memory.forget({ all: true });
  await memory.trash({ userId: "u" });

  await memory.importJSON(await memory.exportJSON({ userId: "u", includeSensitive: true }), { dryRun: true, owner: "v" });
  await memory.importJSON("{}");
  await memory.importJSON({ format: "py-memory" });
  // @ts-expect-error nothing to import
  await memory.importJSON();
  await memory.importImage(await memory.exportImage());
  await memory.importImage(bytes);
  // @ts-expect-error an image is bytes
  await memory.importImage("x");
  is<number | undefined>((await memory.metrics({ userId: "u" })).byType.text);
  is<string[]>((await memory.check()).problems);
  await memory.close();
}

export function caught(error: unknown): string | null {
  if (error instanceof BootError) {
    exact<typeof error.code, "boot_failed">(true);
    is<string>(error.details.hint);
    return error.details.url;
  }
  if (error instanceof PyMemoryError) {
    exact<typeof error.code, ErrorCode>(true);
    // @ts-expect-error no such code
    return error.code === "broken" ? "" : null;
  }
  return null;
}
