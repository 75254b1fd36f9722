// @ts-check
/**
 * The page's side of the memory: openMemory(), and objects whose verbs are calls to the engine.
 *
 * What each export does, with examples, is in memory.d.ts.
 */
import { Calls } from "./calls.js";
import { BootError, CODES, PyMemoryError } from "./errors.js";
import { Host } from "./host.js";
import { begin, checked, requireSecureContext } from "./opening.js";
import { rewrapped } from "./passphrase.js";
import { Args, invalid, toWire } from "./protocol.js";
import { Tab } from "./tabs.js";

export { BootError, CODES, PyMemoryError };

/**
 * @typedef {import("./memory.js").Memory} MemoryVerbs
 * @typedef {import("./memory.js").Session} SessionVerbs
 * @typedef {object} Options of a verb, as the caller wrote them; the engine checks them
 * @typedef {Record<string, unknown>} Fields
 * @typedef {(event: any) => void} Listener
 */

const EVENTS = ["progress", "change", "storage", "owner", "outdated", "closed"];
const IMAGE_TYPE = "application/vnd.sqlite3";

/** Memories that are open or opening. @type {Map<string, Promise<Memory>>} */
const opened = new Map();
/** Memories that are on their way out; their name is free when this settles. @type {Map<string, Promise<unknown>>} */
const ending = new Map();

/** @type {typeof import("./memory.js").openMemory} */
export function openMemory(options = {}) {
  let given;
  try {
    given = checked(options);
  } catch (error) {
    return Promise.reject(error);
  }
  const { name } = given;
  const known = opened.get(name);
  if (known) return known;
  // Registered before anything is awaited: two calls in a row (React's StrictMode) must find each other.
  const memory = Promise.resolve(ending.get(name)).then(() => start(given));
  opened.set(name, memory);
  memory.catch(() => forget(name, memory));
  return memory;
}

/** @param {string} name @param {Promise<Memory> | undefined} memory */
function forget(name, memory) {
  if (opened.get(name) === memory) opened.delete(name);
}

/** @type {typeof import("./memory.js").exportRaw} */
export async function exportRaw(options = {}) {
  const given = checked(options);
  requireSecureContext();
  const host = new Host();
  const image = await begin(host, new Calls(), listening(given), given, "export_raw");
  await host.end();
  return new Blob([image], { type: IMAGE_TYPE });
}

/** @type {typeof import("./memory.js").recover} */
export async function recover({ replace = false, ...options } = {}) {
  const given = checked(options);
  if (typeof replace !== "boolean") throw invalid("'replace' is true or false.", "replace");
  requireSecureContext();
  const host = new Host();
  const { image, report } = await begin(host, new Calls(), listening(given), given, "recover", { replace });
  await host.end();
  return { image: new Blob([image], { type: IMAGE_TYPE }), report };
}

/**
 * @param {ReturnType<typeof checked>} given
 * @returns {Promise<Memory>}
 */
async function start(given) {
  requireSecureContext();
  const events = listening(given);
  const tab = new Tab(given, events);
  const memory = new Memory(given.name, tab, events);
  memory.storage = await tab.open();
  // A task later, when the caller has the memory and has said what it listens to.
  if (memory.storage.mode === "memory") setTimeout(() => events.emit("storage", memory.storage));
  return memory;
}

/** @param {ReturnType<typeof checked>} given */
function listening({ onProgress }) {
  const events = new Events();
  if (onProgress) events.on("progress", ({ stage, ...detail }) => onProgress(stage, detail));
  return events;
}

/** Who wants to be told of what. */
class Events {
  /** @type {Map<string, Set<Listener>>} */
  #listeners = new Map(EVENTS.map((event) => [event, new Set()]));

  /** @param {string} event @param {Listener} listener */
  on(event, listener) {
    const listeners = this.#listeners.get(event);
    if (!listeners) throw invalid(`There is no event of that name; there are ${[...this.#listeners.keys()].join(", ")}.`, "event");
    if (typeof listener !== "function") throw invalid("A listener is a function.", "listener");
    const own = (/** @type {any} */ data) => listener(data);
    listeners.add(own);
    return () => void listeners.delete(own);
  }

