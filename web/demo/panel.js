// @ts-check
/** What the memory holds, at a glance: counts, the last recall with its scores, the facts that are true now. */
import { byId, el, fill, icon, short, size } from "./dom.js";
import { contents } from "./dialogs.js";
import { label, value } from "./facts.js";
import { language, locale, t } from "./strings.js";

/**
 * @typedef {import("../memory.js").Hit} Hit
 * @typedef {import("../memory.js").Metrics} Metrics
 * @typedef {import("./agent.js").Known} Known
 * @typedef {import("./agent.js").Recalled} Recalled
 * @typedef {(id: string, at: string, hit?: Hit) => void} OpenSource
 */

/** @param {Metrics} metrics @param {Known[]} facts */
export function showCounts(metrics, facts) {
  const number = new Intl.NumberFormat(locale());
  const counts = [
    ["fragments", metrics.fragments],
    ["facts", facts.length],
    ["sessions", metrics.sessions],
    ["pictures", metrics.byType.image ?? 0],
  ];
  fill(
    byId("counts"),
    ...counts.map(([name, count]) =>
      el("div", {}, el("dt", {}, t(`count.${name}`)), el("dd", { id: `count-${name}` }, number.format(Number(count)))),
    ),
  );
  const badge = byId("view-count");
  badge.hidden = !metrics.fragments;
  badge.textContent = number.format(metrics.fragments);
}

/** @param {Recalled | null} recalled @param {OpenSource} open */
export function showRecall(recalled, open) {
  const asked = byId("recall-query");
  const box = byId("recall");
  if (!recalled) {
    asked.textContent = "";
    fill(box, el("p", { class: "empty" }, t("recall.empty")));
    return;
  }
  const query = short(recalled.query, 60);
  asked.textContent = t("recall.query", { query });
  if (!recalled.hits.length) {
    fill(box, el("p", { class: "empty" }, t("recall.none", { query })));
    return;
  }
  fill(box, el("ol", { class: "hits" }, ...recalled.hits.map((hit) => hitItem(hit, recalled.stale.has(hit.fragment.id), open))));
}

/** @param {Hit} hit @param {boolean} stale @param {OpenSource} open */
function hitItem(hit, stale, open) {
  const { fragment, tier, score, why, cite, companions } = hit;
  const go = () => open(fragment.id, fragment.happenedAt, hit);
  const bars = /** @type {const} */ (["weight", "relevance", "strength"]).map((part) => bar(t(`recall.${part}`), why[part]));
  return el(
    "li",
    { class: `hit${stale ? " stale" : ""}` },
    el(
      "p",
      { class: "hit-head" },
      el("span", { class: `tier ${tier}` }, tier),
      el("span", { class: "soft" }, t(`recall.${tier}`)),
      stale && el("span", { class: "chip rejected" }, t("recall.stale")),
      el("span", { class: "score" }, el("span", { class: "unseen" }, `${t("recall.score")} `), score.toFixed(2)),
    ),
    el("div", { class: "hit-body" }, contents(fragment, false), ...companions.map((one) => contents(one, false))),
    el("div", { class: "bars" }, ...bars),
    el("button", { type: "button", class: "source", title: cite, "aria-label": t("recall.open", { cite }), onclick: go }, icon("open"), el("span", {}, cite)),
  );
}

/** A factor of the score, between 0 and 1. @param {string} name @param {number} part */
function bar(name, part) {
  const filled = el("i");
  filled.style.width = `${Math.round(Math.max(0, Math.min(1, part)) * 100)}%`;
  return el("div", { class: "bar" }, el("span", { class: "name" }, name), el("span", { class: "track", "aria-hidden": "true" }, filled), el("span", { class: "number" }, part.toFixed(2)));
}

/** @param {Known[]} facts @param {OpenSource} open */
export function showFacts(facts, open) {
  if (!facts.length) {
    fill(byId("facts"), el("p", { class: "empty" }, t("facts.empty")));
    return;
  }
  const items = facts.map(({ fragment, intent }) => {
    const [name, text] = [label(intent, language()), value(intent, language()) || "…"];
    const go = () => open(fragment.id, fragment.happenedAt);
    return el(
      "li",
      {},
      el("span", { class: "soft" }, name),
      el("span", { class: "value" }, text),
      el("button", { type: "button", class: "icon", "aria-label": t("facts.open", { label: name, value: text }), title: t("dialog.source"), onclick: go }, icon("open")),
    );
  });
  fill(byId("facts"), el("ul", { class: "facts" }, ...items));
}

/** @param {import("../memory.js").StorageState} storage */
export function showStorage(storage) {
  const { usage, quota, mode, generation } = storage;
  const used = usage === null ? t("storage.unknown") : null;
  const row = (/** @type {string} */ name, /** @type {(Node | string)[]} */ ...values) => el("div", {}, el("dt", {}, t(name)), el("dd", {}, ...values));
  fill(
    byId("storage"),
    row("storage.mode", el("span", { class: `dot ${mode}` }), t(`storage.${mode}`)),
    row("storage.used", used ?? sizes(usage, quota)),
    row("storage.generation", new Intl.NumberFormat(locale()).format(generation)),
  );
}

/** @param {number | null} usage @param {number | null} quota */
function sizes(usage, quota) {
  if (quota === null) return size(usage ?? 0);
  return t("storage.of", { usage: size(usage ?? 0), quota: size(quota) });
}
