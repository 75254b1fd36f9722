// @ts-check
/**
 * Python with the package, and faults of IndexedDB on request: `faults` is what the coming transactions
 * that write will meet, set from Python as js.faults.
 */
import { loadPyodide } from "/py-memory/runtime/pyodide.mjs";
import "/py-memory/sealing.js";

// Without faults, as pages have it.
const plain = location.search === "?plain";

const faults = {
  /** Milliseconds by which `complete` is heard later. */
  delay: 0,
  /** Names of faults, one for each coming commit: see below. @type {string[]} */
  commits: [],
  /** Coming calls of transaction() that throw InvalidStateError. */
  invalid: 0,
  /** Coming calls of indexedDB.open() that throw UnknownError. */
  unopenable: 0,
  opened: 0,
  /** @type {IDBDatabase | undefined} */
  last: undefined,
};
Object.assign(globalThis, { faults });

const LOST = () => new DOMException("Connection to Indexed Database server lost. Refresh the page", "UnknownError");

/** @param {IDBTransaction} transaction @param {DOMException | null} error */
function pretend(transaction, error) {
  Object.defineProperty(transaction, "error", { get: () => error });
}

// Firefox does not undo a committed transaction in which a request fails, so the engine does not commit there.
// The faults are put where it commits: here it believes it may, and the transaction ends by itself.
const whole = !navigator.userAgent.includes("Firefox");
const { commit } = IDBTransaction.prototype;
if (!plain)
IDBTransaction.prototype.commit = function () {
  const fault = this.mode === "readwrite" ? faults.commits.shift() : undefined;
  if (fault === "quota") pretend(this, new DOMException("full", "QuotaExceededError"));
  if (fault === "lost before") pretend(this, LOST());
  if (fault === "throws") throw new DOMException("The database connection is closing.", "InvalidStateError");
  if (fault === "lost after") {
    // Kept by the store, but the page is told that the connection broke.
    pretend(this, LOST());
    const { oncomplete, onabort } = this;
    this.oncomplete = null;
    this.addEventListener("complete", () => onabort?.call(this, /** @type {any} */ ({ target: this, type: "abort" })));
    void oncomplete;
  } else if (fault && fault !== "none") {
    this.abort();
    return;
  }
  if (faults.delay) {
    const heard = this.oncomplete;
    const late = faults.delay;
    this.oncomplete = (event) =>
      setTimeout(() => heard?.call(this, /** @type {any} */ ({ target: event.target, type: event.type })), late);
  }
  if (whole) commit.call(this);
};

const { transaction } = IDBDatabase.prototype;
IDBDatabase.prototype.transaction = function (...args) {
  faults.last = this;
  if (faults.invalid > 0) {
    faults.invalid -= 1;
    throw new DOMException("The database connection is closing.", "InvalidStateError");
  }
  return transaction.apply(this, args);
};

const { open } = IDBFactory.prototype;
IDBFactory.prototype.open = function (...args) {
  faults.opened += 1;
  if (faults.unopenable > 0) {
    faults.unopenable -= 1;
    throw new DOMException("Internal error opening backing store for indexedDB.open.", "UnknownError");
  }
  return open.apply(this, args);
};

const ready = (async () => {
  const lockFileContents = await (await fetch("/py-memory/runtime/pyodide-lock.json")).text();
  const pyodide = await loadPyodide({
    indexURL: new URL("/py-memory/runtime/", location.href).href,
    packageBaseUrl: new URL("/py-memory/runtime/", location.href).href,
    lockFileContents,
  });
  pyodide._module.enable_pyproxy_allocation_tracing();
  Object.assign(globalThis, { livingProxies: () => pyodide._module.pyproxy_alloc_map.size });
  pyodide.unpackArchive(await (await fetch("/sources.zip")).arrayBuffer(), "zip", {
    extractDir: "/home/pyodide",
  });
  return pyodide;
})();

addEventListener("message", async ({ data: { id, code } }) => {
  try {
    const pyodide = await ready;
    const value = await pyodide.runPythonAsync(code);
    if (value instanceof pyodide.ffi.PyProxy) value.destroy();
    postMessage({ id, value: value === undefined || value instanceof pyodide.ffi.PyProxy ? null : value });
  } catch (error) {
    postMessage({ id, error: String(error instanceof Error ? error.message : error) });
  }
});
