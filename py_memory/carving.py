"""Reads rows out of the bytes of a damaged SQLite file, page by page, without SQLite.

SQLite gives up a table at its first broken page. Here every leaf page is read for itself: those that
the tree still leads to, and those that only the pointer map (which an incremental-vacuum file has)
assigns to a tree. Free pages are never read, so that what was deleted does not come back.
The format: https://www.sqlite.org/fileformat2.html
"""

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from py_memory.database import PAGE_SIZE

_MAGIC = b"SQLite format 3\x00"
_TABLE_LEAF, _TABLE_INNER, _INDEX_LEAF, _INDEX_INNER = 13, 5, 10, 2
_ROOT, _FREE, _INNER = 1, 2, 5
_ENTRY = 5
_LONGEST_WAY = 64
_KINDS = ("table", "index")


class _Broken(Exception):
    """A cell or a page makes no sense."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it is stored; `sound` is false where a page of it failed a check from outside."""

    rowid: int
    values: tuple[Any, ...]
    sound: bool


class Carver:
    """The pages of one file; `damage` counts what was met while reading, by kind.

    `missing` are numbers of pages known not to be there, `suspect` of those known to be changed.
    """

    def __init__(
        self, data: bytes | bytearray, missing: Collection[int] = (), suspect: Collection[int] = ()
    ) -> None:
        """Look at the bytes; nothing is changed."""
        self._data = memoryview(data)
        self.damage: Counter[str] = Counter()
        self._missing = frozenset(missing)
        self.suspect = frozenset(suspect)
        self.size = PAGE_SIZE
        self.has_header = bytes(self._data[:16]) == _MAGIC
        if self.has_header:
            stated = int.from_bytes(self._data[16:18], "big")
            stated = 65_536 if stated == 1 else stated
            if 512 <= stated <= 65_536 and stated & (stated - 1) == 0:
                self.size = stated
        else:
            self.damage["header"] += 1
        self.usable = self.size - (self._data[20] if self.has_header and self._data[20] < 64 else 0)
        self.count = len(self._data) // self.size
        self._measure()
        self._mapped = self.count > 1 and self._plausible_map()
        self._free = self._free_pages()
        for number in range(1, self.count + 1):
            if number not in self._free and self._is_empty(number):
                self.damage["hole"] += 1

    @property
    def schema(self) -> int | None:
        """The number in `user_version`, where the header is there."""
        return int.from_bytes(self._data[60:64], "big") if self.has_header else None

    def roots(self) -> dict[str, int]:
        """Return the root pages by the name of the table or index, as far as they can be found."""
        found: dict[str, int] = {}
        for number in range(1, self.count + 1):
            if number in self._free or number in self._missing or self._kind(number) != _TABLE_LEAF:
                continue
            for row in self._rows_of(number, quiet=True):
                if len(row.values) != _ENTRY or row.values[0] not in _KINDS:
                    continue
                name, root = row.values[1], row.values[3]
                if isinstance(name, str) and isinstance(root, int) and 1 < root <= self.count:
                    found.setdefault(name, root)
        return found

    def rows(self, root: int) -> Iterator[Row]:
        """Give the rows of a table's tree, each once, those of sound pages first."""
        yield from self._ordered(root, _TABLE_LEAF, _TABLE_INNER)

    def entries(self, root: int) -> Iterator[Row]:
        """Give the entries of an index's tree (or the rows of a table without row numbers)."""
        yield from self._ordered(root, _INDEX_LEAF, _INDEX_INNER)

    def _ordered(self, root: int, leaf: int, inner: int) -> Iterator[Row]:
        doubtful = []
        for number in self._pages_of(root, leaf, inner):
            for row in self._rows_of(number):
                if row.sound:
                    yield row
                else:
                    doubtful.append(row)
        yield from doubtful

    def _pages_of(self, root: int, leaf: int, inner: int) -> list[int]:
        """Return the pages with rows: by the tree, then those that only the pointer map assigns."""
        found: dict[int, None] = {}
        waiting = [root]
        seen: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            kind = self._kind(number) if 1 <= number <= self.count else None
            astray = number != root and self._mapped and self._home(number) not in (root, None)
            if kind not in (leaf, inner) or number in self._free or astray:
                self.damage["tree"] += 1
                continue
            if leaf in (kind, _INDEX_LEAF):
                found[number] = None
            if kind == inner:
                waiting += self._children(number)
        if self._mapped:
            for number in range(1, self.count + 1):
                if number not in seen and number not in self._free and self._home(number) == root:
                    kind = self._kind(number)
                    if kind == leaf or (kind == inner and leaf == _INDEX_LEAF):
                        found[number] = None
        return list(found)

    def _children(self, number: int) -> Iterator[int]:
        page, at = self._page(number), self._start(number)
        yield int.from_bytes(page[at + 8 : at + 12], "big")
        for cell in self._cells(number, 12):
            yield int.from_bytes(page[cell : cell + 4], "big")

    def _rows_of(self, number: int, *, quiet: bool = False) -> Iterator[Row]:
        kind = self._kind(number)
        page = self._page(number)
        for cell in self._cells(number, 12 if kind in (_TABLE_INNER, _INDEX_INNER) else 8):
            try:
                yield self._row(number, page, cell + (4 if kind == _INDEX_INNER else 0), kind == _TABLE_LEAF)
            except (_Broken, IndexError, ValueError, OverflowError):
                if not quiet:
                    self.damage["row"] += 1

    def _cells(self, number: int, header: int) -> list[int]:
        page, at = self._page(number), self._start(number)
        count = int.from_bytes(page[at + 3 : at + 5], "big")
        first = at + header
        if first + 2 * count > self.usable:
            self.damage["page"] += 1
            count = (self.usable - first) // 2
        cells = [int.from_bytes(page[first + 2 * n : first + 2 * n + 2], "big") for n in range(count)]
        return [cell for cell in cells if first <= cell < self.usable]

    def _row(self, number: int, page: memoryview, at: int, is_table: bool) -> Row:
        length, at = _varint(page, at)
        rowid = 0
        if is_table:
            rowid, at = _varint(page, at)
        if length > len(self._data):
            raise _Broken
        payload, pages = self._payload(page, at, length, is_table)
        values, repaired = _decoded(payload)
        if not is_table and values and isinstance(values[-1], int):
            rowid = values[-1]
        sound = not repaired and self.suspect.isdisjoint((number, *pages))
        return Row(rowid, values, sound)

    def _payload(self, page: memoryview, at: int, length: int, is_table: bool) -> tuple[bytes, list[int]]:
        most = self.usable - 35 if is_table else (self.usable - 12) * 64 // 255 - 23
        if length <= most:
            if at + length > self.usable:
                raise _Broken
            return bytes(page[at : at + length]), []
        least = (self.usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.usable - 4)
        local = local if local <= most else least
        parts = [bytes(page[at : at + local])]
        following = int.from_bytes(page[at + local : at + local + 4], "big")
        left = length - local
        used: list[int] = []
        while left > 0:
            if not 1 < following <= self.count or following in self._missing or following in self._free:
                raise _Broken
            used.append(following)
            if len(used) > self.count:
                raise _Broken
            more = self._page(following)
            parts.append(bytes(more[4 : 4 + min(left, self.usable - 4)]))
            left -= self.usable - 4
            following = int.from_bytes(more[:4], "big")
        if following:
            raise _Broken
        return b"".join(parts), used

    def _measure(self) -> None:
        if len(self._data) % self.size:
            self.damage["length"] += 1
        stated = int.from_bytes(self._data[28:32], "big") if self.has_header else self.count
        # The number is only meant where both counters agree.
        if self.has_header and bytes(self._data[24:28]) == bytes(self._data[92:96]):
            if self.count < stated:
                self.damage["truncated"] += stated - self.count
            elif self.count > stated:
                self.damage["extra"] += self.count - stated
                self.count = stated or self.count

    def _free_pages(self) -> set[int]:
        found: set[int] = set()
        if self._mapped:
            found |= {n for n in range(3, self.count + 1) if self._mapping(n)[0] == _FREE}
        trunk = int.from_bytes(self._data[32:36], "big") if self.has_header else 0
        while 1 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            page = self._page(trunk)
            count = min(int.from_bytes(page[4:8], "big"), self.usable // 4 - 2)
            found |= {int.from_bytes(page[8 + 4 * n : 12 + 4 * n], "big") for n in range(count)}
            trunk = int.from_bytes(page[:4], "big")
        return found

    def _plausible_map(self) -> bool:
        if self.has_header and not int.from_bytes(self._data[52:56], "big"):
            return False
        kind, parent = self._mapping(3)
        return (kind, parent) == (_ROOT, 0) or 0 < kind <= _INNER

    def _mapping(self, number: int) -> tuple[int, int]:
        """Return what the pointer map says of a page: its kind and its parent."""
        each = self.usable // 5 + 1
        place = (number - 2) // each * each + 2
        if number == place or not 3 <= number <= self.count or place in self._missing:
            return 0, 0
        at = (place - 1) * self.size + 5 * (number - place - 1)
        return self._data[at], int.from_bytes(self._data[at + 1 : at + 5], "big")

    def _home(self, number: int) -> int | None:
        """Return the root of the tree that a page belongs to, by the pointer map alone."""
        for _ in range(_LONGEST_WAY):
            if number == 1:
                return 1
            kind, parent = self._mapping(number)
            if kind == _ROOT:
                return number
            if kind != _INNER or not 1 <= parent <= self.count:
                return None
            number = parent
        return None

    def _page(self, number: int) -> memoryview:
        return self._data[(number - 1) * self.size : number * self.size]

    def _start(self, number: int) -> int:
        return 100 if number == 1 else 0

    def _kind(self, number: int) -> int:
        return self._page(number)[self._start(number)]

    def _is_empty(self, number: int) -> bool:
        if number in self._missing:
            return True
        is_payload = self._mapped and self._mapping(number)[0] in (3, 4)
        return not is_payload and not any(self._page(number))


def _varint(page: memoryview | bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = page[at + place]
        if place == 8:
            value = value << 8 | byte
            break
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return (value - (1 << 64) if value >= 1 << 63 else value), at + place + 1


def _decoded(payload: bytes) -> tuple[tuple[Any, ...], bool]:
    """Return a record's values, and whether a text had to be repaired."""
    end, at = _varint(payload, 0)
    if not 0 < end <= len(payload):
        raise _Broken
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    repaired = False
    for kind in kinds:
        value, length = _value(kind, payload, at)
        at += length
        if isinstance(value, str) and "\ufffd" in value:
            repaired = repaired or "\ufffd".encode() not in payload
        values.append(value)
    if at != len(payload) or not values:
        raise _Broken
    return tuple(values), repaired


def _value(kind: int, payload: bytes, at: int) -> tuple[Any, int]:
    if kind < 0 or kind in (10, 11):
        raise _Broken
    if kind >= 12:
        length = (kind - 12) // 2
        raw = payload[at : at + length]
        if len(raw) != length:
            raise _Broken
        return (raw.decode("utf-8", "replace") if kind % 2 else raw), length
    if kind in (0, 8, 9):
        return (None, 0, 1)[(0, 8, 9).index(kind)], 0
    length = (1, 2, 3, 4, 6, 8, 8)[kind - 1]
    raw = payload[at : at + length]
    if len(raw) != length:
        raise _Broken
    if kind == 7:
        return struct.unpack(">d", raw)[0], 8
    return int.from_bytes(raw, "big", signed=True), length
