"""The closed set of errors, each with a stable `code`, the same in Python and JavaScript.

A message says what happened and what to do; it never holds remembered content.
`details` carries data fields for programs (limits, names of options, stages).
"""

from typing import Any, ClassVar


class PyMemoryError(Exception):
    """Base of every error this package raises on purpose; catch it and look at `code`."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, **details: Any) -> None:
        """Keep the message and the data fields that explain it."""
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details

    def to_dict(self) -> dict[str, Any]:
        """Return the form that crosses the worker boundary: code, message, details."""
        return {"code": self.code, "message": self.message, "details": self.details}


class InvalidArgument(PyMemoryError, ValueError):
    """A value or an option is not what the verb takes; nothing was written."""

    code = "invalid_argument"


class UserRequired(PyMemoryError, ValueError):
    """The verb works on one user's memory and was not told whose."""

    code = "user_required"


class NotFound(PyMemoryError, LookupError):
    """The id names nothing that this user has."""

    code = "not_found"


class EmptySelector(PyMemoryError, ValueError):
    """A selector that would match everything was refused; pass `all=True` to mean it."""

    code = "empty_selector"


class TooLarge(PyMemoryError, ValueError):
    """A value is over its size limit (a setting); nothing was written."""

    code = "too_large"


class Unsupported(PyMemoryError):
    """This build, engine or platform cannot do what was asked."""

    code = "unsupported"


class UnsupportedFormat(PyMemoryError):
    """A file or an image has a format or version that this code does not know."""

    code = "unsupported_format"


class SchemaNewer(PyMemoryError):
    """The database was written by a newer version; it is left untouched."""

    code = "schema_newer"


class ImportInvalid(PyMemoryError):
    """An imported file is damaged or contradicts itself; it was refused whole."""

    code = "import_invalid"


class CorruptImage(PyMemoryError):
    """The stored image fails its checks; its bytes are untouched and can be exported."""

    code = "corrupt_image"


class QuotaExceeded(PyMemoryError):
    """The browser or the disk has no room; the write was not made."""

    code = "quota_exceeded"


class StorageLost(PyMemoryError):
    """The connection to the storage is gone and could not be opened again."""

    code = "storage_lost"


class StorageBlocked(PyMemoryError):
    """The storage could not be opened in a bounded time because something else holds it."""

    code = "storage_blocked"


class Outdated(PyMemoryError):
    """A newer version of this code has the storage; reload the page."""

    code = "outdated"


class AlreadyOpen(PyMemoryError):
    """Another tab, page or process owns this memory."""

    code = "already_open"


class OwnerLost(PyMemoryError):
    """The owner of the memory went away, or another one took over, before the call was answered."""

    code = "owner_lost"


class InsecureContext(PyMemoryError):
    """The page is not a secure context (https or localhost), so locks and crypto are missing."""

    code = "insecure_context"


class BootFailed(PyMemoryError):
    """The runtime did not start; `details` has stage, url and hint."""

    code = "boot_failed"


class Timeout(PyMemoryError, TimeoutError):
    """The call was not answered in time; a write may still happen."""

    code = "timeout"


class Aborted(PyMemoryError):
    """The call was cancelled by its caller, or its transaction was aborted; nothing was written."""

    code = "aborted"


class Closed(PyMemoryError):
    """The memory or the session is closed."""

    code = "closed"


class ReadOnly(PyMemoryError):
    """The database can only be read."""

    code = "read_only"


class WrongPassphrase(PyMemoryError):
    """The passphrase does not open this memory."""

    code = "wrong_passphrase"


class PermissionDenied(PyMemoryError):
    """The row belongs to another user, or no grant covers it."""

    code = "permission_denied"


class RateLimited(PyMemoryError):
    """Too many calls in a short time; wait and repeat."""

    code = "rate_limited"


class Internal(PyMemoryError):
    """A fault in this package; please report it with the code and the details."""

    code = "internal"


BY_CODE: dict[str, type[PyMemoryError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        UserRequired,
        NotFound,
        EmptySelector,
        TooLarge,
        Unsupported,
        UnsupportedFormat,
        SchemaNewer,
        ImportInvalid,
        CorruptImage,
        QuotaExceeded,
        StorageLost,
        StorageBlocked,
        Outdated,
        AlreadyOpen,
        OwnerLost,
        InsecureContext,
        BootFailed,
        Timeout,
        Aborted,
        Closed,
        ReadOnly,
        WrongPassphrase,
        PermissionDenied,
        RateLimited,
        Internal,
    )
}


def from_code(code: str, message: str, details: dict[str, Any] | None = None) -> PyMemoryError:
    """Build the error of a code, as it arrived from the other side of a boundary."""
    return BY_CODE.get(code, Internal)(message, **(details or {}))
