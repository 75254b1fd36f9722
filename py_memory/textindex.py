"""The text index: terms in, scored fragments out. Every term carries its user.

A posting of another user is never met, so neither hits nor scores depend on whose rows stand
beside them: document counts, term counts and lengths are all the user's own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from py_memory.database import Database
from py_memory.text import ANALYSIS_VERSION, every_term, terms

# BM25 as usual (Robertson and Zaragoza 2009), with the lengths of chat turns in mind.
_K1 = 1.2
_B = 0.75

# A query of more words is asked by its rarest; of very many, rare is taken to mean long.
_MAX_TERMS = 64
_MAX_COUNTED = 2_000
_COMMON = 1_000
_TELLING = 0.1


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a query: its weight by how rare it is, and how many fragments have it."""

    text: str
    weight: float
    documents: int


@dataclass(frozen=True, slots=True)
class Match:
    """One fragment that a query meets: its row, its BM25 sum, and the weight of the terms it has."""

    pk: int
    bm25: float
    covered: float


class TextIndex:
    """The index of one database.

    Sizes are kept in memory between writes, until another connection writes or one is undone.
    """

    def __init__(self, database: Database) -> None:
        """Stand on an open database."""
        self._database = database
        self._tags: dict[str, str] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._version = 0
        self._undone = 0

    def forget_cache(self) -> None:
        """Drop what was read of users; their rows may have changed."""
        self._tags.clear()
        self._sizes.clear()

    def add(self, pk: int, user_id: str, found: Sequence[str]) -> None:
        """Index a fragment's terms, as `text.terms` gives them."""
        self._drop_undone()
        if user_id in self._sizes:
            count, total = self._sizes[user_id]
            self._sizes[user_id] = (count + 1, total + len(found))
        if found:
            self._database.connection.execute(
                "INSERT INTO text_index (rowid, terms) VALUES (?, ?)",
                (pk, self._tagged(user_id, found)),
            )

    def remove(self, pk: int, user_id: str, text: str) -> None:
        """Take a fragment out; the text must be the one that was indexed."""
        found = terms(text)
        if found:
            self._database.connection.execute(
                "INSERT INTO text_index (text_index, rowid, terms) VALUES ('delete', ?, ?)",
                (pk, self._tagged(user_id, found)),
            )

    def ensure(self) -> None:
        """Make the index anew when it was made by another version of the text analysis."""
        row = self._database.row("SELECT value FROM properties WHERE name = 'text_analysis'")
        if row is None or row[0] != str(ANALYSIS_VERSION):
            self.rebuild()

    def rebuild(self) -> int:
        """Make the index anew from the fragments, in one transaction; gives how many it holds."""
        with self._database.atomic() as connection:
            connection.execute("INSERT INTO text_index (text_index) VALUES ('delete-all')")
            rows = connection.execute("SELECT pk, user_id, content FROM fragments").fetchall()
            self.forget_cache()
            for pk, user_id, content in rows:
                found = terms(content)
                self.add(pk, user_id, found)
                connection.execute(
                    "UPDATE fragments SET terms = ? WHERE pk = ? AND terms <> ?",
                    (len(found), pk, len(found)),
                )
            connection.execute(
                "INSERT INTO properties (name, value) VALUES ('text_analysis', ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (str(ANALYSIS_VERSION),),
            )
        self.forget_cache()
        return len(rows)

    def check(self) -> bool:
        """Tell whether the index agrees with itself."""
        self._database.rows("INSERT INTO text_index (text_index) VALUES ('integrity-check')")
        return True

    def terms_of(self, user_id: str, asked: Mapping[str, float], budget: int) -> list[Term]:
        """Return those of the terms that this user's text has, the most telling first.

        `asked` gives each term the factor of its weight.

        At most 64 terms are kept, from the rarest on, while all their postings stay within the
        budget; one is always kept. A term of more than 1,000 fragments that weighs less than a
        tenth of the rarest is left out.
        """
        tag = self._tag(user_id)
        if tag is None:
            return []
        documents = self.size(user_id)[0]
        weighed: list[Term] = []
        counted = list(asked)
        if len(counted) > _MAX_COUNTED:
            counted = sorted(counted, key=lambda term: (-len(term), term))[:_MAX_COUNTED]
        for wanted in counted:
            count = self._count(tag + wanted)
            if count:
                weight = math.log(1 + max(documents - count + 0.5, 0.5) / (count + 0.5))
                weighed.append(Term(wanted, weight * asked[wanted], count))
        weighed.sort(key=lambda term: (term.documents, term.text))
        kept: list[Term] = []
        spent = 0
        for term in weighed[:_MAX_TERMS]:
            spent += term.documents
            if kept and spent > budget:
                break
            if kept and term.documents > _COMMON and term.weight < _TELLING * kept[0].weight:
                # Nearly everything has it: much to read, and it tells nothing apart.
                spent -= term.documents
                continue
            kept.append(term)
        return kept

    def size(self, user_id: str) -> tuple[int, float]:
        """Return how many fragments a user has, and their mean number of terms."""
        self._drop_undone()
        version = self._database.row("PRAGMA data_version")[0]
        if version != self._version:
            # Another connection has written.
            self.forget_cache()
            self._version = version
        if user_id not in self._sizes:
            count, total = self._database.row(
                "SELECT count(*), total(terms) FROM fragments INDEXED BY fragments_timeline"
                " WHERE user_id = ? AND deleted_at IS NULL",
                (user_id,),
            )
            self._sizes[user_id] = (int(count), int(total))
        count, total = self._sizes[user_id]
        return count, (total / count if count else 0.0)

    def matches(
        self,
        user_id: str,
        wanted: Sequence[Term],
        where: str,
        params: dict[str, object],
        limit: int,
    ) -> list[Match]:
        """Return the fragments with the highest BM25 that meet a condition on `fragments AS f`."""
        tag = self._tag(user_id)
        if tag is None or not wanted:
            return []
        postings = " UNION ALL ".join(
            f"SELECT doc, :w{i} AS w, count(*) AS n FROM text_terms"
            f" WHERE {_within(term.text, i)} GROUP BY doc"
            for i, term in enumerate(wanted)
        )
        bound: dict[str, object] = {"user_id": user_id, "limit": limit, **params}
        for i, term in enumerate(wanted):
            bound[f"w{i}"] = term.weight
            bound.update(_bounds(tag + term.text, i))
        bound["mean"] = max(self.size(user_id)[1], 1.0)
        # Rounding hides the order of summation, which is the engine's own affair.
        rows = self._database.rows(
            f"""
            SELECT f.pk,
                round(sum(h.w * h.n * {_K1 + 1} / (h.n + {_K1} * ({1 - _B} + {_B} * f.terms / :mean))), 12)
                    AS bm25,
                round(sum(h.w), 12)
            FROM ({postings}) AS h CROSS JOIN fragments AS f ON f.pk = h.doc
            WHERE f.user_id = :user_id AND f.deleted_at IS NULL AND {where}
            GROUP BY f.pk
            ORDER BY bm25 DESC, f.happened_at DESC, f.stored_at DESC, f.id DESC
            LIMIT :limit
            """,
            bound,
        )
        return [Match(*row) for row in rows]

    def holding_all(self, user_id: str, query: str) -> list[int] | None:
        """Return the rows that have every term of a query; `None` if the query has no terms.

        Common words count too: leaving them out would select more than was asked for.
        """
        wanted = every_term(query)
        tag = self._tag(user_id)
        if not wanted or tag is None:
            return [] if wanted else None
        found: set[int] | None = None
        for term in wanted:
            rows = self._database.rows(
                f"SELECT DISTINCT doc FROM text_terms WHERE {_within(term, 0)}",
                _bounds(tag + term, 0),
            )
            docs = {row[0] for row in rows}
            found = docs if found is None else found & docs
            if not found:
                return []
        return sorted(found or ())

    def _count(self, term: str) -> int:
        row = self._database.row(
            f"SELECT total(doc) FROM text_counts WHERE {_within(term, 0)}", _bounds(term, 0)
        )
        return int(row[0])

    def _tagged(self, user_id: str, found: Sequence[str]) -> str:
        tag = self._tag(user_id) or ""
        return tag + f" {tag}".join(found)

    def _drop_undone(self) -> None:
        """Drop what was read in a transaction that was undone since."""
        if self._undone != self._database.undone:
            self.forget_cache()
            self._undone = self._database.undone

    def _tag(self, user_id: str) -> str | None:
        self._drop_undone()
        tag = self._tags.get(user_id)
        if tag is None:
            row = self._database.row("SELECT pk FROM users WHERE id = ?", (user_id,))
            if row is None:
                return None
            tag = self._tags[user_id] = f"{row[0]}|"
        return tag


def _within(term: str, i: int) -> str:
    return f"term >= :t{i} AND term < :u{i}" if term.endswith("*") else f"term = :t{i}"


def _bounds(term: str, i: int) -> dict[str, object]:
    if not term.endswith("*"):
        return {f"t{i}": term}
    # No term has a character of the last plane, so this is above all that begin alike.
    return {f"t{i}": term[:-1], f"u{i}": term[:-1] + "\U0010ffff"}
