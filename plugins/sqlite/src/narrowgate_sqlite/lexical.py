"""The lexical channel: BM25 over pre-analysed terms in FTS5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from narrowgate.seams.ports import TermStatistics
from narrowgate.values.search import ChannelKind, ChannelQuery, ChannelResult
from narrowgate_sqlite._engine import Reader
from narrowgate_sqlite._filters import conditions
from narrowgate_sqlite._read import contents, memory_numbers
from narrowgate_sqlite._schema import SHIFT
from narrowgate_sqlite._sql import as_hit, fetch_rows, fetch_value
from narrowgate_sqlite.settings import LexicalSettings
from narrowgate_sqlite.store import SqliteStore

_FILTERED: Final = "CROSS JOIN entries f ON f.id = lexical.rowid CROSS JOIN versions v ON v.id = f.current"


class SqliteLexical:
    """Finds entries that share terms with the query; implements `RecallChannel` and `StatisticsSource`.

    Scores are those of FTS5's `bm25()` (k1 = 1.2, b = 0.75) with the sign turned, so that higher is better. FTS5 takes an
    IDF that is not positive (a term in half of all texts or more) as 1e-6, so every match scores above 0. Document
    frequencies are those of the whole file, over all its memories.
    """

    def __init__(self, store: SqliteStore, settings: LexicalSettings) -> None:
        self._store, self._settings = store, settings

    @property
    def kind(self) -> ChannelKind:
        """Words."""
        return ChannelKind.LEXICAL

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Return entries that hold any of the query's terms, by score, then by entry id.

        Raises:
            StoreError: `analyser-mismatch`, or the file cannot be read.
            FilterError: a filter that is not known.
        """
        return await self._store.engine.read(lambda reader: self._find(reader, query))

    async def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """Return how many active entries of all memories there are, and how many hold each term."""

        def look(reader: Reader) -> TermStatistics:
            self._store.require_index(reader.db)
            documents = _documents(reader)
            return TermStatistics(documents, {term: n for term, n in _frequencies(reader, terms).items() if n})

        return await self._store.engine.read(look)

    def _find(self, reader: Reader, query: ChannelQuery) -> ChannelResult:
        db = reader.db
        self._store.require_index(db)
        numbers = memory_numbers(db, query.memories)
        revisions = {name: numbers[name][1] if name in numbers else 0 for name in query.memories}
        clause, values = conditions(query.filters)
        terms = self._prune(reader, query.query.terms)
        pruned = len(query.query.terms) - len(terms)
        if not terms or not numbers:
            return ChannelResult((), revisions, pruned_terms=pruned)
        names = {number: name for name, (number, _) in numbers.items()}
        where, bound = _restriction(reader, sorted(names))
        sql = (
            "SELECT h.id, e.name, e.version, h.score FROM (SELECT lexical.rowid AS id, bm25(lexical) AS score FROM lexical "  # noqa: S608
            f"{_FILTERED if clause else ''} WHERE lexical MATCH ?{where}{clause} ORDER BY score, lexical.rowid LIMIT ?) h "
            "CROSS JOIN entries e ON e.id = h.id ORDER BY h.score, e.name"
        )
        rows = fetch_rows(db, sql, (match_expression(terms), *bound, *values, query.limit))
        hits = tuple([as_hit((names[number >> SHIFT], name, version, -score)) for number, name, version, score in rows])
        texts = contents(db, names, revisions, [row[0] for row in rows[: query.contents]]) if query.contents else {}
        return ChannelResult(hits, revisions, pruned_terms=pruned, contents=texts)

    def _prune(self, reader: Reader, terms: Sequence[str]) -> Sequence[str]:
        """Leave out what is common: see `LexicalSettings`."""
        settings = self._settings
        if len(terms) <= settings.keep_terms:
            return terms
        documents = _documents(reader)
        if documents <= 2 * settings.prune_rows and len(terms) <= settings.max_terms:
            return terms  # what could go is in half of all texts and weighs nothing: not worth asking for frequencies
        frequency = _frequencies(reader, terms)
        ordered = sorted((frequency[term], term) for term in terms if frequency[term])
        limit = max(settings.prune_rows, settings.prune_share * documents)
        cheap = [term for place, (n, term) in enumerate(ordered) if place < settings.keep_terms or n <= limit]
        return cheap[: settings.max_terms]


def match_expression(terms: Iterable[str]) -> str:
    """Return the OR of quoted terms: no part of a term is ever syntax."""
    return " OR ".join(['"' + term.replace('"', '""') + '"' for term in terms])


def _documents(reader: Reader) -> int:
    return int(fetch_value(reader.db, "SELECT ifnull(sum(active), 0) FROM memories"))


def _frequencies(reader: Reader, terms: Sequence[str]) -> dict[str, int]:
    known = reader.frequency()
    if len(known) > 100_000:
        known.clear()
    found = {}
    for term in terms:
        count = known.get(term)
        if count is None:
            row = reader.db.execute("SELECT doc FROM lexical_terms WHERE term = ?", (term,)).fetchone()
            count = known[term] = 0 if row is None else int(row[0])
        found[term] = count
    return found


def _restriction(reader: Reader, memories: Sequence[int]) -> tuple[str, list[Any]]:
    """Return the condition that keeps rows of the memories, and its values; empty when the file holds no other."""
    if len(memories) == 1:
        low = memories[0] << SHIFT
        return " AND lexical.rowid BETWEEN ? AND ?", [low, low | ((1 << SHIFT) - 1)]
    if len(memories) == fetch_value(reader.db, "SELECT count(*) FROM memories"):
        return "", []
    return f" AND (lexical.rowid >> {SHIFT}) IN (SELECT value FROM json_each(?))", [json.dumps(memories)]  # noqa: S608
