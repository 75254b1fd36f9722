// @ts-check
/** The English rules: patterns for statements, questions, corrections and the details of bookings. */

/**
 * @typedef {import("./rules.js").Clause} Clause
 * @typedef {import("./rules.js").Grammar} Grammar
 */

/** Words that follow "I'm" and are no name. */
const NOT_NAMES = new Set(
  (
    "a an the not so very really just also still back here there from in on at to fine good great ok okay well " +
    "happy sad tired hungry thirsty sick ill sorry sure afraid ready busy done new late early lost bored cold hot " +
    "married single vegetarian vegan allergic looking going trying planning thinking working living staying " +
    "english chinese french german american british japanese indian spanish italian korean russian canadian your my"
  ).split(" "),
);

const NAME = "[\\p{L}][\\p{L}'’-]*(?: \\p{Lu}[\\p{L}'’-]*){0,3}";
const END = "(?=\\s*(?:[,.!;]|$|\\band\\b|\\bbut\\b|\\bfrom\\b|\\bby the way\\b))";
const NAMED = new RegExp(`\\b(?:my name(?:'s| is| was)|i am called|i'm called|(?:please )?call me)\\s+(${NAME})`, "iu");
const AM = new RegExp(`^(?:(?:hi|hello|hey)[,!. ]+(?:there[,!. ]+)?)?(?:i'm|i am|this is|it's)\\s+(${NAME})${END}`, "iu");

const DAY =
  "(?:(?:next |this |coming )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|the day after tomorrow|tomorrow|today|tonight|next week|next month" +
  "|\\d{4}-\\d{2}-\\d{2}|\\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*" +
  "|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\\.? \\d{1,2}(?:st|nd|rd|th)?)";
const STOP = `(?=\\s+(?:to|from|on|at|for|by|in|with|please|instead|next|this|${DAY})\\b|\\s*[,.!?;]|\\s*$)`;
const TOWN = "([\\p{L}][\\p{L} .'’-]*?)";

