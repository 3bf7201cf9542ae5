"""The parts in memory conform to the contracts of their ports."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from narrowgate.testing import Builder, EntryStoreConformance, MemoryStore


class TestMemoryStore(EntryStoreConformance):
    """`MemoryStore`."""

    durable = False

    @pytest.fixture
    def build(self) -> Builder[MemoryStore]:
        """Open an empty one."""
        return lambda: nullcontext(MemoryStore())
