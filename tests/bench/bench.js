// @ts-check
/** What the benchmark runs in the page; times are milliseconds of the page's clock. */
import { openMemory } from "/py-memory/memory.js";

const PAGE_BYTES = 4096 + 16;
const BATCH = 1024;

/** A repeatable stream of numbers in 0..1. @param {number} seed */
function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Made-up words, the nth as common as the nth of a language is (Zipf). */
const WORDS = (() => {
  const next = numbers(7);
  const syllables = "ka lo mi ten sar vel on pra der is ul bo fen ti ma rok lin du wes har".split(" ");
  const words = new Set();
  while (words.size < 8_000) {
    const parts = Array.from({ length: 1 + Math.floor(next() * 3) }, () => syllables[Math.floor(next() * syllables.length)]);
    words.add(parts.join("") + (words.size % 7 === 0 ? "s" : ""));
  }
  return [...words];
})();
/** @type {number[]} */
const REACH = [];
WORDS.forEach((_, i) => REACH.push((REACH[i - 1] ?? 0) + 1 / (i + 8)));

/** @param {() => number} next */
function word(next) {
  const wanted = next() * REACH[REACH.length - 1];
  let low = 0;
  let high = REACH.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (REACH[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return WORDS[low];
}

/** @param {number} count @param {number} seed */
export function texts(count, seed) {
  const next = numbers(seed);
  return Array.from({ length: count }, (_, i) => {
    const words = Array.from({ length: 16 }, () => word(next));
    return `${words.join(" ")} ${mark(seed, i)}`;
  });
}

/** The word that only the nth text of a seed has. @param {number} seed @param {number} i */
export function mark(seed, i) {
  return `n${(seed * 1_000_003 + i).toString(36)}q`;
}

/** @param {number[]} values @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** @param {() => Promise<unknown>} work */
async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const answered = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @param {string} name @param {string[]} stores */
function database(name, stores) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => stores.forEach((store) => request.result.createObjectStore(store));
  return answered(request);
}

/** One strict transaction that puts so many pages and a small record beside them. @param {IDBDatabase} db @param {number} pages */
function rawPut(db, pages) {
  return new Promise((resolve, reject) => {
    const tx = db.transaction(["pages", "meta"], "readwrite", { durability: "strict" });
    for (let i = 0; i < pages; i++) {
      tx.objectStore("pages").put(crypto.getRandomValues(new Uint8Array(PAGE_BYTES)), i * 7);
    }
    tx.objectStore("meta").put("x".repeat(200), "image");
    tx.oncomplete = resolve;
    tx.onabort = () => reject(tx.error);
    tx.commit();
  });
}

/** How many page records carry a generation. @param {IDBDatabase} db @param {number} generation */
async function pagesOf(db, generation) {
  const store = db.transaction("pages").objectStore("pages");
  let found = 0;
  for (const record of await answered(store.getAll())) {
    const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
    if (Number(view.getBigUint64(4, true)) === generation) found += 1;
  }
  return found;
}

/** @param {string} name @param {number} upTo @param {number} seed @param {object} [options] */
async function fill(name, upTo, seed, options) {
  const memory = await openMemory({ name, ...options });
  const session = await memory.startSession({ userId: "u", sessionId: "s" });
  const { fragments } = await memory.metrics({ userId: "u" });
  const missing = texts(upTo - fragments, seed);
  const took = [];
  for (let i = 0; i < missing.length; i += 10_000) {
    const items = missing.slice(i, i + 10_000).map((content) => ({ content, speaker: i % 2 ? "Ann" : "Bo" }));
    took.push([items.length, await timed(() => session.rememberMany(items))]);
  }
  return { memory, session, took };
}

/** Durable writes at a size, with a raw put of as many pages after each. @param {{size: number, rounds: number}} job */
export async function writes({ size, rounds }) {
  const { memory, session, took } = await fill("bench", size, size);
  const own = await database("py-memory:bench", []);
  const raw = await database("bench-raw", ["pages", "meta"]);
  const sample = texts(rounds + 30, size + 1);
  const pages = [];
  for (const text of sample.splice(0, 30)) {
    await session.remember(text);
    if (pages.length < 9) pages.push(await pagesOf(own, memory.storage.generation));
  }
  const typical = quantile(pages, 0.5);
  const ours = [];
  const raws = [];
  for (const text of sample) {
    ours.push(await timed(() => session.remember(text)));
    raws.push(await timed(() => rawPut(raw, typical)));
  }
  const image = new Uint8Array(await (await memory.exportImage()).arrayBuffer());
  const whole = [];
  for (let i = 0; i < 7; i++) {
    whole.push(
      await timed(
        () =>
          new Promise((resolve, reject) => {
            const tx = raw.transaction("pages", "readwrite", { durability: "strict" });
            tx.objectStore("pages").put(image, "whole");
            tx.oncomplete = resolve;
            tx.onabort = () => reject(tx.error);
          }),
      ),
    );
  }
  own.close();
  raw.close();
  await memory.close();
  await answered(indexedDB.deleteDatabase("bench-raw"));
  return { size, pages: typical, ours, raws, whole, took, imageBytes: image.byteLength };
}

/** Bulk: so many fragments in one durable call, into an empty memory. @param {{count: number}} job */
export async function bulk({ count }) {
  const name = `bulk-${crypto.randomUUID()}`;
  const memory = await openMemory({ name });
  const session = await memory.startSession({ userId: "u" });
  const items = texts(count, 5).map((content) => ({ content, speaker: "Ann" }));
  const ms = await timed(() => session.rememberMany(items));
  await memory.close();
  await answered(indexedDB.deleteDatabase(`py-memory:${name}`));
  return { count, ms };
}

/** Recall of ten hits at the size that is there. @param {{rounds: number}} job */
export async function recalls({ rounds }) {
  const memory = await openMemory({ name: "bench" });
  const session = await memory.startSession({ userId: "u", sessionId: "asking" });
  const next = numbers(3);
  const times = [];
  for (let i = 0; i < rounds; i++) {
    const words = Array.from({ length: 5 }, () => word(next));
    times.push(await timed(() => session.recall(words.join(" "), { limit: 10, touch: false })));
  }
  const { fragments } = await memory.metrics();
  await memory.close();
  return { fragments, times };
}

/** From nothing to one correct hit. @param {{size: number}} job */
export async function boot({ size }) {
  const query = mark(size, 17);
  const start = performance.now();
  const stages = [];
  const memory = await openMemory({ name: "bench", onProgress: (stage) => stages.push([stage, performance.now() - start]) });
  const [hit] = await memory.search({ userId: "u", query, limit: 1, touch: false });
  const ms = performance.now() - start;
  const correct = hit?.fragment.content.includes(query) ?? false;
  await memory.close();
  return { ms, correct, stages };
}

/** What a page without us would do first. */
export async function stock() {
  const start = performance.now();
  const worker = new Worker("/bench/stock-worker.js", { type: "module" });
  await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data === "ready" ? resolve(data) : reject(new Error(data)));
    worker.onerror = (event) => reject(new Error(event.message));
  });
  const ms = performance.now() - start;
  worker.terminate();
  return { ms };
}

