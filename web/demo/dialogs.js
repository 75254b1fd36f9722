// @ts-check
/** Dialogs: yes or no, the source of a memory, a place. The browser's own dialog element keeps the focus. */
import { byId, el, fill, focusName, icon, picture, refocus, short, time } from "./dom.js";
import { label, value } from "./facts.js";
import { language, t } from "./strings.js";

/**
 * @typedef {import("../memory.js").Fragment} Fragment
 * @typedef {import("../memory.js").Hit} Hit
 * @typedef {import("./agent.js").Place} Place
 */

let count = 0;

/**
 * @param {string} title
 * @param {HTMLElement[]} body
 * @param {HTMLElement[]} buttons
 * @param {string} [kind]
 */
function dialog(title, body, buttons, kind = "") {
  const id = `dialog-${(count += 1)}`;
  const opener = focusName();
  const closer = el("button", { type: "button", class: "icon", "aria-label": t("dialog.close"), title: t("dialog.close"), onclick: () => box.close() }, icon("close"));
  const box = el(
    "dialog",
    { "aria-labelledby": id, class: kind },
    el("div", { class: "dialog-head" }, el("h2", { id }, title), closer),
    el("div", { class: "dialog-body" }, ...body),
    buttons.length ? el("div", { class: "dialog-foot" }, ...buttons) : null,
  );
  box.addEventListener("close", () => (box.remove(), refocus(opener)));
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}

/** @param {string} title @param {string} text @param {string} yes @param {boolean} [danger] @returns {Promise<boolean>} */
export function confirmed(title, text, yes, danger = false) {
  return new Promise((resolve) => {
    let answer = false;
    const go = el("button", { type: "button", class: danger ? "danger filled" : "primary", onclick: () => ((answer = true), box.close()) }, yes);
    const no = el("button", { type: "button", onclick: () => box.close() }, t("dialog.cancel"));
    const box = dialog(title, [el("p", {}, text)], [no, go]);
    (danger ? no : go).focus();
    box.addEventListener("close", () => resolve(answer));
  });
}

/** @param {string} name @param {...(Node | string)} values */
const row = (name, ...values) => el("div", {}, el("dt", {}, name), el("dd", {}, ...values));

/**
 * What a fragment holds, for people. @param {Fragment} fragment
 * @param {boolean} [whole] else shortened
 */
export function contents(fragment, whole = true) {
  if (fragment.type === "image" && fragment.data) {
    const alt = t("chat.pictureAlt", { file: fragment.metadata.file ?? "" });
    return el("span", { class: "thumb" }, picture(fragment.data, fragment.mediaType, alt));
  }
  const text = whole ? fragment.content : short(fragment.content, 140);
  const pin = fragment.type === "location" ? icon("pin") : null;
  return el("span", { class: "text" }, pin, text);
}

/**
 * The source of a memory: what it is, where it comes from, why it was recalled.
 * @param {{fragment: Fragment | null, companions: Fragment[]}} found
 * @param {{hit?: Hit, sessionId: string, forget: (fragment: Fragment) => void}} options
 */
export function source({ fragment, companions }, { hit, sessionId, forget }) {
  if (!fragment) {
    dialog(t("dialog.source"), [el("p", {}, t("dialog.gone"))], []);
    return;
  }
  /** @type {HTMLElement[]} */
  const body = [el("blockquote", {}, contents(fragment))];
  for (const other of companions) {
    body.push(el("p", { class: "soft" }, t("dialog.together")), el("blockquote", {}, contents(other)));
  }
  if (fragment.intents.some((intent) => intent.key !== null)) {
    body.push(el("h3", {}, t("dialog.facts")));
    const facts = fragment.intents.filter((intent) => intent.key !== null);
    body.push(
      el("dl", { class: "details" }, ...facts.map((intent) =>
        row(label(intent, language()), `${value(intent, language())} · ${t("detail.confidence", { n: intent.confidence })}`),
      )),
    );
  }
  if (hit) body.push(el("h3", {}, t("dialog.why")), reasons(hit));
  body.push(el("h3", {}, t("dialog.source")), details(fragment, sessionId));
  const buttons = [
    el("button", { type: "button", class: "danger", onclick: () => (box.close(), forget(fragment)) }, icon("trash"), t("data.forget")),
  ];
  const box = dialog(t("dialog.source"), body, buttons, "wide");
}