  /** @param {string} event @param {any} data */
  emit(event, data) {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        listener(data);
      } catch (error) {
        reportError(error); // the listener's fault is its own: neither ours nor the other listeners'
      }
    }
  }
}

/** Makes the calls of a memory and of its sessions. */
class Caller {
  /** @param {Calls} calls */
  constructor(calls) {
    this.calls = calls;
  }

  /**
   * @param {string} method
   * @param {Options} [options]
   * @param {Fields} [extra] what is already as on the wire; may be promised
   * @param {Args} [parts]
   * @returns {Promise<any>}
   */
  async call(method, options = {}, extra = {}, parts = new Args()) {
    const { signal, timeoutMs, ...rest } = plainObject(options, "options");
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw invalid("'signal' is an AbortSignal.", "signal");
    }
    if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0)) {
      throw invalid("'timeoutMs' is a number above 0.", "timeoutMs");
    }
    const wired = toWire(rest);
    const taken = Object.keys(wired).find((name) => name in extra);
    if (taken !== undefined) {
      const name = camel(taken);
      throw invalid(`'${name}' is settled already and no option of this verb.`, name);
    }
    const args = { ...wired, ...extra };
    const { text } = args; // of a Blob, which takes a moment to read
    const ready = text instanceof Promise ? text.then((read) => ({ ...args, text: read })) : args;
    return await this.calls.call(method, ready, parts, { signal, timeoutMs });
  }
}

