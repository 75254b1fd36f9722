"""WebDriver BiDi over one WebSocket: commands that are answered, and events in between."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.browser.engines.engine import EngineError


class BiDi:
    """A session with a browser."""

    def __init__(self, address: str, heard: Callable[[str, dict[str, Any]], object]) -> None:
        """Connect and begin a session; events go to `heard`."""
        self._heard = heard
        self._count = 0
        self._open = ExitStack()
        how: dict[str, Any] = {"max_size": None, "ping_interval": None, "proxy": None, "compression": None}
        self._socket = self._open.enter_context(connect(f"{address}/session", **how))
        try:
            self.call("session.new", capabilities={})
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer.

        Raises:
            EngineError: the browser refused it or is gone.
        """
        self._count += 1
        number = self._count
        try:
            self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
            while True:
                message = json.loads(self._socket.recv())
                if message.get("id") == number:
                    break
                self._event(message)
        except ConnectionClosed as gone:
            raise EngineError(f"Firefox is gone ({method})") from gone
        if message["type"] == "error":
            raise EngineError(f"{method}: {message['error']}: {message['message']}")
        result: dict[str, Any] = message["result"]
        return result

    def pump(self) -> None:
        """Take the events that have come."""
        end = time.monotonic() + 0.01
        try:
            while True:
                self._event(json.loads(self._socket.recv(timeout=max(0.0, end - time.monotonic()))))
        except TimeoutError:
            return
        except ConnectionClosed as gone:
            raise EngineError("Firefox is gone") from gone

    def _event(self, message: dict[str, Any]) -> None:
        if message.get("type") == "event":
            self._heard(message["method"], message["params"])

    def close(self) -> None:
        """Let go of the connection."""
        self._open.close()
