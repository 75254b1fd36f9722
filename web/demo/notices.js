// @ts-check
/** Short messages at the foot of the page: what was done, with undo; what went wrong, with what to do. */
import { byId, el, icon, soon } from "./dom.js";
import { t } from "./strings.js";

/** How long a notice stays that offers nothing. */
const SHOWN_MS = 8_000;

/** @typedef {{label: string, run: () => void}} Action */

/** The last word of a memory that is closed stays until its action is taken. */
let lasting = false;

/**
 * One notice at a time; it stays until it is dismissed or another one comes.
 * @param {"status" | "alert"} role
 * @param {string} text
 * @param {Action | null} action
 * @param {string} [details]
 * @returns {HTMLElement}
 */
function show(role, text, action, details) {
  const box = byId("notices");
  if (lasting) return box;
  const words = el("div", { class: "words", role });
  const close = () => {
    const inside = notice.contains(document.activeElement);
    notice.remove();
    if (inside) home();
  };
  const notice = el(
    "div",
    { class: `notice ${role}` },
    icon(role === "alert" ? "warn" : "check"),
    words,
    action &&
      el("button", { type: "button", class: "strong", onclick: () => (close(), action.run()) }, action.label),
    el("button", { type: "button", class: "icon", "aria-label": t("notice.dismiss"), title: t("notice.dismiss"), onclick: close }, icon("close")),
  );
  notice.addEventListener("keydown", (event) => event.key === "Escape" && !lasting && close());
  box.replaceChildren(notice);
  // Text that comes into a live region after it is there is read out.
  soon(() => words.append(el("p", {}, text), details ? el("p", { class: "soft" }, details) : ""));
  return notice;
}

/** Where the focus goes when what had it is gone. */
function home() {
  const box = byId("message");
  (box.offsetParent ? box : byId("timeline-title")).focus();
}

/** @param {string} text @param {() => void} [undo] */
export function done(text, undo) {
  const notice = show("status", text, undo ? { label: t("data.undo"), run: undo } : null);
  // What had the focus is usually gone now: the way back is the best place to be.
  if (undo) notice.querySelector("button")?.focus();
  else setTimeout(() => notice.matches(":hover, :focus-within") || notice.remove(), SHOWN_MS);
}

/** @param {unknown} error @returns {{advice: string, details: string}} */
export function explained(error) {
  const { code, message, details } = /** @type {{code?: string, message?: string, details?: Record<string, any>}} */ (error ?? {});
  const advice = t(`error.${code ?? "other"}`, {}, "error.other");
  const parts = [code ? [code, message].filter(Boolean).join(": ") : String(message ?? error)];
  if (details?.hint && !parts[0].includes(String(details.hint))) parts.push(String(details.hint));
  return { advice, details: parts.join(" ") };
}

/** @param {unknown} error @param {() => void} [retry] */
export function failed(error, retry) {
  const { advice, details } = explained(error);
  show("alert", advice, retry ? { label: t("notice.retry"), run: retry } : null, details);
}

/** The memory is closed: nothing else works until the person acts. @param {string} text @param {Action} action @param {string} [details] */
export function ended(text, action, details) {
  const go = () => ((lasting = false), action.run());
  const notice = show("alert", text, { label: action.label, run: go }, details);
  notice.querySelector("button.icon")?.remove();
  lasting = true;
}

/** A refusal of the page itself. @param {string} text */
export function refused(text) {
  show("alert", text, null);
}

export function quiet() {
  if (lasting) return;
  byId("notices").replaceChildren();
}

/**
 * Run an action; if it fails, say so and offer it again.
 * @param {() => Promise<void>} action
 */
export async function attempt(action) {
  try {
    await action();
  } catch (error) {
    failed(error, () => void attempt(action));
  }
}
