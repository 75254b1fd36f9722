// @ts-check
/**
 * Seals and opens the records of a memory with a passphrase.
 *
 * Importing this module puts `pyMemorySealing` on the global scope, where Python finds it
 * (py_memory/browser/sealing.py): Python has no cryptography of its own.
 *
 * A sealed record is a header in the clear (number u32, generation u64, little-endian), a nonce of 96 random
 * bits, and AES-GCM's ciphertext with its tag. What it is, the id of the store and the header are authenticated
 * with it, so that no record can stand in another's place.
 */
import { gcm, newKey, openKey, rewrap } from "./passphrase.js";

const HEADER = 12;
const NONCE = 12;
const TAG = 16;
const OVERHEAD = HEADER + NONCE + TAG;

/** What a record is: a page, a part of the list of generations, the record about the image. */
const KINDS = Object.freeze({ page: 1, generations: 2, image: 3 });

/** Seals and opens the records of one store. */
class Sealer {
  #key;
  #store;

  /** @param {CryptoKey} key @param {Uint8Array<ArrayBuffer>} store */
  constructor(key, store) {
    this.#key = key;
    this.#store = store;
  }

  /**
   * Seal all that one transaction puts. Each record comes with its header before it; a page's own record begins
   * with the same fields and stays whole.
   * @param {Uint8Array<ArrayBuffer>[]} portions of page records, one after the other
   * @param {number} size of a page record
   * @param {Uint8Array<ArrayBuffer>[]} chunks of the list of generations
   * @param {Uint8Array<ArrayBuffer>} image
   */
  async seal(portions, size, chunks, image) {
    const records = [];
    for (const portion of portions) {
      for (let at = 0; at < portion.length; at += size) records.push(portion.subarray(at, at + size));
    }
    const beside = [
      ...chunks.map((chunk) => this.#sealed(KINDS.generations, chunk, HEADER)),
      this.#sealed(KINDS.image, image, HEADER),
    ];
    const pages = await Promise.all(records.map((record) => this.#sealed(KINDS.page, record, 0)));
    const keys = [...chunks.map((chunk) => `generations:${numberOf(chunk)}`), "image"];
    return {
      pages: new Map(pages.map((page) => [numberOf(page), page])),
      beside: new Map((await Promise.all(beside)).map((record, i) => [keys[i], record])),
    };
  }

  /**
   * Open the records that should be the pages of these numbers and generations; a page that fails is zeros.
   * @param {number[]} numbers
   * @param {unknown[]} records
   * @param {Uint8Array | undefined} generations u64 each; without them any is taken
   * @param {number} size of a page record
   * @returns {Promise<{whole: Uint8Array, kind: string | undefined, number: number}>} with what was wrong first
   */
  async openPages(numbers, records, generations, size) {
    const whole = new Uint8Array(records.length * size);
    const wanted = generations && view(generations);
    const faults = await Promise.all(
      records.map(async (record, i) => {
        if (!(record instanceof Uint8Array) || record.length !== size + OVERHEAD) return "record";
        const number = numberOf(record);
        if (number !== numbers[i]) return number > numbers[i] ? "hole" : "number";
        if (wanted && generationOf(record) !== wanted.getBigUint64(i * 8, true)) return "generation";
        const page = await this.#opened(KINDS.page, record);
        if (!page) return "seal";
        whole.set(page, i * size);
        return undefined;
      }),
    );
    const first = faults.findIndex((fault) => fault !== undefined);
    return { whole, kind: faults[first], number: first < 0 ? 0 : numbers[first] };
  }

  /**
   * Open other records; undefined for one that fails. The header stands before what it held.
   * @param {"generations" | "image"} kind
   * @param {unknown[]} records
   */
  async openRecords(kind, records) {
    return await Promise.all(
      records.map(async (record) => {
        if (!(record instanceof Uint8Array) || record.length < OVERHEAD) return undefined;
        const body = await this.#opened(KINDS[kind], record);
        return body && joined(record.subarray(0, HEADER), body);
      }),
    );
  }

  /** @param {number} kind @param {Uint8Array<ArrayBuffer>} record @param {number} from where what is sealed begins */
  async #sealed(kind, record, from) {
    const body = record.subarray(from);
    const sealed = new Uint8Array(body.length + OVERHEAD);
    sealed.set(record.subarray(0, HEADER));
    // Never a counter: an image that was put back would make it count the same again.
    const iv = crypto.getRandomValues(sealed.subarray(HEADER, HEADER + NONCE));
    const bound = this.#bound(kind, record);
    sealed.set(new Uint8Array(await crypto.subtle.encrypt(gcm(iv, bound), this.#key, body)), HEADER + NONCE);
    return sealed;
  }

  /** @param {number} kind @param {Uint8Array} record */
  async #opened(kind, record) {
    const own = /** @type {Uint8Array<ArrayBuffer>} */ (record);
    const iv = own.subarray(HEADER, HEADER + NONCE);
    try {
      const body = own.subarray(HEADER + NONCE);
      return new Uint8Array(await crypto.subtle.decrypt(gcm(iv, this.#bound(kind, own)), this.#key, body));
    } catch {
      return undefined;
    }
  }

  /** What is authenticated beside the ciphertext. @param {number} kind @param {Uint8Array} record */
  #bound(kind, record) {
    return joined(Uint8Array.of(kind), this.#store, record.subarray(0, HEADER));
  }
}

/** @param {string} passphrase */
async function create(passphrase) {
  const { record, key, store } = await newKey(passphrase);
  return { record, sealer: new Sealer(key, store) };
}

/** @param {unknown} record @param {string} passphrase */
async function unlock(record, passphrase) {
  const { key, store } = await openKey(record, passphrase);
  return new Sealer(key, store);
}

Object.assign(globalThis, { pyMemorySealing: Object.freeze({ create, unlock, rewrap }) });

/** @param {Uint8Array} record */
function view(record) {
  return new DataView(record.buffer, record.byteOffset, record.byteLength);
}

/** @param {Uint8Array} record */
function numberOf(record) {
  return view(record).getUint32(0, true);
}

/** @param {Uint8Array} record */
function generationOf(record) {
  return view(record).getBigUint64(4, true);
}

/** @param {Uint8Array[]} parts */
function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
