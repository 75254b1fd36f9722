"""Files that earlier versions wrote open with equal content; an upgrade that is killed leaves them whole."""

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from py_memory import Memory
from py_memory.schema import MIGRATIONS, SCHEMA_VERSION
from tests.unit.helpers import opened

ROOT = Path(__file__).resolve().parents[2]
OLD = ROOT / "tests" / "fixtures" / "format-1"
IMAGE = gzip.decompress((OLD / "image.db.gz").read_bytes())
EXPECTED = json.loads((OLD / "expected.json").read_text(encoding="utf-8"))
NOW = 1_780_000_100_000

# Runs migrations on a file, and kills itself before the statement of a number.
KILLED = """
import os, signal, sqlite3, sys
from py_memory.database import Database
from py_memory.schema import MIGRATIONS, migrate

path, at, more = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "more"
seen = 0

def rebuild(connection):
    connection.execute("ALTER TABLE fragments ADD COLUMN colour TEXT")
    connection.execute("UPDATE fragments SET colour = 'red', content = content || '!'")
    connection.execute("CREATE INDEX fragments_colour ON fragments (colour)")
    connection.execute("DELETE FROM intents")

def count(statement):
    global seen
    seen += 1
    if seen > at:
        os.kill(os.getpid(), signal.SIGKILL)

database = Database(path)
database.connection.set_trace_callback(count)
migrate(database, MIGRATIONS + ((rebuild,) if more else ()))
database.close()
"""


def content(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables that there were, in the columns that there were."""
    connection = sqlite3.connect(path)
    try:
        found = {}
        for table, rows in EXPECTED.items():
            names = list(rows[0])
            found[table] = [
                {
                    name: value.hex() if isinstance(value, bytes) else value
                    for name, value in zip(names, row, strict=True)
                }
                for row in connection.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2")
            ]
        return found
    finally:
        connection.close()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    path.write_bytes(IMAGE)
    return path


def test_every_table_of_the_fixture_is_filled():
    assert all(EXPECTED.values())
    assert set(EXPECTED) == {"users", "sessions", "fragments", "intents", "changes", "requests"}


def test_an_old_file_opens_with_equal_content(old: Path):
    with opened(str(old), clock=lambda: NOW) as memory:
        assert memory.check() == {"ok": True, "problems": []}
        assert memory.database.row("PRAGMA user_version")[0] == SCHEMA_VERSION
    assert content(old) == EXPECTED
    with opened(str(old), clock=lambda: NOW) as memory:
        assert memory.search("u_ann", "机票")[0].fragment.content == "帮我订下周三去北京的机票"
        assert [one.intent.entities for one in memory.find("u_ann", key="seat")] == [{"value": "过道"}]
        assert len(memory.trash("u_ann")) == 1


def test_an_old_image_is_imported_with_equal_content(tmp_path: Path):
    path = tmp_path / "new.db"
    with opened(str(path), clock=lambda: NOW) as memory:
        memory.import_image(IMAGE)
        assert memory.check()["ok"]
    assert content(path) == EXPECTED


def test_an_old_export_is_imported_and_given_back_equal():
    text = (OLD / "export.json").read_text(encoding="utf-8")
    with opened(clock=lambda: NOW) as memory:
        report = memory.import_json(text)
        again = json.loads(memory.export_json(include_sensitive=True))
    first = json.loads(text)
    assert report["fragments"]["added"] == len(first["fragments"])
    for table in ("users", "sessions", "fragments", "intents"):
        pairs = zip(again[table], first[table], strict=True)
        kept = [{name: row[name] for name in old} for row, old in pairs]
        assert kept == first[table]


def killed(path: Path, at: int, more: str) -> bool:
    """Upgrade in another process that is killed before its statement `at`; tell whether it was."""
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(at), more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr.decode()
    return ran.returncode != 0


@pytest.mark.cpython_only
@pytest.mark.parametrize("more", ["", "more"])
def test_an_upgrade_that_is_killed_at_any_step_leaves_the_old_one_whole(tmp_path: Path, more: str):
    target = len(MIGRATIONS) + (more == "more")
    at, versions = 0, set()
    while True:
        path = tmp_path / f"{at}.db"
        path.write_bytes(IMAGE)
        if not killed(path, at, more):
            break
        connection = sqlite3.connect(path)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        versions.add(version)
        if version <= len(MIGRATIONS):
            assert content(path) == EXPECTED
            with opened(str(path), clock=lambda: NOW) as memory:
                assert memory.check()["ok"]
            assert content(path) == EXPECTED
        at += 1
    # Killed before the first step and after each; never anywhere between.
    assert versions <= set(range(1, target + 1))
    assert 1 in versions
    assert at >= 4


@pytest.mark.cpython_only
def test_the_untouched_copy_is_a_whole_memory(tmp_path: Path):
    path = tmp_path / "one.db"
    path.write_bytes(IMAGE)
    at = 0
    while killed(path, at, "") and not list(tmp_path.glob("*.before-v*")):
        at += 1
    copy = next(tmp_path.glob("*.before-v*"))
    assert content(copy) == EXPECTED
    Memory.open(str(path)).close()
    assert not list(tmp_path.glob("*.before-v*"))
