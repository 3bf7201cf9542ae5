"""The write service, and exact reads: the one way in which applications change and look at memories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from narrowgate.errors import InputError
from narrowgate.memory.drafts import prepare
from narrowgate.memory.guard import WriteGuard
from narrowgate.memory.guarded import GuardedWriter, Write
from narrowgate.memory.vectors import vectors_for
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.seams.ports import Embedder, EntryStore
from narrowgate.values.entry import (
    Change,
    EntryDraft,
    EntryVersion,
    MemoryHead,
    Operation,
    SetActive,
    WriteReceipt,
)
from narrowgate.values.filters import Filter
from narrowgate.values.identity import EntryRef, check_id
from narrowgate.values.text import normalise_reason

MAX_BATCH: Final = 10_000
"""The most items of one batch: a batch is one transaction, and other writers wait for it."""

_log = logging.getLogger("narrowgate.memory")


class MemoryService:
    """Writes and exact reads over one entry store.

    Args:
        store: where entries live.
        embedder: makes the vectors that travel with a batch; `None` when no vector channel is in use.
        guard: the write gate; `None` where no policy asks for one.
        queue: keeps what the guard holds; needed with a guard that may hold.

    Raises:
        ValueError: the guard may hold, and there is no queue.
    """

    def __init__(
        self,
        store: EntryStore,
        embedder: Embedder | None = None,
        guard: WriteGuard | None = None,
        queue: HeldQueue | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        # Without a gate a write goes the way that it always went: nothing is looked at, nothing is built.
        self._remember: Write = self._write if guard is None else GuardedWriter(guard, store, queue, self._write).remember

    async def remember(
        self,
        memory: str,
        drafts: EntryDraft | str | Iterable[EntryDraft | str],
        *,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """Store drafts as one batch: one new revision, or nothing.

        Args:
            memory: the memory's id; it comes into being with its first entry.
            drafts: one or several; at most `MAX_BATCH`.
            strict: refuse the whole batch when one item is refused.
            expected_revision: compare-and-swap: write only when the memory is at this revision (0: holds nothing yet).

        Returns:
            What became of each item. Durable when this returns. An item that a write gate holds has the status `held`: it
            was not written, and waits in the held queue; a strict batch with one is refused whole, and nothing is held.

        Raises:
            InputError: `id-format`, `batch-too-large`.
            ConflictError: the memory is at another revision.
            BatchRefusedError: `strict` and an item is refused.
            StoreError: the store cannot write.
        """
        check_id(memory, "memory")
        # A mapping or bytes is one draft of a wrong type, not the several that iterating over it would give.
        items: list[Any] = [drafts] if isinstance(drafts, EntryDraft | str | bytes | Mapping) else list(drafts)
        if len(items) > MAX_BATCH:
            raise InputError("batch-too-large", f"{len(items)} items in one batch; the limit is {MAX_BATCH}: split it")
        operations: list[Operation] = [prepare(item) for item in items]
        return await self._remember(memory, operations, strict=strict, expected_revision=expected_revision)

    async def forget(
        self,
        memory: str,
        entries: EntryRef | str | Iterable[EntryRef | str],
        *,
        reason: str | None = None,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """Deactivate entries: search finds them no more, exact reads and history still do, `reactivate` undoes it.

        Args:
            memory: the memory's id.
            entries: one or several entry ids or references (objects, or as text); a reference is refused as
                `stale-version` when the entry has moved on.
            reason: kept in the history.
            strict: as in `remember`.
            expected_revision: as in `remember`.

        Raises:
            as `remember`, and InputError: `ref-format`, or `other-memory` for a reference into another memory.
        """
        operations = _activity(memory, entries, active=False, reason=reason)
        return await self._write(memory, operations, strict=strict, expected_revision=expected_revision)

    async def reactivate(
        self,
        memory: str,
        entries: EntryRef | str | Iterable[EntryRef | str],
        *,
        reason: str | None = None,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """Undo `forget`; same arguments and errors."""
        operations = _activity(memory, entries, active=True, reason=reason)
        return await self._write(memory, operations, strict=strict, expected_revision=expected_revision)

    async def read(self, ref: EntryRef | str) -> EntryVersion:
        """Return exactly the version that `ref` names, never a newer one.

        Raises:
            EntryReferenceError: `ref-format`, `ref-unknown`.
        """
        return await self._store.read(EntryRef.parse(ref) if isinstance(ref, str) else ref)

    async def current(self, memory: str, entry: str) -> EntryVersion:
        """Return an entry's current version, active or not.

        Raises:
            EntryReferenceError: `entry-unknown`.
        """
        return await self._store.current(check_id(memory, "memory"), check_id(entry, "entry"))

    async def locate(self, entry: str) -> str | None:
        """Return the id of the memory that holds an entry, or `None`."""
        return await self._store.locate(check_id(entry, "entry"))

    async def history(self, memory: str, entry: str) -> tuple[Change, ...]:
        """Return every change of an entry, oldest first.

        Raises:
            EntryReferenceError: `entry-unknown`.
        """
        return await self._store.history(check_id(memory, "memory"), check_id(entry, "entry"))

    async def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> tuple[Change, ...]:
        """Return what changed after revision `since`, whole revisions in order, about `limit` changes."""
        if since < 0 or limit < 1:
            raise InputError("range", "since must be >= 0 and limit >= 1")
        return await self._store.changes(check_id(memory, "memory"), since=since, limit=limit)

    async def memories(self) -> tuple[MemoryHead, ...]:
        """Return every memory with its head, by id."""
        return await self._store.heads()

    async def scan(
        self, memory: str, *, filters: Sequence[Filter] = (), after: str | None = None, limit: int = 1000
    ) -> tuple[EntryVersion, ...]:
        """Return active entries in id order, after the id `after`; fewer than `limit` means the end."""
        return await self._store.scan(check_id(memory, "memory"), filters=filters, after=after, limit=limit)

    async def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild the store's indexes with today's analyser and embedder; return the number of entries indexed."""
        return await self._store.reindex(self._embedder, progress)

    async def _write(
        self, memory: str, operations: Sequence[Operation], *, strict: bool, expected_revision: int | None
    ) -> WriteReceipt:
        vectors, failure = await vectors_for(self._store, self._embedder, memory, operations)
        receipt = await self._store.commit(
            memory, operations, expected_revision=expected_revision, strict=strict, vectors=vectors
        )
        if failure is None or not receipt.vectors_pending:
            return receipt
        warning = f"the embedder failed ({failure}); `narrowgate reindex` completes the vectors"
        _log.warning("vectors pending: %s", warning, extra={"event": "memory.vectors_pending", "memory": memory})
        return WriteReceipt(receipt.memory, receipt.revision, receipt.items, receipt.vectors_pending, warning)


def _activity(
    memory: str, entries: EntryRef | str | Iterable[EntryRef | str], *, active: bool, reason: str | None
) -> list[Operation]:
    check_id(memory, "memory")
    why = normalise_reason(reason)
    operations: list[Operation] = []
    for item in [entries] if isinstance(entries, EntryRef | str) else entries:
        # An id holds no "@", a reference always does.
        entry = EntryRef.parse(item) if isinstance(item, str) and "@" in item else item
        if isinstance(entry, EntryRef):
            if entry.memory != memory:
                raise InputError("other-memory", f"{entry} is not of memory {memory!r}")
            operations.append(SetActive(entry.entry, active, entry.version, why))
        else:
            operations.append(SetActive(check_id(entry, "entry"), active, None, why))
    return operations
