"""Records: what is written is read back, and every damaged byte is noticed."""

import json
from dataclasses import replace

import pytest

from py_memory.errors import CorruptImage, UnsupportedFormat
from py_memory.image.form import (
    Meta,
    decode_meta,
    encode_meta,
    encode_page,
    verify_header,
    verify_pages,
)

META = Meta(
    page_size=4096,
    page_count=3,
    generation=9,
    epoch=2,
    schema=1,
    created_at=1_700_000_000_000,
    updated_at=5,
    marks=7,
)
PAGE = bytes(range(256)) * 16


def kind_of(call, *args):
    with pytest.raises(CorruptImage) as caught:
        call(*args)
    assert "nothing was changed" in str(caught.value).lower()
    return caught.value.details["kind"]


def test_the_record_about_the_image_is_read_back():
    assert decode_meta(encode_meta(META)) == META
    assert json.loads(encode_meta(META))["format"] == 2


def test_every_changed_character_of_it_is_noticed():
    text = encode_meta(META)
    for place, character in enumerate(text):
        other = "7" if character != "7" else "8"
        with pytest.raises((CorruptImage, UnsupportedFormat)):
            decode_meta(text[:place] + other + text[place + 1 :])


@pytest.mark.parametrize("stored", [None, 5, "", "[]", "{}", "null", b"{}", '{"crc32":0}'])
def test_what_is_no_record_is_refused(stored):
    assert kind_of(decode_meta, stored) == "meta"


def test_a_newer_format_is_not_called_damaged():
    with pytest.raises(UnsupportedFormat) as caught:
        decode_meta(encode_meta(replace(META, format=3)))
    assert caught.value.details == {"format": 3, "known": 2}


def test_a_page_is_stored_in_the_documented_form():
    record = encode_page(7, 3, PAGE)
    assert len(record) == 16 + 4096
    assert record[:12] == (7).to_bytes(4, "little") + (3).to_bytes(8, "little")
    assert record[16:] == PAGE
    assert [bytes(page) for page in verify_pages(7, [record], META)] == [PAGE]


def test_every_changed_byte_of_a_page_is_noticed():
    record = encode_page(1, 3, PAGE)
    for place in (*range(16), 16, 1000, 4111):
        changed = bytearray(record)
        changed[place] ^= 1
        assert kind_of(verify_pages, 1, [changed], META) == "checksum"


def test_pages_in_wrong_places_are_noticed():
    one, two, three = (encode_page(n, 3, PAGE) for n in (1, 2, 3))
    assert len(verify_pages(1, [one, two, three], META)) == 3
    assert kind_of(verify_pages, 1, [one, three], META) == "hole"
    assert kind_of(verify_pages, 1, [one, one], META) == "number"
    assert kind_of(verify_pages, 1, [two, one], META) == "hole"
    assert kind_of(verify_pages, 1, [encode_page(1, 10, PAGE)], META) == "generation"
    assert kind_of(verify_pages, 1, [one[:-1]], META) == "record"
    assert kind_of(verify_pages, 1, [b""], META) == "record"


def test_the_header_of_the_first_page():
    header = bytearray(b"SQLite format 3\0".ljust(4096, b"\0"))
    header[16:18] = (4096).to_bytes(2, "big")
    header[28:32] = (3).to_bytes(4, "big")
    verify_header(header, META)
    assert kind_of(verify_header, header, replace(META, page_count=4)) == "header"
    assert kind_of(verify_header, header, replace(META, page_size=8192)) == "header"
    header[0] = 0
    assert kind_of(verify_header, header, META) == "header"
