// @ts-check
/** The words of the page and of the assistant, in English and Chinese. */
import { en } from "./strings-en.js";
import { zh } from "./strings-zh.js";

/** @typedef {import("./rules.js").Language} Language */

/** @type {Record<Language, Record<string, string>>} */
const WORDS = { en, zh };
const KEPT = "py-memory.demo.language";

/** @type {Language} */
let current = "en";

/**
 * @param {Language} language
 * @param {string} key
 * @param {Record<string, any>} [vars] put in for `{name}`
 * @param {string} [otherwise] the key to use where this one has no words
 * @returns {string}
 */
export function translate(language, key, vars = {}, otherwise = "") {
  const words = WORDS[language];
  const text = words[key] ?? words[otherwise] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(vars[name] ?? ""));
}

/** In the page's language. @param {string} key @param {Record<string, any>} [vars] @param {string} [otherwise] */
export function t(key, vars, otherwise) {
  return translate(current, key, vars, otherwise);
}

export function language() {
  return current;
}

/** The tag for dates and numbers. */
export function locale() {
  return current === "zh" ? "zh-CN" : "en-GB";
}

/** The language chosen earlier, else the browser's. @returns {Language} */
export function preferred() {
  const chosen = kept(KEPT);
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** @param {Language} chosen @param {boolean} [keep] for the next visit */
export function use(chosen, keep = false) {
  current = chosen;
  if (keep) keepFor(KEPT, chosen);
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
  document.title = t("page.title");
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.getAttribute("data-t") ?? "");
  for (const [attribute, marker] of [
    ["aria-label", "data-t-label"],
    ["placeholder", "data-t-placeholder"],
    ["title", "data-t-title"],
  ]) {
    for (const node of document.querySelectorAll(`[${marker}]`)) {
      node.setAttribute(attribute, t(node.getAttribute(marker) ?? ""));
    }
  }
}

/** What this page keeps beside the memory: small choices. Storage may be blocked. @param {string} key */
export function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string} value */
export function keepFor(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Blocked: the choice then holds for this visit only.
  }
}
