// @ts-check
/** The closed set of errors, with the same codes as in Python; docs/errors.md says what to do about each. */

/** Every code an error of this library can have. */
export const CODES = Object.freeze(
  /** @type {const} */ ([
    "invalid_argument",
    "user_required",
    "not_found",
    "empty_selector",
    "too_large",
    "unsupported",
    "unsupported_format",
    "schema_newer",
    "import_invalid",
    "corrupt_image",
    "quota_exceeded",
    "storage_lost",
    "storage_blocked",
    "outdated",
    "already_open",
    "owner_lost",
    "insecure_context",
    "boot_failed",
    "timeout",
    "aborted",
    "closed",
    "read_only",
    "wrong_passphrase",
    "permission_denied",
    "rate_limited",
    "internal",
  ]),
);

/** @typedef {(typeof CODES)[number]} Code */

/** Base of every error of this library: look at `code`; `details` holds data fields for programs. */
export class PyMemoryError extends Error {
  /**
   * @param {Code} code
   * @param {string} message what happened and what to do; never remembered content
   * @param {Record<string, unknown>} [details]
   */
  constructor(code, message, details = {}) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    this.details = details;
  }
}

/** The runtime did not start: `details` says at which stage, for which URL, and what to do. */
export class BootError extends PyMemoryError {
  /**
   * @param {string} message
   * @param {{stage: string, url: string | null, hint: string, reason?: string}} details
   */
  constructor(message, details) {
    super("boot_failed", message, details);
  }
}

/**
 * @param {string} stage
 * @param {string | URL | null} url
 * @param {string} what what happened, as the beginning of a sentence
 * @param {string} hint what to do, as a sentence
 * @param {unknown} [cause] whatever was thrown; only its text is kept
 */
export function bootError(stage, url, what, hint, cause) {
  const where = url === null ? null : String(url);
  const message = `The memory could not start (${stage}): ${what}${where ? ` [${where}]` : ""}. ${hint}`;
  const reason = cause === undefined ? {} : { reason: textOf(cause) };
  return new BootError(message, { stage, url: where, hint, ...reason });
}

/** Whatever was thrown, as one of ours; a foreign one's text is left out, for it may quote what is remembered. @param {unknown} thrown */
export function errorOf(thrown) {
  if (thrown instanceof PyMemoryError) return thrown;
  return new PyMemoryError("internal", "A fault in py-memory; please report it.");
}

/**
 * Give the text of anything that can be thrown; Pyodide rejects with plain objects too.
 * @param {unknown} thrown
 */
export function textOf(thrown) {
  const fields = /** @type {{name?: unknown, message?: unknown} | null} */ (
    typeof thrown === "object" ? thrown : null
  );
  const text = fields?.message ? `${fields.name ?? "Error"}: ${fields.message}` : String(thrown);
  return text.slice(0, 2000);
}
