"""WebDriver as it was before BiDi: one HTTP request for each command, and nothing in between."""

import http.client
import json
import time
from typing import Any

from tests.browser.engines.engine import EngineError


class WebDriver:
    """A session with a browser, by a driver that listens on a port of this machine."""

    def __init__(self, port: int, capabilities: dict[str, Any]) -> None:
        """Wait until the driver listens and begin a session.

        Raises:
            EngineError: the driver does not come up, or the browser does not.
        """
        self._port = port
        self._base = ""
        self._wait()
        made = self._request("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._base = f"/session/{made['sessionId']}"

    def _wait(self) -> None:
        end = time.monotonic() + 10
        while True:
            try:
                self._request("GET", "/status", None)
            except EngineError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            else:
                return

    def get(self, path: str) -> Any:
        """Ask for something."""
        return self._request("GET", self._base + path, None)

    def post(self, path: str, **parameters: Any) -> Any:
        """Have something done."""
        return self._request("POST", self._base + path, parameters)

    def delete(self, path: str = "") -> Any:
        """Take something away; without a path the session."""
        return self._request("DELETE", self._base + path, None)

    def _request(self, method: str, path: str, body: Any) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        except (OSError, http.client.HTTPException, ValueError) as gone:
            raise EngineError(f"the driver does not answer ({method} {path})") from gone
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise EngineError(f"{value['error']}: {value['message']}")
        return value
