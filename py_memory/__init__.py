"""A memory for agents: it remembers, finds again, says where from, and hands everything back."""

__version__ = "0.1.0"
