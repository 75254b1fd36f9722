// @ts-check
/** Numbered calls, each of which is answered or rejected, whoever it is that answers, and whatever happens. */
import { PyMemoryError } from "./errors.js";
import { Args, errorFromWire, fromWire, invalid } from "./protocol.js";

/**
 * @typedef {import("./protocol.js").Call} Message
 * @typedef {{send(call: Message): void, cancel(id: number): void}} Carrier  takes calls to who serves them
 * @typedef {object} Pending
 * @property {(value: any) => void} resolve
 * @property {(error: PyMemoryError) => void} reject
 * @property {Omit<Message, "answered"> | undefined} message  once it could be read whole
 * @property {boolean} sent  to the present carrier
 * @property {number} crashes  of workers that it was sent to
 */

/** A call at which so many workers broke down is not given to another one. */
const MOST_CRASHES = 2;

/** The calls of one client that have not been answered. */
export class Calls {
  client = crypto.randomUUID();
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  /** @type {PyMemoryError | undefined} */
  #over;
  #last = 0;
  /** Calls leave in the order they were made, though a Blob takes a moment to read. */
  #tail = Promise.resolve();
  /** @type {Carrier | undefined} */
  #carrier;
  /** @type {Set<() => void>} */
  #idle = new Set();

  /** A call has been made: somebody has to answer it. */
  onBusy = () => {};

  /** The numbers of the calls that were sent and not answered. */
  get waiting() {
    return [...this.#pending].filter(([, call]) => call.sent).map(([id]) => id);
  }

  get busy() {
    return this.#pending.size > 0;
  }

  /**
   * @param {string} method
   * @param {unknown} args
   * @param {Args} parts
   * @param {{signal?: AbortSignal | undefined, timeoutMs?: number | undefined}} [options]
   * @returns {Promise<any>}
   */
  call(method, args, parts, { signal, timeoutMs } = {}) {
    if (this.#over) return Promise.reject(this.#over);
    const id = (this.#last += 1);
    const json = Promise.resolve(args).then((ready) => JSON.stringify(ready));
    json.catch(() => {}); // awaited below
    return new Promise((resolve, reject) => {
      const stop = (/** @type {PyMemoryError} */ error) => {
        const call = this.#pending.get(id);
        this.#settle(id)?.reject(error);
        if (call?.sent) this.#carrier?.cancel(id);
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
        message: undefined,
        sent: false,
        crashes: 0,
      });
      if (signal?.aborted) aborted();
      else signal?.addEventListener("abort", aborted);
      this.onBusy();
      this.#tail = this.#tail.then(async () => {
        try {
          const binary = await parts.buffers();
          const message = { id, from: this.client, method, args: await json, binary };
          const call = this.#pending.get(id);
          if (!call) return;
          call.message = message;
          this.#send(id, call);
        } catch (cause) {
          this.#settle(id)?.reject(unreadable(cause));
        }
      });
    });
  }

  /** From now on these calls are served: what has not been answered is sent, in order. @param {Carrier} carrier */
  attach(carrier) {
    this.detach();
    this.#carrier = carrier;
    for (const [id, call] of this.#pending) this.#send(id, call);
  }

  /** Nobody serves at present. */
  detach() {
    this.#carrier = undefined;
    for (const call of this.#pending.values()) call.sent = false;
  }

  /** These never arrived. @param {number[]} ids */
  again(ids) {
    for (const id of ids) {
      const call = this.#pending.get(id);
      if (call?.sent) this.#send(id, call);
    }
  }

  /** @param {import("./protocol.js").Answer} answer */
  received(answer) {
    const call = this.#settle(answer.id);
    if (answer.ok) call?.resolve(fromWire(answer.result, answer.binary));
    else call?.reject(errorFromWire(answer.error));
  }

  /** The worker that served has broken down, perhaps at the oldest of these calls. @param {PyMemoryError} error */
  crashed(error) {
    const oldest = [...this.#pending].find(([, call]) => call.sent);
    if (!oldest) return;
    const [id, call] = oldest;
    call.crashes += 1;
    if (call.crashes >= MOST_CRASHES) this.#settle(id)?.reject(error);
  }

  /** Take no more calls; they are rejected with this. @param {PyMemoryError} error */
  refuse(error) {
    this.#over ??= error;
  }

  /** Fulfils when nothing waits for an answer. */
  async idle() {
    if (this.busy) await new Promise((resolve) => this.#idle.add(() => resolve(undefined)));
  }

  /** Take no more calls, and reject those that have not been answered. @param {PyMemoryError} error @param {PyMemoryError} later */
  end(error, later) {
    this.#over = later;
    this.fail(error);
  }

  /** Reject what has not been answered. @param {PyMemoryError} error */
  fail(error) {
    for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(error);
  }

  /** @param {number} id @param {Pending} call */
  #send(id, call) {
    if (!this.#carrier || !call.message) return;
    call.sent = true;
    const [oldest] = this.#pending.keys();
    try {
      this.#carrier.send({ ...call.message, answered: oldest - 1 });
    } catch (cause) {
      this.#settle(id)?.reject(unreadable(cause));
    }
  }

  /** @param {number} id */
  #settle(id) {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (!this.busy) {
      for (const heard of this.#idle) heard();
      this.#idle.clear();
    }
    return call;
  }
}

/** @param {unknown} cause */
function unreadable(cause) {
  if (cause instanceof PyMemoryError) return cause;
  return invalid("The content could not be read, or is too large to be sent.", "content");
}
