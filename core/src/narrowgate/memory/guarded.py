"""Writing past a gate: what it lets pass is one revision, what it holds goes to the queue, each item on its own (spec 4.1).

* One verdict for each entry: none holds or frees another, and batch and place are kept with what is held.
* What is held is durable in the queue before anything is written. A crash between the two loses nothing, and the same batch
  again finds its held items where they are.
* What would change nothing is not judged: an item whose content is stored already costs no question.
* Whatever is written was judged, also when another writer changes the memory meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import anyio
import attrs

from narrowgate.errors import BatchRefusedError, ConflictError
from narrowgate.memory.guard import GuardedBatch, WriteGuard
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.seams.ports import EntryStore
from narrowgate.values.entry import ItemOutcome, Operation, Put, WriteReceipt
from narrowgate.values.held import Base, HeldEntry, WriteRuling
from narrowgate.values.text import MAX_REASON_POINTS

TRIES: Final = 3
"""Attempts to write without judging what is stored already, while other writers change the memory; then all is judged."""

LAST_WORDS: Final = 1.0
"""Seconds that the observations of a batch may take whose caller has left."""

_REJECTED: Final = (
    "this very write was held before, and rejected: `narrowgate held list --state rejected` shows by whom; to let it be "
    "judged again, change it or its evidence, or purge the record"
)


class Write(Protocol):
    """Writes operations as one revision, vectors included."""

    async def __call__(
        self, memory: str, operations: Sequence[Operation], *, strict: bool, expected_revision: int | None
    ) -> WriteReceipt:
        """See `MemoryService.remember`."""
        ...


@attrs.define
class _State:
    """How far a batch has come.

    Attributes:
        rulings: place -> what the gate ruled.
        bases: place -> what a held item would have revised.
        held: place -> its place in the queue.
    """

    rulings: dict[int, WriteRuling] = attrs.field(factory=dict)
    bases: dict[int, Base | None] = attrs.field(factory=dict)
    held: dict[int, HeldEntry] = attrs.field(factory=dict)


class GuardedWriter:
    """Writes batches past a guard.

    Args:
        guard: the write gate.
        store: where entries live.
        queue: keeps what the guard holds; `None` for a guard that never holds.
        write: writes what passes.

    Raises:
        ValueError: the guard may hold, and there is no queue.
    """

    def __init__(self, guard: WriteGuard, store: EntryStore, queue: HeldQueue | None, write: Write) -> None:
        if guard.may_hold and queue is None:
            raise ValueError("a write gate that may hold needs a store with a held queue")
        self._guard, self._store, self._queue, self._write = guard, store, queue, write

    async def remember(
        self, memory: str, operations: Sequence[Operation], *, strict: bool, expected_revision: int | None
    ) -> WriteReceipt:
        """Write a batch; see `MemoryService.remember`."""
        batch = self._guard.begin(memory, operations)
        if self._guard.in_shadow:
            receipt = await self._write(memory, operations, strict=strict, expected_revision=expected_revision)
            await batch.settled(receipt.items)
            return receipt
        state = _State()
        try:
            receipt = await self._remember(batch, state, memory, operations, strict, expected_revision)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(LAST_WORDS, shield=True):
                await batch.ended("interrupted", state.held)
            raise
        except Exception as error:
            await batch.ended("refused" if isinstance(error, BatchRefusedError) else "failed", state.held)
            raise
        try:
            await batch.settled(receipt.items)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(LAST_WORDS, shield=True):
                await batch.settled(receipt.items)  # it goes on where it was
            raise
        return receipt

    async def _remember(
        self,
        batch: GuardedBatch,
        state: _State,
        memory: str,
        operations: Sequence[Operation],
        strict: bool,
        expected_revision: int | None,
    ) -> WriteReceipt:
        for turn in range(TRIES + 1):
            head = (await self._store.heads([memory]))[0].revision
            if expected_revision is not None and head != expected_revision:
                # Told before anybody is asked and anything is held: the caller looks again and comes back.
                raise ConflictError(memory, expected_revision, head)
            await self._judge(batch, state, memory, operations, strict, everything=turn == TRIES)
            await self._hold(batch, state)
            rest = [place for place in range(len(operations)) if place not in state.held]
            unjudged = any(isinstance(operations[place], Put) and place not in state.rulings for place in rest)
            # What is unjudged would change nothing at this revision, so it may be written at this revision alone.
            pinned = head if unjudged else expected_revision
            passing = [_remarked(operations[place], state.rulings.get(place)) for place in rest]
            try:
                receipt = await self._write(memory, passing, strict=strict, expected_revision=pinned)
            except ConflictError:
                if expected_revision is not None or not unjudged:
                    raise
                continue
            return _merged(state, operations, rest, receipt)
        raise AssertionError("the last turn judges everything, so that it is pinned to no revision")  # pragma: no cover

    async def _judge(
        self,
        batch: GuardedBatch,
        state: _State,
        memory: str,
        operations: Sequence[Operation],
        strict: bool,
        *,
        everything: bool,
    ) -> None:
        """Have everything judged that would change the memory.

        An item that repeats an earlier one of the batch changes nothing as long as that one is written. So the rest is
        looked at again when something was held.
        """
        for turn in range(TRIES):
            rest = [place for place in range(len(operations)) if state.rulings.get(place, _ACCEPT).action != "hold"]
            found = await self._store.preview(memory, [operations[place] for place in rest])
            foreseen = dict(zip(rest, found, strict=True))
            if strict and any(outcome.status == "refused" for outcome in foreseen.values()):
                raise BatchRefusedError(_refused(operations, state.rulings, foreseen))
            judging = [
                place
                for place, outcome in foreseen.items()
                if isinstance(operations[place], Put)
                and place not in state.rulings
                and (everything or turn == TRIES - 1 or outcome.status in ("added", "revised"))
            ]
            if not judging:
                return
            state.rulings.update(await batch.rule(judging))
            holding = [place for place in judging if state.rulings[place].action == "hold"]
            if holding and strict:
                raise BatchRefusedError(_refused(operations, state.rulings, foreseen))
            for place in holding:
                outcome = foreseen[place]
                revised = outcome.status == "revised" and outcome.ref is not None
                state.bases[place] = (outcome.ref.entry, outcome.ref.version) if revised and outcome.ref else None
            _share(operations, state, holding, rest)
            if not holding:
                return

    async def _hold(self, batch: GuardedBatch, state: _State) -> None:
        fresh = {place: base for place, base in state.bases.items() if place not in state.held}
        if fresh and self._queue is not None:
            kept = await self._queue.hold(batch.drafts(fresh))
            state.held.update(zip(fresh, kept, strict=True))


_ACCEPT: Final = WriteRuling()


def _share(operations: Sequence[Operation], state: _State, holding: Sequence[int], rest: Sequence[int]) -> None:
    """Hold with an item those that equal it: one question for all, and one place in the queue."""
    first = {_identity(operations[place]): place for place in reversed(holding)}
    for place in rest:
        twin = first.get(_identity(operations[place])) if place not in state.rulings else None
        if twin is not None:
            state.rulings[place], state.bases[place] = state.rulings[twin], state.bases[twin]


def _identity(operation: Operation) -> object:
    if not isinstance(operation, Put):
        return None
    return operation.content.digest, operation.entry, operation.expected_version, operation.evidence


def _refused(
    operations: Sequence[Operation], rulings: Mapping[int, WriteRuling], foreseen: Mapping[int, ItemOutcome]
) -> list[ItemOutcome]:
    """Return what a strict batch is refused with: as a store says it, with those that would be held."""
    outcomes = []
    for place in range(len(operations)):
        ruling = rulings.get(place, _ACCEPT)
        if ruling.action == "hold":
            outcomes.append(ItemOutcome("refused", None, ruling.code, ruling.reason))
        else:
            outcomes.append(attrs.evolve(foreseen[place], ref=None))
    return outcomes


def _remarked(operation: Operation, ruling: WriteRuling | None) -> Operation:
    """Return the operation with the gate's remark as its reason, where the caller gave none."""
    if ruling is None or ruling.action != "flag" or not isinstance(operation, Put) or operation.reason is not None:
        return operation
    return attrs.evolve(operation, reason=f"flagged: {ruling.reason}"[:MAX_REASON_POINTS])


def _merged(state: _State, operations: Sequence[Operation], rest: Sequence[int], receipt: WriteReceipt) -> WriteReceipt:
    """Return the receipt of the whole batch: what was written, and what is held."""
    if not state.held:
        return receipt
    outcomes = dict(zip(rest, receipt.items, strict=True))
    for place, entry in state.held.items():
        ruling = state.rulings[place]
        if entry.state == "rejected":
            outcomes[place] = ItemOutcome("refused", None, "held-rejected", _REJECTED)
        else:
            outcomes[place] = ItemOutcome("held", None, ruling.code, ruling.reason, entry.held_id)
    return attrs.evolve(receipt, items=tuple(outcomes[place] for place in range(len(operations))))
