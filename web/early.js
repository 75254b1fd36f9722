// @ts-check
/**
 * Reads the stored image while Python still starts: the browser answers from another process, so that opening
 * waits for it less, or not at all.
 *
 * What is read here counts only if, once Python owns the memory, the record about the image is still the same
 * to the letter: every write changes it.
 */

import { databaseName } from "./protocol.js";

/** Records are asked for in the same portions as the engine asks for them. */
const BATCH = 1024;
/** Bytes of a page's record: 16 before the page. */
const RECORD = 16 + 4096;
/** An image of more pages (128 MiB) is read by the engine alone, portion by portion. */
const MOST = 32_768;

/**
 * @typedef {{meta: string | Uint8Array, batches: (Uint8Array | unknown[])[]}} Early
 */

/**
 * @param {string} name
 * @returns {Promise<Early | null>} null where nothing is stored, or where it could not be read: then the engine says why
 */
export async function readEarly(name) {
  /** @type {IDBDatabase | undefined} */
  let database;
  try {
    const opening = indexedDB.open(databaseName(name), 1);
    // A database that is not there is not for us to make.
    opening.onupgradeneeded = () => opening.transaction?.abort();
    database = await answer(opening);
    const mine = database;
    mine.onversionchange = () => mine.close();
    const transaction = mine.transaction(["meta", "pages"]);
    const meta = await answer(transaction.objectStore("meta").get("image"));
    // A sealed record begins with the number of pages, in the clear.
    const count = typeof meta === "string" ? JSON.parse(meta).page_count : new DataView(meta.buffer).getUint32(0, true);
    if (!(count <= MOST)) return null;
    const asked = [];
    for (let first = 1; first <= count; first += BATCH) {
      const range = IDBKeyRange.bound(first, Math.min(first + BATCH - 1, count));
      asked.push(answer(transaction.objectStore("pages").getAll(range)).then(joined));
    }
    return { meta, batches: await Promise.all(asked) };
  } catch {
    return null;
  } finally {
    database?.close();
  }
}

/**
 * A portion in one piece, which Python takes over at once; as it is if a record has not the size of a page's, as
 * sealed ones have not.
 * @param {unknown[]} records
 */
function joined(records) {
  if (!records.every((record) => record instanceof Uint8Array && record.length === RECORD)) return records;
  const whole = new Uint8Array(records.length * RECORD);
  records.forEach((record, i) => whole.set(/** @type {Uint8Array} */ (record), i * RECORD));
  return whole;
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function answer(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