/** What a passphrase costs: the same done plain and sealed, in turns. @param {{size: number, rounds: number, count: number}} job */
export async function sealing({ size, rounds, count }) {
  const kinds = [{}, { passphrase: "a passphrase of the bench" }];
  const filled = [];
  for (const options of kinds) filled.push(await fill(`sealing-${filled.length}`, size, size, options));
  const single = kinds.map(() => /** @type {number[]} */ ([]));
  for (const text of texts(rounds + 10, size + 2)) {
    for (const [i, { session }] of filled.entries()) single[i].push(await timed(() => session.remember(text)));
  }
  for (const { memory } of filled) await memory.close();
  const bulk = kinds.map(() => /** @type {number[]} */ ([]));
  const items = texts(count, 5).map((content) => ({ content, speaker: "Ann" }));
  for (let round = 0; round < 3; round++) {
    for (const [i, options] of kinds.entries()) {
      const name = `bulk-${crypto.randomUUID()}`;
      const memory = await openMemory({ name, ...options });
      const session = await memory.startSession({ userId: "u" });
      bulk[i].push(await timed(() => session.rememberMany(items)));
      await memory.close();
      await answered(indexedDB.deleteDatabase(`py-memory:${name}`));
    }
  }
  return { single: single.map((times) => times.slice(10)), bulk };
}

/** From nothing to an open memory, plain and sealed. @param {{size: number, rounds: number}} job */
export async function unsealing({ size, rounds }) {
  const kinds = [{}, { passphrase: "a passphrase of the bench" }];
  for (const [i, options] of kinds.entries()) await (await fill(`opened-${i}`, size, 78, options)).memory.close();
  const times = kinds.map(() => /** @type {number[]} */ ([]));
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    for (const [i, options] of kinds.entries()) {
      const start = performance.now();
      const found = await opening({ name: `opened-${i}`, options });
      times[i].push(found.began + found.ours - start);
      if (i === 0) bytes = found.bytes;
    }
  }
  return { bytes, times };
}

/** Opening an image, beside a bare read of its records. @param {{name: string, options?: object}} job */
export async function opening({ name, options }) {
  let began = 0;
  const memory = await openMemory({
    name,
    ...options,
    onProgress: (stage) => {
      if (stage === "image") began = performance.now();
    },
  });
  const ours = performance.now() - began;
  await memory.close();
  const start = performance.now();
  const db = await database(`py-memory:${name}`, []);
  const store = db.transaction("pages").objectStore("pages");
  const count = await answered(store.count());
  const ranges = [];
  for (let at = 1; at <= count; at += BATCH) {
    ranges.push(answered(store.getAll(IDBKeyRange.bound(at, at + BATCH - 1))));
  }
  let bytes = 0;
  for (const records of await Promise.all(ranges)) for (const record of records) bytes += record.byteLength;
  const bare = performance.now() - start;
  db.close();
  return { began, ours, bare, bytes, records: count };
}

/** @param {{name: string, size: number}} job */
export async function grown({ name, size }) {
  const { memory } = await fill(name, size, 77);
  await memory.close();
  return null;
}

/** Many single writes, for the memory they leave behind. @param {{count: number, seed: number}} job */
export async function soak({ count, seed }) {
  const scope = /** @type {any} */ (globalThis);
  scope.soaked ??= await openMemory({ name: "soak" });
  scope.soakedSession ??= await scope.soaked.startSession({ userId: "u" });
  for (const text of texts(count, seed)) await scope.soakedSession.remember(text);
  return scope.soaked.storage.generation;
}

/** What the soaked memory takes: its image, and the browser's storage. */
export async function stored() {
  const image = (await /** @type {any} */ (globalThis).soaked.exportImage()).size;
  const { usage } = await navigator.storage.estimate();
  return { image, usage };
}
