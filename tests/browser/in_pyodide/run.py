"""Run pytest on /checkout and give a JSON report; executed by worker.mjs inside Pyodide."""

import contextlib
import importlib
import io
import json
import os
import sys

sys.path.append("/stock_stdlib.zip")
sys.path.insert(0, "/checkout")
os.chdir("/checkout")
# No bytecode on a file system in memory: it would be written and thrown away.
sys.dont_write_bytecode = True
importlib.invalidate_caches()

import pytest  # noqa: E402

import py_memory  # noqa: E402


class Collector:
    """Keep what became of each test."""

    def __init__(self):
        self.collected = []
        self.outcomes = {}

    def pytest_collection_finish(self, session):
        self.collected = [item.nodeid for item in session.items]

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome


collector = Collector()
output = io.StringIO()
with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
    status = pytest.main(
        [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:faulthandler",
            "--color=no",
            "-m",
            "not cpython_only",
            "tests/unit",
        ],
        plugins=[collector],
    )
json.dumps(
    {
        "status": int(status),
        "collected": collector.collected,
        "outcomes": collector.outcomes,
        "output": output.getvalue(),
        "package": py_memory.__file__,
        "python": sys.version,
        "platform": sys.platform,
    }
)
