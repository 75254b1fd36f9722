// @ts-check
/** The demo page: it opens the memory, and brings conversation, memory and buttons together. */
import { Agent } from "./agent.js";
import * as chat from "./chat.js";
import { Composer, preview } from "./composer.js";
import * as data from "./data.js";
import { confirmed, source } from "./dialogs.js";
import { byId, el, fill, icon, placeIcons, size } from "./dom.js";
import { attempt, done, ended, explained, failed, quiet } from "./notices.js";
import { showCounts, showFacts, showRecall, showStorage } from "./panel.js";
import { remind } from "./reminder.js";
import { kept, keepFor, language, preferred, t, use } from "./strings.js";
import { Timeline } from "./timeline.js";

/**
 * @typedef {import("../memory.js").Memory} Memory
 * @typedef {import("../memory.js").Fragment} Fragment
 * @typedef {import("../memory.js").Hit} Hit
 * @typedef {import("./agent.js").Message} Message
 */

const LIBRARY = new URL("../py-memory/memory.js", import.meta.url).href;
const SESSION = "py-memory.demo.session";
/** Used when nothing else says which conversation goes on: its storage may be blocked. */
const FIRST_SESSION = "demo";
/** What is stored is there, but this page cannot use it: its bytes can still be had. */
const UNREADABLE = new Set(["corrupt_image", "schema_newer", "unsupported_format"]);
const STAGES = ["worker", "assets", "runtime", "python", "image"];

/** @type {Memory | null} */
let memory = null;
/** @type {Agent} */
let agent;
/** @type {Timeline} */
let timeline;
/** @type {import("./agent.js").Recalled | null} */
let recalled = null;
let cursor = /** @type {string | null} */ (null);

/** Open, and not closed since. */
let usable = false;
let sending = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let changing;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let handing;
/** Changes come in bursts: the page follows once. */
const GATHER_MS = 100;
/** A shorter takeover is not worth a word. */
const HANDOVER_MS = 1_000;

const composer = new Composer((message) => void send(message));

// ---- Opening ----

/** @param {string} stage @param {{loaded?: number, total?: number}} [detail] */
function progress(stage, detail = {}) {
  if (usable) return handover(stage);
  const at = STAGES.indexOf(stage);
  const items = STAGES.map((name, index) => {
    const state = at < 0 || index < at ? "done" : index === at ? "now" : "later";
    const share = name === "assets" && detail.loaded && index === at ? amount(detail) : "";
    return el("li", { class: state, "aria-current": state === "now" && "step" }, el("span", { class: "mark" }, state === "done" ? icon("check") : ""), t(`boot.${name}`), share && el("span", { class: "soft" }, share));
  });
  fill(byId("boot-stages"), ...items);
  const words = t(`boot.${stage}`);
  if (byId("boot-status").textContent !== words) byId("boot-status").textContent = words;
}

/** @param {{loaded?: number, total?: number}} detail */
function amount({ loaded = 0, total }) {
  return total ? t("storage.of", { usage: size(loaded), quota: size(total) }) : t("boot.loaded", { size: size(loaded) });
}

async function open() {
  usable = false;
  quiet();
  byId("boot").hidden = false;
  byId("boot").classList.remove("broken");
  byId("messages").hidden = true;
  byId("boot").querySelector(".failure")?.remove();
  progress("worker");
  try {
    const { openMemory } = /** @type {typeof import("../memory.js")} */ (await import(LIBRARY));
    memory = await openMemory({ name: "agent_memory", fallback: "memory", onProgress: progress });
    memory.on("storage", stored);
    memory.on("outdated", reload);
    stored(memory.storage);
    memory.on("change", changed);
    memory.on("closed", ({ code }) => code !== "closed" && lost(code));
    agent = new Agent(memory);
    timeline = new Timeline(memory, { open: (fragment) => openSource(fragment.id, fragment.happenedAt), forget, attempt });
    data.connect(page(memory));
    await begin(kept(SESSION));
  } catch (error) {
    broken(error);
  }
}

