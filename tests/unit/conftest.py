"""Fixtures of the engine's tests."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings

from py_memory import Memory, Session
from tests.unit.helpers import Clock, opened

# How long an example takes says nothing on a busy machine or in WebAssembly. The same examples
# everywhere, so that a failure can be met again; with "search" they are others each time.
settings.register_profile("unit", deadline=None, derandomize=True, database=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unit"))

Opener = Callable[..., Memory]


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until it is moved."""
    return Clock()


@pytest.fixture
def memories(clock: Clock) -> Iterator[Opener]:
    """Opens memories on the test's clock, and closes them all."""
    with ExitStack() as stack:

        def another(path: str = ":memory:", **options: Any) -> Memory:
            return stack.enter_context(opened(path, **{"clock": clock, **options}))

        yield another


@pytest.fixture
def memory(memories: Opener) -> Memory:
    """An empty memory."""
    return memories()


@pytest.fixture
def session(memory: Memory) -> Session:
    """Ann's session of the skill booking."""
    return memory.start_session(user_id="u_1", user_name="Ann", skill="booking", session_id="s_1")
