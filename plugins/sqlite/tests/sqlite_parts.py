"""Parts of the tests: a real file opened with its channels, a tiny embedder, and what agrees with what."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import attrs
import numpy as np

from narrowgate.memory.drafts import prepare_strictly
from narrowgate.recall.analysis import ANALYSER_VERSION, analyse_query, index_terms
from narrowgate.values.entry import EmbeddingProfile, EntryDraft, Operation, Put, VectorBatch, WriteReceipt
from narrowgate.values.filters import Filter
from narrowgate.values.search import ChannelQuery, ChannelResult
from narrowgate_sqlite.lexical import SqliteLexical
from narrowgate_sqlite.settings import LexicalSettings, StoreSettings, VectorSettings
from narrowgate_sqlite.store import SqliteStore, open_store
from narrowgate_sqlite.vector import SqliteVector, open_vector


class HashEmbedder:
    """Sums one fixed vector for each word of a text: near texts share words."""

    def __init__(self, version: str = "1", dimension: int = 16) -> None:
        self.profile = EmbeddingProfile("hash", version, dimension)
        self.asked: list[tuple[int, bool]] = []

    def vector(self, text: str) -> Any:
        """Return the unit vector of a text."""
        total = np.zeros(self.profile.dimension)
        for term in (*index_terms(text), self.profile.version):
            seed = hashlib.sha256(term.encode()).digest()
            total += np.frombuffer(seed * 8, dtype=np.int8)[: self.profile.dimension].astype(float)
        return (total / np.linalg.norm(total)).astype(np.float32)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Any]:
        """Return the vectors of texts."""
        self.asked.append((len(texts), query))
        return [self.vector(text) for text in texts]


def put(text: str, *, entry: str | None = None, version: int | None = None, **fields: Any) -> Put:
    """Return the operation that stores a text."""
    return prepare_strictly(EntryDraft(text, entry=entry, expected_version=version, **fields))


@attrs.frozen
class Opened:
    """A file with its channels."""

    store: SqliteStore
    lexical: SqliteLexical
    vector: SqliteVector | None
    embedder: HashEmbedder | None

    async def commit(self, operations: Sequence[Operation], memory: str = "m", **options: Any) -> WriteReceipt:
        """Commit with the vectors of all texts, where there is an embedder."""
        if self.embedder is not None and "vectors" not in options:
            options["vectors"] = vectors_of(self.embedder, operations)
        return await self.store.commit(memory, operations, **options)

    async def words(self, text: str, *filters: Filter, memories: Sequence[str] = ("m",), limit: int = 50) -> ChannelResult:
        """Search by words."""
        return await self.lexical.find(ChannelQuery(analyse_query(text), tuple(memories), filters, limit))

    async def near(self, text: str, *filters: Filter, memories: Sequence[str] = ("m",), limit: int = 50) -> ChannelResult:
        """Search by vectors."""
        assert self.vector is not None
        return await self.vector.find(ChannelQuery(analyse_query(text), tuple(memories), filters, limit))

    async def texts(self, result: ChannelResult) -> list[str]:
        """Return the texts of hits, in their order."""
        found = await self.store.resolve(result.revisions, result.hits)
        return [found[hit.memory, hit.entry, hit.version].content.text for hit in result.hits]


def vectors_of(embedder: HashEmbedder, operations: Sequence[Operation]) -> VectorBatch:
    """Return the vectors that go with a batch."""
    texts = {item.content.text for item in operations if isinstance(item, Put)}
    return VectorBatch(embedder.profile, {text: embedder.vector(text) for text in texts})


@asynccontextmanager
async def opened(
    path: Path,
    embedder: HashEmbedder | None = None,
    *,
    analyser: str = ANALYSER_VERSION,
    lexical: LexicalSettings | None = None,
    vector: VectorSettings | None = None,
    **settings: Any,
) -> AsyncIterator[Opened]:
    """Open a file."""
    async with open_store(StoreSettings(path=path, **settings), analyser) as store:
        near = None if embedder is None else await open_vector(store, embedder, vector or VectorSettings())
        yield Opened(store, SqliteLexical(store, lexical or LexicalSettings()), near, embedder)


def disagreements(path: Path, embedder: HashEmbedder | None = None) -> list[str]:
    """Return where the indexes of a file do not agree with its entries; reads the file by itself."""
    db = apsw.Connection(str(path))
    try:
        found = []
        if db.pragma("integrity_check") != "ok":
            found.append("integrity_check")
        db.execute("INSERT INTO lexical (lexical) VALUES ('integrity-check')")
        active = dict(db.execute("SELECT e.id, v.text FROM entries e JOIN versions v ON v.id = e.current WHERE e.active"))
        indexed = {row[0] for row in db.execute("SELECT id FROM lexical_docsize")}
        if indexed != set(active):
            found.append("rows of the lexical index")
        frequency: dict[str, int] = {}
        for text in active.values():
            for term in set(index_terms(text)):
                frequency[term] = frequency.get(term, 0) + 1
        if frequency != dict(db.execute("SELECT term, doc FROM lexical_terms")):
            found.append("terms of the lexical index")
        counted = db.execute(
            "SELECT memory, sum(active), sum(NOT active), max(current) FROM entries GROUP BY memory ORDER BY memory"
        ).fetchall()
        stored = db.execute("SELECT id, active, inactive FROM memories ORDER BY id").fetchall()
        if [row[:3] for row in counted] != stored:
            found.append("counts of memories")
        if db.execute(
            "SELECT 1 FROM versions v JOIN entries e ON e.id = v.entry WHERE (v.until IS NULL) <> (e.current = v.id)"
        ).fetchall():
            found.append("current versions")
        if db.execute(
            "SELECT 1 FROM memories m WHERE revision <> (SELECT count(*) FROM revisions WHERE memory = m.id)"
        ).fetchall():
            found.append("revisions")
        if embedder is not None:
            rows = db.execute("SELECT v.text, t.vector FROM vectors t JOIN versions v ON v.id = t.id WHERE v.until IS NULL")
            if any(blob != embedder.vector(text).astype("<f4").tobytes() for text, blob in rows):
                found.append("vectors")
            if db.execute("SELECT 1 FROM vectors WHERE id NOT IN (SELECT current FROM entries)").fetchall():
                found.append("vectors of old versions")
        return found
    finally:
        db.close()
