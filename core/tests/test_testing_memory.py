"""The parts in memory conform to the contracts of their ports."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import anyio
import pytest

from narrowgate.errors import CompositionError, EmbeddingError, RerankError
from narrowgate.testing import (
    Builder,
    EmbedderConformance,
    EntryStoreConformance,
    FakeBackend,
    FakeChannel,
    FakeEmbedder,
    FakeReranker,
    MemoryStore,
    RecallChannelConformance,
    make_host,
    operations,
)
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.search import ChannelKind, Mode


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


class TestFakeEmbedder(EmbedderConformance):
    """`FakeEmbedder`."""

    @pytest.fixture
    def build(self) -> Builder[FakeEmbedder]:
        """Open one that answers."""
        return lambda: nullcontext(FakeEmbedder())

    @pytest.fixture
    def failing(self) -> Builder[FakeEmbedder]:
        """Open one that raises."""
        return lambda: nullcontext(FakeEmbedder(fails=EmbeddingError("down", Usage(1, 1))))

    @pytest.fixture
    def hanging(self) -> Builder[FakeEmbedder]:
        """Open one that never answers."""
        return lambda: nullcontext(FakeEmbedder(wait=anyio.sleep_forever))


@pytest.mark.anyio
async def test_a_host_for_tests_needs_nothing(tmp_path, monkeypatch):
    """It remembers and finds in both languages without a plugin, a file, or what the environment and the folder say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "narrowgate.toml").write_text("this = is [no toml")
    monkeypatch.setenv("NARROWGATE_USE__RERANKER", "no.such")
    async with make_host() as gate:
        await gate.remember("notes", ["网关使用 8443 端口。", "Lunch is at noon."])
        page = await gate.search("网关", memory="notes")
        assert [hit.content.text for hit in page.hits] == ["网关使用 8443 端口。"]
        assert (page.mode, page.status) == (Mode.LEXICAL, "not_applied")


@pytest.mark.anyio
async def test_a_host_for_tests_takes_parts_and_sections():
    """Objects of the test stand in their places, and sections are those of a configuration file."""
    store = MemoryStore()
    backend = FakeBackend({"Lunch is at noon.": DecisionOutcome.YES}, otherwise=DecisionOutcome.NO)
    async with make_host(
        store=store,
        channels=[FakeChannel(store), FakeChannel(store, FakeEmbedder())],
        embedder=FakeEmbedder(),
        decision_backend=backend,
        reranker=FakeReranker(fails=RerankError("out", code="unavailable")),
        overrides={"rerank": {"on_failure": "coarse"}},
    ) as gate:
        await gate.remember("notes", ["Lunch is at noon.", "午饭在十二点。"])
        page = await gate.search("lunch", memory="notes")
        assert (page.mode, page.status, page.reason) == (Mode.HYBRID, "failed", "unavailable")
        assert page.hits[0].content.text == "Lunch is at noon."


@pytest.mark.anyio
async def test_a_host_for_tests_refuses_what_cannot_run():
    """A component that is named and not installed is the same error as anywhere."""
    with pytest.raises(CompositionError, match=r"no\.such"):
        async with make_host(overrides={"use": {"reranker": "no.such"}}):
            pytest.fail("it opened")
