"""The vector channel: exact cosine search, one matrix product for each memory asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from narrowgate.decisions import account, code_of, spending
from narrowgate.errors import ChannelError, NarrowgateError
from narrowgate.seams.ports import Embedder
from narrowgate.values.decision import Usage
from narrowgate.values.search import ChannelHit, ChannelKind, ChannelQuery, ChannelResult
from narrowgate_sqlite._engine import Reader, TooLongHereError
from narrowgate_sqlite._faults import foreign_vectors
from narrowgate_sqlite._filters import conditions
from narrowgate_sqlite._matrix import Floats, Ints, Segment, best, follow, load, scores
from narrowgate_sqlite._read import contents
from narrowgate_sqlite._schema import SHIFT, get_meta
from narrowgate_sqlite._sql import as_hit, fetch_rows
from narrowgate_sqlite.settings import VectorSettings
from narrowgate_sqlite.store import SqliteStore

_NAME = "sqlite.vector"

_MEMORY: Final = """
SELECT id, revision, next, vector_epoch, active, (SELECT value FROM meta WHERE key = 'embedding')
FROM memories WHERE name = ?
"""

BRIEF: Final = 6_000_000
"""The most multiplications of a search that is done in the event loop's thread: 10,000 vectors of 512, which are 20 MB to
look at and take from a half to a few milliseconds (docs/adr/0009-brief-reads.md)."""


class SqliteVector:
    """Finds entries whose vectors are near the query's; implements `RecallChannel`.

    The vectors of the memories asked for are kept in memory, shared by all searches, and follow the change list: what this
    or another process wrote before a search is in it.
    """

    def __init__(self, store: SqliteStore, embedder: Embedder, settings: VectorSettings) -> None:
        self._store, self._embedder, self._settings = store, embedder, settings
        self._profile = str(embedder.profile)
        self._segments: dict[int, Segment] = {}
        self._rows: dict[str, int] = {}
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
        dimension = self._embedder.profile.dimension

        def usage() -> Usage:
            # An embedder that keeps no account counts as one call.
            return spent.usage or Usage(calls=1, requests=1)

        with spending(usage), account() as spent:
            try:
                made = await self._embedder.embed([query.query.text], query=True)
                vector: Floats = np.asarray(made, dtype=np.float32).reshape(dimension)
                if not np.isfinite(vector).all():
                    raise ValueError("not finite")  # compared with anything it would only look like no match
            except Exception as error:  # third-party code of any kind; cancellation is no Exception and passes
                # Our own messages are free of content; of a foreign one only the type is told.
                why = str(error) if isinstance(error, NarrowgateError) else type(error).__name__
                text = f"{_NAME}: the embedder failed ({why})"
                raise ChannelError(_NAME, text, usage(), code_of(error)) from error
        cost = usage()
        if self._is_brief(query, dimension):
            found = await self._store.engine.read_brief(lambda reader: self._find(reader, query, vector, cost, brief=True))
            if found is not None:
                return found
        return await self._store.engine.read(lambda reader: self._find(reader, query, vector, cost))

    def _is_brief(self, query: ChannelQuery, dimension: int) -> bool:
        """Tell whether a search costs little more than one small product: filters may cost anything."""
        rows = [self._rows.get(memory) for memory in query.memories]
        return not query.filters and None not in rows and sum(filter(None, rows)) * dimension <= BRIEF

    def _find(
        self, reader: Reader, query: ChannelQuery, vector: Floats, usage: Usage, *, brief: bool = False
    ) -> ChannelResult:
        clause, values = conditions(query.filters)
        revisions = dict.fromkeys(query.memories, 0)
        segments: list[tuple[str, int, Segment]] = []
        complete = True
        if not self._lock.acquire(blocking=not brief):
            raise TooLongHereError
        try:  # the snapshot begins in here, so no segment is ever ahead of it
            for memory in query.memories:
                row = reader.db.execute(_MEMORY, (memory,)).fetchone()
                if row is not None:
                    number, revision, following, epoch, active, profile = row
                    if profile != self._profile:
                        self.require_profile(reader)
                    revisions[memory] = revision
                    segment = self._segment(reader, number, following, epoch, active, brief=brief)
                    segments.append((memory, number, segment))
                    complete = complete and segment.living == active
                    self._rows[memory] = segment.count
        finally:
            self._lock.release()
        hits: list[ChannelHit] = []
        numbers: list[int] = []
        for memory, number, segment in segments:
            near = scores(segment, vector)
            if clause:
                rows, found = self._filtered(reader, number, segment, near, clause, values, query.limit)
            else:
                rows, found = best(near, segment, query.limit)
            labels = segment.labels
            hits += [as_hit((memory, *labels[row], score)) for row, score in zip(rows.tolist(), found.tolist(), strict=True)]
            numbers += segment.ids[rows].tolist()
        if len(segments) > 1:
            order = sorted(range(len(hits)), key=lambda place: (-hits[place].score, hits[place].entry))
            hits, numbers = [hits[place] for place in order], [numbers[place] for place in order]
        wanted = numbers[: query.contents]
        names = {number: memory for memory, number, _ in segments}
        texts = contents(reader.db, names, revisions, wanted) if wanted else {}
        return ChannelResult(tuple(hits[: query.limit]), revisions, complete, usage, contents=texts)

    def require_profile(self, reader: Reader) -> None:
        """Look whether the file's vectors, if there are any, are those of the embedder in use.

        Raises:
            StoreError: `embedding-profile-mismatch`.
        """
        known = get_meta(reader.db, "embedding")
        if known not in (None, self._profile) and reader.db.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None:
            raise foreign_vectors(self._store.path, str(known), self._profile).error()

    def _segment(
        self, reader: Reader, memory: int, following: int, epoch: int, active: int, *, brief: bool = False
    ) -> Segment:
        old = self._segments.get(memory)
        if old is not None and old.next == following and old.epoch == epoch:
            return old
        if brief:
            raise TooLongHereError
        dimension = self._embedder.profile.dimension
        if old is None or old.epoch != epoch:
            new = load(reader.db, memory, following, epoch, dimension, active)
        else:
            new = follow(reader.db, memory, old, following, dimension)
        self._segments[memory] = new
        return new

    def _filtered(
        self, reader: Reader, memory: int, segment: Segment, near: Floats, clause: str, bound: Sequence[Any], limit: int
    ) -> tuple[Ints, Any]:
        """Return the best that pass the filters: of the very best first, of all when those are too few."""
        first = max(self._settings.filter_first, limit)
        top, top_scores = best(near, segment, first)
        keys = segment.ids[top]
        passed = fetch_rows(
            reader.db,
            "SELECT f.id FROM json_each(?) j CROSS JOIN entries f ON f.id = j.value "  # noqa: S608 - conditions of ours
            f"CROSS JOIN versions v ON v.id = f.current WHERE 1{clause}",
            (json.dumps(keys.tolist()), *bound),
        )
        kept = np.isin(keys, np.asarray(passed, dtype=np.int64).ravel())
        if int(kept.sum()) >= limit or segment.living <= first:
            return top[kept][:limit], top_scores[kept][:limit]
        low = memory << SHIFT
        passed = fetch_rows(
            reader.db,
            "SELECT f.id FROM entries f CROSS JOIN versions v ON v.id = f.current "  # noqa: S608 - conditions of ours
            f"WHERE f.id BETWEEN ? AND ? AND f.active = 1{clause}",
            (low, low | ((1 << SHIFT) - 1), *bound),
        )
        allowed = np.isin(segment.ids[: segment.count], np.asarray(passed, dtype=np.int64).ravel())
        return best(np.where(allowed, near, np.float32(-np.inf)), segment, limit)


async def open_vector(store: SqliteStore, embedder: Embedder, settings: VectorSettings) -> SqliteVector:
    """Return the channel over the store's file.

    Raises:
        StoreError: `embedding-profile-mismatch`, unless the store was opened with `allow_stale_index`.
    """
    channel = SqliteVector(store, embedder, settings)
    if not store.allow_stale:
        await store.engine.read(channel.require_profile)
    return channel
