// @ts-check
/**
 * The assistant: it understands by rules, remembers what is said on both sides, and answers from memory.
 * No page in here: what it needs is an open memory.
 */
import { ask, acknowledge, welcome } from "./replies.js";
import { isBooking, topicOf, understand } from "./rules.js";

/**
 * @typedef {import("./rules.js").Fact} Fact
 * @typedef {import("./rules.js").Language} Language
 * @typedef {import("../memory.js").Fragment} Fragment
 * @typedef {import("../memory.js").Intent} Intent
 * @typedef {import("../memory.js").Hit} Hit
 * @typedef {import("../memory.js").Memory} Memory
 * @typedef {import("../memory.js").Session} Session
 * @typedef {{fragment: Fragment, intent: Intent}} Known
 * @typedef {{name: string, bytes: Uint8Array, type: string, width: number, height: number}} Picture
 * @typedef {{lat: number, lng: number, accuracy?: number, label?: string}} Place
 * @typedef {{text: string, pictures?: Picture[], place?: Place}} Message
 * @typedef {{query: string, hits: Hit[], stale: Set<string>}} Recalled `stale` are ids of what was replaced since
 * @typedef {{text: string, quotes: Fragment[], outcomes: Outcome[]}} Answer
 * @typedef {{name: string, key: string, outcome: string, entities: Record<string, any>, before?: Record<string, any>}} Outcome
 */

/** The one person whose memory this page keeps. */
export const USER = "me";
/** Facts stand in this namespace, whatever conversation they come from. */
export const FACTS = "demo";
/** Which answers quote a fragment: so that they can be forgotten with it. */
const QUOTES = "demo.quotes";

/** Codes 1–20 are identity and preference, 21–40 facts, 61–80 the state of a task. @type {Record<string, number>} */
const MEMORY_TYPE = { name: 1, preference: 10, address: 21, place: 22, picture: 23, fact: 30 };

const SHOWN_HITS = 8;

export class Agent {
  /** @type {Session | undefined} */
  #session;
  /** @type {Fact | null} */
  #last = null;
  #awaiting = false;

  /** @param {Memory} memory */
  constructor(memory) {
    this.memory = memory;
  }

  get sessionId() {
    return this.#session?.id ?? "";
  }

  /** Take up a conversation where it was, or begin one. @param {string | null} sessionId @param {string} [fallbackId] */
  async begin(sessionId, fallbackId) {
    this.#last = null;
    this.#awaiting = false;
    const id = sessionId ?? fallbackId;
    this.#session = await this.memory.startSession({ userId: USER, skill: FACTS, ...(id ? { sessionId: id } : {}) });
    return this.#session.id;
  }

  /** End this conversation and begin another; what was stated stays known. */
  async renew() {
    await this.#session?.end();
    return await this.begin(null);
  }

  /**
   * The conversation so far, oldest first, one page at a time.
   * @param {string | null} [cursor]
   */
  async messages(cursor = null) {
    const page = await this.memory.timeline({
      userId: USER,
      sessionId: this.sessionId,
      limit: 40,
      ...(cursor ? { cursor } : {}),
    });
    if (!cursor) {
      const stated = page.find((fragment) => fragment.metadata.facts?.length);
      const newest = page.find((fragment) => fragment.role === "user");
      this.#last = stated?.metadata.facts.at(-1) ?? null;
      this.#awaiting = Boolean(stated) && stated === newest;
    }
    return { messages: [...page].reverse(), cursor: page.cursor ?? null };
  }

  /** All that is known now, newest first. @returns {Promise<Known[]>} */
  async facts() {
    const found = await this.memory.find({ userId: USER, namespace: FACTS, limit: 200 });
    return found.filter(({ intent }) => intent.key !== null);
  }

  /** @param {Language} language */
  async greeting(language) {
    return welcome(await this.facts(), language);
  }

