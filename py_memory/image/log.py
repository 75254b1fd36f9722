"""From SQLite's write-ahead log to the pages that a transaction changed.

The rule holds only with `cache_spill=OFF`: a transaction that spills into the log and then rolls
back to a savepoint commits frames without salts and checksums (SQLite before 3.51.1), and no reader
can tell them from leftovers.

The log is a 32-byte header and frames of 24 bytes plus one page. A frame counts while its salts are
the header's and the running checksum holds; a frame that states the size of the database after it
seals everything before it. What is not sealed is not committed and is left alone.
"""

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
CHUNK_BYTES = 1 << 20
"""Frames are read and verified in pieces of at most this size, whatever the size of the log."""

_MAGIC = 0x377F0682
_VERSION = 3_007_000
_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">II8s")

Chain = Callable[[memoryview, int, int, int], int]
"""(whole frames, bytes per frame, s0, s1): how many of them, from the first, hold the checksum
that continues s0 and s1 over little-endian words."""


def checksum(s0: int, s1: int, data: bytes | memoryview, order: str = "<") -> tuple[int, int]:
    """Continue SQLite's running checksum over data whose length is a multiple of 8 bytes."""
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        s0 = (s0 + even + s1) & 0xFFFFFFFF
        s1 = (s1 + odd + s0) & 0xFFFFFFFF
    return s0, s1


def chain(frames: memoryview, frame_bytes: int, s0: int, s1: int, order: str = "<") -> int:
    """Verify frames in plain Python; the browser brings a faster `Chain`."""
    count = len(frames) // frame_bytes
    for index in range(count):
        frame = frames[index * frame_bytes : (index + 1) * frame_bytes]
        s0, s1 = checksum(s0, s1, frame[:8], order)
        s0, s1 = checksum(s0, s1, frame[FRAME_HEADER_BYTES:], order)
        if (s0, s1) != struct.unpack_from(">2I", frame, 16):
            return index
    return count


@dataclass(frozen=True, slots=True)
class Position:
    """How far a log has been read: its salts, the frames consumed, the checksum up to there."""

    salts: bytes
    frames: int
    s0: int
    s1: int


@dataclass(slots=True)
class Sealed:
    """What committed transactions wrote since the last reading: the newest frame of each page."""

    position: Position
    page_size: int
    page_count: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    chunk: bytes = b""
    chunk_start: int = -1


class Log:
    """Reads one log file forward; the position moves only when the caller says `accept`."""

    def __init__(self, path: str, verify: Chain = chain) -> None:
        """Watch the log of the database at `path`; nothing of it is consumed yet."""
        self.path = f"{path}-wal"
        self.position: Position | None = None
        self._verify = verify

    def read(self) -> Sealed | None:
        """Return what has been sealed since the accepted position, or `None`."""
        try:
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115  # closed by the `with` below
        except FileNotFoundError:
            self.position = None
            return None
        with file:
            header = file.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES:
                self.position = None
                return None
            magic, version, page_size, _, _, _, s0, s1 = _HEADER.unpack(header)
            order = ">" if magic & 1 else "<"
            salts = header[16:24]
            start = self.position
            if start is None or start.salts != salts:
                if magic & ~1 != _MAGIC or version != _VERSION or not _valid_page_size(page_size):
                    return None
                if checksum(0, 0, header[:24], order) != (s0, s1):
                    return None
                start = Position(salts, 0, s0, s1)
            found = Sealed(start, page_size)
            self._scan(file.fileno(), found, order)
            return found if found.page_count else None

    def accept(self, sealed: Sealed) -> None:
        """Move on: what was read is kept elsewhere now."""
        self.position = sealed.position

    def pages(self, sealed: Sealed) -> Iterator[tuple[int, memoryview]]:
        """Give each sealed page with its number, in the order of the file."""
        size = sealed.page_size
        wanted = sorted((offset, number) for number, offset in sealed.offsets.items())
        with open(self.path, "rb", buffering=0) as file:
            start, data = sealed.chunk_start, memoryview(sealed.chunk)
            for offset, number in wanted:
                at = offset - start
                if at < 0 or at + size > len(data):
                    file.seek(offset)
                    start, data, at = offset, memoryview(file.read(CHUNK_BYTES)), 0
                yield number, data[at : at + size]

    def page(self, sealed: Sealed, number: int) -> memoryview | None:
        """Return one sealed page, or `None` if it did not change."""
        offset = sealed.offsets.get(number)
        if offset is None:
            return None
        at, size = offset - sealed.chunk_start, sealed.page_size
        if 0 <= at <= len(sealed.chunk) - size:
            return memoryview(sealed.chunk)[at : at + size]
        with open(self.path, "rb", buffering=0) as file:
            file.seek(offset)
            return memoryview(file.read(size))

    def frames(self) -> int:
        """Return how many frames of the log have been accepted, folded ones not counted."""
        position = self.position
        return position.frames if position is not None else 0

    def cut(self, page_size: int) -> None:
        """Cut off what lies behind the accepted position, while no connection has the log open."""
        try:
            with open(self.path, "r+b", buffering=0) as file:
                header = file.read(HEADER_BYTES)
                position = self.position
                if position is None or header[16:24] != position.salts:
                    end = 0
                else:
                    end = HEADER_BYTES + position.frames * (page_size + FRAME_HEADER_BYTES)
                if os.fstat(file.fileno()).st_size > end:
                    file.truncate(end)
        except FileNotFoundError:
            return

    def _scan(self, descriptor: int, found: Sealed, order: str) -> None:
        frame_bytes = found.page_size + FRAME_HEADER_BYTES
        position = found.position
        salts, count, s0, s1 = position.salts, position.frames, position.s0, position.s1
        offset = HEADER_BYTES + count * frame_bytes
        left = (os.fstat(descriptor).st_size - offset) // frame_bytes
        at_once = max(1, CHUNK_BYTES // frame_bytes)
        pending: dict[int, int] = {}
        os.lseek(descriptor, offset, os.SEEK_SET)
        while left > 0:
            data = os.read(descriptor, min(left, at_once) * frame_bytes)
            whole = len(data) // frame_bytes
            frames = memoryview(data)[: whole * frame_bytes]
            if order == "<":
                holds = self._verify(frames, frame_bytes, s0, s1)
            else:
                holds = chain(frames, frame_bytes, s0, s1, order)
            for index in range(holds):
                base = index * frame_bytes
                number, size_after, own = _FRAME.unpack_from(frames, base)
                if own != salts:
                    return
                count += 1
                pending[number] = offset + base + FRAME_HEADER_BYTES
                if size_after:
                    found.offsets.update(pending)
                    pending.clear()
                    sums = struct.unpack_from(">2I", frames, base + 16)
                    found.page_count = size_after
                    found.position = Position(salts, count, *sums)
                    found.chunk, found.chunk_start = data, offset
            if holds < whole or whole == 0:
                return
            s0, s1 = struct.unpack_from(">2I", frames, (whole - 1) * frame_bytes + 16)
            offset += whole * frame_bytes
            left -= whole


def _valid_page_size(size: int) -> bool:
    return 512 <= size <= 65_536 and size & (size - 1) == 0
