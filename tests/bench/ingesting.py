"""Ingest against its floor: the same rows, index rows included, through bare `executemany` in as many transactions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import apsw
import attrs
from corpus import Corpus
from parts import MEMORY, HashEmbedder, opened, recorded

BATCH: Final = 1000
RATIO: Final = 3.0


@attrs.frozen
class Ingest:
    """How fast entries are stored.

    Attributes:
        first: seconds of the first time in a process, which meets every word for the first time and has to stem it.
        again: seconds of a second time, into another file.
        floor: seconds of the bare inserts of the same rows.
    """

    first: float
    again: float
    floor: float


async def fill(file: Path, texts: Sequence[str], embedder: HashEmbedder | None) -> float:
    """Store `texts` in batches and return the seconds it took; opening the file is not counted."""
    async with opened(file, embedder) as gate:
        started = perf_counter()
        for first in range(0, len(texts), BATCH):
            await gate.remember(MEMORY, texts[first : first + BATCH])
        return perf_counter() - started


async def measure(folder: Path, corpus: Corpus) -> Ingest:
    """Store the corpus without embedding, then insert the same rows bare."""
    first = await fill(folder / "first.db", corpus.texts, None)
    with recorded(_writes) as statements:
        await fill(folder / "recorded.db", corpus.texts, None)
    batches = _batches(statements)
    again, floor = [], []
    for number in range(3 if len(corpus.texts) <= 20_000 else 1):  # short work is measured again, since disks are moody
        again.append(await fill(folder / f"again-{number}.db", corpus.texts, None))
        floor.append(_bare(folder / "recorded.db", folder / f"bare-{number}.db", batches))
    return Ingest(first, statistics.median(again), statistics.median(floor))


def _writes(sql: str) -> bool:
    return sql.lstrip().upper().startswith(("INSERT", "COMMIT", "REPLACE"))


def _batches(statements: Sequence[Any]) -> list[dict[str, list[Any]]]:
    """Return, for each transaction that stored entries, its rows by statement."""
    batches: list[dict[str, list[Any]]] = []
    rows: dict[str, list[Any]] = {}
    for statement in statements:
        if not statement.sql.lstrip().upper().startswith("COMMIT"):
            rows.setdefault(statement.sql, []).append(statement.bindings)
        elif rows:
            batches.append(rows)
            rows = {}
    return batches


def _bare(like: Path, file: Path, batches: Sequence[dict[str, list[Any]]]) -> float:
    source = apsw.Connection(str(like), flags=apsw.SQLITE_OPEN_READONLY)
    shadows = {
        f"{name}_{part}"
        for (name,) in source.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'")
        for part in ("data", "idx", "content", "docsize", "config")
    }
    schema = [
        sql
        for name, sql in source.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        if name not in shadows
    ]
    db = apsw.Connection(str(file))
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768").fetchall()
    for sql in schema:
        db.execute(sql)
    started = perf_counter()
    for rows in batches:
        db.execute("BEGIN IMMEDIATE")
        for sql, bindings in rows.items():
            db.executemany(sql, bindings)
        db.execute("COMMIT")
    seconds = perf_counter() - started
    db.close()
    return seconds
