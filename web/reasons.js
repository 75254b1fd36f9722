// @ts-check
/** Why a tab does not have the memory, or has it no longer: the errors of sharing. */
import { PyMemoryError } from "./errors.js";

/** @param {PyMemoryError} [error] what ended it, when it was not closed by its user */
export function closed(error) {
  const why = error ? { reason: error.code } : {};
  return new PyMemoryError("closed", "The memory is closed; call openMemory to open it again.", why);
}

export function alreadyOpen() {
  return new PyMemoryError(
    "already_open",
    "This memory is open in another tab or page, which does not share it: close it there, or use it there, and open it again.",
  );
}

export function plain() {
  return new PyMemoryError(
    "already_open",
    "This memory is open in another tab without a passphrase: close it there, and open it here to give it one.",
  );
}

export function heldUp() {
  return new PyMemoryError(
    "storage_blocked",
    "The browser's storage is held up by a tab that was stopped in the middle of a write; a write that was called may still happen. Close that tab, or wait; then look, and repeat.",
  );
}

export function vanished() {
  return new PyMemoryError(
    "storage_lost",
    "The stored memory has vanished: the site's data was cleared, or another page deleted it. Open the memory again to start a new one.",
    { cause: "vanished" },
  );
}

export function outdated() {
  return new PyMemoryError("outdated", "Another tab has a newer version of py-memory: reload this page.");
}
