// @ts-check
/**
 * The page's side of the memory: openMemory(), and objects whose verbs are calls to the worker.
 *
 * What each export does, with examples, is in memory.d.ts.
 */
import { Channel } from "./channel.js";
import { BootError, CODES, PyMemoryError } from "./errors.js";
import { begin, checked } from "./opening.js";
import { Args, invalid, toWire } from "./protocol.js";

export { BootError, CODES, PyMemoryError };

/**
 * @typedef {import("./memory.js").Memory} MemoryVerbs
 * @typedef {import("./memory.js").Session} SessionVerbs
 * @typedef {object} Options of a verb, as the caller wrote them; the engine checks them
 * @typedef {Record<string, unknown>} Fields
 * @typedef {(event: any) => void} Listener
 */

const IMAGE_TYPE = "application/vnd.sqlite3";

/** Verbs after which other views of the same memory are out of date. */
const WRITES = new Set([
  "start_session",
  "session.end",
  "session.remember",
  "session.remember_many",
  "forget",
  "restore",
  "import_json",
  "import_image",
  "reindex",
]);

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
  const channel = new Channel();
  const image = await begin(channel, new Events(), checked(options), "export_raw");
  await channel.end(new PyMemoryError("closed", "The image has been exported."));
  return new Blob([image], { type: IMAGE_TYPE });
}

/**
 * @param {ReturnType<typeof checked>} given
 * @returns {Promise<Memory>}
 */
async function start(given) {
  const channel = new Channel();
  const events = new Events();
  const memory = new Memory(given.name, channel, events);
  memory.storage = (await begin(channel, events, given, "open")).storage;
  // A task later, when the caller has the memory and has said what it listens to.
  if (memory.storage.mode === "memory") setTimeout(() => events.emit("storage", memory.storage));
  return memory;
}

/** Who wants to be told of what. */
class Events {
  /** @type {Map<string, Set<Listener>>} */
  #listeners = new Map(["progress", "change", "storage", "outdated", "owner", "closed"].map((event) => [event, new Set()]));

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
  /** @param {Channel} channel @param {Events} events */
  constructor(channel, events) {
    this.channel = channel;
    this.events = events;
    /** Whose calls these are, where that is settled. @type {string | undefined} */
    this.userId = undefined;
  }

  /** The same for the calls of one user. @param {string} userId */
  of(userId) {
    const caller = new Caller(this.channel, this.events);
    caller.userId = userId;
    return caller;
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
    /** @param {any} result */
    const done = (result) => {
      if (!WRITES.has(method) || args.preview || args.dry_run) return;
      this.events.emit("change", changeOf(method, { user_id: this.userId, ...args }, result));
    };
    const { text } = args; // of a Blob, which takes a moment to read
    const ready = text instanceof Promise ? text.then((read) => ({ ...args, text: read })) : args;
    return await this.channel.call(method, ready, parts, { signal, timeoutMs, done });
  }
}

/**
 * What other views need to know of a write: never its content.
 * @param {string} method @param {Fields} args @param {any} result
 */
function changeOf(method, args, result) {
  const verb = camel(method.replace("session.", ""));
  const all = Array.isArray(result) ? result.map(({ id }) => id) : result?.ids;
  const ids = all ?? (method === "session.remember" ? [result.id] : undefined);
  const sessionId = args.session_id ?? (method === "start_session" ? result.id : undefined);
  return Object.fromEntries(
    Object.entries({ verb, userId: args.user_id, sessionId, ids }).filter(([, value]) => value !== undefined),
  );
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
  #channel;
  #events;
  /** @type {Promise<void> | undefined} */
  #closing;
  #left = false;

  /** @param {string} name @param {Channel} channel @param {Events} events */
  constructor(name, channel, events) {
    this.name = name;
    /** @type {import("./memory.js").StorageState} */
    this.storage = { mode: "best-effort", persisted: false, usage: null, quota: null, generation: 0 };
    this.#channel = channel;
    this.#events = events;
    this.#caller = new Caller(channel, events);
    events.on("storage", (data) => void (this.storage = data));
    channel.onEnd = (error) => {
      this.#leave(channel.end(error));
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
    return new Session(this.#caller, await this.#caller.call("start_session", options));
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

  async persist() {
    // Only a page can ask; older browsers have nothing to ask, and some refuse by an error.
    if (this.storage.mode !== "memory") await navigator.storage?.persist?.().catch(() => false);
    return await this.#caller.call("storage");
  }

  close() {
    this.#closing ??= this.#channel.close();
    this.#leave(this.#closing);
    return this.#closing;
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

/** @implements {SessionVerbs} */
class Session {
  #caller;

  /** @param {Caller} caller @param {{id: string, userId: string, skill: string}} row */
  constructor(caller, { id, userId, skill }) {
    this.#caller = caller.of(userId);
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
  async recall(query = "", options) {
    return await this.#caller.call("session.recall", options, { query, session_id: this.id });
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
