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
import { aliveName, errorToWire } from "./protocol.js";
import "./sealing.js"; // where Python finds it: py_memory/browser/sealing.py
import { Sharing } from "./sharing.js";

/**
 * @typedef {import("./protocol.js").Call} Call
 * @typedef {import("./protocol.js").Cancel} Cancel
 * @typedef {import("./protocol.js").Notice} Notice
 * @typedef {import("./protocol.js").Answer} Answer
 * @typedef {[ok: boolean, json: string, buffers: Iterable<ArrayBuffer | Uint8Array>, storage?: string | null, change?: string | null]} Reply
 * @typedef {(answer: Answer, transfer?: Transferable[]) => void} Answering  to who made the call
 */

const page = /** @type {{postMessage(message: unknown, transfer?: Transferable[]): void}} */ (
  /** @type {unknown} */ (globalThis)
);
/** @type {Answering} */
const toPage = (message, transfer) => page.postMessage(message, transfer);

/** @type {import("./boot.js").Engine | undefined} */
let engine;
/** Other tabs, once the memory is open. @type {Sharing | undefined} */
let sharing;
/** The lock that tells that this worker lives; its end names the worker. */
let alive = "";
/** Calls that have not been answered; true until they are begun. @type {Map<string, boolean>} */
const calls = new Map();
let tail = Promise.resolve();
let leaving = false;

/** @param {number} id @param {string} from */
const keyOf = (id, from) => `${from}:${id}`;
/** @param {number} id @param {string} from */
const knows = (id, from) => calls.has(keyOf(id, from));

/** @param {Call} call @param {Answering} reply */
function take(call, reply) {
  if (knows(call.id, call.from)) return;
  calls.set(keyOf(call.id, call.from), true);
  tail = tail.then(() => serve(call, reply));
}

/** @param {number} id @param {string} from */
function drop(id, from) {
  const key = keyOf(id, from);
  if (calls.get(key)) calls.set(key, false);
}

addEventListener("message", (/** @type {MessageEvent<Call | Cancel>} */ { data }) => {
  if ("cancel" in data) drop(data.cancel, data.from);
  else take(data, toPage);
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

/** @param {Call} call @param {Answering} reply */
async function serve(call, reply) {
  const { id, from, method, args, binary, answered } = call;
  const key = keyOf(id, from);
  // What comes after the end is the next owner's to serve: without an answer it is called again.
  if (leaving) return void calls.delete(key);
  if (!calls.get(key)) {
    calls.delete(key);
    refuse(call, reply, new PyMemoryError("aborted", "The call was cancelled before it was begun."));
    return;
  }
  if (method === "close") leave();
  try {
    if (!engine) await start(call);
    const [ok, json, buffers, storage, change] = /** @type {Reply} */ (
      await engine?.dispatch(method, args, binary, from, id, answered)
    );
    if (!ok && JSON.parse(json).code === "owner_lost") {
      // Not an answer to this call, but the end of who should give it: the next owner gives it.
      leave();
      page.postMessage({ event: "robbed", data: "{}" });
      return;
    }
    if (method === "open" && ok) share(JSON.parse(args).name, JSON.parse(json));
    // Who answers a call has told everybody of its change before.
    if (storage) tell({ event: "storage", data: storage });
    if (change) tell({ event: "change", data: change });
    answer(call, reply, ok, json, buffers);
  } catch (thrown) {
    // Python answers with its errors; what is thrown is either a failed start or the end of the runtime.
    if (thrown instanceof PyMemoryError) refuse(call, reply, thrown);
    else fatal(textOf(thrown));
  } finally {
    calls.delete(key);
  }
}

/** @param {string} name @param {{term: number, born: number, storage: object}} opened */
function share(name, { term, born, storage }) {
  // Without the means to find each other there is one tab, and no other gets in.
  if (!globalThis.BroadcastChannel) return;
  const server = alive.slice(aliveName("").length);
  const claim = { term, born, storage: JSON.stringify(storage) };
  sharing = new Sharing(name, server, claim, { take, drop, knows });
}

function leave() {
  leaving = true;
  sharing?.leave();
  sharing = undefined;
}

/** @param {Notice} notice */
function tell(notice) {
  page.postMessage(notice);
  sharing?.tell(notice);
}

/** @param {Call} call */
async function start({ method, args, alive: lock = "" }) {
  const { asset_base: base, name, passphrase } = JSON.parse(args);
  alive = lock;
  // Whoever gets this lock after us knows that we are gone, however that came about.
  await new Promise((held) => navigator.locks.request(lock, () => new Promise(() => held(null))));
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

/** @param {Call} call @param {Answering} reply @param {boolean} ok @param {string} json @param {Reply[2]} buffers */
function answer({ id, from: to }, reply, ok, json, buffers) {
  if (!ok) {
    reply({ id, to, ok, error: json });
    return;
  }
  const binary = Array.from(buffers, (part) => {
    if (part instanceof ArrayBuffer) return part;
    const whole = part.byteLength === part.buffer.byteLength && part.buffer instanceof ArrayBuffer;
    return whole ? part.buffer : new Uint8Array(part).buffer;
  });
  reply({ id, to, ok, result: json, binary }, binary);
}

/** @param {Call} call @param {Answering} reply @param {PyMemoryError} error */
function refuse({ id, from: to }, reply, error) {
  reply({ id, to, ok: false, error: errorToWire(error) });
}

/** @param {string} stage @param {Record<string, unknown>} [detail] */
function report(stage, detail = {}) {
  page.postMessage({ event: "progress", data: JSON.stringify({ stage, ...detail }) });
}

/** @param {string} reason told only while nothing is remembered here yet */
function fatal(reason) {
  page.postMessage({ event: "fatal", data: JSON.stringify(engine ? {} : { reason }) });
}
