// @ts-check
/**
 * The page's side of the memory: openMemory(), and objects whose verbs are calls to the worker.
 *
 * What each export does, with examples, is in memory.d.ts.
 */
import { Channel } from "./channel.js";
import { BootError, CODES, PyMemoryError, bootError } from "./errors.js";
import { Args, invalid, toWire } from "./protocol.js";

export { BootError, CODES, PyMemoryError };

/**
 * @typedef {import("./memory.js").OpenOptions} OpenOptions
 * @typedef {import("./memory.js").Memory} MemoryVerbs
 * @typedef {import("./memory.js").Session} SessionVerbs
 * @typedef {object} Options of a verb, as the caller wrote them; the engine checks them
 * @typedef {Record<string, unknown>} Fields
 * @typedef {(event: any) => void} Listener
 */

const STAGE_LIMIT_MS = 30_000;
const IMAGE_TYPE = "application/vnd.sqlite3";
const WORKER_FILES = ["worker.js", "boot.js", "protocol.js", "errors.js"];

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

/** @param {OpenOptions} options */
function checked(options) {
  if (Object.prototype.toString.call(options) !== "[object Object]") {
    throw invalid("openMemory takes an object of options.", "options");
  }
  const {
    name = "agent_memory",
    settings,
    timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC",
    durability = "strict",
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
  const args = toWire({ name, settings, timeZone, durability, clock, assetBase: base });
  return { name, base, args, timeoutMs, onProgress };
}

/** The address of this module; kept apart so that bundlers do not take it for an asset. */
function folder() {
  return import.meta.url;
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
  return memory;
}

/**
 * Start the worker and make its first call; when that fails, the channel is ended and the worker's locks are free.
 * @param {Channel} channel @param {Events} events @param {ReturnType<typeof checked>} given @param {string} method
 * @returns {Promise<any>}
 */
async function begin(channel, events, { base, args, timeoutMs, onProgress }, method) {
  if (!globalThis.isSecureContext || !navigator.locks || !globalThis.crypto?.subtle) {
    throw new PyMemoryError(
      "insecure_context",
      "This page is not a secure context, so the browser gives it no locks and no cryptography. Serve it over https or from localhost.",
    );
  }
  let stage = "worker";
  let quiet = 0;
  /** @type {string | undefined} */
  let policy;
  const violated = (/** @type {SecurityPolicyViolationEvent} */ event) => void (policy = event.effectiveDirective);
  document.addEventListener("securitypolicyviolation", violated);
  channel.onNotice = ({ event, data }) => events.emit(event, data);
  if (onProgress) events.on("progress", ({ stage, ...detail }) => onProgress(stage, detail));
  const moved = events.on("progress", (event) => {
    stage = event.stage;
    quiet = 0;
  });
  // Counted in slices: after a sleep of the machine one slice has passed, not the whole limit.
  const watch = setInterval(() => {
    quiet += 1;
    if (quiet <= 10) return;
    const hint = "Check the connection and reload; on a slow device raise 'timeoutMs'.";
    channel.end(bootError(stage, base, `nothing happened for ${timeoutMs / 1000} s`, hint));
  }, timeoutMs / 10);
  try {
    events.emit("progress", { stage });
    channel.begin();
    const answer = await channel.call(method, args, new Args());
    events.emit("progress", { stage: "ready" });
    return answer;
  } catch (error) {
    const known = error instanceof PyMemoryError ? error : undefined;
    const lost = !known || known.code === "owner_lost";
    const failure = lost ? await whyLost(stage, base, policy, known?.details.reason ?? error) : known;
    await channel.end(failure);
    throw failure;
  } finally {
    clearInterval(watch);
    moved();
    document.removeEventListener("securitypolicyviolation", violated);
  }
}

/**
 * A worker that cannot be loaded says nothing but "error": look for the cause.
 * @param {string} stage @param {string} base @param {string | undefined} policy @param {unknown} cause
 */
async function whyLost(stage, base, policy, cause) {
  const copy = "Copy the whole py-memory folder as it was built, and check 'assetBase'.";
  for (const path of stage === "worker" ? WORKER_FILES : []) {
    const url = new URL(path, base);
    try {
      const response = await fetch(url);
      const type = response.headers.get("content-type") ?? "nothing";
      if (!response.ok) return bootError(stage, url, `the server answered ${response.status}`, copy, cause);
      if (!type.includes("javascript")) return bootError(stage, url, `the server sent it as '${type}'`, copy, cause);
    } catch (fault) {
      const what = navigator.onLine ? "it could not be fetched" : "the browser is offline";
      const hint = "Check the connection and connect-src, then call openMemory again.";
      return bootError(stage, url, what, hint, fault);
    }
  }
  const what = policy ? `the page's Content-Security-Policy forbids it (${policy})` : "the worker could not run";
  const hint = policy ? `Add 'self' to ${policy}.` : `${copy} Reload the page.`;
  return bootError(stage, base, what, hint, cause);
}

/** Who wants to be told of what. */
class Events {
  /** @type {Map<string, Set<Listener>>} */
  #listeners = new Map(["progress", "change", "storage", "closed"].map((event) => [event, new Set()]));

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
    const args = { ...toWire(rest), ...extra };
    /** @param {any} result */
    const done = (result) => {
      if (WRITES.has(method) && !args.preview && !args.dry_run) this.events.emit("change", changeOf(method, args, result));
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
  const verb = method.replace("session.", "").replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  const all = Array.isArray(result) ? result.map(({ id }) => id) : result?.ids;
  const ids = all ?? (method === "session.remember" ? [result.id] : undefined);
  const sessionId = args.session_id ?? (method === "start_session" ? result.id : undefined);
  return Object.fromEntries(
    Object.entries({ verb, userId: args.user_id, sessionId, ids }).filter(([, value]) => value !== undefined),
  );
}

/** @param {unknown} value @param {string} name @returns {Fields} */
function plainObject(value, name) {
  if (Object.prototype.toString.call(value) === "[object Object]") return /** @type {Fields} */ (value);
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
    this.#caller = caller;
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