  /**
   * Remember a message, think, and remember the answer.
   * @param {Message} message
   * @param {Language} language of the page, where the message has none
   * @param {(said: Fragment[]) => void} [kept] called when the message is stored durably
   * @returns {Promise<{said: Fragment[], reply: Fragment, recalled: Recalled | null}>}
   */
  async say(message, language, kept = () => {}) {
    const meaning = understand(message.text, { last: this.#last, awaiting: this.#awaiting }, language);
    const before = await this.facts();
    // Asked before the question itself is remembered: it would be the best match for its own words.
    const recalled = meaning.act === "ask" ? await this.recall(meaning, message.text, before) : null;
    const facts = meaning.facts.map((fact) =>
      isBooking(fact.name) && fact.key === "open" ? { ...fact, key: `open ${Date.now().toString(36)}` } : fact,
    );
    const said = await this.#remember(message, meaning, facts);
    kept(said);
    if (facts.length) this.#last = facts[facts.length - 1];
    this.#awaiting = facts.length > 0;
    const outcomes = outcomesOf(said, facts, before);
    const answer = recalled
      ? ask(meaning, recalled, before)
      : acknowledge(meaning, { outcomes, before, said, message });
    const reply = await this.#answer(answer);
    return { said, reply, recalled };
  }

  /**
   * @param {import("./rules.js").Meaning} meaning
   * @param {string} text
   * @param {Known[]} known
   * @returns {Promise<Recalled>}
   */
  async recall(meaning, text, known) {
    const session = this.#open();
    const query = meaning.topic === "all" ? "" : meaning.about || text;
    const named = meaning.topic !== null && meaning.topic !== "all";
    const hits = await session.recall(query, {
      // The same state is the same context, in this conversation or an earlier one. Without the last
      // hour of this conversation (L2), which would come before what is merely about the same thing.
      ...(named ? { state: { topic: meaning.topic }, tiers: ["L1", "L3"] } : { tiers: ["L3"] }),
      metadata: { kind: "statement" },
      limit: 20,
    });
    // There is one name and hardly more than an address: all of it answers. Else what fits well.
    const whole = query === "" || ["name", "address", "booking"].includes(meaning.topic ?? "");
    const best = Math.max(0, ...hits.map((hit) => hit.why.relevance));
    const close = hits.filter((hit) => hit.why.relevance >= best * 0.6 || (whole && hit.tier === "L1") || query === "");
    const shown = firstOfMoments(close).slice(0, SHOWN_HITS);
    return { query: query || text, hits: shown, stale: staleAmong(shown.map((hit) => hit.fragment), known) };
  }

  /** A fragment by id, with those of its moment. @param {string} id @param {string} at when it happened */
  async source(id, at) {
    const since = new Date(at).getTime();
    const same = await this.memory.timeline({ userId: USER, since, until: since + 1, limit: 50 });
    const fragment = same.find((one) => one.id === id) ?? null;
    const moment = fragment?.moment ? same.filter((one) => one.moment === fragment.moment) : [];
    return { fragment, companions: moment.filter((one) => one.id !== id) };
  }

  /** Forget a fragment, its moment, and the answers that quote it. @param {Fragment} fragment */
  async forget(fragment) {
    const { companions } = await this.source(fragment.id, fragment.happenedAt);
    const ids = [fragment.id, ...companions.map((one) => one.id)];
    const quoting = await Promise.all(
      ids.map((id) => this.memory.find({ userId: USER, namespace: QUOTES, entities: { fragment: id }, limit: 500 })),
    );
    for (const { fragment: answer } of quoting.flat()) ids.push(answer.id);
    const gone = await this.memory.forget({ userId: USER, ids: [...new Set(ids)] });
    await this.messages();
    return gone;
  }

  async clear() {
    const gone = await this.memory.forget({ userId: USER, all: true });
    await this.messages();
    return gone;
  }

  /** @param {string[]} ids */
  async restore(ids) {
    const back = await this.memory.restore({ userId: USER, ids });
    await this.messages();
    return back;
  }

  #open() {
    if (!this.#session) throw new Error("begin() comes first");
    return this.#session;
  }

  /**
   * @param {Message} message
   * @param {import("./rules.js").Meaning} meaning
   * @param {Fact[]} facts
   */
  async #remember(message, meaning, facts) {
    const { text, pictures = [], place } = message;
    const several = pictures.length + Number(Boolean(place)) + Number(Boolean(text)) > 1;
    const together = several ? { moment: `moment_${crypto.randomUUID()}` } : {};
    const at = Date.now();
    const name = /** @type {Known | undefined} */ ((await this.facts()).find(({ intent }) => intent.name === "name"));
    const speaker = name ? { speaker: String(name.intent.entities.name) } : {};
    const common = { role: /** @type {const} */ ("user"), at, ...speaker, ...together };
    /** @type {any[]} */
    const items = [];
    if (text) {
      const subject = facts[0]?.name ?? (pictures.length ? "picture" : place ? "place" : null);
      const kind = meaning.act === "ask" ? "question" : ["greet", "thank", "puzzled"].includes(meaning.act) ? "talk" : "statement";
      items.push({
        ...common,
        content: text,
        source: "typed",
        metadata: { kind, ...(facts.length ? { facts } : {}) },
        ...(kind === "statement" && subject
          ? { state: { topic: topicOf(subject) }, scope: "semantic", memoryType: MEMORY_TYPE[subject] ?? 61 }
          : {}),
        ...(facts.length ? { intents: facts } : {}),
        ...(meaning.act === "correct" ? { updateReason: "user_correction" } : {}),
      });
    }
    for (const { name: file, bytes, type, width, height } of pictures) {
      items.push({
        ...common,
        content: bytes,
        source: "attached",
        type: "image",
        mediaType: type,
        state: { topic: "picture" },
        scope: "semantic",
        memoryType: MEMORY_TYPE.picture,
        metadata: { kind: "statement", file, width, height },
      });
    }
    if (place) {
      const entities = { ...place };
      items.push({
        ...common,
        content: place,
        source: "shared",
        state: { topic: "place" },
        scope: "semantic",
        memoryType: MEMORY_TYPE.place,
        metadata: { kind: "statement" },
        intents: [{ name: "place", key: (place.label ?? "here").toLowerCase().slice(0, 60), entities, confidence: 0.96 }],
      });
    }
    return await this.#open().rememberMany(items);
  }

  /** @param {Answer} answer */
  async #answer({ text, quotes, outcomes }) {
    const told = outcomes.map(({ name, key, outcome, entities }) => ({ name, key, outcome, entities }));
    return await this.#open().remember(text, {
      role: "assistant",
      speaker: "py-memory",
      source: "rules",
      metadata: { kind: "reply", ...(told.length ? { outcomes: told } : {}) },
      intents: quotes.map(({ id, happenedAt }) => ({
        name: "quotes",
        namespace: QUOTES,
        entities: { fragment: id, at: happenedAt },
      })),
    });
  }
}

