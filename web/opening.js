// @ts-check
/** Opening: what the options have to be, the first call to a new worker, and why it failed when it did. */
import { bootError, PyMemoryError } from "./errors.js";
import { checkedPassphrase } from "./passphrase.js";
import { Args, invalid, noticeOf, toWire } from "./protocol.js";

/**
 * @typedef {import("./memory.js").OpenOptions} OpenOptions
 * @typedef {import("./host.js").Host} Host
 * @typedef {import("./calls.js").Calls} Calls
 * @typedef {{on(event: string, listener: (data: any) => void): () => void, emit(event: string, data: any): void}} Events
 */

const STAGE_LIMIT_MS = 30_000;
const WORKER_FILES = [
  "worker.js",
  "boot.js",
  "early.js",
  "sealing.js",
  "passphrase.js",
  "sharing.js",
  "protocol.js",
  "errors.js",
];
const COPY = "Copy the whole py-memory folder as it was built, and check 'assetBase'.";

/** @param {OpenOptions} options */
export function checked(options) {
  if (Object.prototype.toString.call(options) !== "[object Object]") {
    throw invalid("openMemory takes an object of options.", "options");
  }
  const {
    name = "agent_memory",
    settings,
    timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC",
    durability = "strict",
    passphrase,
    fallback,
    clock,
    assetBase = new URL(".", folder()).href,
    timeoutMs = STAGE_LIMIT_MS,
    onProgress,
    ...unknown
  } = options;
  const [extra] = Object.keys(unknown);
  if (extra !== undefined) throw invalid(`openMemory has no option '${extra}'.`, extra);
  if (typeof name !== "string" || !name) throw invalid("'name' is a text that is not empty.", "name");
  if (!["strict", "relaxed"].includes(durability)) {
    throw invalid("'durability' is 'strict' or 'relaxed'.", "durability");
  }
  if (passphrase !== undefined) checkedPassphrase(passphrase, "passphrase");
  if (fallback !== undefined && fallback !== "memory") throw invalid("'fallback' is 'memory', or it is left out.", "fallback");
  if (clock !== undefined && !Number.isSafeInteger(clock)) {
    throw invalid("'clock' is a fixed time in whole milliseconds since 1970.", "clock");
  }
  if (!(timeoutMs > 0)) throw invalid("'timeoutMs' is a number above 0.", "timeoutMs");
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw invalid("'onProgress' is a function.", "onProgress");
  }
  let base;
  try {
    base = new URL(assetBase, document.baseURI).href;
  } catch {
    throw invalid("'assetBase' is the address of the folder with our files.", "assetBase");
  }
  if (!base.endsWith("/")) base += "/";
  const args = toWire({ name, settings, timeZone, durability, passphrase, fallback, clock, assetBase: base });
  return { name, base, args, timeoutMs, onProgress };
}

/** The address of this module; kept apart so that bundlers do not take it for an asset. */
function folder() {
  return import.meta.url;
}

/** Refuse a page that has no locks and no cryptography: two of them would write at once. */
export function requireSecureContext() {
  if (globalThis.isSecureContext && navigator.locks && globalThis.crypto?.subtle) return;
  throw new PyMemoryError(
    "insecure_context",
    "This page is not a secure context, so the browser gives it no locks and no cryptography. Serve it over https or from localhost.",
  );
}

/**
 * Start a worker and make its first call; when that fails, the worker is ended and its locks are free.
 * @param {Host} host @param {Calls} calls @param {Events} events @param {ReturnType<typeof checked>} given
 * @param {string} method @param {Record<string, unknown>} [extra] what the first call has beside the options
 * @returns {Promise<any>}
 */
