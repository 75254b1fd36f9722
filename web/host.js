// @ts-check
/** The page that owns a memory keeps a worker for it: started, watched for its end, ended. */
import { aliveName } from "./protocol.js";

/** How long to wait until the browser says that an ended worker is gone. */
const GONE_LIMIT_MS = 1000;

/** One worker. */
export class Host {
  /** Names the worker; the lock of this name is its own while it lives. */
  server = crypto.randomUUID();
  /** @type {Worker | undefined} */
  #worker;
  #ended = false;
  #first = true;
  /** @type {Promise<unknown> | undefined} */
  #gone;

  /** @type {(answer: import("./protocol.js").Answer) => void} */
  onAnswer = () => {};
  /** @type {(notice: import("./protocol.js").Notice) => void} */
  onNotice = () => {};
  /** Another owner has taken the memory over. */
  onRobbed = () => {};
  /** It ended without having been told to. @type {(reason: string) => void} */
  onLost = () => {};

  /** Create the worker. Bundlers know this very form. */
  begin() {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.#received(data);
    worker.onmessageerror = () => this.#lost("an answer could not be read");
    worker.onerror = (event) => {
      event.preventDefault();
      this.#lost(event.message || "it could not be loaded");
    };
  }

  /** @param {import("./protocol.js").Call} call */
  send(call) {
    const alive = this.#first ? { alive: aliveName(this.server) } : {};
    this.#first = false;
    // Copied, not transferred: a call whose answer is lost is made again.
    this.#worker?.postMessage({ ...call, ...alive });
  }

  /** @param {number} id @param {string} from */
  cancel(id, from) {
    this.#worker?.postMessage({ cancel: id, from });
  }

  /** End the worker; fulfils when its locks are free. */
  async end() {
    this.#ended = true;
    this.#worker?.terminate();
    await Promise.race([this.#gone, new Promise((resolve) => setTimeout(resolve, GONE_LIMIT_MS))]);
  }

  /** @param {import("./protocol.js").Answer | import("./protocol.js").Notice} message */
  #received(message) {
    if (this.#ended) return;
    if (!("event" in message)) this.onAnswer(message);
    else if (message.event === "fatal") this.#lost(JSON.parse(message.data).reason ?? "the runtime stopped");
    else if (message.event === "robbed") this.onRobbed();
    else {
      if (message.event === "progress") this.#watchOver();
      this.onNotice(message);
    }
  }

  /** A worker can end without any event (out of memory, self.close): then its lock becomes free. */
  #watchOver() {
    this.#gone ??= navigator.locks.request(aliveName(this.server), () => this.#lost("it ended"));
  }

  /** @param {string} reason */
  #lost(reason) {
    if (this.#ended) return;
    void this.end();
    this.onLost(reason);
  }
}
