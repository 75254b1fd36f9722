// @ts-check
/**
 * The wire format between page and worker, and nothing else.
 *
 * A call is one JSON string plus the binary values it refers to as `{"$binary": n}`; an answer likewise.
 * Names are camelCase on the page and snake_case on the wire; inside `metadata`, `entities` and `state`
 * (the caller's own data) keys are left alone.
 */
import { BootError, CODES, PyMemoryError } from "./errors.js";

/**
 * @typedef {{id: number, from: string, method: string, args: string, binary: ArrayBuffer[], answered: number, alive?: string}} Call
 *   `from` and `id` name the call, so that a write that is sent again is applied once; `answered` is up to where
 *   the sender has all answers. `alive` (with the first call only) names the lock that the worker holds while it lives.
 * @typedef {{cancel: number, from: string}} Cancel  drops a call that has not been begun
 * @typedef {{id: number, to: string, ok: true, result: string, binary: ArrayBuffer[]}} Result
 * @typedef {{id: number, to: string, ok: false, error: string}} Refusal
 * @typedef {Result | Refusal} Answer
 * @typedef {{event: "progress" | "change" | "storage" | "robbed" | "fatal", data: string}} Notice
 * @typedef {{mode: "persistent" | "best-effort" | "memory", persisted: boolean, usage: number | null, quota: number | null, generation: number}} Storage
 */

/**
 * What tabs say to each other; all of it on one BroadcastChannel. `server` names a worker that owns the memory.
 * @typedef {{kind: "who"}} Who  is there an owner?
 * @typedef {{kind: "starting", server: string}} Starting  a page has the lock and starts its worker
 * @typedef {{kind: "owner", server: string, term: number, born: number, storage: string}} Claim
 * @typedef {{kind: "ping", server: string, from: string, waiting: number[]}} Ping  which calls wait for an answer
 * @typedef {{kind: "pong", server: string, to: string, unknown: number[]}} Pong  and which of them never arrived
 * @typedef {{kind: "alive", server: string}} Alive  from the owner's page, whose worker may be busy
 * @typedef {{kind: "call", server: string, call: Call}} SharedCall
 * @typedef {{kind: "cancel", server: string, cancel: number, from: string}} SharedCancel
 * @typedef {{kind: "answer", server: string, answer: Answer}} SharedAnswer
 * @typedef {{kind: "notice", server: string, notice: Notice}} SharedNotice
 * @typedef {{kind: "leaving" | "crashed", server: string}} Gone
 * @typedef {Who | Starting | Claim | Ping | Pong | Alive | SharedCall | SharedCancel | SharedAnswer | SharedNotice | Gone} Word
 */

/**
 * The version of this protocol, and of the tables that our engine writes. Who sees a higher one of either is
 * outdated: its page has to be loaded again.
 */
export const WIRE = 1;
export const SCHEMA = 2;

/** Of a memory: its database, its lock, and the channel of its tabs. @param {string} name */
export const databaseName = (name) => `py-memory:${name}`;
/** Held by an owner that does not share (py_memory/browser/locks.py). @param {string} name */
export const aloneName = (name) => `py-memory-alone:${name}`;
/** Held by a worker for as long as it lives. @param {string} server */
export const aliveName = (server) => `py-memory-worker:${server}`;

/** The caller's own data: its keys are content, not names of ours. */
const OPAQUE = new Set(["metadata", "entities", "state"]);

/** Deeper than the engine accepts, so that the engine is the one to say so; ends cycles too. */
const MAX_DEPTH = 100;

