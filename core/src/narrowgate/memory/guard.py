"""What the write service needs of a write gate; governance has the one that there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from narrowgate.values.entry import ItemOutcome, Put
from narrowgate.values.held import HeldDraft, WriteRuling


class RuledBatch(Protocol):
    """A batch that the gate ruled on, and that is to be told what became of it."""

    @property
    def rulings(self) -> tuple[WriteRuling, ...]:
        """One for each item, in order."""
        ...

    async def hold(self, place: int, put: Put) -> HeldDraft:
        """Return the item at `place` as the queue takes it; its observation is published."""
        ...

    async def written(self, outcomes: Sequence[ItemOutcome | None]) -> None:
        """Take what became of the items that were not held: one outcome for each item, `None` for a held one."""
        ...

    async def failed(self, meant: Sequence[bool]) -> None:
        """Take that nothing was written: for each item, whether it was meant to be."""
        ...


class WriteGuard(Protocol):
    """Rules on a batch before it is written."""

    async def rule(self, memory: str, puts: Sequence[Put]) -> RuledBatch:
        """Return the rulings on the items of a batch."""
        ...
