"""The entry store: `EntryStore` on one SQLite file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import apsw

from narrowgate.seams.ports import Embedder
from narrowgate.values.entry import Change, EntryVersion, ItemOutcome, MemoryHead, Operation, VectorBatch, WriteReceipt
from narrowgate.values.filters import Filter
from narrowgate.values.held import HeldDraft, HeldEntry, HeldItem, HeldRelease, HeldState
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelHit
from narrowgate_sqlite import _held, _read, _reindex, _write
from narrowgate_sqlite._engine import Engine, open_engine
from narrowgate_sqlite._faults import stale_index
from narrowgate_sqlite._place import examine
from narrowgate_sqlite._schema import SCHEMA_VERSION, get_meta
from narrowgate_sqlite.settings import StoreSettings

T = TypeVar("T")


class SqliteStore:
    """Memories in one file; implements `EntryStore` and `HeldQueue`, offers `sqlite-file` and `held-queue`.

    Channels of this distribution read through `engine`, in the store's own connections.

    Attributes:
        path: the file.
        engine: its connections.
        analyser: version of the analyser in use.
        allow_stale: whether indexes that another analyser or model made are no reason to refuse opening.
    """

    def __init__(self, engine: Engine, analyser: str, *, allow_stale: bool = False) -> None:
        self.path: Path = engine.path
        self.engine, self.analyser, self.allow_stale = engine, analyser, allow_stale

    def require_index(self, db: apsw.Connection) -> None:
        """Look, inside a transaction, whether the lexical index is this analyser's.

        Raises:
            StoreError: `analyser-mismatch`.
        """
        found = get_meta(db, "analyser")
        if found != self.analyser:
            raise stale_index(self.path, found, self.analyser).error()

    async def heads(self, memories: Sequence[str] | None = None) -> tuple[MemoryHead, ...]:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.heads(reader.db, memories))

    async def preview(self, memory: str, operations: Sequence[Operation]) -> tuple[ItemOutcome, ...]:
        """See `EntryStore`. A ref is that of the entry as it stands now."""
        return await self.engine.read(lambda reader: _write.preview(reader.db, memory, operations))

    async def commit(
        self,
        memory: str,
        operations: Sequence[Operation],
        *,
        expected_revision: int | None = None,
        strict: bool = False,
        vectors: VectorBatch | None = None,
    ) -> WriteReceipt:
        """See `EntryStore`. A batch that changes nothing writes nothing."""

        def work(db: apsw.Connection) -> WriteReceipt:
            self.require_index(db)
            return _write.commit(db, memory, operations, expected_revision, strict, vectors)

        return await self.engine.write(work)

    async def read(self, ref: EntryRef) -> EntryVersion:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.read(reader.db, ref))

    async def current(self, memory: str, entry: str) -> EntryVersion:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.current(reader.db, memory, entry))

    async def locate(self, entry: str) -> str | None:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.locate(reader.db, entry))

    async def resolve(
        self, revisions: Mapping[str, int], hits: Sequence[ChannelHit]
    ) -> dict[tuple[str, str, int], EntryVersion]:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.resolve(reader.db, revisions, hits))

    async def history(self, memory: str, entry: str) -> tuple[Change, ...]:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.history(reader.db, memory, entry))

    async def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> tuple[Change, ...]:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.changes(reader.db, memory, since, limit))

    async def scan(
        self, memory: str, *, filters: Sequence[Filter] = (), after: str | None = None, limit: int = 1000
    ) -> tuple[EntryVersion, ...]:
        """See `EntryStore`."""
        return await self.engine.read(lambda reader: _read.scan(reader.db, memory, filters, after, limit))

    async def hold(self, drafts: Sequence[HeldDraft]) -> tuple[HeldEntry, ...]:
        """See `HeldQueue`."""
        return await self.engine.write(lambda db: _held.hold(db, drafts))

    async def held(
        self,
        *,
        now: datetime,
        memory: str | None = None,
        policy_id: str | None = None,
        state: HeldState | None = "pending",
        after: str | None = None,
        limit: int = 100,
    ) -> tuple[HeldEntry, ...]:
        """See `HeldQueue`."""
        return await self.engine.read(lambda reader: _held.places(reader.db, now, memory, policy_id, state, after, limit))

    async def held_one(self, held_id: str, *, now: datetime) -> HeldItem:
        """See `HeldQueue`."""
        return await self.engine.read(lambda reader: _held.one(reader.db, held_id, now))

    async def release_held(
        self,
        held_id: str,
        *,
        now: datetime,
        by: str | None = None,
        reason: str | None = None,
        remark: str | None = None,
        vectors: VectorBatch | None = None,
    ) -> HeldRelease:
        """See `HeldQueue`."""

        def work(db: apsw.Connection) -> HeldRelease:
            self.require_index(db)
            return _held.release(db, held_id, now, by, reason, remark, vectors)

        return await self._erasing(work)

    async def reject_held(
        self, held_id: str, *, now: datetime, by: str | None = None, reason: str | None = None
    ) -> HeldEntry:
        """See `HeldQueue`."""
        return await self._erasing(lambda db: _held.reject(db, held_id, now, by, reason))

    async def purge_held(
        self, state: HeldState, *, now: datetime, memory: str | None = None, before: datetime | None = None
    ) -> int:
        """See `HeldQueue`."""
        return await self._erasing(lambda db: _held.purge(db, state, now, memory, before))

    async def _erasing(self, work: Callable[[apsw.Connection], T]) -> T:
        """Write, and leave nothing of what was erased in the log."""
        done = await self.engine.write(work)
        await self.engine.empty_log()
        return done

    async def held_counts(self, *, now: datetime) -> Mapping[HeldState, int]:
        """See `HeldQueue`."""
        return await self.engine.read(lambda reader: _held.counts(reader.db, now))

    async def health(self) -> Mapping[str, str | int | float | bool]:
        """See `EntryStore`. `write_waits`: how often a write of this process had to wait for another writer."""
        facts = await self.engine.read(lambda reader: _read.health(reader.db, self.engine.place))
        return {**facts, "stale_index": facts["analyser"] != self.analyser, "write_waits": self.engine.write_waits}

    async def reindex(self, embedder: Embedder | None = None, progress: Callable[[int, int], None] | None = None) -> int:
        """See `EntryStore`. Searching and writing go on meanwhile; after a crash the old index stands, and the next
        call goes on where it was.
        """
        return await _reindex.rebuild(self.engine, self.analyser, embedder, progress)


@asynccontextmanager
async def open_store(settings: StoreSettings, analyser: str) -> AsyncIterator[SqliteStore]:
    """Open the file, creating it where there is none.

    Raises:
        StoreError: `not-ours`, `newer-schema`, `read-only`, `network-filesystem`, `corrupt`, `locked`, `analyser-mismatch`.
    """
    fault = await anyio.to_thread.run_sync(
        lambda: examine(settings.path, SCHEMA_VERSION, allow_network=settings.allow_network_filesystem)
    )
    if fault is not None:
        raise fault.error()
    engine = await anyio.to_thread.run_sync(open_engine, settings.path, settings.busy_timeout, analyser)
    try:
        store = SqliteStore(engine, analyser, allow_stale=settings.allow_stale_index)
        if not store.allow_stale:
            await engine.read(lambda reader: store.require_index(reader.db))
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(engine.close)
