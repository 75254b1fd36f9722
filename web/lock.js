// @ts-check
/** The lock of a memory's name: waited for, held, given back, or taken from an owner that is frozen. */
import { PyMemoryError } from "./errors.js";
import { aloneName, databaseName } from "./protocol.js";

/** Who takes the lock away keeps others from doing the same for so long. */
const HEIR_MS = 1000;
/** Where it is not waited for, it is asked for so often: a page that went away may linger. */
const TRIES = 5;
const PAUSE_MS = 50;

/** One page's claim on a name. At most one request of it counts; what becomes of earlier ones is nobody's affair. */
export class NameLock {
  #name;
  /** Identifies the request that counts, and ends its waiting. */
  #request = new AbortController();
  /** Gives the lock back. @type {(() => void) | undefined} */
  #release;

  /** It is ours. */
  onGranted = () => {};
  /** Another page took it away. */
  onRobbed = () => {};
  /** The browser gives no locks. @type {(error: PyMemoryError) => void} */
  onRefused = () => {};

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
  }

  /** Stand in the queue. */
  wait() {
    this.#ask({});
  }

  /** Ask for it without waiting; for a moment only. @returns {Promise<boolean>} whether it was granted */
  async take() {
    for (let tried = 0; tried < TRIES; tried += 1) {
      if (tried) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      if (await new Promise((resolve) => this.#ask({ ifAvailable: true }, resolve))) return true;
    }
    return false;
  }

  /** Whether its holder shares the memory with nobody, and is not to be robbed. */
  async isAlone() {
    const { held = [] } = await navigator.locks.query();
    return held.some(({ name }) => name === aloneName(this.#name));
  }

  /** Take it from whoever has it, unless another page is about to, or `still` says that there is no reason any more. @param {() => boolean} still */
  async rob(still) {
    await navigator.locks.request(`py-memory-heir:${this.#name}`, { ifAvailable: true }, async (heir) => {
      if (!heir || !still()) return;
      this.#ask({ steal: true });
      await new Promise((resolve) => setTimeout(resolve, HEIR_MS));
    });
  }

  /** Hold it and wait for it no longer. */
  drop() {
    const request = this.#request;
    this.#request = new AbortController();
    request.abort();
    this.#release?.();
    this.#release = undefined;
  }

  /** @param {LockOptions} options @param {(got: boolean) => void} [answer] */
  #ask(options, answer = () => {}) {
    this.drop();
    const request = this.#request;
    /** @param {Lock | null} lock */
    const hold = (lock) => {
      answer(Boolean(lock));
      if (!lock || request !== this.#request) return undefined;
      return new Promise((resolve) => {
        this.#release = () => resolve(undefined);
        this.onGranted();
      });
    };
    // A request that steals, or that does not wait, takes no signal.
    const waits = options.steal || options.ifAvailable ? options : { signal: request.signal };
    navigator.locks.request(databaseName(this.#name), waits, hold).catch((error) => {
      if (request !== this.#request) return;
      if (error?.name === "AbortError") this.onRobbed();
      else this.onRefused(new PyMemoryError("storage_blocked", "The browser refused to give a lock: check that this page may use its storage."));
    });
  }
}
