// @ts-check
/** Building the page: what is remembered only ever becomes text nodes, never markup. */
import { locale } from "./strings.js";

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [props] `class`, `on…` listeners, else attributes; false and null are left out
 * @param {...Child} children strings become text
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** @template {HTMLElement} [T=HTMLElement] @param {string} id @returns {T} */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (node);
}

/** Outlines on a grid of 24. @type {Record<string, string>} */
const PATHS = {
  plus: "M12 5v14M5 12h14",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
  pin: "M12 21s7-6.2 7-11a7 7 0 0 0-14 0c0 4.8 7 11 7 11zM12 12.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  send: "M4 12l16-8-5 16-3.5-6.5zM11.5 13.5L20 4",
  down: "M12 4v11M7 11l5 5 5-5M5 20h14",
  up: "M12 16V5M7 9l5-5 5 5M5 20h14",
  database: "M5 6c0-1.7 3.1-3 7-3s7 1.3 7 3-3.1 3-7 3-7-1.3-7-3zM5 6v12c0 1.7 3.1 3 7 3s7-1.3 7-3V6M5 12c0 1.7 3.1 3 7 3s7-1.3 7-3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  shield: "M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6zM9 12l2 2 4-4",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  open: "M9 5h10v10M19 5L8 16M5 9v10h10",
  you: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20c1-3.5 4-5 7.5-5s6.5 1.5 7.5 5",
  agent: "M6 8h12v10H6zM12 8V4M9.5 12.5h.01M14.5 12.5h.01M10 15.5h4M3 12v3M21 12v3",
};

/** @param {string} name */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "glyph");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", PATHS[name] ?? "");
  svg.append(path);
  return svg;
}

/** Put the icons into the buttons that ask for one. */
export function placeIcons() {
  for (const node of document.querySelectorAll("[data-icon]")) node.prepend(icon(node.getAttribute("data-icon") ?? ""));
}

/** What has the focus in there keeps it if it is made anew. @param {HTMLElement} node @param {...Child} children */
export function fill(node, ...children) {
  const name = node.contains(document.activeElement) ? focusName() : null;
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
  refocus(name);
}

/** The name of what has the focus. */
export function focusName() {
  return document.activeElement?.getAttribute("aria-label") ?? null;
}

/** If the focus went with what had it: what has its name now gets it. @param {string | null} name */
export function refocus(name) {
  if (!name || document.activeElement !== document.body) return;
  const named = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[aria-label]"));
  [...named].find((one) => one.getAttribute("aria-label") === name)?.focus();
}

/** A picture from memory; its address is given back when it leaves the page. @param {Uint8Array} bytes @param {string | null} type @param {string} alt */
export function picture(bytes, type, alt) {
  const safe = /^image\/(?:png|jpeg|gif|webp)$/.test(type ?? "") ? String(type) : "application/octet-stream";
  const url = URL.createObjectURL(new Blob([/** @type {any} */ (bytes)], { type: safe }));
  const image = el("img", { alt, decoding: "async" });
  const release = () => URL.revokeObjectURL(url);
  image.addEventListener("load", release, { once: true });
  image.addEventListener("error", release, { once: true });
  image.src = url;
  return image;
}

/** @param {string | number} at @param {Intl.DateTimeFormatOptions} [options] */
export function time(at, options = { dateStyle: "medium", timeStyle: "short" }) {
  const date = new Date(at);
  return el("time", { datetime: date.toISOString() }, new Intl.DateTimeFormat(locale(), options).format(date));
}

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1000)));
  const digits = power > 0 && bytes / 1000 ** power < 10 ? 1 : 0;
  return `${new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(bytes / 1000 ** power)} ${units[power]}`;
}

/** @param {string} text @param {number} [letters] */
export function short(text, letters = 80) {
  const all = Array.from(text.replace(/\s+/g, " ").trim());
  return all.length > letters ? `${all.slice(0, letters - 1).join("")}…` : all.join("");
}

/** Run a frame later; lets a live region notice what is put into it. @param {() => void} action */
export const soon = (action) => requestAnimationFrame(() => requestAnimationFrame(action));
