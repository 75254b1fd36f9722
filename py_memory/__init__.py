"""A memory for agents: it remembers, finds again, says where from, and hands everything back."""

from py_memory.errors import PyMemoryError
from py_memory.memory import Memory
from py_memory.records import Found, Fragment, Hit, Intent, Page
from py_memory.recovering import recover
from py_memory.session import Session
from py_memory.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Found",
    "Fragment",
    "Hit",
    "Intent",
    "Memory",
    "Page",
    "PyMemoryError",
    "Session",
    "Settings",
    "recover",
]