/** @param {string} key */
const camel = (key) => key.replace(/(?<=.)_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
/** @param {string} key */
const snake = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * @param {string} message
 * @param {string} option
 */
export const invalid = (message, option) => new PyMemoryError("invalid_argument", message, { option });

/** The arguments of one call: JSON text, and the binary values beside it. */
export class Args {
  constructor() {
    /** @type {(ArrayBuffer | Blob)[]} */
    this.binary = [];
  }

  /**
   * Put binary content beside the JSON; copied now, so that what the caller does to it later does not
   * matter and nothing of the caller's is detached.
   * @param {unknown} value string, Blob, bytes or a place
   * @param {Record<string, unknown>} [options] gets the Blob's media type where it has none
   * @returns {unknown}
   */
  content(value, options) {
    if (value instanceof Blob) {
      if (options && options.mediaType === undefined && value.type) options.mediaType = value.type;
      return { $binary: this.binary.push(value) - 1 };
    }
    if (ArrayBuffer.isView(value) || isBuffer(value)) return { $binary: this.binary.push(copy(value)) - 1 };
    return plain(value, "content", false, 0);
  }

  /** @returns {Promise<ArrayBuffer[]>} */
  buffers() {
    return Promise.all(this.binary.map((part) => (part instanceof Blob ? part.arrayBuffer() : part)));
  }
}

/** @param {unknown} value @returns {value is ArrayBuffer | SharedArrayBuffer} */
function isBuffer(value) {
  const kind = Object.prototype.toString.call(value);
  return kind === "[object ArrayBuffer]" || kind === "[object SharedArrayBuffer]";
}

/** @param {ArrayBufferView | ArrayBuffer | SharedArrayBuffer} value @returns {ArrayBuffer} */
function copy(value) {
  const view = ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
  return new Uint8Array(view).buffer;
}

/**
 * Convert options to what goes on the wire: keys in snake_case, dates as ISO text, nothing that JSON
 * would silently drop or change.
 * @param {Record<string, unknown>} options
 * @returns {Record<string, unknown>}
 */
export function toWire(options) {
  if (Object.prototype.toString.call(options) !== "[object Object]") {
    throw invalid("Options are a plain object.", "options");
  }
  try {
    return /** @type {Record<string, unknown>} */ (plain(options, "options", false, 0));
  } catch (error) {
    if (error instanceof PyMemoryError) throw error;
    // Thrown by a getter, a proxy or a toJSON of the caller's: its text may hold content.
    throw invalid("An option cannot be read.", "options");
  }
}

/**
 * @param {unknown} value
 * @param {string} name for the error
 * @param {boolean} opaque
 * @param {number} depth
 * @returns {unknown}
 */
function plain(value, name, opaque, depth) {
  if (value === null || ["string", "boolean", "undefined"].includes(typeof value)) return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw invalid(`'${name}' is not a finite number.`, name);
  }
  if (depth > MAX_DEPTH) throw invalid(`'${name}' is nested too deeply or contains itself.`, name);
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    throw invalid(`'${name}' is not a valid date.`, name);
  }
  if (typeof value === "object") {
    const { toJSON } = /** @type {{toJSON?: unknown}} */ (value);
    if (typeof toJSON === "function") return plain(toJSON.call(value, name), name, opaque, depth + 1);
    if (Array.isArray(value)) return value.map((item) => plain(item, name, opaque, depth + 1));
    if (Object.prototype.toString.call(value) === "[object Object]") {
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => {
          if (!opaque && /[_$]/.test(key)) {
            throw invalid(`Options are written in camelCase here; '${key}' is none.`, key);
          }
          return opaque
            ? [key, plain(item, name, true, depth + 1)]
            : [snake(key), plain(item, key, OPAQUE.has(key), depth + 1)];
        }),
      );
    }
  }
  throw invalid(`'${name}' holds something that JSON cannot carry.`, name);
}

/**
 * Read an answer: keys in camelCase, binary values in place as Uint8Array.
 * @param {string} json
 * @param {ArrayBuffer[]} binary
 * @returns {any}
 */
export function fromWire(json, binary = []) {
  return named(JSON.parse(json), binary);
}

/** @param {any} value @param {ArrayBuffer[]} binary @returns {any} */
function named(value, binary) {
  if (Array.isArray(value)) return value.map((item) => named(item, binary));
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$binary === "number") return new Uint8Array(binary[value.$binary]);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [camel(key), OPAQUE.has(key) ? item : named(item, binary)]),
  );
}

/** Read what a notice says; verbs have their names of the page there. @param {Notice} notice @returns {any} */
export function noticeOf({ event, data }) {
  const said = fromWire(data);
  return event === "change" ? { ...said, verb: camel(said.verb).replace("Json", "JSON") } : said;
}

/** @param {PyMemoryError} error @returns {string} */
export function errorToWire({ code, message, details }) {
  return JSON.stringify({ code, message, details });
}

/** @param {string} json @returns {PyMemoryError} */
export function errorFromWire(json) {
  const { code, message, details } = JSON.parse(json);
  const fields = named(details ?? {}, []);
  if (code === "boot_failed") return new BootError(message, fields);
  return new PyMemoryError(CODES.includes(code) ? code : "internal", message, fields);
}
