// @ts-check
/** A line in the panel when much, or something old, stands in no exported file. */
import { USER } from "./agent.js";
import { byId } from "./dom.js";
import { keepFor, kept, t } from "./strings.js";

/** @typedef {import("../memory.js").Memory} Memory */

/** When the last export began, and when the line was dismissed: milliseconds since 1970. */
const EXPORTED = "py-memory.demo.exported";
const DISMISSED = "py-memory.demo.reminder-dismissed";

const DAY_MS = 86_400_000;
const MANY = 50;
const LONG_MS = 7 * DAY_MS;

/** Where nothing can be kept beside the memory, once on a page is enough. */
let over = false;

/** Show the line if it is due, else hide it. @param {Memory} memory */
export async function remind(memory) {
  const words = await due(memory, Date.now());
  const why = byId("reminder-why");
  if (words && why.textContent !== words) why.textContent = words;
  hide(!words);
}

/** @param {Memory} memory @param {number} now */
async function due(memory, now) {
  // What is gone with the page anyway has a warning of its own.
  if (over || memory.storage.mode === "memory" || now - moment(DISMISSED, now) < DAY_MS) return "";
  const exported = moment(EXPORTED, now);
  const fresh = await memory.timeline({ userId: USER, since: exported, order: "oldest", limit: MANY, includeData: false });
  if (!fresh.length) return "";
  const age = now - (exported || new Date(fresh[0].happenedAt).getTime());
  if (fresh.length < MANY && age < LONG_MS) return "";
  const which = !exported ? "never" : age >= LONG_MS ? "long" : "many";
  return `${t(`reminder.${which}`, { days: Math.floor(age / DAY_MS), count: MANY })} ${t("reminder.why")}`;
}

/** 0 if there is none, or if it cannot be: a clock was put back. @param {string} key @param {number} now */
function moment(key, now) {
  const at = Number(kept(key));
  return at > 0 && at <= now ? at : 0;
}

/** All that was there at that time stands in a file. @param {number} at */
export function exported(at) {
  settle(EXPORTED, at);
}

/** Not today. */
export function dismissed() {
  settle(DISMISSED, Date.now());
}

/** @param {string} key @param {number} at */
function settle(key, at) {
  keepFor(key, String(at));
  over = kept(key) !== String(at);
  hide(true);
}

/** @param {boolean} hidden */
function hide(hidden) {
  const box = byId("reminder");
  const focused = hidden && box.contains(document.activeElement);
  box.hidden = hidden;
  if (focused) byId("export-json").focus();
}
