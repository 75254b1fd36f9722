// @ts-check
/**
 * The worker: it starts Python, then hands over one call after the other, in the order they came.
 *
 * Nothing that is remembered may reach the console from here, not even through a fault: the console is
 * silenced before the first call, and an uncaught exception is reported to the page without its text.
 */
import { boot } from "./boot.js";
import { readEarly } from "./early.js";
import { BootError, PyMemoryError, bootError, textOf } from "./errors.js";
import { derive } from "./passphrase.js";
import { errorToWire } from "./protocol.js";
import "./sealing.js"; // where Python finds it: py_memory/browser/sealing.py

/**
 * @typedef {import("./protocol.js").Call} Call
 * @typedef {import("./protocol.js").Cancel} Cancel
 * @typedef {[ok: boolean, json: string, buffers: Iterable<ArrayBuffer | Uint8Array>, storage?: string | null]} Reply
 */

const page = /** @type {{postMessage(message: unknown, transfer?: Transferable[]): void}} */ (
  /** @type {unknown} */ (globalThis)
);

/** @type {import("./boot.js").Engine | undefined} */
let engine;
/** Calls that have not been begun. @type {Set<number>} */
const waiting = new Set();
let tail = Promise.resolve();

addEventListener("message", (/** @type {MessageEvent<Call | Cancel>} */ { data }) => {
  if ("cancel" in data) {
    waiting.delete(data.cancel);
    return;
  }
  waiting.add(data.id);
  tail = tail.then(() => serve(data));
});
addEventListener("error", (event) => {
  event.preventDefault();
  fatal(event.message);
});
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  // A runtime that breaks down inside a coroutine leaves its call unsettled: this is the only sign.
  if (engine?.failed()) fatal("");
});

/** @param {Call} call */
async function serve(call) {
  const { id, method, args, binary } = call;
  if (!waiting.delete(id)) {
    refuse(id, new PyMemoryError("aborted", "The call was cancelled before it was begun."));
    return;
  }
  try {
    if (!engine) await start(call);
    const reply = /** @type {Reply} */ (await engine?.dispatch(method, args, binary));
    answer(id, reply);
  } catch (thrown) {
    // Python answers with its errors; what is thrown is either a failed start or the end of the runtime.
    if (thrown instanceof PyMemoryError) refuse(id, thrown);
    else fatal(textOf(thrown));
  }
}

/** @param {Call} call */
async function start({ method, args, alive }) {
  const { asset_base: base, name, passphrase } = JSON.parse(args);
  // Whoever gets this lock after us knows that we are gone, however that came about.
  if (alive) await new Promise((held) => navigator.locks.request(alive, () => new Promise(() => held(null))));
  // Where Python finds it: py_memory/browser/worker.py.
  if (method === "open") Object.assign(globalThis, { pyMemoryEarly: readEarly(name) });
  if (passphrase !== undefined) void derive(name, passphrase);
  try {
    engine = await boot(base, report);
  } catch (cause) {
    throw cause instanceof BootError
      ? cause
      : bootError("runtime", base, "the start failed", "Reload the page.", cause);
  }
  for (const name of /** @type {const} */ (["debug", "error", "info", "log", "trace", "warn"])) {
    console[name] = () => {};
  }
  report("image");
}

/** @param {number} id @param {Reply} reply */
function answer(id, [ok, json, buffers, storage]) {
  const news = storage ? { storage } : {};
  if (!ok) {
    page.postMessage({ id, ok, error: json, ...news });
    return;
  }
  const binary = Array.from(buffers, (part) => {
    if (part instanceof ArrayBuffer) return part;
    const whole = part.byteLength === part.buffer.byteLength && part.buffer instanceof ArrayBuffer;
    return whole ? part.buffer : new Uint8Array(part).buffer;
  });
  page.postMessage({ id, ok, result: json, binary, ...news }, binary);
}

/** @param {number} id @param {PyMemoryError} error */
function refuse(id, error) {
  page.postMessage({ id, ok: false, error: errorToWire(error) });
}

/** @param {string} stage @param {Record<string, unknown>} [detail] */
function report(stage, detail = {}) {
  page.postMessage({ event: "progress", data: JSON.stringify({ stage, ...detail }) });
}

/** @param {string} reason told only while nothing is remembered here yet */
function fatal(reason) {
  page.postMessage({ event: "fatal", data: JSON.stringify(engine ? {} : { reason }) });
}
