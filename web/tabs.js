// @ts-check
/**
 * Who of several tabs owns a memory, and how the calls of the others reach it.
 *
 * Every tab asks for the lock of the memory's name. Who has it keeps the worker; the others stay in the queue
 * and send their calls to that worker over a BroadcastChannel. When the owner goes away, the browser gives the
 * lock to the next one, which opens the stored image and answers what was left unanswered. An owner that is
 * frozen keeps its lock: who waits for an answer listens for signs of life, and takes the lock away when there
 * are none. The engine's epoch sees to it that the old owner cannot write any more.
 */
import { PyMemoryError, errorOf } from "./errors.js";
import { Calls } from "./calls.js";
import { Host } from "./host.js";
import { NameLock } from "./lock.js";
import { begin, lost } from "./opening.js";
import { checkPassphrase } from "./passphrase.js";
import { alreadyOpen, closed, heldUp, outdated, plain, vanished } from "./reasons.js";
import { Args, SCHEMA, WIRE, databaseName, fromWire, noticeOf } from "./protocol.js";

/**
 * @typedef {import("./protocol.js").Word} Word
 * @typedef {import("./protocol.js").Claim} Claim
 * @typedef {import("./memory.js").StorageState} StorageState
 * @typedef {ReturnType<typeof import("./opening.js").checked>} Given
 * @typedef {{on(event: string, listener: (data: any) => void): () => void, emit(event: string, data: any): void}} Events
 * @typedef {"away" | "waiting" | "joining" | "follower" | "owner" | "ended"} Role
 */

/** Signs of life are asked for this often while somebody waits. */
const TICK_MS = 500;
/** An owner that gave none for so many ticks (4 s) has lost the memory. */
const SILENT_TICKS = 8;
/** Closing waits no longer than this for calls under way; what is acknowledged is kept in any case. */
const CLOSE_LIMIT_MS = 30_000;

/** One open memory of this page, among all tabs that have it open. */
export class Tab {
  #given;
  #events;
  #calls = new Calls();
  #control = new Calls();
  /** @type {Role} */
  #role = "away";
  /** @type {BroadcastChannel | undefined} */
  #channel;
  #lock;
  /** @type {Host | undefined} */
  #host;
  /** The worker whose answers count; empty while nobody is known. */
  #server = "";
  /** Of the last owner that was known: a lower one is an earlier owner's late word. */
  #term = 0;
  /** When the stored image was made; 0 before it was open once. */
  #born = 0;
  /** @type {StorageState | undefined} */
  #storage;
  /** Beats since the last sign of life. */
  #quiet = 0;
  #inheriting = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #tick;
  /** @type {{resolve: (storage: StorageState) => void, reject: (error: unknown) => void} | undefined} */
  #opening;
  /** Whether this tab may use what another one opened. */
  #admitted = false;
  #admitting = false;
  /** There is a tab with a newer version of this code. */
  #outdated = false;
  /** @type {Promise<void> | undefined} */
  #closing;

  /** It is over, for this reason; `gone` fulfils when the name is free. @type {(error: PyMemoryError, gone: Promise<unknown>) => void} */
  onEnd = () => {};

