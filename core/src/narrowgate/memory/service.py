"""The write service, and exact reads: the one way in which applications change and look at memories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from narrowgate.errors import BatchRefusedError, InputError, NarrowgateError
from narrowgate.memory.drafts import prepare
from narrowgate.memory.guard import WriteGuard
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.seams.ports import Embedder, EntryStore
from narrowgate.values.entry import (
    Change,
    EntryDraft,
    EntryVersion,
    ItemOutcome,
    MemoryHead,
    Operation,
    Put,
    SetActive,
    VectorBatch,
    WriteReceipt,
)
from narrowgate.values.filters import Filter
from narrowgate.values.held import WriteRuling
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
        self._guard, self._queue = guard, queue

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
            What became of each item. Durable when this returns.

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
        if self._guard is None:
            return await self._write(memory, operations, strict=strict, expected_revision=expected_revision)
        return await self._guarded(self._guard, memory, operations, strict=strict, expected_revision=expected_revision)

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

    async def _guarded(
        self,
        guard: WriteGuard,
        memory: str,
        operations: Sequence[Operation],
        *,
        strict: bool,
        expected_revision: int | None,
    ) -> WriteReceipt:
        """Write what the guard lets pass as one revision; what it holds goes to the queue, each item on its own.

        What is held is in the queue before anything is written: a crash between the two loses nothing, and holding the
        same again is a no-op. A strict batch with a held item is refused whole, and nothing of it is kept anywhere.
        """
        puts = [item for item in operations if isinstance(item, Put)]
        batch = await guard.rule(memory, puts)
        rulings = dict(
            zip((place for place, item in enumerate(operations) if isinstance(item, Put)), batch.rulings, strict=True)
        )
        order = {place: number for number, place in enumerate(rulings)}
        held = [place for place, ruling in rulings.items() if ruling.action == "hold"]
        outcomes: dict[int, ItemOutcome] = {}
        if held and strict:
            refused = [
                ItemOutcome("refused", None, rulings[place].code, rulings[place].reason)
                if place in held
                else ItemOutcome("unchanged")
                for place in range(len(operations))
            ]
            raise BatchRefusedError(refused)
        for place in held:
            item = operations[place]
            if self._queue is not None and isinstance(item, Put):
                (kept,) = await self._queue.hold([await batch.hold(order[place], item)])
                ruling = rulings[place]
                outcomes[place] = ItemOutcome("held", None, ruling.code, ruling.reason, kept.held_id)
        rest = [place for place in range(len(operations)) if place not in outcomes]
        remarked = [_remarked(operations[place], rulings.get(place)) for place in rest]
        try:
            receipt = await self._write(memory, remarked, strict=strict, expected_revision=expected_revision)
        except NarrowgateError:
            await batch.failed([place not in held for place in order])
            raise
        outcomes.update(zip(rest, receipt.items, strict=True))
        await batch.written([None if place in held else outcomes[place] for place in order])
        if not held:
            return receipt
        items = tuple(outcomes[place] for place in range(len(operations)))
        return WriteReceipt(receipt.memory, receipt.revision, items, receipt.vectors_pending, receipt.warning)

    async def _write(
        self, memory: str, operations: Sequence[Operation], *, strict: bool, expected_revision: int | None
    ) -> WriteReceipt:
        vectors, failure = await self._vectors(memory, operations)
        receipt = await self._store.commit(
            memory, operations, expected_revision=expected_revision, strict=strict, vectors=vectors
        )
        if failure is None or not receipt.vectors_pending:
            return receipt
        warning = f"the embedder failed ({failure}); `narrowgate reindex` completes the vectors"
        _log.warning("vectors pending: %s", warning, extra={"event": "memory.vectors_pending", "memory": memory})
        return WriteReceipt(receipt.memory, receipt.revision, receipt.items, receipt.vectors_pending, warning)

    async def _vectors(self, memory: str, operations: Sequence[Operation]) -> tuple[VectorBatch | None, str | None]:
        """Embed what would be written, before the transaction: no model runs while the write lock is held.

        A failing embedder does not lose a memory: the text is stored, and the receipt says that its vector is pending.
        """
        if self._embedder is None or not any(isinstance(item, Put) for item in operations):
            return None, None
        outcomes = await self._store.preview(memory, operations)
        texts = list(
            dict.fromkeys(
                operation.content.text
                for operation, outcome in zip(operations, outcomes, strict=True)
                if isinstance(operation, Put) and outcome.status in ("added", "revised")
            )
        )
        if not texts:
            return None, None
        profile = self._embedder.profile
        try:
            made = list(await self._embedder.embed(texts))
        except Exception as error:  # noqa: BLE001 - third-party code; cancellation is no Exception and passes
            # Our own messages are free of content; of a foreign one only the type is told.
            return VectorBatch(profile, {}), str(error) if isinstance(error, NarrowgateError) else type(error).__name__
        if len(made) != len(texts):
            return VectorBatch(profile, {}), "wrong number of vectors"
        return VectorBatch(profile, dict(zip(texts, made, strict=True))), None


def _remarked(operation: Operation, ruling: WriteRuling | None) -> Operation:
    """Return the operation with the gate's remark as its reason, where the caller gave none."""
    if ruling is None or ruling.action != "flag" or not isinstance(operation, Put) or operation.reason is not None:
        return operation
    return attrs.evolve(operation, reason=f"flagged: {ruling.reason}")


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