export async function begin(host, calls, events, { base, args, timeoutMs }, method, extra = {}) {
  let stage = "worker";
  let quiet = 0;
  /** @type {string | undefined} */
  let policy;
  const violated = (/** @type {SecurityPolicyViolationEvent} */ event) => void (policy = event.effectiveDirective);
  document.addEventListener("securitypolicyviolation", violated);
  const moved = events.on("progress", (event) => {
    stage = event.stage;
    quiet = 0;
  });
  /** @param {PyMemoryError} error */
  const fail = (error) => calls.end(error, error);
  // Counted in slices: after a sleep of the machine one slice has passed, not the whole limit.
  const watch = setInterval(() => {
    quiet += 1;
    if (quiet !== 11) return;
    void whySilent(stage, base, timeoutMs).then((error) => {
      if (quiet > 10) fail(error);
    });
  }, timeoutMs / 10);
  host.onNotice = (notice) => events.emit(notice.event, noticeOf(notice));
  host.onAnswer = (answer) => calls.received(answer);
  host.onLost = (reason) => fail(lost(reason));
  host.onRobbed = () => fail(new PyMemoryError("already_open", "Another page took this memory over: open it again."));
  try {
    events.emit("progress", { stage });
    host.begin();
    calls.attach({ send: (call) => host.send(call), cancel: (id) => host.cancel(id, calls.client) });
    const answer = await calls.call(method, { ...args, ...extra }, new Args());
    events.emit("progress", { stage: "ready" });
    return answer;
  } catch (error) {
    const known = error instanceof PyMemoryError ? error : undefined;
    const broken = !known || known.code === "owner_lost";
    const failure = broken ? await whyLost(stage, base, policy, known?.details.reason ?? error) : known;
    await host.end();
    throw failure;
  } finally {
    clearInterval(watch);
    quiet = 0;
    moved();
    document.removeEventListener("securitypolicyviolation", violated);
  }
}

/** @param {string} [reason] */
export function lost(reason) {
  return new PyMemoryError(
    "owner_lost",
    "The worker stopped before the call was answered, and again when it was repeated; a write may or may not have been kept. Look, and try something smaller.",
    reason ? { reason } : {},
  );
}

/**
 * Return what is wrong with the answer for a file of the worker.
 * @param {URL} url @param {AbortSignal} [signal]
 */
async function refusal(url, signal) {
  const response = await fetch(url, signal ? { signal } : {});
  const type = response.headers.get("content-type") ?? "nothing";
  if (!response.ok) return `the server answered ${response.status}`;
  return type.includes("javascript") ? undefined : `the server sent it as '${type}'`;
}

/**
 * Firefox tells nobody of a missing file when a worker has several: look before calling it silence.
 * @param {string} stage @param {string} base @param {number} timeoutMs
 */
async function whySilent(stage, base, timeoutMs) {
  const signal = AbortSignal.timeout(timeoutMs / 10);
  for (const path of stage === "worker" ? WORKER_FILES : []) {
    const url = new URL(path, base);
    const what = await refusal(url, signal).catch(() => undefined);
    if (what) return bootError(stage, url, what, COPY);
  }
  const hint = "Check the connection and reload; on a slow device raise 'timeoutMs'.";
  return bootError(stage, base, `nothing happened for ${timeoutMs / 1000} s`, hint);
}

/**
 * A worker that cannot be loaded says nothing but "error": look for the cause.
 * @param {string} stage @param {string} base @param {string | undefined} policy @param {unknown} cause
 */
async function whyLost(stage, base, policy, cause) {
  for (const path of stage === "worker" ? WORKER_FILES : []) {
    const url = new URL(path, base);
    try {
      const what = await refusal(url);
      if (what) return bootError(stage, url, what, COPY, cause);
    } catch (fault) {
      const what = navigator.onLine ? "it could not be fetched" : "the browser is offline";
      const hint = "Check the connection and connect-src, then call openMemory again.";
      return bootError(stage, url, what, hint, fault);
    }
  }
  const what = policy ? `the page's Content-Security-Policy forbids it (${policy})` : "the worker could not run";
  const hint = policy ? `Add 'self' to ${policy}.` : `${COPY} Reload the page.`;
  return bootError(stage, base, what, hint, cause);
}
