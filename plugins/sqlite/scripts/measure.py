"""Measure the store and its channels against the bare statements: `python measure.py [ENTRIES ...]`.

Texts are random words of a Zipf-like vocabulary, vectors are random; both the same on every run. All times are CPU times of
the process, so that a busy machine does not decide; each search runs many times in turn with its floor, and the medians
are printed with their ratio.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import anyio
import apsw
import numpy as np

from narrowgate.memory.drafts import prepare
from narrowgate.recall.analysis import ANALYSER_VERSION, analyse_query, index_terms
from narrowgate.values.entry import EmbeddingProfile, EntryDraft, Put
from narrowgate.values.search import ChannelQuery
from narrowgate_sqlite.lexical import SqliteLexical, match_expression
from narrowgate_sqlite.settings import LexicalSettings, StoreSettings, VectorSettings
from narrowgate_sqlite.store import SqliteStore, open_store
from narrowgate_sqlite.vector import SqliteVector

DIMENSION, LIMIT, ROUNDS = 256, 120, 31
PROFILE = EmbeddingProfile("random", "1", DIMENSION)


class RandomEmbedder:
    """Gives a fixed vector for every text: the cost of a model is not measured here."""

    profile = PROFILE

    def __init__(self) -> None:
        vector = np.random.default_rng(7).standard_normal(DIMENSION).astype("f4")
        self.vector = vector / np.linalg.norm(vector)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:  # noqa: ARG002 - the port's signature
        """Return the vector once for each text."""
        return [self.vector for _ in texts]


def drafts(count: int) -> list[EntryDraft]:
    """Return random entries."""
    random.seed(1)
    words = [f"w{''.join(random.choices('abcdefghij', k=4))}{number}" for number in range(20_000)]  # noqa: S311
    weights = [1 / (number + 3) for number in range(20_000)]
    return [
        EntryDraft(
            " ".join(random.choices(words, weights, k=random.randint(5, 20))),  # noqa: S311
            source=f"set/{number}",
            author=f"a{number % 7}",
            occurred_at="2026-03-01T10:00+01:00",
        )
        for number in range(count)
    ]


def ingest_floor(path: Path, puts: Sequence[Put]) -> tuple[float, float]:
    """Return seconds of a bare executemany of the same rows into a table and an FTS5 index, without and with analysis."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = wal").fetchall()
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text, kind, source UNIQUE, author, occurred, attributes, digest)")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(terms, content='', contentless_delete=1, tokenize=ascii)")
    contents = [put.content for put in puts]
    rows = [(c.text, c.kind, c.source, c.author, str(c.occurred_at), "{}", c.digest) for c in contents]
    started = process_time()
    terms = [" ".join(index_terms(c.text)) for c in contents]
    analysis = process_time() - started
    started = process_time()
    with db:
        db.executemany("INSERT INTO t VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO f (rowid, terms) VALUES (?, ?)", enumerate(terms, 1))
    bare = process_time() - started
    db.close()
    return bare, bare + analysis


async def compare(name: str, floor: Callable[[], Any], ours: Callable[[], Awaitable[Any]]) -> None:
    """Print both medians in milliseconds, and their ratio."""
    floors, times = [], []
    for _ in range(ROUNDS):
        started = process_time()
        floor()
        floors.append(process_time() - started)
        started = process_time()
        await ours()
        times.append(process_time() - started)
    low, high = median(floors) * 1e3, median(times) * 1e3
    print(f"{name:34} floor {low:8.3f} ms   here {high:8.3f} ms   ratio {high / low:5.2f}")  # noqa: T201


async def measure(count: int) -> None:
    """Measure with `count` entries."""
    with tempfile.TemporaryDirectory() as folder:
        puts = [put for put in map(prepare, drafts(count)) if isinstance(put, Put)]
        bare, analysed = ingest_floor(Path(folder) / "floor.db", puts)
        async with open_store(StoreSettings(path=Path(folder) / "m.db"), ANALYSER_VERSION) as store:
            started = process_time()
            await store.commit("m", puts)
            took = process_time() - started
            print(  # noqa: T201
                f"{count} entries: ingest {took:.3f} s; bare {bare:.3f} s (ratio {took / bare:.2f}), bare with analysis "
                f"{analysed:.3f} s (ratio {took / analysed:.2f})"
            )
            started = process_time()
            await store.commit("m", puts)
            print(f"  the same again (all unchanged)    {process_time() - started:.3f} s")  # noqa: T201
            await fill_vectors(store, count)
            await searches(store, puts)


async def fill_vectors(store: SqliteStore, count: int) -> None:
    """Give every entry a random unit vector."""
    made = np.random.default_rng(3).standard_normal((count, DIMENSION)).astype("f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)

    def write(db: apsw.Connection) -> None:
        ids = [row[0] for row in db.execute("SELECT current FROM entries ORDER BY id")]
        db.executemany("INSERT INTO vectors VALUES (?, ?)", ((n, v.tobytes()) for n, v in zip(ids, made, strict=True)))
        db.execute("INSERT INTO meta VALUES ('embedding', ?)", (str(PROFILE),))

    await store.engine.write(write)


async def searches(store: SqliteStore, puts: Sequence[Put]) -> None:
    """Measure the channels."""
    lexical, exact = SqliteLexical(store, LexicalSettings()), SqliteLexical(store, LexicalSettings(prune_share=1.0))
    db = apsw.Connection(str(store.path))
    db.execute("PRAGMA cache_size = -32768; PRAGMA mmap_size = 1073741824").fetchall()
    common = [word.content.text.split() for word in puts[:40]]
    for label, text in (("3 terms", " ".join(common[0][:3])), ("8 terms", " ".join(common[1] + common[2])[:400])):
        query = ChannelQuery(analyse_query(" ".join(text.split()[: int(label[0])])), ("m",), (), LIMIT)
        sql = "SELECT rowid, bm25(lexical) AS s FROM lexical WHERE lexical MATCH ? ORDER BY s LIMIT ?"
        match = match_expression(query.query.terms)

        def floor(sql: str = sql, match: str = match) -> Any:
            return db.execute(sql, (match, LIMIT)).fetchall()

        await compare(f"lexical, {label}", floor, lambda q=query: lexical.find(q))  # type: ignore[misc]
        await compare(f"lexical, {label}, nothing pruned", floor, lambda q=query: exact.find(q))  # type: ignore[misc]
    embedder = RandomEmbedder()
    vector = SqliteVector(store, embedder, VectorSettings())
    started = process_time()
    await vector.find(query)
    print(f"vector, first search (loads all)   {(process_time() - started) * 1e3:8.1f} ms")  # noqa: T201
    segment = next(iter(vector._segments.values()))
    matrix = segment.matrix[: segment.count]

    def product() -> Any:
        found = matrix @ embedder.vector
        top = np.argpartition(found, -LIMIT)[-LIMIT:]
        return top[np.argsort(-found[top])].tolist()

    await compare("vector", product, lambda: vector.find(query))
    hits = (await vector.find(query)).hits
    await compare("resolve 120 hits (floor: nothing)", lambda: None, lambda: store.resolve({"m": 1}, hits))


if __name__ == "__main__":
    for size in [int(word) for word in sys.argv[1:]] or [10_000, 100_000]:
        anyio.run(measure, size)
