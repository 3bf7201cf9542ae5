"""The store and its channels conform to the contracts of their port and seam."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from narrowgate.seams import Seam
from narrowgate.testing import (
    Builder,
    EntryStoreConformance,
    FakeEmbedder,
    ObservationSinkConformance,
    RecallChannelConformance,
    builder,
    observation,
    operations,
)
from narrowgate.values.entry import Put, VectorBatch
from narrowgate.values.search import ChannelKind
from narrowgate_sqlite.plugin import narrowgate_entry_stores, narrowgate_observation_sinks, narrowgate_recall_channels
from narrowgate_sqlite.settings import LedgerSettings, StoreSettings

STORE = narrowgate_entry_stores()[0]
LEDGER = narrowgate_observation_sinks()[0]
CHANNELS = {item.name: item for item in narrowgate_recall_channels()}

ELSEWHERE = """
from pathlib import Path
from narrowgate.testing import builder
from narrowgate_sqlite.plugin import narrowgate_entry_stores
from narrowgate_sqlite.settings import StoreSettings
build = builder(narrowgate_entry_stores()[0], StoreSettings(path=Path({file!r})))
"""


class TestStore(EntryStoreConformance):
    """`sqlite.store`."""

    @pytest.fixture
    def build(self, file: Path) -> Builder[Any]:
        """Open a file as the host does."""
        return builder(STORE, StoreSettings(path=file))

    @pytest.fixture
    def elsewhere(self, file: Path) -> str:
        """Open the same file in another process."""
        return ELSEWHERE.format(file=str(file))


CHANNEL_ELSEWHERE = """
from test_sqlite_conformance import opened
build = lambda: opened({name!r}, {file!r})
"""


@asynccontextmanager
async def opened(name: str, file: str) -> AsyncIterator[Any]:
    """Open a channel over a file as the host does: the store first."""
    async with builder(STORE, StoreSettings(path=Path(file)))() as store:
        needs = {Seam.ENTRY_STORE: [store], Seam.EMBEDDER: [FakeEmbedder()]}
        async with builder(CHANNELS[name], needs=needs)() as channel:
            yield channel


class TestLexical(RecallChannelConformance):
    """`sqlite.lexical`."""

    name: ClassVar[str] = "sqlite.lexical"

    @pytest.fixture
    def build(self, file: Path) -> Builder[Any]:
        """Open the channel over the file."""
        return lambda: opened(self.name, str(file))

    @pytest.fixture
    def write(self, file: Path) -> Any:
        """Write through a store of its own on the same file, with vectors."""

        async def write(memory: str, items: Any) -> Any:
            embedder = FakeEmbedder()
            batch = operations(items)
            texts = [item.content.text for item in batch if isinstance(item, Put)]
            vectors = VectorBatch(embedder.profile, dict(zip(texts, await embedder.embed(texts), strict=True)))
            async with builder(STORE, StoreSettings(path=file))() as store:
                return await store.commit(memory, batch, vectors=vectors)

        return write

    @pytest.fixture
    def elsewhere(self, file: Path) -> str:
        """Open the same channel in another process."""
        return f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})" + CHANNEL_ELSEWHERE.format(
            name=self.name, file=str(file)
        )


class TestVector(TestLexical):
    """`sqlite.vector`."""

    name = "sqlite.vector"
    kind = ChannelKind.VECTOR


class TestLedger(ObservationSinkConformance):
    """`sqlite.ledger`."""

    @pytest.fixture
    def build(self, file: Path) -> Builder[Any]:
        """Build it as the host does; made observations are older than what it would keep."""
        return builder(LEDGER, LedgerSettings(path=file, keep_days=0))

    @pytest.fixture
    def failing(self, file: Path) -> Builder[Any]:
        """Put something else in the place of its file once it is open."""

        @asynccontextmanager
        async def build() -> AsyncIterator[Any]:
            async with builder(LEDGER, LedgerSettings(path=file, keep_days=0))() as ledger:
                await ledger.observe(observation())
                await anyio.Path(file).unlink()
                await anyio.Path(file).mkdir()
                yield ledger

        return build

    @pytest.fixture
    def taken(self, file: Path) -> Callable[[], list[str]]:
        """Read the ids back through another ledger on the same file."""

        async def read() -> list[str]:
            async with builder(LEDGER, LedgerSettings(path=file, keep_days=0))() as ledger:
                return [record["observation_id"] for _, record in await ledger.records()]

        def call() -> list[str]:
            with start_blocking_portal() as portal:
                return portal.call(read)

        return call

    @pytest.fixture
    def everything(self, file: Path) -> Callable[[], str]:
        """Read the bytes of the file and of its log."""

        def read() -> str:
            files = [path for path in file.parent.iterdir() if path.name.startswith(file.name)]
            return "".join(path.read_bytes().decode("utf-8", errors="replace") for path in files)

        return read
