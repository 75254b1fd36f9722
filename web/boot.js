// @ts-check
/**
 * Start Python in this worker from our own files, checked before they are used.
 *
 * Left to itself, Pyodide never settles when the wasm file is missing or refused, and its loadPackage resolves
 * without our package when the wheel is damaged. Here every file is fetched once, its status, type and hash are
 * checked against manifest.json, and Pyodide is handed the checked bytes; every fault ends in a BootError.
 */
import { BootError, bootError, textOf } from "./errors.js";

/**
 * @typedef {{sha256: string, bytes: number}} Listed
 * @typedef {{response: Promise<Response>, checked: Promise<ArrayBuffer>}} Streamed
 * @typedef {{module: Promise<any>, checked: Promise<void>}} Script
 * @typedef {(stage: string, detail?: Record<string, unknown>) => void} Report
 * @typedef {(method: string, args: string, binary: ArrayBuffer[], client: string, number: number, answered: number) => Promise<unknown>} Dispatch
 * @typedef {{pyimport(name: string): {dispatch: Dispatch}, globals: unknown}} Pyodide
 * @typedef {{writeFile(path: string, bytes: Uint8Array): void}} FileSystem
 * @typedef {{dispatch: Dispatch, failed: () => boolean}} Engine
 */

const WHEEL_HOME = "/lib/py_memory.whl";
const WASM = "runtime/pyodide.asm.wasm";
const STDLIB = "runtime/python_stdlib.zip";
const LOCK = "runtime/pyodide-lock.json";
const WHEEL = /^runtime\/.*\.whl$/;
const SCRIPTS = ["runtime/pyodide.mjs", "runtime/pyodide.asm.mjs"];
const NEEDED = [WASM, STDLIB, LOCK, ...SCRIPTS];

const COPY = "Copy the whole py-memory folder as it was built, and check 'assetBase'.";
const AGAIN = "The right one has been fetched now: call openMemory again.";
const FALLBACK =
  "The server or a service worker answers unknown addresses with a page: check 'assetBase' and that the file is there.";

/**
 * @param {string} base absolute URL of the folder with our files, with a slash at the end
 * @param {Report} report
 * @returns {Promise<Engine>}
 */
export async function boot(base, report) {
  report("assets");
  refuseWithoutWasm();
  const assets = new Assets(base, report);
  const { signal, fail } = failure();
  const [loader, factory] = SCRIPTS.map((path) => assets.script(path));
  const wasm = assets.streamed(WASM);
  const files = [STDLIB, LOCK].map((path) => assets.file(path));
  const wheel = assets.wheel().then((path) => assets.file(path));
  const checks = Promise.all([loader.checked, factory.checked, wasm.checked, wheel, ...files]);
  checks.catch(fail);
  // Python starts as soon as what it needs next is there; nothing is handed out before all is checked.
  return await Promise.race([
    signal,
    handingOut(assets, wasm, fail, async () => {
      const [{ loadPyodide }] = await Promise.all([loader.module, factory.module]);
      report("runtime");
      try {
        return await startPython(loadPyodide, assets, report);
      } finally {
        // A file that is not what was built says more than what it led to.
        await checks;
      }
    }),
  ]);
}

/** A promise that only ever rejects, and the function that rejects it. */
function failure() {
  /** @type {(error: unknown) => void} */
  let fail = () => {};
  const signal = /** @type {Promise<never>} */ (new Promise((_, reject) => void (fail = reject)));
  return { signal, fail };
}

/**
 * @param {(options: object) => Promise<Pyodide>} loadPyodide
 * @param {Assets} assets
 * @param {Report} report
 * @returns {Promise<Engine>}
 */
async function startPython(loadPyodide, assets, report) {
  // What Python says while it starts explains a failure; what it says later could hold what is remembered
  // and is dropped.
  const said = /** @type {string[]} */ ([]);
  let listening = true;
  const listen = (/** @type {string} */ line) => void (listening && said.push(line));
  try {
    const pyodide = await loadPyodide({
      indexURL: assets.url("runtime/"),
      lockFileContents: assets.file(LOCK).then((bytes) => new TextDecoder().decode(bytes)),
      // The wheel goes on the path as it is: unpacking it with Pyodide's loadPackage takes 0.1 s of Python
      // more, and says nothing when it fails.
      packageBaseUrl: assets.url("runtime/"),
      env: { PYTHONPATH: WHEEL_HOME },
      fsInit: async (/** @type {FileSystem} */ files) => {
        files.writeFile(WHEEL_HOME, new Uint8Array(await assets.file(await assets.wheel())));
      },
      stdout: listen,
      stderr: listen,
    });
    report("python");
    const { dispatch } = pyodide.pyimport("py_memory.browser.worker");
    return { dispatch, failed: () => hasFailed(pyodide) };
  } catch (cause) {
    if (cause instanceof BootError) throw cause;
    const reason = [textOf(cause), ...said].join("\n");
    throw bootError("python", assets.url(await assets.wheel()), "Python did not start", COPY, reason);
  } finally {
    listening = false;
  }
}

