"""What the write service needs of a write gate; governance has the one that there is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from narrowgate.values.entry import ItemOutcome, Operation
from narrowgate.values.held import Base, HeldDraft, WriteRuling

Ending = Literal["failed", "refused", "interrupted"]
"""Why a batch was not written: the store failed; it was refused whole; its caller left, and nobody knows."""


class GuardedBatch(Protocol):
    """A batch on its way past a gate: asked item by item, and told what became of each. Places are those of the batch."""

    async def rule(self, places: Sequence[int]) -> Mapping[int, WriteRuling]:
        """Return the rulings on the items at `places`. Raises nothing of a backend's: what cannot be judged is accepted."""
        ...

    def drafts(self, bases: Mapping[int, Base | None]) -> tuple[HeldDraft, ...]:
        """Return items as the queue takes them.

        Args:
            bases: place -> the entry and version that the item would have revised.
        """
        ...

    async def settled(self, outcomes: Sequence[ItemOutcome]) -> None:
        """Take what became of every item, in order; called again after a cancellation it goes on where it was."""
        ...

    async def ended(self, how: Ending, kept: Collection[int]) -> None:
        """Take that nothing was written; the items at the places `kept` are in the queue all the same."""
        ...


class WriteGuard(Protocol):
    """Rules on the items of a batch before they are written."""

    @property
    def in_shadow(self) -> bool:
        """Whether it may change nothing: then nobody is asked before the write, and `settled` is all that it is told."""
        ...

    @property
    def may_hold(self) -> bool:
        """Whether a ruling may be `hold`: then a queue is needed."""
        ...

    def begin(self, memory: str, operations: Sequence[Operation]) -> GuardedBatch:
        """Take a batch."""
        ...
