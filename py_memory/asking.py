"""A query, understood once: its terms, the people it names, the times it names."""

from dataclasses import dataclass, field

from py_memory.engine import Engine
from py_memory.stems import stem
from py_memory.stopwords import is_asking
from py_memory.text import query_characters, query_terms
from py_memory.text import terms as text_terms
from py_memory.textindex import Term
from py_memory.times import iso
from py_memory.timewords import TimeWord, time_words, without

_MAX_SPEAKERS = 200
_ASKING_STEMS = frozenset(map(stem, ("say", "tell", "talk", "mention", "discuss", "speak", "happen")))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query looks for.

    `by_words` is false where it has no word to look for; then `times`, if there are any, say
    which fragments are meant, beside those that have its `terms`.
    """

    by_words: bool
    terms: list[Term] = field(default_factory=list)
    speakers: frozenset[str] = frozenset()
    times: list[TimeWord] = field(default_factory=list)

    @property
    def ideal(self) -> float:
        """The BM25 of a fragment of mean length that has every term once."""
        return sum(term.weight for term in self.terms)

    def names_time(self, at: int) -> bool:
        """Tell whether the query names a time that `at` lies in."""
        return any(word.start <= at < word.end for word in self.times)

    def described(self) -> list[dict[str, object]]:
        """Return the times for `why`: start, end, and whether the word has two readings."""
        return [
            {"since": iso(word.start), "until": iso(word.end), "ambiguous": word.ambiguous}
            for word in self.times
        ]


def asked(engine: Engine, user_id: str, query: str, at: int, zone: str) -> Asked:
    """Understand a query of a user at a time in a zone.

    A query about nothing but a time ("what did I say last Wednesday") is not asked by words. One
    that is a time and nothing else ("Christmas") may also mean the word, so it keeps its terms.
    """
    times = time_words(query, at, zone, engine.zones)
    rest = without(query, times) if times else query
    words = query_terms(rest)
    if times and all(is_asking(word) or word in _ASKING_STEMS for word in words):
        said = {} if words else dict.fromkeys(query_terms(query), 1.0)
        terms = engine.index.terms_of(user_id, said, engine.settings.posting_budget)
        return Asked(by_words=False, terms=terms, times=times)
    if not query_terms(query):
        return Asked(by_words=False)
    wanted = dict.fromkeys(words or query_terms(query), 1.0)
    speakers, names = _named(engine, user_id, set(wanted))
    # A name asks for what that person said; it is no word of what was said.
    if names and len(names) < len(wanted):
        wanted = {term: factor for term, factor in wanted.items() if term not in names}
    budget = engine.settings.posting_budget
    weight = engine.settings.rank_character
    characters = {term: weight for term in query_characters(rest) if term not in wanted} if weight else {}
    terms = engine.index.terms_of(user_id, wanted | characters, budget)
    return Asked(by_words=True, terms=terms, speakers=speakers, times=times)


def _named(engine: Engine, user_id: str, wanted: set[str]) -> tuple[frozenset[str], set[str]]:
    """Return the user's speakers whom the query names, and the terms that name them."""
    rows = engine.database.rows(
        "WITH RECURSIVE said(speaker) AS ("
        "SELECT min(speaker) FROM fragments"
        " WHERE user_id = :user AND deleted_at IS NULL AND speaker IS NOT NULL"
        " UNION ALL SELECT (SELECT min(f.speaker) FROM fragments AS f WHERE f.user_id = :user"
        " AND f.deleted_at IS NULL AND f.speaker IS NOT NULL AND f.speaker > said.speaker)"
        " FROM said WHERE said.speaker IS NOT NULL)"
        f" SELECT speaker FROM said WHERE speaker IS NOT NULL LIMIT {_MAX_SPEAKERS}",
        {"user": user_id},
    )
    speakers: set[str] = set()
    names: set[str] = set()
    for (speaker,) in rows:
        parts = set(text_terms(speaker)) & wanted
        if parts:
            speakers.add(speaker)
            names |= parts
    return frozenset(speakers), names
