"""Text analysis: what text becomes in the index and in a query. The original is kept elsewhere.

Normalised by NFKC and case folding, accents and points dropped from Latin, Greek,
Cyrillic, Hebrew and Arabic; runs split
where scripts meet. Words are stemmed; identifiers, file names, versions and addresses are kept
whole and in parts; scripts without spaces become pairs of characters and each run's last one, so
that two characters match by pair and one by prefix; emoji and symbols stand alone.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby

from py_memory.stems import stem
from py_memory.stopwords import is_stop

ANALYSIS_VERSION = 1
"""Changes whenever `terms` gives other terms; an index made by another version is rebuilt."""

_MAX_TERM = 64

# Scripts written without spaces between words, or (Korean) with endings glued to them.
_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    "\u3031-\u3035\u303b\u303c\u3040-\u30ff\u3105-\u312f\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Each large class is compiled once, and none twice: compiling them is most of what importing costs.
_PAIRED_RUN = re.compile(f"([{_PAIRED}]+)")
# Signs of Indic scripts are no word characters to `re`, but belong to the word.
_LETTER = "(?:[^\\W_]|[\u0300-\u036f\u0900-\u0963\u0966-\u0dff])"
_TOKEN = re.compile(
    f"(?P<word>{_LETTER}+(?:['.\\-_@+#/:&]+{_LETTER}+)*(?:\\+\\+|#(?!\\w))?)|(?P<symbol>[^\\w\\s\x00-\x7f])"
)
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_PART = re.compile("[^\\W\\d_]+|\\d+")
_CAMEL = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_JOINER = re.compile("['.\\-_@+#/:&]")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "＇": "'", "`": "'"})
_SKIPPED = frozenset("\ufe0e\ufe0f\u200d\u20e3")


def normalise(text: str) -> str:
    """Return text in the one form that is searched: NFKC, folded, without accents."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    return _without_accents(folded)


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    kept: list[str] = []
    base = ""
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.combining(char):
            # Only where an accent is a variant of the letter: a Japanese, Thai or Hindi mark
            # makes another letter.
            if base <= "\u06ff" or "\u1e00" <= base <= "\u1fff":
                continue
        else:
            base = char
        kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def terms(text: str) -> list[str]:
    """Return the terms under which text is indexed, in order, repeated as often as they occur."""
    found: list[str] = []
    for kind, token in _tokens(text):
        if kind == "paired":
            found.extend(_pairs(token))
            found.append(token[-1])
        elif kind == "word":
            found.extend(_word_terms(token))
        else:
            found.append(token)
    return found


def query_terms(text: str) -> list[str]:
    """Return the distinct terms that a query looks for, in order; stop words only if all are.

    A term that ends in `*` is a single character and looks for all terms that begin with it.
    """
    every, telling = _asked(text)
    return list(dict.fromkeys(telling or every))


def every_term(text: str) -> list[str]:
    """Return all distinct terms of a query, stop words too: for what must hold them all."""
    return list(dict.fromkeys(_asked(text)[0]))


def _asked(text: str) -> tuple[list[str], list[str]]:
    """Return all terms of a query, and those that tell what it looks for."""
    every: list[str] = []
    telling: list[str] = []
    for kind, token in _tokens(text):
        if kind == "paired":
            found = _pairs(token) if len(token) > 1 else [f"{token}*"]
            every.extend(found)
            telling.extend(term for term in found if not is_stop(term))
        elif kind == "word":
            every.extend(_word_terms(token))
            if not is_stop(_bare(token)):
                telling.extend(term for term in _word_terms(token) if not (is_stop(term) and len(term) < 3))
        else:
            every.append(token)
            telling.append(token)
    return every, telling


def query_characters(text: str) -> list[str]:
    """Return the telling single characters of a query's runs without spaces, as terms.

    Beside the pairs, they find what says the same in other words (学数学, 数学课, 学习).
    """
    found: dict[str, None] = {}
    for kind, token in _tokens(text):
        if kind == "paired" and len(token) > 1:
            found |= {f"{char}*": None for char in token if _HAN.match(char) and not is_stop(char)}
    return list(found)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    if not text.isascii() or not text.islower():
        # Case borders inside a name are word borders; folding would lose them.
        text = f"{text} {' '.join(_camel_parts(text))}" if _CAMEL.search(text) else text
    text = normalise(text)
    pieces = [text] if text.isascii() else _PAIRED_RUN.split(text)
    for number, piece in enumerate(pieces):
        if number % 2:
            for _, run in groupby(piece, _script):
                yield "paired", "".join(run)
            continue
        for match in _TOKEN.finditer(piece):
            kind, token = match.lastgroup or "", match.group()
            if kind == "word" or (
                token not in _SKIPPED and unicodedata.category(token) in ("So", "Sm", "Sc", "Mn")
            ):
                yield kind, token


def _script(char: str) -> int:
    """Tell apart the scripts of a run: Thai, Lao, Burmese, Khmer, Korean, and Chinese with Japanese."""
    if char < "\u1100":
        return 0 if char < "\u0e80" else 1 if char < "\u1000" else 2
    korean = char <= "\u11ff" or "\uac00" <= char <= "\ud7ff" or "\u3130" <= char <= "\u318f"
    if korean or "\ua960" <= char <= "\ua97f":
        return 4
    return 3 if char < "\u1800" else 5


def _camel_parts(text: str) -> list[str]:
    parts: list[str] = []
    for word in text.split():
        pieces = _CAMEL.split(word)
        if 1 < len(pieces) <= 8:
            parts.extend(pieces)
    return parts


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _bare(token: str) -> str:
    return token.removesuffix("'s")


def _word_terms(token: str) -> tuple[str, ...]:
    # Long ones are rare and not worth keeping.
    return _short_word_terms(token) if len(token) <= _MAX_TERM else _terms_of_word(token)


def _terms_of_word(token: str) -> tuple[str, ...]:
    """Return a word's terms: the whole, cut to 64 characters, and its parts, however many."""
    token = _bare(token)
    if _JOINER.search(token) is None:
        parts = _PART.findall(token)
        if len(parts) <= 1:
            return (stem(token[:_MAX_TERM]),)
        # "save20" is asked for whole and as "save 20"; long mixtures (hashes) only whole.
        return (token[:_MAX_TERM], *(_parts(token) if len(parts) <= 4 else ()))
    if "'" in token and token.replace("'", "").isalpha():
        # FTS5's tokenizer options cannot carry a quote, so the typographic one stands for it.
        return (token[:_MAX_TERM].replace("'", "’"),)
    return (token[:_MAX_TERM].replace("'", "’"), *_parts(token))


_short_word_terms = lru_cache(maxsize=16_384)(_terms_of_word)


def _parts(token: str) -> list[str]:
    found = _PART.findall(token)
    joined = _JOINER.split(token)
    mixed = [part for part in joined if len(_PART.findall(part)) > 1]
    return [stem(part[:_MAX_TERM]) for part in (*found, *mixed) if part and part != token]
