// @ts-check
/**
 * The passphrase of a memory, and the record of the key that it opens: made, checked, written anew.
 *
 * Pages use `checkPassphrase` and `rewrapped` themselves, so that a passphrase goes nowhere but to the worker of
 * the tab in which it was typed.
 *
 * The key that seals the records is random. It is stored wrapped by a key from PBKDF2 over the passphrase, so that
 * another passphrase means another record and nothing else.
 */
import { PyMemoryError } from "./errors.js";
import { databaseName } from "./protocol.js";

const VERSION = 1;
const KDF = "PBKDF2-SHA-256";
const ITERATIONS = 600_000;
/** More would hold opening up for minutes: nobody but an attacker writes that. */
const MOST_ITERATIONS = 10_000_000;
const NONCE = 12;
const TAG = 16;
const OPEN_LIMIT_MS = 10_000;

const UTF8 = new TextEncoder();

/**
 * @typedef {{version: number, kdf: string, iterations: number, salt: string, store: string, nonce: string, wrapped: string}} KeyFields
 * @typedef {{of: string, key: Promise<CryptoKey>}} Derived
 */

/** A key that was asked for ahead of its use. @type {Derived | undefined} */
let ahead;

/**
 * Make the key of a new store.
 * @param {string} passphrase
 * @returns {Promise<{record: string, key: CryptoKey, store: Uint8Array<ArrayBuffer>}>} with the store's own id
 */
export async function newKey(passphrase) {
  const raw = crypto.getRandomValues(new Uint8Array(32));
  const store = crypto.getRandomValues(new Uint8Array(16));
  const record = await wrapped(raw, base64(store), passphrase);
  return { record, key: await dataKey(raw), store };
}

/**
 * Open the key of a store.
 * @param {unknown} record
 * @param {string} passphrase
 */
export async function openKey(record, passphrase) {
  const fields = await keyFields(record);
  return { key: await dataKey(await unwrapped(fields, passphrase)), store: bytes(fields.store) };
}

/**
 * Give the record of the same key under another passphrase.
 * @param {unknown} record
 * @param {string} passphrase
 * @param {string} newPassphrase
 */
export async function rewrap(record, passphrase, newPassphrase) {
  const fields = await keyFields(record);
  const raw = await unwrapped(fields, passphrase);
  const after = await wrapped(raw, fields.store, newPassphrase);
  raw.fill(0);
  return after;
}

/**
 * Check a passphrase against the stored key of a memory, without its owner.
 * @param {string} name
 * @param {string | undefined} passphrase
 * @returns {Promise<boolean>} false where nothing is sealed under this name, so that no passphrase could be checked
 * @throws {PyMemoryError} `wrong_passphrase`, also where one is needed and none is given
 */
export async function checkPassphrase(name, passphrase) {
  if (passphrase !== undefined) checkedPassphrase(passphrase, "passphrase");
  const record = await storedKey(name);
  if (record === undefined) return false;
  if (passphrase === undefined) throw wrong();
  await openKey(record, passphrase);
  return true;
}

/**
 * Derive the key of a stored memory before it is asked for; whoever asks later waits less. What fails here fails there.
 * @param {string} name
 * @param {string} passphrase
 */
export async function derive(name, passphrase) {
  try {
    const { salt, iterations } = await keyFields(await storedKey(name));
    ahead = derived(passphrase, salt, iterations);
  } catch {
    // There is nothing to be derived yet, or it is told when it is needed.
  }
}

/**
 * Give the stored record of a memory's key, and that of the same key under another passphrase.
 * @param {string} name
 * @param {unknown} passphrase
 * @param {unknown} newPassphrase
 */
export async function rewrapped(name, passphrase, newPassphrase) {
  const old = checkedPassphrase(passphrase, "passphrase");
  const next = checkedPassphrase(newPassphrase, "newPassphrase");
  const before = await storedKey(name);
  if (before === undefined) {
    throw new PyMemoryError(
      "unsupported",
      "This memory has no passphrase that could be changed: open it with one, and it is sealed.",
    );
  }
  return { before, after: await rewrap(before, old, next) };
}

/** @param {unknown} value @param {string} option */
export function checkedPassphrase(value, option) {
  if (typeof value === "string" && value && !/\p{Surrogate}/u.test(value)) return value;
  throw new PyMemoryError("invalid_argument", `'${option}' is a text that is not empty.`, { option });
}

/** @param {Uint8Array<ArrayBuffer>} raw @param {string} store @param {string} passphrase */
async function wrapped(raw, store, passphrase) {
  const salt = base64(crypto.getRandomValues(new Uint8Array(16)));
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE));
  const fields = { version: VERSION, kdf: KDF, iterations: ITERATIONS, salt, store, nonce: base64(nonce) };
  const key = await derived(passphrase, salt, ITERATIONS).key;
  const sealed = new Uint8Array(await crypto.subtle.encrypt(gcm(nonce, boundToKey(fields)), key, raw));
  const all = { ...fields, wrapped: base64(sealed) };
  return JSON.stringify({ ...all, check: await checkOf(all) });
}