/** @param {Hit} hit */
function reasons({ why, tier, cite }) {
  const n = (/** @type {number} */ x) => x.toFixed(2);
  const formula = t("recall.formula", { weight: n(why.weight), relevance: n(why.relevance), strength: n(why.strength), score: n(why.score) });
  return el(
    "div",
    {},
    el("p", {}, el("span", { class: `tier ${tier}` }, tier), ` ${t(`recall.${tier}`)} · ${formula}`),
    el("p", { class: "soft cite" }, cite),
    el("details", {}, el("summary", {}, t("dialog.all")), el("pre", { tabindex: "0" }, JSON.stringify(why, null, 2))),
  );
}

/** @param {Fragment} fragment @param {string} sessionId */
function details(fragment, sessionId) {
  const here = fragment.sessionId === sessionId;
  return el(
    "dl",
    { class: "details" },
    row(t("detail.said"), time(fragment.happenedAt)),
    row(t("detail.stored"), time(fragment.storedAt)),
    row(t("detail.by"), fragment.speaker ? `${fragment.speaker} (${fragment.role})` : fragment.role),
    row(t("detail.session"), here ? t("detail.thisSession") : fragment.sessionId),
    row(t("detail.type"), fragment.mediaType ?? fragment.type),
    row(t("detail.scope"), fragment.scope),
    row(t("detail.code"), String(fragment.memoryType)),
    row(t("detail.recalled"), t("detail.times", { n: fragment.accessCount })),
    row(t("detail.id"), el("code", {}, fragment.id)),
  );
}

/** Ask for a place: the device's, or one that is typed. @returns {Promise<Place | null>} */
export function place() {
  return new Promise((resolve) => {
    /** @type {Place | null} */
    let answer = null;
    /** @type {number | undefined} */
    let accuracy;
    const input = (/** @type {string} */ id, /** @type {string} */ words, /** @type {Record<string, any>} */ props) =>
      el("label", { for: id }, words, el("input", { id, autocomplete: "off", ...props }));
    const said = el("p", { class: "soft", role: "status" });
    const wrong = el("p", { class: "wrong", role: "alert", id: "place-wrong" });
    const here = el("button", { type: "button", onclick: () => locate() }, icon("pin"), t("place.here"));
    const form = el(
      "form",
      { class: "place", id: "place-form", novalidate: true },
      here,
      said,
      el("div", { class: "pair" }, input("place-lat", t("place.lat"), { inputmode: "decimal", required: true, placeholder: "31.2304" }), input("place-lng", t("place.lng"), { inputmode: "decimal", required: true, placeholder: "121.4737" })),
      input("place-name", t("place.name"), { maxlength: 120 }),
      wrong,
    );
    const share = el("button", { type: "submit", form: "place-form", class: "primary" }, t("place.share"));
    const box = dialog(t("place.title"), [form], [el("button", { type: "button", onclick: () => box.close() }, t("dialog.cancel")), share]);
    const [lat, lng, name] = ["place-lat", "place-lng", "place-name"].map((id) => /** @type {HTMLInputElement} */ (byId(id)));

    function locate() {
      if (!navigator.geolocation) {
        said.textContent = t("place.cannot");
        return;
      }
      said.textContent = t("place.asking");
      navigator.geolocation.getCurrentPosition(
        ({ coords }) => {
          said.textContent = "";
          lat.value = String(Number(coords.latitude.toFixed(6)));
          lng.value = String(Number(coords.longitude.toFixed(6)));
          accuracy = coords.accuracy;
          name.focus();
        },
        (error) => {
          said.textContent = t(error.code === error.PERMISSION_DENIED ? "place.denied" : "place.failed");
          lat.focus();
        },
        { timeout: 10_000, maximumAge: 60_000 },
      );
    }
    for (const field of [lat, lng]) field.addEventListener("input", () => (accuracy = undefined));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [north, east] = [lat, lng].map((field) => (field.value.trim() ? Number(field.value.replace(",", ".")) : NaN));
      const bad = !(Math.abs(north) <= 90) ? lat : !(Math.abs(east) <= 180) ? lng : null;
      for (const field of [lat, lng]) field.setAttribute("aria-invalid", String(field === bad));
      if (bad) {
        bad.setAttribute("aria-describedby", "place-wrong");
        fill(wrong, t("place.invalid"));
        bad.focus();
        return;
      }
      const named = name.value.trim();
      answer = { lat: north, lng: east, ...(accuracy === undefined ? {} : { accuracy }), ...(named ? { label: named } : {}) };
      box.close();
    });
    box.addEventListener("close", () => resolve(answer));
    here.focus();
  });
}
