"""The closed set of errors: stable codes, no remembered content in any of them."""

import sqlite3

import pytest

from py_memory import errors
from py_memory.database import translated
from py_memory.wire import error_json

CODES = """
invalid_argument user_required not_found empty_selector too_large unsupported unsupported_format
schema_newer import_invalid corrupt_image quota_exceeded storage_lost storage_blocked outdated
already_open owner_lost insecure_context boot_failed timeout aborted closed read_only
wrong_passphrase permission_denied rate_limited internal
""".split()


def classes():
    return [
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, errors.PyMemoryError) and one is not errors.PyMemoryError
    ]


def test_the_set_of_codes_is_closed_and_each_code_has_one_class():
    assert sorted(one.code for one in classes()) == sorted(CODES)


@pytest.mark.parametrize("code", CODES)
def test_an_error_crosses_a_boundary_and_comes_back_as_itself(code):
    there = errors.from_code(code, "what happened", {"option": "at"})
    form = there.to_dict()
    back = errors.from_code(form["code"], form["message"], form["details"])
    assert type(back) is type(there)
    assert (back.code, str(back), back.details) == (code, "what happened", {"option": "at"})


def test_an_unknown_code_becomes_internal_rather_than_a_new_one():
    assert errors.from_code("made_up", "text", {}).code == "internal"


def test_a_foreign_error_crosses_without_its_text():
    marker = "a secret that was to be remembered"
    try:
        raise KeyError(marker)
    except KeyError as exc:
        crossed = error_json(exc)
    assert "internal" in crossed
    assert "KeyError" in crossed
    assert marker not in crossed


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("INSERT INTO t VALUES (1, 'private words')", "internal"),
        ("SELECT no_such_function('private words')", "internal"),
        ("SELECT 'private words", "internal"),
    ],
)
def test_what_sqlite_says_is_told_without_what_it_quotes(statement, code):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a UNIQUE, b CHECK (length(b) < 5))")
    with pytest.raises(sqlite3.Error) as caught:
        connection.execute(statement)
    connection.close()
    told = translated(caught.value)
    assert told.code == code
    assert "private" not in str(told)
    assert "private" not in str(told.details)
