"""The static server: right types whatever the system thinks, and faults on request."""

import http.client
import mimetypes
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.project import Project
from tools.serve import Override, StaticServer

pytestmark = pytest.mark.cpython_only


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    for name in (
        "index.html",
        "a.mjs",
        "a.js",
        "a.wasm",
        "a.json",
        "a.whl",
        "a.css",
        "a.unknown",
        "sub/index.html",
    ):
        (root / name).write_text(name, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    with StaticServer(root) as running:
        yield running


def get(server: StaticServer, path: str) -> tuple[int, str, bytes]:
    """Ask for a path exactly as written."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    result = answer.status, answer.headers["Content-Type"], answer.read()
    connection.close()
    return result


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.json", "application/json; charset=utf-8"),
        ("a.whl", "application/zip"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.unknown", "application/octet-stream"),
    ],
)
def test_types_do_not_depend_on_the_system(
    server: StaticServer, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
):
    # What a Windows registry may say.
    monkeypatch.setattr(mimetypes, "guess_type", lambda *_: ("text/plain", None))
    assert get(server, f"/{name}") == (200, kind, name.encode())


def test_folders_give_their_index(server: StaticServer):
    assert get(server, "/")[2] == b"index.html"
    assert get(server, "/sub/")[2] == b"sub/index.html"


@pytest.mark.parametrize(
    "path", ["/nothing", "/../secret.txt", "/%2e%2e/secret.txt", "/sub/../../secret.txt", "/..%5csecret.txt"]
)
def test_only_what_is_in_the_folder_is_served(server: StaticServer, path: str):
    assert get(server, path)[0] == 404


def test_mounts_headers_and_requests(server: StaticServer, tmp_path: Path):
    server.mounts["/other/"] = tmp_path
    server.headers["Content-Security-Policy"] = "default-src 'self'"
    with urllib.request.urlopen(f"{server.url}/other/secret.txt") as answer:
        assert answer.read() == b"secret"
        assert answer.headers["Content-Security-Policy"] == "default-src 'self'"
    assert server.requests == ["/other/secret.txt"]


def test_overrides_stand_in_for_every_fault(server: StaticServer):
    server.overrides["/a.wasm"] = Override(content_type="text/plain")
    assert get(server, "/a.wasm") == (200, "text/plain", b"a.wasm")
    server.overrides["/a.wasm"] = Override(body=b"<html>", status=404, content_type="text/html")
    assert get(server, "/a.wasm") == (404, "text/html", b"<html>")
    server.overrides["/a.wasm"] = Override(drop=True)
    with pytest.raises((urllib.error.URLError, ConnectionError, http.client.RemoteDisconnected)):
        get(server, "/a.wasm")
    server.overrides["/a.wasm"] = Override(delay=0.3)
    start = time.monotonic()
    assert get(server, "/a.wasm")[2] == b"a.wasm"
    assert time.monotonic() - start >= 0.3


def test_serve_says_where_and_answers_under_the_promised_policy(project: Project, dist: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "build.py", "serve", "--port", str(port)],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        for line in process.stdout:
            if f"http://localhost:{port}" in line:
                break
        with urllib.request.urlopen(f"http://localhost:{port}/py-memory/runtime/pyodide.mjs") as answer:
            assert answer.headers["Content-Type"].startswith("text/javascript")
            assert "'wasm-unsafe-eval'" in answer.headers["Content-Security-Policy"]
            assert answer.read() == (dist / "py-memory" / "runtime" / "pyodide.mjs").read_bytes()
    finally:
        process.terminate()
        process.stdout.close()
        process.wait()


def test_a_port_in_use_is_said_in_one_line(project: Project, server: StaticServer):
    done = subprocess.run(
        [sys.executable, "build.py", "serve", "--port", str(server.port)],
        cwd=project.root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert f"port {server.port} is not free" in done.stdout
    assert "--port" in done.stdout
