// @ts-check
/** The owner's worker answers the other tabs: one BroadcastChannel, on which calls arrive and answers leave. */
import { SCHEMA, WIRE, databaseName } from "./protocol.js";

/**
 * @typedef {import("./protocol.js").Word} Word
 * @typedef {import("./protocol.js").Call} Call
 * @typedef {import("./protocol.js").Answer} Answer
 * @typedef {object} Desk  where calls are served
 * @property {(call: Call, reply: (answer: Answer) => void) => void} take
 * @property {(id: number, from: string) => void} drop
 * @property {(id: number, from: string) => boolean} knows
 */

/** What this worker says to the tabs, and hears from them, from the moment that the memory is open. */
export class Sharing {
  /** @type {BroadcastChannel} */
  #channel;
  #server;
  #claim;
  #desk;

  /**
   * @param {string} name
   * @param {string} server
   * @param {{term: number, born: number, storage: string}} claim
   * @param {Desk} desk
   */
  constructor(name, server, claim, desk) {
    this.#server = server;
    this.#claim = claim;
    this.#desk = desk;
    this.#channel = new BroadcastChannel(databaseName(name));
    this.#channel.onmessage = ({ data }) => this.#heard(data);
    this.#say({ kind: "owner", server, ...claim });
  }

  /** @param {import("./protocol.js").Notice} notice */
  tell(notice) {
    if (notice.event === "storage") this.#claim.storage = notice.data;
    this.#say({ kind: "notice", server: this.#server, notice });
  }

  /** From now on calls are the next owner's. */
  leave() {
    this.#say({ kind: "leaving", server: this.#server });
    this.#channel.close();
  }

  /** @param {Word & {wire?: number}} word */
  #heard(word) {
    // Other versions are the page's affair (tabs.js).
    if (word.wire !== WIRE) return;
    const server = this.#server;
    if (word.kind === "who" || (word.kind === "ping" && word.server !== server)) {
      this.#say({ kind: "owner", server, ...this.#claim });
    } else if (word.kind === "ping") {
      const unknown = word.waiting.filter((id) => !this.#desk.knows(id, word.from));
      this.#say({ kind: "pong", server, to: word.from, unknown });
    } else if (word.kind === "call" && word.server === server) {
      this.#desk.take(word.call, (answer) => this.#say({ kind: "answer", server, answer }));
    } else if (word.kind === "cancel" && word.server === server) {
      this.#desk.drop(word.cancel, word.from);
    }
  }

  /** @param {Word} word */
  #say(word) {
    this.#channel.postMessage({ ...word, wire: WIRE, schema: SCHEMA });
  }
}
