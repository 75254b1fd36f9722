"""Global text ids that sort by the time of their making."""

import os


class Ids:
    """Makes ids such as `mf_018f2c…`: 48 bits of time, then 64 random bits, rising within one ms."""

    def __init__(self) -> None:
        """Start with no id made."""
        self._at = -1
        self._tail = 0

    def new(self, prefix: str, at: int) -> str:
        """Return a new id for the epoch millisecond `at`."""
        at = max(at, 0)
        if at <= self._at:
            # A clock that stands still or goes back must not make ids that sort before earlier ones.
            at = self._at
            self._tail += 1
        else:
            self._at = at
            self._tail = int.from_bytes(os.urandom(8), "big") >> 1
        return f"{prefix}_{at:012x}{self._tail:016x}"