  /** @param {Given} given @param {Events} events */
  constructor(given, events) {
    this.#given = given;
    this.#events = events;
    this.#calls.onBusy = () => (this.#role === "waiting" ? this.#join() : this.#listen());
    this.#lock = new NameLock(given.name);
    this.#lock.onGranted = () => void this.#serve();
    this.#lock.onRobbed = () => this.#robbed();
    this.#lock.onRefused = (error) => this.#fail(error);
    events.on("storage", (storage) => void (this.#storage = storage));
  }

  /** Where calls are made. */
  get calls() {
    return this.#calls;
  }

  /** The passphrase with which this tab opens the memory if it has to. @param {string} passphrase */
  set passphrase(passphrase) {
    this.#given.args.passphrase = passphrase;
  }

  /** @returns {Promise<StorageState>} fulfils when somebody answers calls */
  async open() {
    addEventListener("pagehide", this.#leave);
    addEventListener("pageshow", this.#back);
    const opened = new Promise((resolve, reject) => void (this.#opening = { resolve, reject }));
    this.#join();
    return await opened;
  }

  /** Let the calls that were made be answered, then let go. @param {PyMemoryError} [why] */
  close(why = closed()) {
    this.#closing ??= this.#close(why);
    return this.#closing;
  }

  /** @param {PyMemoryError} why */
  async #close(why) {
    if (this.#role === "ended") return;
    this.#calls.refuse(why);
    const late = new PyMemoryError("timeout", "The calls under way were not answered; what is acknowledged is kept.");
    try {
      await bounded(this.#calls.idle(), CLOSE_LIMIT_MS, late);
      if (this.#host) await bounded(this.#control.call("close", {}, new Args()), CLOSE_LIMIT_MS, late);
    } finally {
      await this.#end(why);
    }
  }

  #join() {
    this.#role = "joining";
    this.#quiet = 0;
    if (!globalThis.BroadcastChannel) {
      void this.#joinAlone();
      return;
    }
    this.#channel = new BroadcastChannel(databaseName(this.#given.name));
    this.#channel.onmessage = ({ data }) => this.#heard(data);
    this.#lock.wait();
    this.#say({ kind: "who" });
    this.#listen();
  }

  /** Nobody could tell the owner of our calls: be the only one, or nothing. */
  async #joinAlone() {
    if (!(await this.#lock.take()) && this.#role === "joining") this.#fail(alreadyOpen());
  }

  /** The lock is ours: keep the worker. */
  async #serve() {
    const again = this.#born > 0;
    const host = new Host();
    const control = (this.#control = new Calls());
    this.#host = host;
    this.#role = "owner";
    this.#server = host.server;
    this.#calls.detach();
    this.#say({ kind: "starting", server: host.server });
    try {
      const extra = { held: true, ...(again ? { existing: true } : {}) };
      if (again && this.#storage?.mode === "memory") throw vanished();
      const { storage, term, born } = await begin(host, control, this.#events, this.#given, "open", extra);
      if (host !== this.#host) return;
      if (again && born !== this.#born) throw vanished();
      host.onAnswer = (answer) => (answer.to === control.client ? control : this.#calls).received(answer);
      host.onLost = (reason) => this.#crashed(host, reason);
      host.onRobbed = () => host === this.#host && this.#robbed();
      this.#know(host.server, term, born, storage);
      const { client } = this.#calls;
      this.#calls.attach({ send: (call) => host.send(call), cancel: (id) => host.cancel(id, client) });
    } catch (error) {
      if (host !== this.#host) await host.end();
      else if (again && error instanceof PyMemoryError && error.code === "storage_blocked") this.#putOff();
      else this.#fail(errorOf(error));
    }
  }

  /** @param {string} server @param {number} term @param {number} born @param {StorageState} storage */
  #know(server, term, born, storage) {
    this.#server = server;
    this.#term = term;
    this.#born = born;
    this.#quiet = 0;
    const role = this.#role === "owner" ? "owner" : "follower";
    this.#role = role;
    this.#opening?.resolve(storage);
    this.#opening = undefined;
    this.#events.emit("storage", storage);
    this.#events.emit("owner", { role });
    if (role === "follower") this.#events.emit("progress", { stage: "ready" });
  }

  /** @param {Word & {wire: number, schema: number}} word */
  #heard(word) {
    if (word.wire > WIRE || word.schema > SCHEMA) this.#older();
    // An older tab learns from our words that it is old; its words are not for us.
    if (word.wire !== WIRE || word.schema !== SCHEMA || this.#outdated) return;
    if (this.#role === "owner") {
      if (word.kind === "who" || word.kind === "ping") this.#say({ kind: "alive", server: this.#server });
      return;
    }
    if (word.kind === "owner") this.#claimed(word);
    else if (word.kind === "starting") this.#lose();
    else if (word.kind === "crashed" && word.server === this.#server) {
      this.#calls.crashed(lost());
      this.#lose();
    } else if (word.kind === "leaving" && word.server === this.#server) this.#lose();
    else if (word.kind === "alive" || (word.kind === "pong" && word.server === this.#server)) this.#quiet = 0;
    if (word.kind === "pong" && word.to === this.#calls.client) this.#calls.again(word.unknown);
    if (word.kind === "answer" && word.server === this.#server && word.answer.to === this.#calls.client) {
      this.#quiet = 0;
      this.#calls.received(word.answer);
    }
    if (word.kind === "notice" && word.server === this.#server) {
      this.#events.emit(word.notice.event, noticeOf(word.notice));
    }
  }

  /** Somebody says that it owns the memory. @param {Claim} claim */
  #claimed({ server, term, born, storage }) {
    if (this.#role !== "joining" && this.#role !== "follower") return;
    if (this.#born && born !== this.#born) {
      this.#fail(vanished());
      return;
    }
    if (term < this.#term) return;
    this.#quiet = 0;
    if (server === this.#server && this.#role === "follower") return;
    if (this.#opening && !this.#admitted) {
      void this.#admit(fromWire(storage));
      return;
    }
    this.#know(server, term, born, fromWire(storage));
    const { client } = this.#calls;
    this.#calls.attach({
      send: (call) => this.#say({ kind: "call", server, call }),
      cancel: (id) => this.#say({ kind: "cancel", server, cancel: id, from: client }),
    });
    this.#listen();
  }

  /** Whoever may use what another tab has opened knows its passphrase; then ask the owner again. @param {StorageState} storage */
  async #admit({ mode }) {
    if (this.#admitting) return;
    this.#admitting = true;
    const { name, args } = this.#given;
    const passphrase = /** @type {string | undefined} */ (args.passphrase);
    try {
      const sealed = mode !== "memory" && (await checkPassphrase(name, passphrase));
      if (passphrase !== undefined && !sealed) throw plain();
      this.#admitted = true;
      this.#say({ kind: "who" });
    } catch (error) {
      if (this.#opening) this.#fail(errorOf(error));
    } finally {
      this.#admitting = false;
    }
  }

  /** The owner that was known is no more; another one is about to be. */
  #lose() {
    this.#quiet = 0;
    this.#server = "";
    this.#calls.detach();
    this.#listen();
  }

  /** Watch for signs of life while somebody waits. */
  #listen() {
    if (this.#tick !== undefined || !this.#channel) return;
    this.#quiet = 0;
    this.#tick = setInterval(() => this.#beat(), TICK_MS);
  }

  #beat() {
    const waits = this.#role === "joining" || (this.#role === "follower" && this.#calls.busy);
    if (!waits) {
      clearInterval(this.#tick);
      this.#tick = undefined;
      return;
    }
    // Counted in beats, not by the clock: a sleep of the machine is no silence of the owner.
    this.#quiet += 1;
    if (this.#quiet > SILENT_TICKS) void this.#inherit();
    else if (this.#role === "joining") this.#say({ kind: "who" });
    else this.#say({ kind: "ping", server: this.#server, from: this.#calls.client, waiting: this.#calls.waiting });
  }

  /** Take the lock of an owner that gives no sign of life, if it is one that shares. */
  async #inherit() {
    if (this.#inheriting) return;
    this.#inheriting = true;
    const silent = () => this.#quiet > SILENT_TICKS && ["joining", "follower"].includes(this.#role);
    try {
      if (await this.#lock.isAlone()) this.#fail(alreadyOpen());
      else await this.#lock.rob(silent);
    } finally {
      this.#inheriting = false;
      this.#quiet = 0;
    }
  }

  /** Another tab has the memory now: be one of the others. */
  #robbed() {
    if (this.#role === "ended" || this.#role === "away") return;
    this.#letGo();
    this.#join();
  }

  /** @param {Host} host @param {string} reason */
  #crashed(host, reason) {
    if (host !== this.#host) return;
    this.#say({ kind: "crashed", server: host.server });
    this.#calls.crashed(lost(reason));
    this.#robbed();
  }

  /** The storage is held up, by an owner that was stopped in the middle of a write: try again when it is needed. */
  #putOff() {
    this.#letGo();
    this.#role = "waiting";
    this.#calls.fail(heldUp());
  }

  /** Give up whatever makes this tab an owner or a follower. */
  #letGo() {
    clearInterval(this.#tick);
    this.#tick = undefined;
    this.#calls.detach();
    this.#control.end(closed(), closed());
    const host = this.#host;
    this.#host = undefined;
    this.#server = "";
    const gone = host?.end();
    this.#lock.drop();
    this.#channel?.close();
    this.#channel = undefined;
    return gone;
  }

  /** The page goes away, perhaps only for a while; WebKit would keep its worker and its lock. */
  #leave = () => {
    if (this.#role === "ended") return;
    this.#role = "away";
    void this.#letGo();
  };

  /** @param {PageTransitionEvent} event */
  #back = ({ persisted }) => {
    if (persisted && this.#role === "away") this.#join();
  };

  /** A tab with a newer version of this code wants the memory. */
  #older() {
    if (this.#outdated || this.#role === "ended") return;
    this.#outdated = true;
    const error = outdated();
    if (this.#opening) {
      this.#fail(error);
      return;
    }
    this.#events.emit("outdated", {});
    this.close(error).catch(() => {}); // its calls have been told
  }

  /** @param {PyMemoryError} error */
  #fail(error) {
    if (this.#role === "ended") return;
    this.#opening?.reject(error);
    this.#opening = undefined;
    void this.#end(error);
  }

  /** @param {PyMemoryError} error */
  async #end(error) {
    if (this.#role === "ended") return;
    this.#role = "ended";
    removeEventListener("pagehide", this.#leave);
    removeEventListener("pageshow", this.#back);
    const gone = Promise.resolve(this.#letGo());
    this.#calls.end(error, error.code === "closed" || error.code === "outdated" ? error : closed(error));
    this.onEnd(error, gone);
    await gone;
  }

  /** @param {Word} word */
  #say(word) {
    this.#channel?.postMessage({ ...word, wire: WIRE, schema: SCHEMA });
  }
}

/** @template T @param {Promise<T>} promise @param {number} limit @param {PyMemoryError} late @returns {Promise<T>} */
function bounded(promise, limit, late) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const limited = new Promise((_, reject) => void (timer = setTimeout(() => reject(late), limit)));
  return Promise.race([promise, /** @type {Promise<never>} */ (limited)]).finally(() => clearTimeout(timer));
}
