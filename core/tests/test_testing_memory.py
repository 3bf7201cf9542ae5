"""The parts in memory conform to the contracts of their ports."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from narrowgate.testing import (
    Builder,
    EntryStoreConformance,
    FakeChannel,
    FakeEmbedder,
    MemoryStore,
    RecallChannelConformance,
    operations,
)
from narrowgate.values.search import ChannelKind


class TestMemoryStore(EntryStoreConformance):
    """`MemoryStore`."""

    durable = False

    @pytest.fixture
    def build(self) -> Builder[MemoryStore]:
        """Open an empty one."""
        return lambda: nullcontext(MemoryStore())


class TestFakeChannel(RecallChannelConformance):
    """`FakeChannel`, by words."""

    shared = False

    @pytest.fixture
    def store(self) -> MemoryStore:
        """Return what it looks at."""
        return MemoryStore()

    @pytest.fixture
    def build(self, store: MemoryStore) -> Builder[FakeChannel]:
        """Open it over the store."""
        return lambda: nullcontext(FakeChannel(store))

    @pytest.fixture
    def write(self, store: MemoryStore) -> Any:
        """Write into the store."""
        return lambda memory, items: store.commit(memory, operations(items))


class TestFakeVectorChannel(TestFakeChannel):
    """`FakeChannel` with `FakeEmbedder`."""

    kind = ChannelKind.VECTOR

    @pytest.fixture
    def build(self, store: MemoryStore) -> Builder[FakeChannel]:
        """Open it over the store."""
        return lambda: nullcontext(FakeChannel(store, FakeEmbedder()))
