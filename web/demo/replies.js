// @ts-check
/** What the assistant says: pure functions from what was meant and what is known to a text with citations. */
import { isBooking, missing } from "./rules.js";
import { label, value } from "./facts.js";
import { translate } from "./strings.js";

/**
 * @typedef {import("./agent.js").Answer} Answer
 * @typedef {import("./agent.js").Known} Known
 * @typedef {import("./agent.js").Outcome} Outcome
 * @typedef {import("./agent.js").Recalled} Recalled
 * @typedef {import("./agent.js").Message} Message
 * @typedef {import("./rules.js").Meaning} Meaning
 * @typedef {import("./rules.js").Language} Language
 * @typedef {import("../memory.js").Fragment} Fragment
 */

const QUOTED = 4;

/** A text under construction: citing the same fragment twice gives the same number. */
class Draft {
  /** @type {string[]} */
  lines = [];
  /** @type {Fragment[]} */
  quotes = [];

  /** @param {Fragment} fragment */
  cite(fragment) {
    let index = this.quotes.findIndex((one) => one.id === fragment.id);
    if (index < 0) index = this.quotes.push(fragment) - 1;
    return `[${index + 1}]`;
  }

  /** @returns {Answer} */
  done() {
    return { text: this.lines.join("\n"), quotes: this.quotes, outcomes: [] };
  }
}

/** @param {Known[]} facts @returns {string | null} */
export function nameIn(facts) {
  const name = facts.find(({ intent }) => intent.name === "name")?.intent.entities.name;
  return typeof name === "string" ? name : null;
}

/** The words at the start of a conversation; not remembered. @param {Known[]} facts @param {Language} language */
export function welcome(facts, language) {
  const name = nameIn(facts);
  if (!facts.length) return translate(language, "say.first");
  const key = name ? "say.back" : "say.backNameless";
  return translate(language, key, { name: name ?? "", count: facts.length });
}

/**
 * Answer a question from what was recalled.
 * @param {Meaning} meaning
 * @param {Recalled} recalled
 * @param {Known[]} known
 * @returns {Answer}
 */
export function ask(meaning, recalled, known) {
  const { language, topic } = meaning;
  /** @type {(key: string, vars?: Record<string, any>) => string} */
  const say = (key, vars) => translate(language, key, vars);
  const draft = new Draft();
  const stale = recalled.hits.filter(({ fragment }) => recalled.stale.has(fragment.id));
  // What was replaced is answered by what is true instead, even where the words of that are others.
  const replaced = new Set(stale.flatMap(({ fragment }) => fragment.metadata.facts.map(slotOf)));
  const direct = known.filter(
    ({ intent }) => topic === "all" || (topic === intent.name && ["name", "address"].includes(topic)) || replaced.has(slotOf(intent)),
  );
  for (const { fragment, intent } of direct.slice(0, 10)) {
    const line = { label: label(intent, language), value: value(intent, language), cite: draft.cite(fragment) };
    draft.lines.push(say("say.factLine", line));
  }
  const current = recalled.hits.filter(({ fragment }) => !recalled.stale.has(fragment.id));
  const quoted = new Set(draft.quotes.map((fragment) => fragment.id));
  for (const { fragment } of current.filter((hit) => !quoted.has(hit.fragment.id)).slice(0, direct.length ? 2 : QUOTED)) {
    draft.lines.push(quote(fragment, draft, language, "say.quote"));
  }
  if (topic !== "all") {
    for (const { fragment } of stale.slice(0, 1)) draft.lines.push(quote(fragment, draft, language, "say.quoteOld"));
  }
  if (!draft.lines.length) {
    const nothing = topic === "all" || !meaning.about ? "say.nothing" : "say.nothingAbout";
    draft.lines.push(say(nothing, { about: meaning.about }));
    return draft.done();
  }
  const name = nameIn(known);
  draft.lines.unshift(name ? say("say.recallName", { name }) : say("say.recall"));
  return draft.done();
}

/** @param {{name: string, key: string | null}} fact */
const slotOf = ({ name, key }) => `${name}\n${key}`;

