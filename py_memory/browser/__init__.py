"""The memory inside a browser page: the same verbs, awaited, kept in IndexedDB.

For a page with its own Pyodide: `memory = await open_memory("agent_memory")`.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from py_memory.memory import Memory
from py_memory.session import Session

if TYPE_CHECKING:
    from py_memory.browser.owner import Owner

__all__ = ["AsyncMemory", "AsyncSession", "export_raw", "open_memory", "recover"]

MEMORY_VERBS = (
    "search",
    "find",
    "timeline",
    "forget",
    "restore",
    "trash",
    "export_json",
    "import_json",
    "export_image",
    "import_image",
    "metrics",
    "check",
)
READINGS = (
    "search",
    "find",
    "timeline",
    "trash",
    "export_json",
    "export_image",
    "metrics",
    "check",
    "recall",
)
SESSION_VERBS = ("remember", "remember_many", "recall", "end")


async def open_memory(name: str, **options: Any) -> "AsyncMemory":
    """Open the memory of a name in this browser, making it if there is none.

    Options: settings, clock, time_zone, durability (`strict` or `relaxed`), passphrase (which needs
    web/sealing.js to be imported before, where Python runs), fallback (`memory`: where the browser
    refuses storage, a memory that ends with the page; `storage` says so).
    With `existing=True` nothing is made where nothing is stored.

    Raises:
        AlreadyOpen: Another page owns the name.
        WrongPassphrase: The stored image is sealed, and not with this passphrase.
        StorageBlocked: The browser refuses storage (cause `refused`) and there is no fallback.
        StorageLost: With `existing`, the stored memory has vanished.
        CorruptImage: The stored image is damaged; `export_raw` still gives its bytes.
    """
    from py_memory.browser.owner import Owner

    return AsyncMemory(await Owner.open(name, **options))


async def export_raw(name: str, *, passphrase: str | None = None) -> bytes:
    """Return the stored bytes of a memory unchecked, even when it cannot be opened.

    Sealed pages are opened with the passphrase; those that do not open are zeros.
    """
    from py_memory.browser.raw import raw_image

    return await raw_image(name, passphrase)


async def recover(
    name: str, *, replace: bool = False, passphrase: str | None = None
) -> tuple[bytes, dict[str, Any]]:
    """Read what can be read of a stored memory that does not open; return it as a file, and a report.

    With `replace` the stored image is replaced by it, in one transaction; export the raw bytes first.

    Raises:
        AlreadyOpen: With `replace`: a page has the memory open.
        NotFound: Nothing is stored under the name.
        CorruptImage: Nothing of a memory can be found in what is stored.
    """
    from py_memory.browser.rescuing import recovered

    return await recovered(name, replace=replace, passphrase=passphrase)


class AsyncSession:
    """`Session` with its verbs awaited; each returns when what it wrote is durable."""

    def __init__(self, owner: "Owner", session: Session) -> None:
        """Stand on an open memory's session; use `AsyncMemory.start_session`."""
        self._owner = owner
        self._session = session

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def user_id(self) -> str:
        """Whose session it is."""
        return self._session.user_id

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]: ...

    def _bind(self, name: str) -> Callable[[Memory], Any]:
        return lambda _: getattr(self._session, name)


class AsyncMemory:
    """`Memory` with its verbs awaited; each returns when what it wrote is durable."""

    def __init__(self, owner: "Owner") -> None:
        """Stand on an owner; use `open_memory`."""
        self._owner = owner

    @property
    def storage(self) -> dict[str, Any]:
        """Where the memory is kept: mode, persisted, usage, quota, generation."""
        return self._owner.storage()

    async def start_session(self, user_id: str | None = None, **options: Any) -> AsyncSession:
        """Start a session of a user, or resume the one under `session_id`."""
        session = await self._owner.run(lambda memory: memory.start_session(user_id, **options))
        return AsyncSession(self._owner, session)

    async def change_passphrase(self, *, passphrase: str, new_passphrase: str) -> None:
        """Store the memory's key under another passphrase; what is remembered stays as it is sealed.

        Raises:
            WrongPassphrase: The present one is another.
            Unsupported: The memory has no passphrase.
        """
        await self._owner.change_passphrase(passphrase, new_passphrase)

    async def persist(self) -> dict[str, Any]:
        """Ask the browser to keep the storage, which only a page can, and return the storage's state."""
        return await self._owner.persist()

    async def close(self) -> None:
        """Let go of the memory; twice does nothing."""
        await self._owner.close()

    async def __aenter__(self) -> Self:
        """Return itself, to be closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]: ...

    def _bind(self, name: str) -> Callable[[Memory], Any]:
        return lambda memory: getattr(memory, name)


def _awaited(original: Callable[..., Any], name: str) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def verb(self: Any, *args: Any, **options: Any) -> Any:
        bound = self._bind(name)
        return await self._owner.run(lambda memory: bound(memory)(*args, **options), reads=name in READINGS)

    return verb


for _name in MEMORY_VERBS:
    setattr(AsyncMemory, _name, _awaited(getattr(Memory, _name), _name))
for _name in SESSION_VERBS:
    setattr(AsyncSession, _name, _awaited(getattr(Session, _name), _name))