/** @param {string} name */
function camel(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** @param {unknown} value @param {string} name @returns {Fields} */
function plainObject(value, name) {
  try {
    // A copy: a getter or a proxy of the caller's is asked here, once, and what it throws is not ours to pass on.
    if (Object.prototype.toString.call(value) === "[object Object]") return { .../** @type {Fields} */ (value) };
  } catch {
    throw invalid(`'${name}' cannot be read.`, name);
  }
  throw invalid(`'${name}' is a plain object.`, name);
}

/** @implements {MemoryVerbs} */
class Memory {
  #caller;
  #tab;
  #events;
  #left = false;

  /** @param {string} name @param {Tab} tab @param {Events} events */
  constructor(name, tab, events) {
    this.name = name;
    /** @type {import("./memory.js").StorageState} */
    this.storage = { mode: "best-effort", persisted: false, usage: null, quota: null, generation: 0 };
    this.#tab = tab;
    this.#events = events;
    this.#caller = new Caller(tab.calls);
    events.on("storage", (data) => void (this.storage = data));
    tab.onEnd = (error, gone) => {
      this.#leave(gone);
      events.emit("closed", { code: error.code });
    };
  }

  /** Give the name free as soon as `ended` settles; once, for it may soon be another's. @param {Promise<unknown>} ended */
  #leave(ended) {
    if (this.#left) return;
    this.#left = true;
    const { name } = this;
    opened.delete(name);
    const settled = ended.catch(() => {}).finally(() => ending.get(name) === settled && ending.delete(name));
    ending.set(name, settled);
  }

  /** @type {import("./memory.js").Memory["on"]} */
  on(event, listener) {
    return this.#events.on(event, listener);
  }

  /** @param {Options} options */
  async startSession(options) {
    const { timeZone } = plainObject(options ?? {}, "options");
    return new Session(this.#caller, await this.#caller.call("start_session", options), timeZone);
  }

  /** @param {Options} options */
  search(options) {
    return this.#caller.call("search", options);
  }

  /** @param {Options} options */
  async find(options) {
    return page(await this.#caller.call("find", options));
  }

  /** @param {Options} options */
  async timeline(options) {
    return page(await this.#caller.call("timeline", options));
  }

  /** @param {Options} selector */
  forget(selector) {
    return this.#caller.call("forget", selector);
  }

  /** @param {Options} selector */
  restore(selector) {
    return this.#caller.call("restore", selector);
  }

  /** @param {Options} options */
  async trash(options) {
    return page(await this.#caller.call("trash", options));
  }

  /** @param {Options} [options] */
  async exportJSON(options) {
    return new Blob([await this.#caller.call("export_json", options)], { type: "application/json" });
  }

  /** @param {Blob | string | object} file @param {Options} [options] */
  async importJSON(file, options) {
    const text = file instanceof Blob ? file.text() : typeof file === "string" ? file : jsonOf(file);
    return await this.#caller.call("import_json", options, { text });
  }

  /** @param {Options} [options] */
  async exportImage(options) {
    return new Blob([await this.#caller.call("export_image", options)], { type: IMAGE_TYPE });
  }

  /** @param {Blob | BufferSource} image @param {Options} [options] */
  async importImage(image, options) {
    const parts = new Args();
    return await this.#caller.call("import_image", options, { image: parts.content(image) }, parts);
  }

  /** @param {Options} [options] */
  metrics(options) {
    return this.#caller.call("metrics", options);
  }

  /** @param {Options} [options] */
  check(options) {
    return this.#caller.call("check", options);
  }

  /** @param {Options} [options] */
  reindex(options) {
    return this.#caller.call("reindex", options);
  }

  /** @param {Options} options */
  async changePassphrase(options) {
    const { passphrase, newPassphrase, ...rest } = plainObject(options, "options");
    // Made here: what goes to the owner, which may be another tab's, is a record that is stored anyway.
    const records = await rewrapped(this.name, passphrase, newPassphrase);
    await this.#caller.call("change_key", rest, records);
    this.#tab.passphrase = /** @type {string} */ (newPassphrase);
  }

  async persist() {
    // Only a page can ask; older browsers have nothing to ask, and some refuse by an error.
    if (this.storage.mode !== "memory") await navigator.storage?.persist?.().catch(() => false);
    return await this.#caller.call("storage");
  }

  close() {
    const closing = this.#tab.close();
    this.#leave(closing);
    return closing;
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

/** @implements {SessionVerbs} */
class Session {
  #caller;
  /** Said with every recall: whoever owns the memory by then may not have heard it. */
  #zone;

  /** @param {Caller} caller @param {{id: string, userId: string, skill: string}} row @param {unknown} timeZone */
  constructor(caller, { id, userId, skill }, timeZone) {
    this.#caller = caller;
    this.#zone = timeZone === undefined ? {} : { timeZone };
    this.id = id;
    this.userId = userId;
    this.skill = skill;
  }

  /** @param {unknown} content @param {Options} [options] */
  async remember(content, options = {}) {
    const parts = new Args();
    const own = { ...plainObject(options, "options") };
    const extra = { content: parts.content(content, own), session_id: this.id };
    return await this.#caller.call("session.remember", own, extra, parts);
  }

  /** @param {readonly object[]} items @param {Options} [options] */
  async rememberMany(items, options) {
    if (!Array.isArray(items)) throw invalid("'items' is a list of { content, ...options }.", "items");
    const parts = new Args();
    const wired = items.map((item) => {
      const { content, ...own } = plainObject(item, "items");
      const placed = parts.content(content, own);
      return { ...toWire(own), content: placed };
    });
    return await this.#caller.call("session.remember_many", options, { items: wired, session_id: this.id }, parts);
  }

  /** @param {string} [query] @param {Options} [options] */
  async recall(query = "", options = {}) {
    const own = { ...this.#zone, ...plainObject(options, "options") };
    return await this.#caller.call("session.recall", own, { query, session_id: this.id });
  }

  /** @param {Options} [options] */
  async end(options) {
    return await this.#caller.call("session.end", options, { session_id: this.id });
  }
}

/** A list that knows where the next one begins. @param {{items: any[], cursor: string | null}} answer */
function page({ items, cursor }) {
  return Object.assign(items, { cursor });
}

/** @param {unknown} value */
function jsonOf(value) {
  try {
    return JSON.stringify(plainObject(value, "file"));
  } catch (cause) {
    throw cause instanceof PyMemoryError ? cause : invalid("'file' cannot be written as JSON.", "file");
  }
}
