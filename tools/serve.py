"""A static web server with the right types on every system, for people and for tests."""

import argparse
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

# What a host page of the demo allows, and what dist/ has to work under.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; img-src 'self' blob:"
)

# Never asked of the system: on Windows the registry may call a module text/plain, and then nothing boots.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".map": "application/json; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".py": "text/x-python; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json; charset=utf-8",
    ".whl": "application/zip",
    ".woff2": "font/woff2",
    ".zip": "application/zip",
}


@dataclass
class Override:
    """What the server does for one path in place of sending its file."""

    body: bytes | None = None
    status: int = 200
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    # Seconds before the answer starts.
    delay: float = 0.0
    # Close the connection without any answer.
    drop: bool = False


class LocalServer:
    """Answers on a port of 127.0.0.1, from threads of its own; `with` starts and stops it."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        """Bind the port; 0 takes a free one.

        Raises:
            OSError: the port is in use.
        """

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            # A browser that starts opens many connections at once.
            request_queue_size = 64
            # Windows would let two servers share a port.
            allow_reuse_address = sys.platform != "win32"

        self._server = Server(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address, without a slash at the end. Browsers take it for a secure context."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class StaticServer(LocalServer):
    """Serves folders on a port of 127.0.0.1; `with` starts and stops it.

    `headers` go with every answer, `overrides` change the answer for one path ("/py-memory/worker.js"),
    `mounts` put further folders under a prefix ("/stock/"), `requests` lists the paths that were asked for.
    All may be changed while it runs.
    """

    def __init__(self, root: Path, port: int = 0, *, log: bool = False) -> None:
        """Bind the port; 0 takes a free one.

        Raises:
            OSError: the port is in use.
        """
        self.root = root
        self.headers: dict[str, str] = {}
        self.overrides: dict[str, Override] = {}
        self.mounts: dict[str, Path] = {}
        self.requests: list[str] = []
        self.log = log
        site = self

        class Handler(_Handler):
            server_of = site

        super().__init__(Handler, port)

    def find(self, path: str) -> Path | None:
        """Return the file for the path of a request, None where there is none."""
        root, rest = self.root, path.lstrip("/")
        for prefix, folder in self.mounts.items():
            if path.startswith(prefix):
                root, rest = folder, path[len(prefix) :]
        parts = PurePosixPath(rest).parts
        if any(part in {"..", "/"} or "\\" in part or ":" in part for part in parts):
            return None
        found = root.joinpath(*parts)
        if found.is_dir():
            found /= "index.html"
        return found if found.is_file() else None

    def wait(self) -> None:
        """Serve until interrupted."""
        while self._thread.is_alive():
            self._thread.join(1.0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: StaticServer

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        site = self.server_of
        path = unquote(urlsplit(self.path).path)
        site.requests.append(path)
        override = site.overrides.get(path, Override())
        if override.delay:
            time.sleep(override.delay)
        if override.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        file = site.find(path)
        body, status = override.body, override.status
        if body is None:
            if file is None:
                body, status = f"There is no {path} here.\n".encode(), HTTPStatus.NOT_FOUND
            else:
                body = file.read_bytes()
        suffix = ".txt" if file is None and override.body is None else (file or Path(path)).suffix.lower()
        headers = {
            "Content-Type": override.content_type or TYPES.get(suffix, "application/octet-stream"),
            "Content-Length": str(len(body)),
            "Cache-Control": "no-cache",
            "X-Content-Type-Options": "nosniff",
            **site.headers,
            **override.headers,
        }
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)
        except ConnectionError:
            # The browser went away; there is nobody to tell.
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        if self.server_of.log:
            super().log_message(format, *args)


def main(folder: Path, arguments: list[str]) -> int:
    """Serve a folder until Ctrl-C, with the content security policy that the product promises."""
    parser = argparse.ArgumentParser(prog="build.py serve")
    parser.add_argument("--port", type=int, default=8000, help="the port to listen on (8000)")
    chosen = parser.parse_args(arguments)
    try:
        server = StaticServer(folder, chosen.port, log=True)
    except OSError as error:
        print(f"build: port {chosen.port} is not free ({error.strerror}); choose another one with --port")
        return 1
    server.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    with server:
        print(f"build: serving dist/ on http://localhost:{server.port} (Ctrl-C ends it)", flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            print()
    return 0
