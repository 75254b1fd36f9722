// @ts-check
/**
 * Understanding: what a message means, by rules alone. Pure functions, no memory and no page.
 *
 * A message becomes a `Meaning`: what the speaker does (`act`), the facts that were stated, and what it is
 * about. Facts are keyed, so that a later statement about the same thing replaces the earlier one.
 */
import { english } from "./rules-en.js";
import { chinese } from "./rules-zh.js";

/**
 * @typedef {"en" | "zh"} Language
 * @typedef {{name: string, key: string, entities: Record<string, any>, confidence: number}} Fact
 * @typedef {"greet" | "introduce" | "prefer" | "book" | "address" | "tell" | "correct" | "ask" | "thank" | "note" | "puzzled"} Act
 * @typedef {{act: Act, facts: Fact[], topic: string | null, about: string, language: Language}} Meaning
 * @typedef {{last?: Fact | null, awaiting?: boolean}} Context
 *   `last` is the fact that was spoken of last; `awaiting` says that the message before spoke of it
 * @typedef {{act: Act, facts?: Fact[], topic?: string | null, about?: string}} Clause
 * @typedef {object} Grammar
 * @property {(text: string) => string[]} clauses split a message into statements
 * @property {(clause: string) => Clause | null} question
 * @property {(clause: string) => Clause | null} statement
 * @property {(clause: string) => string | null} correction what is right instead, or null
 * @property {(clause: string) => Record<string, string>} slots the details of a booking
 * @property {(clause: string) => boolean} hedged
 * @property {(text: string) => string} bare a value without its courtesies and full stop
 */

/** The speaker's own word replaces what was known; a guess does not; a correction is surest. */
export const CONFIDENCE = { guess: 0.6, word: 0.96, correction: 0.99 };

/** What a booking needs before it is complete. @type {Record<string, string[]>} */
export const NEEDED = {
  book_flight: ["departure", "destination", "date"],
  book_train: ["departure", "destination", "date"],
  book_hotel: ["place", "date"],
  book_table: ["people", "date"],
  book_taxi: ["destination"],
};

/** Which act has the say when one message does several things. @type {Act[]} */
const ORDER = ["correct", "ask", "book", "introduce", "address", "prefer", "tell", "puzzled", "greet", "thank", "note"];

const HAN = /\p{Script=Han}/u;
const LETTER = /\p{Letter}/u;

/** @param {string} text @param {Language} fallback @returns {Language} */
export function languageOf(text, fallback = "en") {
  if (HAN.test(text)) return "zh";
  return LETTER.test(text) ? "en" : fallback;
}

/** @param {Fact | null | undefined} fact @returns {string[]} names of the details that are not known yet */
export function missing(fact) {
  return (NEEDED[fact?.name ?? ""] ?? []).filter((slot) => !fact?.entities[slot]);
}

/** @param {string} name */
export const isBooking = (name) => name in NEEDED;

/** What a fact is about, the same in every language: the state in which it is remembered. @param {string} name */
export const topicOf = (name) => (isBooking(name) ? "booking" : name);

/**
 * @param {string} text
 * @param {Context} [context]
 * @param {Language} [fallback] for text without letters
 * @returns {Meaning}
 */
export function understand(text, context = {}, fallback = "en") {
  const language = languageOf(text, fallback);
  const grammar = language === "zh" ? chinese : english;
  let last = context.last ?? null;
  /** @type {Clause[]} */
  const clauses = [];
  for (const part of grammar.clauses(text.normalize("NFC"))) {
    const clause = read(part, grammar, last, clauses.length > 0 || Boolean(context.awaiting));
    clauses.push(clause);
    last = clause.facts?.at(-1) ?? last;
  }
  const act = ORDER.find((one) => clauses.some((clause) => clause.act === one)) ?? "note";
  const leading = clauses.find((clause) => clause.act === act);
  const facts = clauses.flatMap((clause) => clause.facts ?? []);
  const topic = leading?.topic ?? (facts.length ? topicOf(facts[0].name) : null);
  return { act, facts, topic, about: leading?.about ?? "", language };
}

/** @param {string} text @param {Grammar} grammar @param {Fact | null} last @param {boolean} awaiting @returns {Clause} */
function read(text, grammar, last, awaiting) {
  const right = grammar.correction(text);
  if (right !== null) return corrected(right, grammar, last);
  const asked = grammar.question(text);
  if (asked) return asked;
  const told = grammar.statement(text);
  const sure = grammar.hedged(text) ? CONFIDENCE.guess : CONFIDENCE.word;
  if (told && told.act !== "note") {
    return { ...told, ...(told.facts ? { facts: told.facts.map((fact) => ({ ...fact, confidence: sure })) } : {}) };
  }
  // A booking that lacks details takes them from whatever follows.
  const details = awaiting && missing(last).length ? grammar.slots(text) : {};
  if (last && Object.keys(details).length) {
    const entities = { ...last.entities, ...details };
    return { act: "book", facts: [{ ...last, entities, confidence: CONFIDENCE.word }] };
  }
  return told ?? { act: "note" };
}

/** @param {string} right @param {Grammar} grammar @param {Fact | null} last @returns {Clause} */
function corrected(right, grammar, last) {
  const told = grammar.statement(right);
  if (told?.facts?.length) {
    const facts = told.facts.map((fact) => ({ ...fact, confidence: CONFIDENCE.correction }));
    // "No, I prefer the aisle" speaks of the preference before it, whatever that one's key is.
    if (facts.length === 1 && last?.name === facts[0].name && ["name", "preference"].includes(last.name)) {
      facts[0].key = last.key;
    }
    return { act: "correct", facts };
  }
  if (!last) return { act: "puzzled" };
  const entities = replaced(last, right, grammar);
  if (!entities) return { act: "puzzled" };
  return { act: "correct", facts: [{ ...last, entities, confidence: CONFIDENCE.correction }] };
}

/** @param {Fact} last @param {string} right @param {Grammar} grammar @returns {Record<string, any> | null} */
function replaced(last, right, grammar) {
  if (isBooking(last.name)) {
    const details = grammar.slots(right);
    return Object.keys(details).length ? { ...last.entities, ...details } : null;
  }
  const value = grammar.bare(right);
  if (!value) return null;
  const field = { name: "name", address: "address", preference: "object", fact: "value" }[last.name];
  return field ? { ...last.entities, [field]: value } : null;
}