/** After a fatal error of the runtime whatever is asked of it throws. @param {Pyodide} pyodide */
function hasFailed(pyodide) {
  try {
    return !pyodide.globals;
  } catch {
    return true;
  }
}

/** Without leave to compile, Pyodide waits for ever: the smallest module tells beforehand. */
function refuseWithoutWasm() {
  try {
    new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  } catch (cause) {
    const hint =
      "Add 'wasm-unsafe-eval' to script-src in the Content-Security-Policy that is sent with worker.js; " +
      "where the browser forbids WebAssembly (a lockdown mode) there is no way.";
    throw bootError("runtime", location.href, "WebAssembly may not be compiled here", hint, cause);
  }
}

/** Our files: each fetched once and compared with the list before it is used. */
class Assets {
  #fetch = fetch.bind(globalThis);
  /** @type {Map<string, Promise<ArrayBuffer>>} */
  #files = new Map();
  /** @type {Promise<Record<string, Listed>> | undefined} */
  #list;
  #loaded = 0;
  #total = 0;
  #reported = 0;

  /** @param {string} base @param {Report} report */
  constructor(base, report) {
    this.base = base;
    this.report = report;
  }

  /** @param {string} path */
  url(path) {
    return new URL(path, this.base).href;
  }

  /** The files with hash and size; always asked for anew, so that it fits what is served now. */
  listed() {
    this.#list ??= this.#fetched("manifest.json", "no-cache").then((bytes) => {
      try {
        /** @type {Record<string, Listed>} */
        const files = JSON.parse(new TextDecoder().decode(bytes)).files;
        const needed = Object.keys(files).filter((path) => NEEDED.includes(path) || WHEEL.test(path));
        this.#total = needed.reduce((sum, path) => sum + files[path].bytes, bytes.byteLength);
        return files;
      } catch (cause) {
        throw bootError("assets", this.url("manifest.json"), "the list of files is not JSON", FALLBACK, cause);
      }
    });
    return this.#list;
  }

  /** The path of the wheel that the runtime loads. */
  async wheel() {
    const wheel = Object.keys(await this.listed()).find((path) => WHEEL.test(path));
    if (wheel) return wheel;
    throw bootError("assets", this.url("manifest.json"), "the list of files names no wheel", COPY);
  }

  /**
   * A file as it comes in, so that the browser compiles it while the rest is on its way; its hash is checked
   * beside that. What turns out wrong cannot be exchanged any more: then the next opening finds the right one.
   * @param {string} path
   * @returns {Streamed}
   */
  streamed(path) {
    const split = this.#answer(path, "default").then((response) => {
      if (!response.body) return { response: response.clone(), rest: response };
      const [mine, theirs] = response.body.tee();
      const headers = { "content-type": response.headers.get("content-type") ?? "" };
      return { response: new Response(theirs, { headers }), rest: new Response(mine) };
    });
    const checked = split.then(async ({ rest }) => {
      const bytes = await this.#whole(path, rest);
      if (await this.#fits(path, bytes)) return bytes;
      await this.#checked(path, "reload");
      throw bootError("assets", this.url(path), "the browser's cache held another version", AGAIN);
    });
    this.#files.set(path, checked);
    return { response: split.then(({ response }) => response), checked };
  }

  /** The checked bytes of a file. @param {string} path */
  file(path) {
    const known = this.#files.get(path) ?? this.#checked(path, "default");
    this.#files.set(path, known);
    return known;
  }

  /**
   * @param {string} path
   * @param {RequestCache} cache
   * @returns {Promise<ArrayBuffer>}
   */
  async #checked(path, cache) {
    const bytes = await this.#fetched(path, cache);
    if (await this.#fits(path, bytes)) return bytes;
    // A cache may still hold the file of the version before: ask the server itself, once.
    if (cache !== "reload") return await this.#checked(path, "reload");
    const start = new TextDecoder().decode(bytes.slice(0, 64)).trimStart();
    const page = start.startsWith("<");
    throw bootError(
      "assets",
      this.url(path),
      page ? "the server sent a page of HTML in its place" : "its content is not what was built (wrong sha256)",
      page ? FALLBACK : `${COPY} Something may also alter or cut it on its way.`,
    );
  }

  /**
   * Import a module script, and compare what the import left in the HTTP cache with the list.
   * @param {string} path
   * @returns {Script}
   */
  script(path) {
    const url = this.url(path);
    const module = import(/* @vite-ignore */ /* webpackIgnore: true */ url).catch(async (cause) => {
      await this.file(path);
      const hint = "Reload the page; if it stays, check script-src in the Content-Security-Policy.";
      throw bootError("runtime", url, "the script could not be run", hint, cause);
    });
    const checked = module.then(async () => {
      if (await this.#fits(path, await this.#fetched(path, "force-cache"))) return;
      await this.#checked(path, "reload");
      throw bootError("assets", url, "the browser's cache held another version", AGAIN);
    });
    return { module, checked };
  }

  /**
   * @param {string} path
   * @param {RequestCache} cache
   * @returns {Promise<ArrayBuffer>}
   */
  async #fetched(path, cache) {
    return await this.#whole(path, await this.#answer(path, cache));
  }

  /**
   * The server's answer, if it is of the right kind.
   * @param {string} path
   * @param {RequestCache} cache
   */
  async #answer(path, cache) {
    const url = this.url(path);
    try {
      const response = await this.#fetch(url, { cache });
      /** @param {string} what @param {string} hint */
      const refused = (what, hint) => bootError("assets", url, what, hint);
      if (!response.ok) throw refused(`the server answered ${response.status}`, COPY);
      refuseType(path, response.headers.get("content-type") ?? "", refused);
      return response;
    } catch (cause) {
      throw this.#unfetched(path, cause);
    }
  }

  /** All of an answer. @param {string} path @param {Response} response */
  async #whole(path, response) {
    try {
      return await this.#read(response);
    } catch (cause) {
      throw this.#unfetched(path, cause);
    }
  }

  /** @param {string} path @param {unknown} cause */
  #unfetched(path, cause) {
    if (cause instanceof BootError) return cause;
    const what = navigator.onLine ? "it could not be fetched" : "the browser is offline";
    const hint = "Check the connection and connect-src, then call openMemory again.";
    return bootError("assets", this.url(path), what, hint, cause);
  }

  /** @param {string} path @param {ArrayBuffer} bytes */
  async #fits(path, bytes) {
    const expected = (await this.listed())[path];
    if (!expected) {
      const url = this.url("manifest.json");
      throw bootError("assets", url, `the list of files does not name ${path}`, COPY);
    }
    return hex(await crypto.subtle.digest("SHA-256", bytes)) === expected.sha256;
  }

  /** Read a body, telling how far it has come. @param {Response} response */
  async #read(response) {
    if (!response.body) return await response.arrayBuffer();
    const parts = [];
    const reader = response.body.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      parts.push(next.value);
      this.#loaded += next.value.length;
      if (performance.now() - this.#reported > 50) {
        this.#reported = performance.now();
        this.report("assets", { loaded: this.#loaded, ...(this.#total ? { total: this.#total } : {}) });
      }
    }
    // A Blob would do the same by way of another process.
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole.buffer;
  }
}

