// @ts-check
/** Your data: export, download, import, clear, and the browser's promise to keep it. */
import { USER } from "./agent.js";
import { byId, el, size } from "./dom.js";
import { confirmed } from "./dialogs.js";
import { attempt, done } from "./notices.js";
import { dismissed, exported } from "./reminder.js";
import { t } from "./strings.js";

/**
 * @typedef {import("../memory.js").Memory} Memory
 * @typedef {import("../memory.js").ImportReport} ImportReport
 * @typedef {{memory: Memory, agent: import("./agent.js").Agent, changed: () => Promise<void>, cleared: () => Promise<void>, taken: () => Promise<void>}} Page
 *   `changed` shows the memory anew, `cleared` when nothing is left of it; `taken` does so after everything was replaced
 */

const BUTTONS = ["keep", "reminder-export", "export-json", "export-image", "import", "clear"];

/** @param {boolean} on */
export function enable(on) {
  for (const id of BUTTONS) /** @type {HTMLButtonElement} */ (byId(id)).disabled = !on;
}

/** @param {Page} page */
export function connect(page) {
  const { memory, agent } = page;
  const chooser = /** @type {HTMLInputElement} */ (byId("import-file"));
  byId("keep").onclick = () => void attempt(() => keep(page));
  for (const id of ["export-json", "reminder-export"])
    byId(id).onclick = () => void give(() => memory.exportJSON({ userId: USER }), "json");
  byId("export-image").onclick = () => void give(() => memory.exportImage(), "db");
  byId("reminder-later").onclick = dismissed;
  byId("import").onclick = () => chooser.click();
  chooser.onchange = () => {
    const [file] = chooser.files ?? [];
    chooser.value = "";
    if (file) void attempt(() => take(file, page));
  };
  byId("clear").onclick = () =>
    void attempt(async () => {
      const { count } = await memory.forget({ userId: USER, all: true, preview: true });
      if (!(await confirmed(t("data.clearTitle"), t("data.clearText", { count }), t("data.clearYes"), true))) return;
      const gone = await agent.clear();
      await page.cleared();
      done(t("data.cleared", { count: gone.count }), () => void back(gone.ids, page));
    });
  enable(true);
}

/** @param {string[]} ids @param {Page} page */
export function back(ids, page) {
  return attempt(async () => {
    await page.agent.restore(ids);
    await page.changed();
    done(t("data.undone"));
  });
}

/** @param {Page} page */
async function keep({ memory, changed }) {
  const answer = byId("keep-answer");
  if (!navigator.storage?.persist) {
    answer.textContent = t("storage.cannot");
    return;
  }
  const { persisted } = await memory.persist();
  answer.textContent = t(persisted ? "storage.granted" : "storage.refused");
  await changed();
}

/** @param {() => Promise<Blob>} take @param {string} ending */
function give(take, ending) {
  return attempt(async () => {
    // What is said while it is made may not be in it.
    const began = Date.now();
    save(await take(), `py-memory-${stamp()}.${ending}`);
    exported(began);
  });
}

/** @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  done(t("data.exported", { file: name, size: size(blob.size) }));
}

function stamp() {
  return new Date().toISOString().slice(0, 16).replace(/[-:]/g, "").replace("T", "-");
}

/** @param {File} file @param {Page} page */
async function take(file, page) {
  const head = new TextDecoder("latin1").decode(await file.slice(0, 15).arrayBuffer());
  await (head === "SQLite format 3" ? takeImage(file, page) : takeJSON(file, page));
}

/** @param {File} file @param {Page} page */
async function takeJSON(file, { memory, changed }) {
  // The file may come from another page where this person had another id.
  const preview = await memory.importJSON(file, { owner: USER, dryRun: true });
  const text = t("data.importJSONText", { file: file.name, counts: counts(preview) });
  if (!(await confirmed(t("data.importJSON"), text, t("data.importYes")))) return;
  const report = await memory.importJSON(file, { owner: USER });
  await changed();
  done(t("data.imported", { file: file.name, counts: counts(report) }));
}

/** @param {File} file @param {Page} page */
async function takeImage(file, { memory, taken }) {
  const text = t("data.importImageText", { file: file.name });
  if (!(await confirmed(t("data.importImage"), text, t("data.replaceYes"), true))) return;
  const before = await memory.exportImage();
  await memory.importImage(file);
  await taken();
  const undo = () =>
    void attempt(async () => {
      await memory.importImage(before);
      await taken();
      done(t("data.undone"));
    });
  done(t("data.replaced", { file: file.name }), undo);
}

/** @param {ImportReport} report */
function counts({ fragments, sessions }) {
  const parts = [];
  if (fragments.added) parts.push(t("data.count.fragments", { n: fragments.added }));
  if (sessions.added) parts.push(t("data.count.sessions", { n: sessions.added }));
  return parts.join(t("list.and")) || t("data.count.none");
}