/** @type {[name: string, pattern: RegExp][]} */
const BOOKINGS = [
  ["book_flight", /\b(?:flight|plane|plane ticket|fly)\b/i],
  ["book_hotel", /\b(?:hotel|room)\b/i],
  ["book_table", /\b(?:table|restaurant)\b/i],
  ["book_train", /\btrain\b/i],
  ["book_taxi", /\b(?:taxi|cab)\b/i],
];
const BOOK = /\b(?:book|reserve|get me|find me|order|i need|i want|i would like|i'd like)\b/i;

/** @type {[topic: string, pattern: RegExp][]} */
const TOPICS = [
  ["name", /\b(?:name|called|who am i)\b/i],
  ["address", /\b(?:address|where (?:do|did) i live|home)\b/i],
  ["booking", /\b(?:book|booked|booking|bookings|flight|flights|hotel|train|table|taxi|trip|travel|reservation)\b/i],
  ["preference", /\b(?:like|love|prefer|prefers|preference|preferences|favou?rite|hate|dislike|taste|tastes)\b/i],
  ["picture", /\b(?:picture|pictures|photo|photos|image|images)\b/i],
  ["place", /\b(?:place|places|location|where am i|where was i)\b/i],
];

/** @param {string} text */
function bare(text) {
  return text
    .trim()
    .replace(/^(?:it's|it is|that's|they are|is|the word|to|about)\s+/i, "")
    .replace(/[\s,]*(?:please|thanks|thank you|instead|by the way|of course|actually|i think|i guess)?[\s.!,;]*$/i, "")
    .trim();
}

/** @param {string} text @returns {string} */
const key = (text) =>
  text.normalize("NFKC").toLowerCase().replace(/^(?:the|a|an|any|my) /, "").replace(/\s+/g, " ").trim().slice(0, 60);

/** The word a preference is about: "window seats" is about the seat. @param {string} text */
function head(text) {
  const word = key(text.replace(/\s+(?:to|over|than|rather|when|if|on|in|at|for|with)\s.*$/i, "")).split(" ").at(-1) ?? "";
  return word.replace(/(?:(ch|sh|x|ss)es|([^s])s)$/, "$1$2");
}

/**
 * @param {string} object
 * @param {boolean} likes
 * @param {string} [slot]
 * @param {Record<string, string>} [more]
 * @returns {Clause}
 */
function preference(object, likes, slot, more = {}) {
  const value = bare(object);
  return {
    act: "prefer",
    facts: [{ name: "preference", key: slot ?? key(value), entities: { object: value, likes, ...more }, confidence: 1 }],
  };
}

/** @param {string} clause @returns {Record<string, string>} */
function slots(clause) {
  /** @type {Record<string, string>} */
  const found = {};
  /** @param {string} slot @param {RegExp} pattern */
  const take = (slot, pattern) => {
    const match = clause.match(pattern);
    if (match) found[slot] = match[1].trim();
  };
  take("departure", new RegExp(`\\bfrom\\s+${TOWN}${STOP}`, "iu"));
  take("destination", new RegExp(`\\bto\\s+(?!${DAY}|book|fly|go|reserve)${TOWN}${STOP}`, "iu"));
  take("date", new RegExp(`\\b(${DAY})\\b`, "i"));
  take("time", /\bat\s+(\d{1,2}(?::\d{2})?\s*(?:am|pm)?|noon|midnight)\b/i);
  take("people", /\bfor\s+(\d+|one|two|three|four|five|six|seven|eight|nine|ten)\b(?!\s*(?:night|day))/i);
  take("place", new RegExp(`\\b(?:in|at)\\s+(?!the (?:morning|evening|afternoon))(\\p{L}[\\p{L} '’-]*?)${STOP}`, "iu"));
  return found;
}

/** @param {string} clause @returns {Clause | null} */
function booking(clause) {
  if (!BOOK.test(clause)) return null;
  const kind = BOOKINGS.find(([, pattern]) => pattern.test(clause));
  if (!kind) return null;
  const entities = slots(clause);
  const slot = key(Object.values(entities).join(" ")) || "open";
  return { act: "book", facts: [{ name: kind[0], key: slot, entities, confidence: 1 }] };
}

/** @param {string} clause @returns {Clause | null} */
function introduction(clause) {
  const match = clause.match(NAMED) ?? clause.match(AM);
  if (!match) return null;
  const words = match[1].split(" ");
  if (NOT_NAMES.has(words[0].toLowerCase()) || /(?:ing|ed)$/.test(words[0])) return null;
  const name = words.map((word) => word[0].toUpperCase() + word.slice(1)).join(" ");
  return { act: "introduce", facts: [{ name: "name", key: "name", entities: { name }, confidence: 1 }] };
}

/** @param {string} clause @returns {Clause | null} */
function addressed(clause) {
  const own = clause.match(/\bmy\s+(?:(home|work|office|delivery|shipping|billing|postal|e-?mail)\s+)?address\s+(?:is|was|has changed to|:)\s*(.+)/i);
  const lives = clause.match(/\bi\s+(?:now\s+)?(?:live|moved)\s+(?:at|in|on|to)\s+(.+)/i);
  const address = bare(own?.[2] ?? lives?.[1] ?? "");
  if (!address) return null;
  const kinds = { shipping: "delivery", postal: "delivery", office: "work", "e-mail": "email" };
  const given = (own?.[1] ?? "home").toLowerCase();
  const slot = kinds[/** @type {keyof typeof kinds} */ (given)] ?? given;
  return { act: "address", facts: [{ name: "address", key: slot, entities: { address }, confidence: 1 }] };
}

/** @param {string} clause @returns {Clause | null} */
function preferred(clause) {
  let match = clause.match(/\bmy\s+favou?rite\s+([\p{L} ]+?)\s+(?:is|are|was)\s+(.+)/iu);
  if (match) return preference(match[2], true, `favourite ${key(match[1])}`, { about: match[1].toLowerCase() });
  match = clause.match(/\bi(?:'d| would)?\s+(?:really |now |always )?(?:prefer|rather have)\s+(.+)/i);
  if (match) return preference(match[1], true, head(bare(match[1])));
  match = clause.match(/\bi\s+(?:really |now )?(?:don't|don’t|do not|dont|never)\s+(?:really )?(?:like|want|eat|drink|enjoy|need)\s+(.+)/i);
  match ??= clause.match(/\bi\s+(?:really )?(?:hate|dislike|avoid|can't stand|cannot stand)\s+(.+)/i);
  if (match) return preference(match[1], false);
  match = clause.match(/\bi(?:'m| am)\s+allergic\s+to\s+(.+)/i);
  if (match) return preference(match[1], false, undefined, { why: "allergy" });
  match = clause.match(/\bi\s+(?:really |also |still |now |absolutely )?(?:like|love|enjoy|adore)\s+(.+)/i);
  if (match) return preference(match[1], true);
  match = clause.match(/^(?:please\s+)?(?:don't|don’t|do not|never)\s+(.+)/i);
  if (match) return preference(match[1], false, undefined, { wish: "yes" });
  return null;
}

/** @param {string} clause @returns {Clause | null} */
function told(clause) {
  const match = clause.match(/\bmy\s+([\p{L}][\p{L} ]{1,30}?)\s+(?:is|are)\s+(?:called |named )?(.+)/iu);
  if (!match) return null;
  const about = match[1].toLowerCase();
  return { act: "tell", facts: [{ name: "fact", key: key(about), entities: { about, value: bare(match[2]) }, confidence: 1 }] };
}

/** @type {Grammar} */
export const english = {
  bare,
  slots,
  hedged: (clause) => /\b(?:maybe|perhaps|i think|i guess|probably|might|not sure)\b/i.test(clause),

  clauses(text) {
    const starts = "(?:i|i'm|i'd|my|no|actually|please|book|what|who|where|hi|hello|do|don't|call|never|and|also)\\b";
    return text
      .replace(/’/g, "'")
      .split(new RegExp(`(?<=[.!?;])\\s+(?=${starts})|\\n+|,?\\s+(?:and|but)\\s+(?=(?:i|i'm|i'd|my|please|book)\\b)|,\\s+(?=(?:i|i'm|my)\\b\\s)`, "i"))
      .map((part) => part.replace(/^(?:and|also),?\s+/i, "").trim())
      .filter(Boolean)
      .reduce(
        // "No, my name is Anna" is one statement: the "no" belongs to what follows.
        (/** @type {string[]} */ parts, part) => {
          const before = parts.at(-1);
          if (before && /^(?:no|nope|wrong|sorry|actually)[,.!]?$/i.test(before)) parts[parts.length - 1] = `${before} ${part}`;
          else parts.push(part);
          return parts;
        },
        [],
      );
  },

  correction(clause) {
    const lead = "(?:no|nope|wrong|not quite|sorry|wait|that's wrong|that is wrong|correction)";
    const match =
      clause.match(new RegExp(`^${lead}\\b[,.!:;\\s-]+(?:no[,\\s]+)?(?:actually|i meant|i mean|rather|make (?:it|that)|it should be)?[,\\s]*(.+)`, "i")) ??
      clause.match(/^(?:actually|i meant|i mean|make (?:it|that))\b[,\s]+(.+)/i);
    if (!match || clause.endsWith("?")) return null;
    const right = match[1].replace(/^(?:it's|it is|that's|that is|it should be|should be|make (?:it|that))\s+(?:actually\s+)?/i, "").trim();
    return /^(?:thanks|thank you|problem|idea|worries)\b/i.test(right) ? null : right;
  },

  question(clause) {
    const text = clause.replace(/[?!.\s]+$/, "").replace(/^(?:so|and|ok|okay|hey|hi|hello|well|please)[,\s]+/i, "");
    const about =
      text.match(/^what (?:do|did|can) you (?:still )?(?:remember|know|recall)(?: (?:about|of|from) (.+))?$/i) ??
      text.match(/^(?:do you (?:still )?(?:remember|know|recall)|tell me (?:what you (?:know|remember) )?about|remind me (?:about|of)|what about|show me)(?: (.+))?$/i);
    const asks = about ?? /^(?:what|who|where|when|which|how|why|whose|am|is|are|do|does|did|can|could|have|has)\b/i.test(text);
    if (!asks || (!about && !clause.trim().endsWith("?") && !/^(?:what|who|where|when|which)(?:'s| is| are| was| do| did| am)\b/i.test(text))) return null;
    const subject = about ? (about[1] ?? "me") : text;
    if (/^(?:me|myself|us|everything|all|anything|it all|so far)$/i.test(subject.trim())) return { act: "ask", topic: "all", about: "" };
    const topic = TOPICS.find(([, pattern]) => pattern.test(subject))?.[0] ?? null;
    return { act: "ask", topic, about: subject.replace(/^(?:my|the)\s+/i, "") };
  },

  statement(clause) {
    const found =
      booking(clause) ?? preferred(clause) ?? addressed(clause) ?? introduction(clause) ?? told(clause);
    if (found?.facts?.every((fact) => Object.values(fact.entities).every((value) => value !== ""))) return found;
    if (/^(?:hi|hello|hey|good (?:morning|evening|afternoon)|greetings)\b/i.test(clause)) return { act: "greet" };
    if (/^(?:thanks|thank you|thx|cheers)\b/i.test(clause)) return { act: "thank" };
    return null;
  },
};
