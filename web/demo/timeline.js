// @ts-check
/** All that was remembered, newest first, a page at a time. */
import { byId, el, fill, icon, short, time } from "./dom.js";
import { contents } from "./dialogs.js";
import { locale, t } from "./strings.js";
import { USER } from "./agent.js";

/**
 * @typedef {import("../memory.js").Fragment} Fragment
 * @typedef {import("../memory.js").Memory} Memory
 */

const PAGE = 8;

export class Timeline {
  #list = el("ol", { class: "timeline" });
  /** Only the last answer counts when several are asked for at once. */
  #asked = 0;
  #day = "";
  /** How many are shown; kept when the list is read again. */
  #shown = PAGE;

  /**
   * @param {Memory} memory
   * @param {{open: (fragment: Fragment) => void, forget: (fragment: Fragment) => void, attempt: (action: () => Promise<void>) => Promise<void>}} actions
   */
  constructor(memory, actions) {
    this.memory = memory;
    this.actions = actions;
    byId("timeline-replies").onchange = () => void actions.attempt(() => this.refresh());
  }

  /** Read the list again, as long as it was. */
  async refresh() {
    const ask = (this.#asked += 1);
    const page = await this.#page(null, this.#shown);
    if (ask !== this.#asked) return;
    this.#list = el("ol", { class: "timeline" });
    this.#day = "";
    this.#add(page);
    fill(byId("timeline"), page.length ? this.#list : el("p", { class: "empty" }, t("timeline.empty")));
    this.#more(page.cursor);
  }

  /** @param {string | null} cursor @param {number} limit */
  #page(cursor, limit) {
    const replies = /** @type {HTMLInputElement} */ (byId("timeline-replies")).checked;
    return this.memory.timeline({
      userId: USER,
      limit: Math.min(limit, 1000),
      ...(replies ? {} : { roles: ["user"] }),
      ...(cursor ? { cursor } : {}),
    });
  }

  /** @param {Fragment[]} page */
  #add(page) {
    for (const fragment of page) {
      const day = dayOf(fragment.happenedAt);
      if (day !== this.#day) this.#list.append(el("li", { class: "day" }, (this.#day = day)));
      this.#list.append(this.#row(fragment));
    }
  }

  /** @param {Fragment} fragment */
  #row(fragment) {
    const words = fragment.type === "image" ? t("timeline.picture") : short(fragment.content, 60);
    const forget = t("data.forgetThis", { text: words });
    return el(
      "li",
      { class: fragment.role },
      time(fragment.happenedAt, { timeStyle: "short" }),
      el("button", { type: "button", class: "entry", "aria-label": t("timeline.open", { text: words }), onclick: () => this.actions.open(fragment) }, contents(fragment, false)),
      el("button", { type: "button", class: "icon", "aria-label": forget, title: t("data.forget"), onclick: () => this.actions.forget(fragment) }, icon("trash")),
    );
  }

  /** @param {string | null} cursor */
  #more(cursor) {
    byId("timeline").querySelector(".older")?.remove();
    if (!cursor) return;
    const older = el("button", { type: "button", class: "quiet older", onclick: () => void this.actions.attempt(() => this.#older(cursor)) }, icon("clock"), t("timeline.older"));
    byId("timeline").append(older);
  }

  /** @param {string} cursor */
  async #older(cursor) {
    const before = this.#list.lastElementChild;
    const page = await this.#page(cursor, PAGE);
    this.#shown += page.length;
    this.#add(page);
    this.#more(page.cursor);
    // The button moved: go on with the first of what came.
    /** @type {HTMLElement | null | undefined} */ (before?.nextElementSibling?.querySelector("button") ?? this.#list.querySelector("li:last-child button"))?.focus();
  }
}

/** @param {string} at */
function dayOf(at) {
  const date = new Date(at);
  const now = new Date();
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
  if (date.toDateString() === now.toDateString()) return t("timeline.today");
  if (date.toDateString() === yesterday.toDateString()) return t("timeline.yesterday");
  return new Intl.DateTimeFormat(locale(), { dateStyle: "full" }).format(date);
}
