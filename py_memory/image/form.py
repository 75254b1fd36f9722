"""How pages, and the record about them, are written into a store: the one place that knows.

A page record is 16 bytes (little-endian: number u32, generation u64, crc32 u32) and the page. The
checksum covers number, generation and page, so that a record put in another's place is noticed.
The record about the whole image is one JSON text with its own checksum. From format 2 on it has the
sum of all pages' marks, so that an older record of a page, put back in its own place, is noticed.
"""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from py_memory.errors import CorruptImage, UnsupportedFormat

FORMAT = 2
"""What is written; format 1, without the sum of the marks, is read too."""

PAGE_HEADER_BYTES = 16

_HEAD = struct.Struct("<IQ")
_SUM = struct.Struct("<I")
_RECORD = struct.Struct("<IQI")
_SQLITE = b"SQLite format 3\x00"
_LEFT_ALONE = " Nothing was changed: export the raw image, then import a backup or the salvaged database."

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Meta:
    """The record about the image; times are epoch milliseconds."""

    page_size: int
    page_count: int
    generation: int
    epoch: int
    schema: int
    created_at: int
    updated_at: int
    format: int = FORMAT
    marks: int | None = None
    """The sum of `mark_of` over all pages; images of format 1 have none."""


def damaged(kind: str, message: str, **details: Any) -> CorruptImage:
    """Make the error for one kind of damage: meta, hole, count, number, checksum, header, …."""
    return CorruptImage(f"The stored memory is damaged: {message}.{_LEFT_ALONE}", kind=kind, **details)


def encode_meta(meta: Meta) -> str:
    """Write the record about the image, with its checksum."""
    fields = {name: value for name, value in asdict(meta).items() if value is not None}
    fields["crc32"] = zlib.crc32(_canonical(fields))
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def decode_meta(stored: object) -> Meta:
    """Read the record about the image.

    Raises:
        UnsupportedFormat: A newer version of this code wrote the image.
        CorruptImage: The record is missing, damaged or makes no sense (kind `meta`).
    """
    if stored is None:
        raise damaged("meta", "the record about its pages is missing")
    try:
        fields = json.loads(stored) if isinstance(stored, str) else None
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or fields.pop("crc32", None) != zlib.crc32(_canonical(fields)):
        raise damaged("meta", "the record about its pages fails its checksum")
    version = fields.get("format")
    if version not in (1, FORMAT):
        message = (
            f"This memory is stored in format {version}; this version of py-memory knows up to format"
            f" {FORMAT}. Nothing was changed: update py-memory."
        )
        raise UnsupportedFormat(message, format=version, known=FORMAT)
    names = set(Meta.__dataclass_fields__) - ({"marks"} if version == 1 else set())
    if set(fields) != names or any(type(fields[name]) is not int for name in names):
        raise damaged("meta", "the record about its pages has other fields than it should")
    return Meta(**fields)


def encode_page(number: int, generation: int, page: Bytes) -> bytes:
    """Write one page as a record."""
    head = _HEAD.pack(number, generation)
    return b"".join((head, _SUM.pack(zlib.crc32(page, zlib.crc32(head))), page))


def mark_of(record: Bytes) -> int:
    """Return a record's mark: the checksum of its header, in which number, generation and page count.

    Marks are added up, so that a write changes their sum by what it replaced, whatever the image's size.
    """
    return zlib.crc32(record[:PAGE_HEADER_BYTES])


def generation_of(record: Bytes) -> int:
    """Return the generation that a record states; 0 where it is too short for one, or no sound number."""
    if len(record) <= PAGE_HEADER_BYTES:
        return 0
    number, generation, _ = _RECORD.unpack_from(record)
    return int(generation) if is_sound(number, record) else 0


def is_sound(number: int, record: Bytes) -> bool:
    """Whether a record is the page of this number, as it was written."""
    if len(record) <= PAGE_HEADER_BYTES:
        return False
    found, _, stated = _RECORD.unpack_from(record)
    view = memoryview(record)
    return bool(found == number and zlib.crc32(view[PAGE_HEADER_BYTES:], zlib.crc32(view[:12])) == stated)


def verify_pages(first: int, records: Sequence[Bytes], meta: Meta) -> list[memoryview]:
    """Check records that should be the pages `first`, `first + 1`, …; return the pages.

    Raises:
        CorruptImage: kind `record` (its length), `checksum`, `hole`, `number` or `generation`.
    """
    size = meta.page_size + PAGE_HEADER_BYTES
    pages = []
    for expected, record in enumerate(records, first):
        if len(record) != size:
            raise damaged("record", f"the record of page {expected} has a wrong length")
        number, generation, stated = _RECORD.unpack_from(record)
        view = memoryview(record)
        page = view[PAGE_HEADER_BYTES:]
        if zlib.crc32(page, zlib.crc32(view[:12])) != stated:
            raise damaged("checksum", f"page {expected} fails its checksum", page=expected)
        if number != expected:
            kind = "hole" if number > expected else "number"
            raise damaged(kind, f"page {expected} is missing or in another's place", page=expected)
        if generation > meta.generation:
            raise damaged("generation", f"page {expected} is newer than the whole", page=expected)
        pages.append(page)
    return pages


def verify_header(page: Bytes, meta: Meta) -> None:
    """Check that page 1 is the start of an SQLite file of this size.

    Raises:
        CorruptImage: kind `header`.
    """
    if bytes(page[:16]) != _SQLITE or page_size_of(page) != meta.page_size:
        raise damaged("header", "its first page is not the start of an SQLite database")
    # The number is only meant where both counters agree; SQLite ignores it otherwise.
    if page[24:28] == page[92:96] and int.from_bytes(page[28:32], "big") != meta.page_count:
        raise damaged("header", "its first page states another number of pages")


def page_size_of(page: Bytes) -> int:
    """Return the page size that an SQLite header states."""
    size = int.from_bytes(page[16:18], "big")
    return 65_536 if size == 1 else size


def schema_of(page: Bytes) -> int:
    """Return the application's schema number (`user_version`) from page 1."""
    return int.from_bytes(page[60:64], "big")


def _canonical(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
