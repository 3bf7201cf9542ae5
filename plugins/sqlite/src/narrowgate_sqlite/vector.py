"""The vector channel: exact cosine search, one matrix product for each memory asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowgate.errors import ChannelError
from narrowgate.seams.ports import Embedder
from narrowgate.values.decision import Usage
from narrowgate.values.search import ChannelHit, ChannelKind, ChannelQuery, ChannelResult
from narrowgate_sqlite._engine import Reader
from narrowgate_sqlite._faults import foreign_vectors
from narrowgate_sqlite._filters import conditions
from narrowgate_sqlite._matrix import Floats, Ints, Segment, best, follow, load, scores
from narrowgate_sqlite._schema import SHIFT, get_meta
from narrowgate_sqlite.settings import VectorSettings
from narrowgate_sqlite.store import SqliteStore

_NAME = "sqlite.vector"


class SqliteVector:
    """Finds entries whose vectors are near the query's; implements `RecallChannel`.

    The vectors of the memories asked for are kept in memory, shared by all searches, and follow the change list: what this
    or another process wrote before a search is in it.
    """

    def __init__(self, store: SqliteStore, embedder: Embedder, settings: VectorSettings) -> None:
        self._store, self._embedder, self._settings = store, embedder, settings
        self._segments: dict[int, Segment] = {}
        self._lock = threading.Lock()

    @property
    def kind(self) -> ChannelKind:
        """Meaning."""
        return ChannelKind.VECTOR

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Return the entries of largest cosine, by score, then by entry id; `complete` when each active entry has a vector.

        Raises:
            ChannelError: the embedder failed.
            StoreError: `embedding-profile-mismatch`, or the file cannot be read.
            FilterError: a filter that is not known.
        """
        usage = Usage(calls=1, requests=1)
        dimension = self._embedder.profile.dimension
        try:
            made = await self._embedder.embed([query.query.text], query=True)
            vector: Floats = np.asarray(made, dtype=np.float32).reshape(dimension)
        except Exception as error:  # third-party code of any kind; cancellation is no Exception and passes
            raise ChannelError(_NAME, f"{_NAME}: the embedder failed ({type(error).__name__})", usage) from error
        hits, revisions, complete = await self._store.engine.read(lambda reader: self._find(reader, query, vector))
        return ChannelResult(hits, revisions, complete, usage)

    def _find(
        self, reader: Reader, query: ChannelQuery, vector: Floats
    ) -> tuple[tuple[ChannelHit, ...], dict[str, int], bool]:
        clause, values = conditions(query.filters)
        revisions = dict.fromkeys(query.memories, 0)
        names: dict[int, str] = {}
        segments: list[tuple[int, Segment]] = []
        complete = True
        with self._lock:  # the snapshot begins in here, so no segment is ever ahead of it
            self.require_profile(reader)
            for memory in query.memories:
                row = reader.db.execute(
                    "SELECT id, revision, next, vector_epoch, active FROM memories WHERE name = ?", (memory,)
                ).fetchone()
                if row is not None:
                    names[row[0]], revisions[memory] = memory, row[1]
                    segment = self._segment(reader, row[0], *row[2:])
                    segments.append((row[0], segment))
                    complete = complete and segment.living == row[4]
        found: list[tuple[Ints, Any]] = []
        for memory_number, segment in segments:
            values_of = scores(segment, vector)
            if clause:
                found.append(self._filtered(reader, memory_number, segment, values_of, clause, values, query.limit))
            else:
                found.append(best(values_of, segment.ids[: segment.count], query.limit))
        return _hits(reader, found, names, query.limit), revisions, complete

    def require_profile(self, reader: Reader) -> None:
        """Look whether the file's vectors, if there are any, are those of the embedder in use.

        Raises:
            StoreError: `embedding-profile-mismatch`.
        """
        expected, known = str(self._embedder.profile), get_meta(reader.db, "embedding")
        if known not in (None, expected) and reader.db.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None:
            raise foreign_vectors(self._store.path, str(known), expected).error()

    def _segment(self, reader: Reader, memory: int, following: int, epoch: int, active: int) -> Segment:
        old = self._segments.get(memory)
        if old is not None and old.next == following and old.epoch == epoch:
            return old
        dimension = self._embedder.profile.dimension
        if old is None or old.epoch != epoch:
            new = load(reader.db, memory, following, epoch, dimension, active)
        else:
            new = follow(reader.db, memory, old, following, dimension)
        self._segments[memory] = new
        return new

    def _filtered(
        self, reader: Reader, memory: int, segment: Segment, values: Floats, clause: str, bound: Sequence[Any], limit: int
    ) -> tuple[Ints, Any]:
        """Return the best that pass the filters: of the very best first, of all when those are too few."""
        ids = segment.ids[: segment.count]
        first = max(self._settings.filter_first, limit)
        top, top_scores = best(values, ids, first)
        rows = reader.db.execute(
            "SELECT f.id FROM json_each(?) j CROSS JOIN entries f ON f.id = j.value "  # noqa: S608 - conditions of ours
            f"CROSS JOIN versions v ON v.id = f.current WHERE 1{clause}",
            (json.dumps(top.tolist()), *bound),
        )
        kept = np.isin(top, [row[0] for row in rows])
        if int(kept.sum()) >= limit or segment.living <= first:
            return top[kept][:limit], top_scores[kept][:limit]
        low = memory << SHIFT
        rows = reader.db.execute(
            "SELECT f.id FROM entries f CROSS JOIN versions v ON v.id = f.current "  # noqa: S608 - conditions of ours
            f"WHERE f.id BETWEEN ? AND ? AND f.active = 1{clause}",
            (low, low | ((1 << SHIFT) - 1), *bound),
        )
        allowed = np.isin(ids, np.asarray([row[0] for row in rows], dtype=np.int64))
        return best(np.where(allowed, values, np.float32(-np.inf)), ids, limit)


def _hits(reader: Reader, found: Sequence[tuple[Ints, Any]], names: dict[int, str], limit: int) -> tuple[ChannelHit, ...]:
    ranked = sorted(
        (-score, number) for ids, values in found for number, score in zip(ids.tolist(), values.tolist(), strict=True)
    )
    scored = {number: -score for score, number in ranked[:limit]}
    rows = reader.db.execute(
        "SELECT e.id, e.name, e.version FROM json_each(?) j CROSS JOIN entries e ON e.id = j.value",
        (json.dumps(list(scored)),),
    )
    hits = [
        ChannelHit(names[number >> SHIFT], entry, version, min(1.0, max(-1.0, scored[number])))
        for number, entry, version in rows
    ]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.entry)))


async def open_vector(store: SqliteStore, embedder: Embedder, settings: VectorSettings) -> SqliteVector:
    """Return the channel over the store's file.

    Raises:
        StoreError: `embedding-profile-mismatch`.
    """
    channel = SqliteVector(store, embedder, settings)
    await store.engine.read(channel.require_profile)
    return channel