/** The fragments whose facts have been replaced since. @param {Fragment[]} fragments @param {Known[]} known */
export function staleAmong(fragments, known) {
  const current = new Map(known.map(({ intent }) => [`${intent.name}\n${intent.key}`, intent]));
  const stale = fragments.filter((fragment) => {
    const facts = /** @type {Fact[]} */ (fragment.metadata.facts ?? []);
    return facts.length > 0 && facts.every((fact) => {
      const now = current.get(`${fact.name}\n${fact.key}`);
      return now !== undefined && !same(now.entities, fact.entities);
    });
  });
  return new Set(stale.map((fragment) => fragment.id));
}

/** A moment is shown once: its other fragments come along. @param {Hit[]} hits */
function firstOfMoments(hits) {
  const seen = new Set();
  return hits.filter(({ fragment: { id, moment } }) => !seen.has(moment ?? id) && seen.add(moment ?? id));
}

/** @param {Record<string, any>} a @param {Record<string, any>} b */
function same(a, b) {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** @param {Fragment[]} said @param {Fact[]} facts @param {Known[]} before @returns {Outcome[]} */
function outcomesOf(said, facts, before) {
  const written = said.flatMap((fragment) => fragment.intents);
  return written
    .filter((intent) => intent.key !== null)
    .map((intent) => {
      const stated = facts.find((fact) => fact.name === intent.name && fact.key === intent.key);
      const known = before.find(({ intent: old }) => old.name === intent.name && old.key === intent.key);
      return {
        name: intent.name,
        key: String(intent.key),
        outcome: intent.outcome ?? "created",
        entities: stated?.entities ?? intent.entities,
        ...(known ? { before: known.intent.entities } : {}),
      };
    });
}