/** @param {Fragment} fragment @param {Draft} draft @param {Language} language @param {string} key */
function quote(fragment, draft, language, key) {
  const day = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", { dateStyle: "medium" });
  const vars = { day: day.format(new Date(fragment.happenedAt)), cite: draft.cite(fragment) };
  if (fragment.type === "image") {
    return translate(language, "say.quotePicture", { ...vars, file: fragment.metadata.file ?? "" });
  }
  if (fragment.type === "location") return translate(language, "say.quotePlace", { ...vars, text: fragment.content });
  return translate(language, key, { ...vars, text: shortened(fragment.content) });
}

/** @param {string[]} items @param {Language} language */
function list(items, language) {
  return new Intl.ListFormat(language === "zh" ? "zh-CN" : "en-GB", { type: "conjunction" }).format(items);
}

/** @param {string} text */
function shortened(text) {
  const letters = Array.from(text.replace(/\s+/g, " "));
  return letters.length > 160 ? `${letters.slice(0, 159).join("")}…` : letters.join("");
}

/**
 * Say what became of a statement.
 * @param {Meaning} meaning
 * @param {{outcomes: Outcome[], before: Known[], said: Fragment[], message: Message}} what
 * @returns {Answer}
 */
export function acknowledge(meaning, { outcomes, before, said, message }) {
  const { language } = meaning;
  const draft = new Draft();
  const name = nameIn(before);
  if (message.text) {
    for (const outcome of outcomes.filter((one) => one.name !== "place")) {
      draft.lines.push(learned(outcome, meaning, before, draft));
    }
  }
  const things = [
    ...(message.pictures?.length ? ["say.picture"] : []),
    ...(message.place ? ["say.place"] : []),
  ];
  for (const key of things) draft.lines.push(translate(language, key, { count: message.pictures?.length ?? 0 }));
  if (!draft.lines.length) {
    const greeted = name ? "say.helloName" : "say.hello";
    const keys = { greet: greeted, thank: "say.welcome", puzzled: "say.puzzled" };
    const key = keys[/** @type {keyof typeof keys} */ (meaning.act)] ?? "say.noted";
    draft.lines.push(translate(language, key, { name: name ?? "" }));
  }
  const answer = draft.done();
  // The answer repeats what was said, so it goes when that goes.
  const quotes = [...answer.quotes, ...said.filter((one) => !answer.quotes.includes(one))];
  return { ...answer, quotes, outcomes };
}

/**
 * @param {Outcome} outcome
 * @param {Meaning} meaning
 * @param {Known[]} before
 * @param {Draft} draft
 */
function learned(outcome, meaning, before, draft) {
  const { language } = meaning;
  /** @type {(key: string, vars?: Record<string, any>) => string} */
  const say = (key, vars) => translate(language, key, vars);
  const now = value(outcome, language);
  const old = outcome.before ? value({ ...outcome, entities: outcome.before }, language) : "";
  const what = label(outcome, language);
  if (outcome.outcome.startsWith("rejected")) return say("say.rejected", { what, old });
  if (outcome.outcome === "unchanged") return say("say.unchanged", { what, now });
  if (isBooking(outcome.name)) return booked(outcome, meaning, before, draft);
  if (outcome.before && outcome.outcome !== "created") return say("say.replaced", { what, now, old });
  if (outcome.name === "name") return say("say.met", { name: now });
  return say("say.learned", { what, now });
}

/**
 * @param {Outcome} outcome
 * @param {Meaning} meaning
 * @param {Known[]} before
 * @param {Draft} draft
 */
function booked(outcome, meaning, before, draft) {
  const { language } = meaning;
  /** @type {(key: string, vars?: Record<string, any>) => string} */
  const say = (key, vars) => translate(language, key, vars);
  const vars = { what: label(outcome, language), now: value(outcome, language) };
  const lacking = missing({ ...outcome, confidence: 1 });
  if (lacking.length) {
    const wanted = list(lacking.map((slot) => say(`slot.${slot}`)), language);
    return say(vars.now ? "say.bookMore" : "say.bookWhat", { ...vars, wanted });
  }
  const parts = [say(meaning.act === "correct" ? "say.bookChanged" : "say.booked", vars)];
  const liked = before.filter(({ intent }) => intent.name === "preference").slice(0, 2);
  if (liked.length && meaning.act !== "correct") {
    const wishes = liked.map(({ intent, fragment }) => `${value(intent, language)} ${draft.cite(fragment)}`);
    parts.push(say("say.keepInMind", { wishes: wishes.join(say("list.semi")) }));
  }
  return parts.join(" ");
}