/** The memory could not be opened: say why in the place where it would be. @param {unknown} error */
function broken(error) {
  ready(false);
  const { advice, details } = explained(error);
  const { code = "" } = /** @type {{code?: string}} */ (error ?? {});
  const retry = el("button", { type: "button", class: "primary", id: "retry", onclick: () => void open() }, t("notice.retry"));
  byId("boot").hidden = false;
  byId("messages").hidden = true;
  byId("boot").classList.add("broken");
  const raw = UNREADABLE.has(code) && el("button", { type: "button", id: "raw", onclick: () => void attempt(takeRaw) }, t("notice.raw"));
  const rescue = code === "corrupt_image" && el("button", { type: "button", id: "rescue", onclick: () => void attempt(rescued) }, t("recover.button"));
  byId("boot").append(el("div", { class: "failure", role: "alert" }, icon("warn"), el("p", {}, advice), el("p", { class: "soft" }, details), retry, raw, rescue));
}

/** Look what can be read, show it, and replace what is stored on the person's word only. */
async function rescued() {
  const { recover } = /** @type {typeof import("../memory.js")} */ (await import(LIBRARY));
  const button = /** @type {HTMLButtonElement} */ (byId("rescue"));
  button.disabled = true;
  try {
    const { report } = await recover({ name: "agent_memory" });
    const sum = (/** @type {"rows" | "lost" | "doubtful"} */ kind) =>
      ["fragments", "intents"].reduce((total, table) => total + (report.tables[table]?.[kind] ?? 0), 0);
    const text = t("recover.text", { read: sum("rows"), lost: sum("lost"), doubtful: sum("doubtful") });
    if (!(await confirmed(t("recover.title"), text, t("recover.yes"), true))) return;
    await recover({ name: "agent_memory", replace: true });
    await open();
    done(t("recover.done"));
  } finally {
    button.disabled = false;
  }
}

async function takeRaw() {
  const { exportRaw } = /** @type {typeof import("../memory.js")} */ (await import(LIBRARY));
  data.save(await exportRaw({ name: "agent_memory" }), "agent_memory-raw.sqlite3");
}

/** @param {import("../memory.js").StorageState} storage */
function stored(storage) {
  showStorage(storage);
  byId("unkept").hidden = storage.mode !== "memory";
}

/** Another version of this page wants the memory: only a reload brings this one back. */
function reload() {
  ready(false);
  ended(t("notice.outdated"), { label: t("notice.reload"), run: () => location.reload() });
}

/** @param {string} code */
function lost(code) {
  ready(false);
  handover("ready");
  if (code === "outdated") return; // reload() has said so
  const { advice, details } = explained({ code, message: "" });
  ended(advice, { label: t("notice.reopen"), run: () => void open() }, details);
}

/** @param {boolean} on */
function ready(on) {
  usable = on;
  composer.busy(!on);
  data.enable(on);
  /** @type {HTMLButtonElement} */ (byId("new-conversation")).disabled = !on;
}

// ---- The conversation ----

/** @param {string | null} sessionId */
async function begin(sessionId) {
  keepFor(SESSION, await agent.begin(sessionId, FIRST_SESSION));
  await refresh();
  byId("boot").hidden = true;
  ready(true);
}

/** @param {Memory} memory @returns {import("./data.js").Page} */
function page(memory) {
  return { memory, agent, changed: refresh, cleared, taken };
}

async function cleared() {
  recalled = null;
  await refresh();
}

/** Everything was replaced: its newest conversation goes on here. */
async function taken() {
  recalled = null;
  const [newest] = (await memory?.timeline({ userId: "me", limit: 1, includeData: false })) ?? [];
  await begin(newest?.sessionId ?? agent.sessionId);
}

/** Show the memory as it is now. */
async function refresh() {
  await Promise.all([showConversation(), refreshPanel()]);
}

async function showConversation() {
  const page = await agent.messages();
  cursor = page.cursor;
  const greeting = page.messages.length ? "" : await agent.greeting(language());
  chat.show(page.messages, { greeting, older: cursor !== null, earlier: () => void attempt(earlier), open: openSource });
}

async function refreshPanel() {
  if (!memory) return;
  const [facts, metrics] = await Promise.all([agent.facts(), memory.metrics({ userId: "me" })]);
  showFacts(facts, openSource);
  showCounts(metrics, facts);
  showStorage(memory.storage);
  showRecall(recalled, openSource);
  await Promise.all([timeline.refresh(), remind(memory)]);
}

