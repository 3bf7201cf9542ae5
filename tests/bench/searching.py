"""Search against its floor: the same FTS5 statement and the same matrix product, bare, query by query in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import apsw
import attrs
import numpy as np
from corpus import Corpus
from parts import MEMORY, HashEmbedder, opened, recorded

DEPTHS: Final = {"vector": 40, "hybrid": 120}
"""Candidates that the bare product picks: as many as the channel is asked for in that mode."""

RATIO: Final = 1.5


@attrs.frozen
class Timing:
    """One mode, milliseconds; `_cpu` is processor time of the whole process, which a busy neighbour disturbs less.

    Attributes:
        mode: the search mode.
        p50: median of a search.
        p95: its 95th percentile.
        floor: median of the bare statement, the bare product, or both.
        p50_cpu: median of a search.
        floor_cpu: median of the bare work.
    """

    mode: str
    p50: float
    p95: float
    floor: float
    p50_cpu: float
    floor_cpu: float

    @property
    def ratio(self) -> float:
        """Median of a search / median of its floor."""
        return self.p50 / self.floor

    @property
    def ratio_cpu(self) -> float:
        """The same of processor time."""
        return self.p50_cpu / self.floor_cpu


async def measure(file: Path, corpus: Corpus) -> list[Timing]:
    """Return a timing for each mode on a file that holds `corpus`."""
    embedder = HashEmbedder()
    statements = {mode: await _statements(file, corpus.queries, embedder, mode) for mode in ("lexical", "hybrid")}
    matrix = embedder.vectors(corpus.texts)
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    db.execute("PRAGMA cache_size = -32768; PRAGMA mmap_size = 1073741824").fetchall()

    def words(query: str, mode: str = "lexical") -> None:
        for statement in statements[mode][query]:
            db.execute(statement.sql, statement.bindings).fetchall()

    def vectors(query: str, mode: str = "vector") -> None:
        depth = min(DEPTHS[mode], len(matrix))
        scores = matrix @ embedder.vectors([query])[0]
        best = np.argpartition(scores, -depth)[-depth:]
        best[np.argsort(-scores[best])].tolist()

    def both(query: str) -> None:
        words(query, "hybrid")
        vectors(query, "hybrid")

    floors: dict[str, Callable[[str], None]] = {"lexical": words, "vector": vectors, "hybrid": both}
    async with opened(file, embedder) as gate:
        return [await _mode(gate, mode, floor, corpus.queries) for mode, floor in floors.items()]


async def _statements(file: Path, queries: Sequence[str], embedder: HashEmbedder, mode: str) -> dict[str, list[Any]]:
    """Return, for each query, the MATCH statements that its search in a mode really sends."""
    found = {}
    with recorded(lambda sql: " MATCH " in sql) as statements:
        async with opened(file, embedder) as gate:
            for query in queries:
                statements.clear()
                await gate.search(query, memory=MEMORY, mode=mode)
                found[query] = list(statements)
    if not any(found.values()):
        raise RuntimeError("no MATCH statement was seen: the floor would be empty")
    return found


async def _mode(gate: Any, mode: str, floor: Callable[[str], None], queries: Sequence[str]) -> Timing:
    ours, bare = [], []
    for query in queries[:10]:  # warm both
        await gate.search(query, memory=MEMORY, mode=mode)
        floor(query)
    for number, query in enumerate(queries):
        if number % 2:  # whoever comes second finds the processor's caches warm: take turns
            bare.append(_floor(floor, query))
        started = _clocks()
        await gate.search(query, memory=MEMORY, mode=mode)
        ours.append(_since(started))
        if not number % 2:
            bare.append(_floor(floor, query))
    (wall, cpu), (floor_wall, floor_cpu) = zip(*ours, strict=True), zip(*bare, strict=True)
    p95 = statistics.quantiles(wall, n=20)[-1]
    return Timing(mode, _median(wall), p95, _median(floor_wall), _median(cpu), _median(floor_cpu))


def _clocks() -> tuple[float, float]:
    return perf_counter(), process_time()


def _since(started: tuple[float, float]) -> list[float]:
    return [(after - before) * 1000 for before, after in zip(started, _clocks(), strict=True)]


def _floor(work: Callable[[str], None], query: str) -> list[float]:
    started = _clocks()
    work(query)
    return _since(started)


_median = statistics.median
