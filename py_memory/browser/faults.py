"""What IndexedDB's errors mean, as errors of the closed set."""

from typing import Any

from py_memory.errors import (
    Aborted,
    Outdated,
    OwnerLost,
    PyMemoryError,
    QuotaExceeded,
    StorageBlocked,
    StorageLost,
)

REFUSED = "refused"
_LOST_NAMES = frozenset(("InvalidStateError", "UnknownError", "TransactionInactiveError"))
_LOST_TEXTS = ("Indexed Database server lost", "connection is clos", "backing store")


def name_of(error: Any) -> str:
    """Return the name of a DOMException or of Pyodide's wrapping of one; empty without an error."""
    inner = getattr(error, "js_error", error)
    return str(getattr(inner, "name", "") or "") if inner else ""


def means_lost(error: Any) -> bool:
    """Whether an error says that the connection is gone rather than that a value was refused."""
    inner = getattr(error, "js_error", error)
    text = str(getattr(inner, "message", "") or "") if inner else ""
    return name_of(error) in _LOST_NAMES or any(part in text for part in _LOST_TEXTS)


def quota(usage: int | None, limit: int | None) -> QuotaExceeded:
    """The browser has no room."""
    return QuotaExceeded(
        "The browser's storage for this site is full; the write was not made. Free some room on the"
        " device, or forget and erase what is no longer needed, and repeat.",
        usage=usage,
        quota=limit,
    )


def lost(cause: str = "") -> StorageLost:
    """The connection is gone."""
    return StorageLost(
        "The connection to the browser's storage was lost. Repeat; if that does not help, reload the"
        " page or restart the browser.",
        cause=cause,
    )


def vanished() -> StorageLost:
    """The database under a live page was deleted."""
    return StorageLost(
        "The stored memory has vanished: the site's data was cleared, or another page deleted it. What"
        " this page still holds can be exported; open the memory again to start a new one.",
        cause="vanished",
    )


def outdated() -> Outdated:
    """A newer version of this code has taken the storage over."""
    return Outdated("A newer version of py-memory uses this memory's storage: reload the page.")


def taken_over() -> OwnerLost:
    """Another owner raised the epoch."""
    return OwnerLost("Another page took this memory over: close it here and open it again.")


def aborted(name: str) -> Aborted:
    """The transaction was aborted and nothing of it kept."""
    return Aborted("The browser's storage aborted the write; nothing was written. Repeat it.", cause=name)


def blocked(why: str) -> StorageBlocked:
    """The storage cannot be opened, or does not answer, in a bounded time."""
    return StorageBlocked(
        f"The browser's storage cannot be used now: {why}. Close other tabs of this site, or wait, and"
        " repeat."
    )


def refused(why: str) -> StorageBlocked:
    """The browser gives this page no storage at all; opening again does not mend it."""
    return StorageBlocked(
        f"The browser's storage cannot be used: {why}. Allow storage for this site or leave the private"
        " window; or open with the fallback 'memory', which keeps nothing after the page is closed.",
        cause=REFUSED,
    )


def opening(error: Any) -> PyMemoryError:
    """What a failed `indexedDB.open` means."""
    name = name_of(error)
    if name == "VersionError":
        return outdated()
    if name == "QuotaExceededError":
        return quota(None, None)
    if name in {"SecurityError", "NotAllowedError", "InvalidStateError"}:
        return refused("the browser refuses storage to this page (a private window or a setting)")
    return lost(name)
