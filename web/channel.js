// @ts-check
/** The page's end of the worker: numbered calls, each of which is answered or rejected, whatever happens. */
import { PyMemoryError } from "./errors.js";
import { Args, errorFromWire, fromWire, invalid } from "./protocol.js";

/**
 * @typedef {import("./protocol.js").Answer | import("./protocol.js").Refusal | import("./protocol.js").Notice} Message
 * @typedef {{resolve: (value: any) => void, reject: (error: PyMemoryError) => void, done: (result: any) => void}} Pending
 */

/** Closing waits no longer than this for calls under way; what is acknowledged is kept in any case. */
const CLOSE_LIMIT_MS = 30_000;

/** One worker and the calls that it has not answered. */
export class Channel {
  /** @type {Worker | undefined} */
  #worker;
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  /** @type {PyMemoryError | undefined} */
  #over;
  #ended = false;
  #last = 0;
  /** Calls leave in the order they were made, though a Blob takes a moment to read. */
  #tail = Promise.resolve();
  /** The worker holds the lock of this name while it lives. */
  #alive = "";
  /** @type {Promise<unknown> | undefined} */
  #gone;

  /** @type {(notice: {event: string, data: any}) => void} */
  onNotice = () => {};
  /** @type {(error: PyMemoryError) => void} */
  onEnd = () => {};

  /** Create the worker. Bundlers know this very form. */
  begin() {
    this.#alive = `py-memory-worker:${crypto.randomUUID()}`;
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.#received(data);
    worker.onmessageerror = () => this.#lost("an answer could not be read");
    worker.onerror = (event) => {
      event.preventDefault();
      this.#lost(event.message || "it could not be loaded");
    };
  }

  /**
   * @param {string} method
   * @param {unknown} args
   * @param {Args} parts
   * @param {{signal?: AbortSignal | undefined, timeoutMs?: number | undefined, done?: (result: any) => void}} [options]
   * @returns {Promise<any>}
   */
  call(method, args, parts, { signal, timeoutMs, done = () => {} } = {}) {
    if (this.#over) return Promise.reject(this.#over);
    const id = (this.#last += 1);
    let sent = false;
    const json = Promise.resolve(args).then((ready) => JSON.stringify(ready));
    json.catch(() => {}); // awaited below
    return new Promise((resolve, reject) => {
      const stop = (/** @type {PyMemoryError} */ error) => {
        this.#pending.get(id)?.reject(error);
        // What was sent stays listed until it is answered: it may have been done, and `done` is to know.
        if (sent) this.#worker?.postMessage({ cancel: id });
        else this.#pending.delete(id);
      };
      const aborted = () => stop(new PyMemoryError("aborted", "The call was cancelled; a write may still happen."));
      const late = () => stop(new PyMemoryError("timeout", `No answer within ${timeoutMs} ms; a write may still happen.`));
      const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
      const settled = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
      };
      this.#pending.set(id, {
        resolve: (value) => (settled(), resolve(value)),
        reject: (error) => (settled(), reject(error)),
        done,
      });
      if (signal?.aborted) aborted();
      else signal?.addEventListener("abort", aborted);
      this.#tail = this.#tail.then(async () => {
        try {
          const binary = await parts.buffers();
          const text = await json;
          if (!this.#pending.has(id)) return;
          sent = true;
          const alive = id === 1 ? { alive: this.#alive } : {};
          this.#worker?.postMessage({ id, method, args: text, binary, ...alive }, binary);
        } catch (cause) {
          this.#pending.get(id)?.reject(unreadable(cause));
          this.#pending.delete(id);
        }
      });
    });
  }

  /** Let the calls that were made be answered, then end. */
  async close() {
    if (this.#over) return;
    const last = this.call("close", {}, new Args(), { timeoutMs: CLOSE_LIMIT_MS });
    this.#over = closed();
    try {
      await last;
    } finally {
      await this.end(closed());
    }
  }

  /** @param {Message} message */
  #received(message) {
    if ("event" in message) {
      if (message.event === "fatal") this.#lost(JSON.parse(message.data).reason ?? "the runtime stopped");
      else this.#notice(message.event, message.data);
      return;
    }
    const call = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.storage) this.#notice("storage", message.storage);
    if (!call) return;
    if (!message.ok) {
      call.reject(errorFromWire(message.error));
      return;
    }
    const result = fromWire(message.result, message.binary);
    call.done(result);
    call.resolve(result);
  }

  /** @param {string} event @param {string} data */
  #notice(event, data) {
    if (event === "progress") this.#watchOver();
    this.onNotice({ event, data: fromWire(data) });
  }

  /** A worker can end without any event (out of memory, self.close): then its lock becomes free. */
  #watchOver() {
    this.#gone ??= navigator.locks.request(this.#alive, () => this.#lost("it ended"));
  }

  /** @param {string} reason */
  #lost(reason) {
    this.end(
      new PyMemoryError(
        "owner_lost",
        "The worker stopped before the call was answered; a write may or may not have been kept. Call openMemory again and look.",
        { reason },
      ),
    );
  }

  /**
   * End the worker and reject what it has not answered; fulfils when its locks are free.
   * @param {PyMemoryError} error
   */
  async end(error) {
    if (!this.#ended) {
      this.#ended = true;
      this.#over = error.code === "closed" ? error : closed(error);
      this.#worker?.terminate();
      for (const call of this.#pending.values()) call.reject(error);
      this.#pending.clear();
      this.onEnd(error);
    }
    await Promise.race([this.#gone, new Promise((resolve) => setTimeout(resolve, 1000))]);
  }
}

/** @param {PyMemoryError} [error] what ended it, when it was not closed by its user */
function closed(error) {
  const why = error ? { reason: error.code } : {};
  return new PyMemoryError("closed", "The memory is closed; call openMemory to open it again.", why);
}

/** @param {unknown} cause */
function unreadable(cause) {
  if (cause instanceof PyMemoryError) return cause;
  return invalid("The content could not be read, or is too large to be sent.", "content");
}
