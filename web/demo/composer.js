// @ts-check
/** The message box: text, pictures (chosen, dropped or pasted), a place. */
import { byId, el, fill, icon } from "./dom.js";
import { place as askPlace } from "./dialogs.js";
import { refused } from "./notices.js";
import { t } from "./strings.js";

/**
 * @typedef {import("./agent.js").Message} Message
 * @typedef {import("./agent.js").Picture} Picture
 */

const LARGEST = 20_000_000;
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export class Composer {
  /** @type {Picture[]} */
  #pictures = [];
  #box = /** @type {HTMLTextAreaElement} */ (byId("message"));
  #busy = true;

  /** @param {(message: Message) => void} send */
  constructor(send) {
    this.send = send;
    const form = byId("composer");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.#box.addEventListener("input", () => this.#grow());
    this.#box.addEventListener("keydown", (event) => {
      // While an input method composes, Enter belongs to it.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.submit();
    });
    this.#box.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      void this.attach(files);
    });
    const chooser = /** @type {HTMLInputElement} */ (byId("picture"));
    byId("attach").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      void this.attach([...(chooser.files ?? [])]);
      chooser.value = "";
    });
    byId("share-place").addEventListener("click", () => void this.#place());
    this.#dropping(byId("chat"));
    this.busy(true);
  }

  /** @param {boolean} busy nothing can be sent; typing goes on */
  busy(busy) {
    this.#busy = busy;
    for (const id of ["send", "share-place"]) /** @type {HTMLButtonElement} */ (byId(id)).disabled = busy;
    for (const one of byId("tries").querySelectorAll("button")) one.disabled = busy;
  }

  /** Put a message back that could not be sent. @param {Message} message */
  putBack({ text, pictures = [] }) {
    if (!this.#box.value) this.#box.value = text;
    this.#pictures = [...pictures, ...this.#pictures];
    this.#previews();
    this.#grow();
  }

  focus() {
    this.#box.focus();
  }

  /** The suggestions above the box. */
  tries() {
    const keys = ["try.1", "try.2", "try.3", "try.4", "try.5", "try.6"];
    fill(
      byId("tries"),
      ...keys.map((key) =>
        el("button", { type: "button", class: "try", disabled: this.#busy, onclick: () => (this.send({ text: t(key) }), this.focus()) }, t(key)),
      ),
    );
  }

  /** @param {File[]} files */
  async attach(files) {
    for (const file of files) {
      if (!TYPES.includes(file.type)) {
        refused(t("chat.notPicture"));
        continue;
      }
      if (file.size > LARGEST) {
        refused(t("chat.pictureLarge"));
        continue;
      }
      try {
        const bitmap = await createImageBitmap(file);
        const { width, height } = bitmap;
        bitmap.close();
        const bytes = new Uint8Array(await file.arrayBuffer());
        this.#pictures.push({ name: file.name || "picture", bytes, type: file.type, width, height });
      } catch {
        refused(t("chat.notPicture"));
      }
    }
    this.#previews();
    this.focus();
  }

  submit() {
    const text = this.#box.value.trim();
    if (this.#busy || (!text && !this.#pictures.length)) return;
    const message = { text, ...(this.#pictures.length ? { pictures: this.#pictures } : {}) };
    this.#pictures = [];
    this.#box.value = "";
    this.#previews();
    this.#grow();
    this.send(message);
  }

  async #place() {
    const place = await askPlace();
    if (place) this.send({ text: "", place });
  }

  #grow() {
    this.#box.style.height = "auto";
    this.#box.style.height = `${Math.min(160, this.#box.scrollHeight)}px`;
  }

  #previews() {
    const box = byId("attached");
    box.hidden = !this.#pictures.length;
    fill(
      box,
      ...this.#pictures.map((picture) => {
        const label = t("chat.remove", { file: picture.name });
        const remove = () => {
          this.#pictures = this.#pictures.filter((one) => one !== picture);
          this.#previews();
          this.focus();
        };
        return el("span", { class: "preview" }, preview(picture), el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: remove }, icon("close")));
      }),
    );
  }

  /** @param {HTMLElement} area */
  #dropping(area) {
    const isFile = (/** @type {DragEvent} */ event) => Boolean(event.dataTransfer?.types.includes("Files"));
    area.addEventListener("dragover", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      area.dataset.drop = t("chat.dropHere");
    });
    area.addEventListener("dragleave", (event) => {
      if (!area.contains(/** @type {Node | null} */ (event.relatedTarget))) delete area.dataset.drop;
    });
    area.addEventListener("drop", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      delete area.dataset.drop;
      void this.attach([...(event.dataTransfer?.files ?? [])]);
    });
  }
}

/** @param {Picture} picture */
export function preview({ name, bytes, type }) {
  const url = URL.createObjectURL(new Blob([/** @type {any} */ (bytes)], { type }));
  const image = el("img", { alt: t("chat.pictureAlt", { file: name }) });
  image.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
  image.src = url;
  return el("span", { class: "thumb" }, image);
}
