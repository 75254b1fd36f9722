// @ts-check
/** The conversation as it is seen: messages from memory, oldest first. */
import { byId, el, fill, icon, time } from "./dom.js";
import { contents } from "./dialogs.js";
import { label, value } from "./facts.js";
import { language, t } from "./strings.js";

/**
 * @typedef {import("../memory.js").Fragment} Fragment
 * @typedef {(id: string, at: string) => void} OpenSource
 */

const log = () => byId("messages");

/** @param {Fragment[]} messages @param {OpenSource} open @returns {HTMLElement[]} */
function bubbles(messages, open) {
  return together(messages).map((group) => (group[0].role === "assistant" ? answer(group[0], open) : own(group)));
}

/** Messages of one moment stand in one bubble. @param {Fragment[]} messages */
function together(messages) {
  /** @type {Fragment[][]} */
  const groups = [];
  for (const message of messages) {
    const before = groups.at(-1);
    if (before && message.moment && before[0].moment === message.moment) before.push(message);
    else groups.push([message]);
  }
  return groups;
}

/** @param {"you" | "agent"} who @param {(Node | string)[]} body @param {Node[]} foot */
function bubble(who, body, foot) {
  return el(
    "article",
    { class: `message ${who}` },
    el("span", { class: "face" }, icon(who)),
    el(
      "div",
      { class: "bubble" },
      el("span", { class: "unseen" }, `${t(who === "you" ? "chat.you" : "chat.agent")}: `),
      ...body,
      el("p", { class: "foot" }, ...foot),
    ),
  );
}

/** @param {Fragment[]} group */
function own(group) {
  const at = time(group[0].happenedAt, { timeStyle: "short" });
  const node = bubble("you", group.map((one) => el("div", { class: "part" }, contents(one))), [at, icon("check"), el("span", {}, t("chat.saved"))]);
  node.dataset.fragment = group[0].id;
  return node;
}

/** @param {Fragment} fragment @param {OpenSource} open */
function answer(fragment, open) {
  const quotes = fragment.intents.filter((intent) => intent.name === "quotes");
  const parts = fragment.content.split(/(\[\d+\])/).map((part) => {
    const number = Number(part.match(/^\[(\d+)\]$/)?.[1]);
    const quoted = quotes[number - 1]?.entities;
    if (!quoted) return part;
    const go = () => open(String(quoted.fragment), String(quoted.at));
    return el("button", { type: "button", class: "ref", "aria-label": t("chat.cite", { n: number }), onclick: go }, String(number));
  });
  /** @type {{name: string, key: string, outcome: string, entities: Record<string, any>}[]} */
  const outcomes = fragment.metadata.outcomes ?? [];
  const chips = outcomes.map((one) => {
    const kind = one.outcome.split(":")[0];
    const fact = [label(one, language()), value(one, language())].filter(Boolean).join(": ");
    return el("li", { class: `chip ${kind}` }, el("b", {}, t(`outcome.${kind}`)), ` ${fact}`);
  });
  const node = bubble(
    "agent",
    [el("p", { class: "text" }, ...parts), chips.length ? el("ul", { class: "chips" }, ...chips) : ""],
    [time(fragment.happenedAt, { timeStyle: "short" })],
  );
  node.dataset.fragment = fragment.id;
  return node;
}

/**
 * Show a conversation from its newest page.
 * @param {Fragment[]} messages
 * @param {{greeting: string, older: boolean, earlier: () => void, open: OpenSource}} options
 */
export function show(messages, { greeting, older, earlier, open }) {
  const box = log();
  box.setAttribute("aria-busy", "true");
  const more = older && el("button", { type: "button", class: "quiet earlier", id: "earlier", onclick: earlier }, icon("clock"), t("chat.earlier"));
  fill(box, more, ...bubbles(messages, open), greeting && hello(greeting));
  box.hidden = false;
  box.removeAttribute("aria-busy");
  toEnd();
}

/** @param {string} text not remembered: made anew each time */
function hello(text) {
  const node = bubble("agent", [el("p", { class: "text" }, text)], []);
  node.classList.add("greeting");
  return node;
}

/**
 * Take in what another tab changed: what is seen stays where it is.
 * @param {Fragment[]} messages the newest page
 * @param {OpenSource} open
 * @returns {boolean} false if they do not join on to what is seen: show them anew
 */
export function follow(messages, open) {
  const box = log();
  const seen = /** @type {HTMLElement[]} */ ([...box.querySelectorAll("[data-fragment]")]);
  const fresh = bubbles(messages, open);
  const ids = new Set(fresh.map((node) => node.dataset.fragment));
  const first = seen.findIndex((node) => ids.has(node.dataset.fragment));
  if (first < 0) return false;
  const low = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  const known = new Map(seen.map((node) => [node.dataset.fragment, node]));
  for (const node of seen.slice(first)) if (!ids.has(node.dataset.fragment)) node.remove();
  /** @type {HTMLElement | undefined} */
  let before;
  for (const node of fresh) {
    const here = known.get(node.dataset.fragment);
    if (!here) before ? before.after(node) : seen[first].before(node);
    before = here ?? node;
  }
  if (low) toEnd();
  return true;
}

/** @param {Fragment[]} messages @param {boolean} older @param {OpenSource} open */
export function prepend(messages, older, open) {
  const box = log();
  const more = byId("earlier");
  const bottom = box.scrollHeight - box.scrollTop;
  more.after(...bubbles(messages, open));
  box.scrollTop = box.scrollHeight - bottom;
  if (!older) {
    more.remove();
    box.focus();
  }
}

/** @param {Fragment} message @param {OpenSource} open */
export function append(message, open) {
  log().append(...bubbles([message], open));
  toEnd();
}

/**
 * A message on its way: seen at once, marked as saved only when it is.
 * @param {import("./agent.js").Message} message
 * @param {Node[]} previews
 */
export function sending(message, previews) {
  const state = el("span", {}, t("chat.saving"));
  const where = message.place ? [message.place.label, `${message.place.lat}, ${message.place.lng}`].filter(Boolean).join(" · ") : "";
  const body = [
    message.text && el("div", { class: "part" }, el("span", { class: "text" }, message.text)),
    ...previews.map((node) => el("div", { class: "part" }, node)),
    where && el("div", { class: "part" }, el("span", { class: "text" }, icon("pin"), where)),
  ];
  const node = bubble("you", body.filter((part) => part !== "" && part !== undefined), [state]);
  node.classList.add("pending");
  // Read out once: when it is saved.
  node.setAttribute("aria-hidden", "true");
  log().append(node);
  toEnd();
  return {
    /** @param {Fragment[]} said */
    saved(said) {
      node.replaceWith(...bubbles(said, () => {}));
      toEnd();
    },
    /** Gone: its words are back in the message box. */
    remove() {
      node.remove();
    },
  };
}

/** Dots while the assistant thinks. @returns {() => void} ends it */
export function thinking() {
  const dots = el("div", { class: "dots", role: "status" }, el("span", { class: "unseen" }, t("chat.thinking")), el("i"), el("i"), el("i"));
  log().append(dots);
  toEnd();
  return () => dots.remove();
}

function toEnd() {
  const box = log();
  box.scrollTop = box.scrollHeight;
  // Pictures grow when they are decoded.
  for (const image of box.querySelectorAll("img")) {
    image.addEventListener("load", () => (box.scrollTop = box.scrollHeight), { once: true });
  }
}