/** @param {KeyFields} fields @param {string} passphrase */
async function unwrapped(fields, passphrase) {
  const { key } = derived(passphrase, fields.salt, fields.iterations);
  const made = await key;
  try {
    const algorithm = gcm(bytes(fields.nonce), boundToKey(fields));
    return new Uint8Array(await crypto.subtle.decrypt(algorithm, made, bytes(fields.wrapped)));
  } catch {
    throw wrong();
  }
}

/** @param {{version: number, kdf: string, iterations: number, store: string}} fields */
function boundToKey({ version, kdf, iterations, store }) {
  return UTF8.encode(`py-memory key ${version} ${kdf} ${iterations} ${store}`);
}

/** @param {string} passphrase @param {string} salt @param {number} iterations @returns {Derived} */
function derived(passphrase, salt, iterations) {
  const text = passphrase.normalize("NFKC");
  const of = JSON.stringify([text, salt, iterations]);
  const known = ahead;
  ahead = undefined;
  if (known?.of === of) return known;
  const key = (async () => {
    const material = await crypto.subtle.importKey("raw", UTF8.encode(text), "PBKDF2", false, ["deriveKey"]);
    const algorithm = { name: "PBKDF2", hash: "SHA-256", salt: bytes(salt), iterations };
    return await crypto.subtle.deriveKey(algorithm, material, { name: "AES-GCM", length: 256 }, false, [
      "encrypt",
      "decrypt",
    ]);
  })();
  key.catch(() => {}); // awaited by whoever needs it
  return { of, key };
}

/** @param {Uint8Array<ArrayBuffer>} raw emptied */
async function dataKey(raw) {
  const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
  raw.fill(0);
  return key;
}

/**
 * Read the record of a key. Damage is told apart from a wrong passphrase, or one would be tried again and again.
 * @param {unknown} record
 * @returns {Promise<KeyFields>}
 */
async function keyFields(record) {
  try {
    const { check, ...fields } = JSON.parse(String(record));
    if ((await checkOf(fields)) !== check) throw damagedKey();
    if (fields.version !== VERSION) {
      throw new PyMemoryError(
        "unsupported_format",
        `This memory is sealed in format ${fields.version}; this version of py-memory knows format ${VERSION}. Nothing was changed: update py-memory.`,
        { format: fields.version, known: VERSION },
      );
    }
    const lengths = [fields.salt, fields.store, fields.nonce, fields.wrapped].map((one) => bytes(one).length);
    const sound = lengths.join() === `16,16,${NONCE},${32 + TAG}` && fields.kdf === KDF;
    if (sound && fields.iterations >= ITERATIONS && fields.iterations <= MOST_ITERATIONS) return fields;
  } catch (error) {
    if (error instanceof PyMemoryError) throw error;
  }
  throw damagedKey();
}

/** @param {object} fields */
async function checkOf(fields) {
  return base64(new Uint8Array(await crypto.subtle.digest("SHA-256", UTF8.encode(JSON.stringify(fields)))));
}

/**
 * Read the record of a memory's key; undefined where there is none.
 * @param {string} name
 * @returns {Promise<unknown>}
 */
function storedKey(name) {
  return new Promise((resolve, reject) => {
    const blocked = (/** @type {string} */ why) =>
      reject(new PyMemoryError("storage_blocked", `The browser's storage cannot be used now: ${why}. Repeat later.`));
    /** @type {IDBOpenDBRequest} */
    let request;
    try {
      request = indexedDB.open(databaseName(name));
    } catch {
      blocked("the browser refuses it to this page");
      return;
    }
    const limit = setTimeout(() => blocked("it does not answer"), OPEN_LIMIT_MS);
    const done = () => {
      clearTimeout(limit);
      request.result.close();
    };
    // A database that is not there is not for us to make.
    request.onupgradeneeded = () => request.transaction?.abort();
    request.onerror = () => {
      clearTimeout(limit);
      if (request.error?.name === "AbortError") resolve(undefined);
      else blocked("it cannot be opened");
    };
    request.onsuccess = () => {
      try {
        const asked = request.result.transaction("meta").objectStore("meta").get("key");
        asked.onsuccess = () => (done(), resolve(asked.result));
        asked.onerror = () => (done(), blocked("it cannot be read"));
      } catch {
        done(); // a database of somebody else's: nothing of ours is sealed in it
        resolve(undefined);
      }
    };
  });
}

function wrong() {
  return new PyMemoryError(
    "wrong_passphrase",
    "The passphrase does not open this memory, or it needs one and none was given. Nothing was changed: ask for it again.",
  );
}

function damagedKey() {
  return new PyMemoryError(
    "corrupt_image",
    "The stored memory is damaged: the record of its key fails its checks. Nothing was changed: restore the browser's files or import a backup.",
    { kind: "key" },
  );
}

/** @param {Uint8Array} data */
function base64(data) {
  return btoa(String.fromCharCode(...data));
}

/** @param {string} text */
function bytes(text) {
  return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
}

/** @param {Uint8Array<ArrayBuffer>} iv @param {Uint8Array<ArrayBuffer>} additionalData */
export function gcm(iv, additionalData) {
  return { name: "AES-GCM", iv, additionalData };
}
