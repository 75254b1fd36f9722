/**
 * A tab that writes until it is killed. Whatever is sent, and whatever is acknowledged, is told to the test's own
 * server, which outlives the browser: an acknowledgement that was heard there had been given.
 */
const { openMemory } = await import("/py-memory/memory.js");

const { evidence } = await (await fetch("/crashing.json")).json();
const WORDS = "harbour lamp river copper winter letter garden engine silver bridge orchard window".split(" ");

let memory;
let session;

/** @param {string} what @param {object} [about] */
const tell = (what, about = {}) => fetch(`${evidence}/${what}`, { method: "POST", body: JSON.stringify(about) });
const below = (limit) => Math.floor(Math.random() * limit);
const hash = async (bytes) =>
  Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (byte) => byte.toString(16).padStart(2, "0"))
    .join("");
const hashOf = ({ data, content }) => hash(data ?? new TextEncoder().encode(content));

const text = (start) => [start, ...Array.from({ length: 5 + below(200) }, () => WORDS[below(WORDS.length)])].join(" ");
const picture = () => crypto.getRandomValues(new Uint8Array(200 + below(below(8) ? 6000 : 40000)));

/** What one write has in it: a text, a picture, or many rows. @param {string} write */
function made(write) {
  const die = below(10);
  const rows = die < 3 ? 2 + below(40) : 1;
  return Array.from({ length: rows }, (_, row) => {
    const metadata = { write, row, of: rows };
    if (die > 7) return { content: picture(), mediaType: "image/png", metadata };
    return { content: text(`${write} row ${row}`), metadata };
  });
}

/** Write once. @param {string} write names it */
async function once(write) {
  const items = made(write);
  const bytes = ({ content }) => (typeof content === "string" ? new TextEncoder().encode(content) : content);
  const hashes = await Promise.all(items.map((item) => hash(bytes(item))));
  await tell("sent", { write, hashes });
  const [{ content, ...options }] = items;
  await (items.length === 1 ? session.remember(content, options) : session.rememberMany(items));
  void tell("acked", { write });
}

/** Write for ever. @param {string} writer */
async function writing(writer) {
  try {
    for (let number = 0; ; number += 1) await once(`${writer}.${number}`);
  } catch ({ code, message }) {
    void tell("failed", { code, message });
  }
}

window.crashing = {
  async open() {
    const start = performance.now();
    memory = await openMemory({ name: "crashing" });
    session = await memory.startSession({ userId: "u", sessionId: "s" });
    return performance.now() - start;
  },

  /** Everything there is: which write, which row of how many, the hash of its content. */
  async read() {
    const found = [];
    let cursor;
    do {
      const page = await memory.timeline({ userId: "u", limit: 500, order: "oldest", ...(cursor ? { cursor } : {}) });
      const hashes = await Promise.all(page.map(hashOf));
      page.forEach(({ metadata }, i) => found.push([metadata.write, metadata.row, metadata.of, hashes[i]]));
      cursor = page.cursor;
    } while (cursor);
    return { found, problems: (await memory.check()).problems };
  },

  /** @param {string} write */
  once: (write) => once(write),

  /** @param {string} writer @param {number} lanes so many writes are under way at any time */
  write(writer, lanes) {
    for (let lane = 0; lane < lanes; lane += 1) void writing(`${writer}.${lane}`);
  },

  /** From now on the owner's worker counts its phases. */
  go: () => new BroadcastChannel("crashing").postMessage("go"),

  /** Replace everything by what it was before some more writes; then write on. @param {string} writer */
  async replace(writer) {
    try {
      const image = await memory.exportImage();
      for (let number = 0; number < 5; number += 1) await once(`${writer}.before.${number}`);
      await tell("importing");
      await memory.importImage(image);
      await tell("imported");
      for (let lane = 0; lane < 3; lane += 1) void writing(`${writer}.after.${lane}`);
    } catch ({ code, message }) {
      void tell("failed", { code, message });
    }
  },

  close: () => memory.close(),
};