/**
 * @param {string} path
 * @param {string} type
 * @param {(what: string, hint: string) => BootError} refused
 */
function refuseType(path, type, refused) {
  if (type.startsWith("text/html")) throw refused("the server sent a page of HTML in its place", FALLBACK);
  const wanted = path.endsWith(".wasm") ? /^application\/wasm/ : path.endsWith(".mjs") ? /javascript/ : null;
  if (wanted && !wanted.test(type)) {
    const right = path.endsWith(".wasm") ? "application/wasm" : "text/javascript";
    throw refused(`the server sent it as '${type}'`, `Let the server send it as '${right}'.`);
  }
}

/** @param {ArrayBuffer} bytes */
function hex(bytes) {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Run `start` while fetch() hands out checked files, and while console.warn() is listened to: that is all that
 * Pyodide does when it cannot make use of the wasm file. This worker is ours alone, so nobody else's functions
 * are touched; both are put back afterwards.
 * @template T
 * @param {Assets} assets
 * @param {Streamed} wasm
 * @param {(error: unknown) => void} fail
 * @param {() => Promise<T>} start
 * @returns {Promise<T>}
 */
async function handingOut(assets, wasm, fail, start) {
  const { fetch } = globalThis;
  const { warn } = console;
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const path = url.slice(assets.base.length);
    if (!url.startsWith(assets.base) || (path !== WASM && path !== STDLIB)) {
      return await fetch(input, init);
    }
    if (path === WASM) return await wasm.response;
    return new Response(await assets.file(path), { headers: { "content-type": "application/zip" } });
  };
  console.warn = (...said) => {
    const cause = said.find((one) => one instanceof Error);
    if (!cause) return;
    const hint = `${COPY} A device that is short of memory can be the cause, too.`;
    const refused = bootError("runtime", assets.url(WASM), "WebAssembly did not take the file", hint, cause);
    // A file that is not what was built says more than that it could not be used.
    wasm.checked.then(() => fail(refused), fail);
  };
  try {
    return await start();
  } finally {
    globalThis.fetch = fetch;
    console.warn = warn;
  }
}
