"""How many tokens a language model will count: an estimate that needs no tokenizer."""

import math


def estimated(text: str) -> int:
    """Return about how many tokens text costs: four ASCII characters or one other character each."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_count / 4) + len(text) - ascii_count