/** Something was written, in this tab or in another one. */
function changed() {
  clearTimeout(changing);
  changing = setTimeout(() => usable && !sending && void attempt(follow), GATHER_MS);
}

async function follow() {
  const page = await agent.messages();
  if (sending || !usable) return;
  if (!chat.follow(page.messages, openSource)) await showConversation();
  byId("messages").querySelector(".greeting:not(:last-child)")?.remove();
  await refreshPanel();
}

/** This tab takes the memory over from one that went away. @param {string} stage */
function handover(stage) {
  const note = byId("handover");
  if (stage === "ready") {
    clearTimeout(handing);
    handing = undefined;
    fill(note);
  } else handing ??= setTimeout(() => fill(note, t("notice.handover")), HANDOVER_MS);
}

async function earlier() {
  const page = await agent.messages(cursor);
  cursor = page.cursor;
  chat.prepend(page.messages, cursor !== null, openSource);
}

/** @param {Message} message */
async function send(message) {
  quiet();
  composer.busy(true);
  sending = true;
  const bubble = chat.sending(message, (message.pictures ?? []).map(preview));
  let stop = () => {};
  let saved = false;
  try {
    const result = await agent.say(message, language(), (said) => {
      saved = true;
      bubble.saved(said);
      stop = chat.thinking();
    });
    stop();
    chat.append(result.reply, openSource);
    if (result.recalled) recalled = result.recalled;
    await refreshPanel();
  } catch (error) {
    stop();
    if (saved) {
      failed(error, () => void attempt(refresh));
    } else {
      // Not saved: nothing is shown as if it were, and the words are not lost.
      bubble.remove();
      composer.putBack(message);
      const again = message.place ? () => void send(message) : () => composer.submit();
      failed(error, again);
    }
  } finally {
    sending = false;
    if (usable) composer.busy(false);
    changed();
  }
}

async function renew() {
  keepFor(SESSION, await agent.renew());
  recalled = null;
  await refresh();
  done(t("chat.started"));
  composer.focus();
}

// ---- Sources and forgetting ----

/** @param {string} id @param {string} at @param {Hit} [hit] */
function openSource(id, at, hit) {
  void attempt(async () => {
    const found = await agent.source(id, at);
    const why = hit ?? recalled?.hits.find((one) => one.fragment.id === id);
    source(found, { ...(why ? { hit: why } : {}), sessionId: agent.sessionId, forget });
  });
}

/** @param {Fragment} fragment */
function forget(fragment) {
  void attempt(async () => {
    const gone = await agent.forget(fragment);
    dropFromRecall(gone.ids);
    await refresh();
    done(t("data.forgotten", { count: gone.count }), () => memory && void data.back(gone.ids, page(memory)));
  });
}

/** @param {string[]} ids */
function dropFromRecall(ids) {
  const hits = recalled?.hits.filter((hit) => !ids.includes(hit.fragment.id)) ?? [];
  recalled = recalled && hits.length ? { ...recalled, hits } : null;
}

// ---- The page ----

/** @param {import("./rules.js").Language} chosen @param {boolean} [keep] */
function speak(chosen, keep = false) {
  use(chosen, keep);
  for (const one of ["en", "zh"]) byId(`language-${one}`).setAttribute("aria-pressed", String(one === chosen));
  composer.tries();
}

/** @param {"chat" | "memory"} view on narrow screens, which of the two is seen */
function look(view) {
  byId("layout").dataset.view = view;
  for (const one of ["chat", "memory"]) byId(`view-${one}`).setAttribute("aria-pressed", String(one === view));
}

placeIcons();
speak(preferred());
showRecall(null, openSource);
for (const chosen of /** @type {const} */ (["en", "zh"])) {
  byId(`language-${chosen}`).onclick = () => {
    speak(chosen, true);
    if (memory && byId("boot").hidden) void attempt(refresh);
    else if (!byId("boot").classList.contains("broken")) progress("worker");
  };
}
for (const view of /** @type {const} */ (["chat", "memory"])) byId(`view-${view}`).onclick = () => look(view);
byId("new-conversation").onclick = () => void attempt(renew);
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => event.preventDefault());
void open();
