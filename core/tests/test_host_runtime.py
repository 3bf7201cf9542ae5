"""From a plan to services: order, lifetimes, failures, the synchronous face."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import narrowgate
from narrowgate import CompositionError, EntryDraft, StoreError, load_config, plan
from narrowgate.host.composition import Chosen, Composition
from narrowgate.seams.component import Component, Deps, NoSettings, Seam
from narrowgate.values.entry import EmbeddingProfile, ItemOutcome, Operation, VectorBatch, WriteReceipt
from narrowgate.values.search import ChannelKind, ChannelQuery, ChannelResult

pytestmark = pytest.mark.anyio


class Store:
    """Takes everything and keeps what it was handed."""

    def __init__(self) -> None:
        self.vectors: list[VectorBatch | None] = []

    async def preview(self, memory: str, operations: Sequence[Operation]) -> tuple[ItemOutcome, ...]:
        """Say that every item would be added."""
        return tuple(ItemOutcome("added") for _ in operations)

    async def commit(self, memory: str, operations: Sequence[Operation], **options: Any) -> WriteReceipt:
        """Keep the vectors."""
        self.vectors.append(options["vectors"])
        pending = 0 if options["vectors"] is None else len(operations) - len(options["vectors"].by_text)
        return WriteReceipt(memory, 1, tuple(ItemOutcome("added") for _ in operations), pending)


class Embedder:
    """One vector for every text, or the failure it was given."""

    profile = EmbeddingProfile("test", "1", 2)

    def __init__(self, failure: Exception | None = None, made: int | None = None) -> None:
        self.failure, self.made = failure, made

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """Embed."""
        if self.failure is not None:
            raise self.failure
        return [(1.0, 0.0)] * (len(texts) if self.made is None else self.made)


class Channel:
    """Finds nothing."""

    def __init__(self, kind: ChannelKind) -> None:
        self.kind = kind

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Find nothing."""
        return ChannelResult((), dict.fromkeys(query.memories, 0))


def composed(log: list[str], *, failing: Mapping[str, BaseException] | None = None) -> Composition:
    """Return a plan of a store, an embedder and a channel that log when they are opened and closed."""

    def component(name: str, seam: Seam, made: object) -> Component:
        @asynccontextmanager
        async def build(_settings: Any, deps: Deps) -> AsyncIterator[object]:
            if failing and name in failing:
                raise failing[name]
            log.append(f"open {name} {sorted(seam.value for seam in deps.built)}")
            try:
                yield made
            finally:
                log.append(f"close {name}")

        return Component(name=name, seam=seam, summary="s", build=build)

    store = component("a.store", Seam.ENTRY_STORE, Store())
    embedder = component("a.embedder", Seam.EMBEDDER, Embedder())
    channel = component("a.channel", Seam.RECALL_CHANNEL, Channel(ChannelKind.VECTOR))
    needs = {Seam.ENTRY_STORE: ("a.store",), Seam.EMBEDDER: ("a.embedder",)}
    chosen = (
        Chosen(store, NoSettings(), "a 1.0", "test", {}),
        Chosen(embedder, NoSettings(), "a 1.0", "test", {}),
        Chosen(channel, NoSettings(), "a 1.0", "test", needs),
    )
    return Composition(chosen, load_config(env={}), (), ())


async def test_components_are_built_in_order_and_closed_in_reverse() -> None:
    """Each gets what meets its needs, and nothing else."""
    log: list[str] = []
    async with narrowgate.open(composed(log)) as gate:
        assert (await gate.search("harbour")).hits == ()
    assert log == [
        "open a.store []",
        "open a.embedder []",
        "open a.channel ['embedder', 'entry_store']",
        "close a.channel",
        "close a.embedder",
        "close a.store",
    ]


async def test_a_failing_build_closes_what_is_open_and_names_the_culprit() -> None:
    """`build-failed` with component and distribution; the cause is chained, its text is not repeated."""
    log: list[str] = []
    plan = composed(log, failing={"a.channel": OSError("key sk-1")})
    with pytest.raises(CompositionError) as caught:
        async with narrowgate.open(plan):
            pytest.fail("must not open")
    assert log[-2:] == ["close a.embedder", "close a.store"]
    (problem,) = caught.value.problems
    assert (problem.code, problem.component, problem.distribution) == ("build-failed", "a.channel", "a 1.0")
    assert "sk-1" not in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


async def test_a_store_error_passes_as_it_is() -> None:
    """Its code and cure are more than `build-failed` could say."""
    with pytest.raises(StoreError, match="busy"):
        async with narrowgate.open(composed([], failing={"a.store": StoreError("locked", "busy")})):
            pytest.fail("must not open")


async def test_cancellation_closes_everything() -> None:
    """A caller who gives up leaves nothing open."""
    log: list[str] = []
    with anyio.CancelScope() as scope:
        async with narrowgate.open(composed(log)):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert log[-3:] == ["close a.channel", "close a.embedder", "close a.store"]


async def test_vectors_travel_with_the_batch() -> None:
    """With a vector channel in use, texts are embedded before the write."""
    store = Store()
    async with narrowgate.open(
        load_config(env={}),
        store=store,
        channels=[Channel(ChannelKind.VECTOR)],
        embedder=Embedder(),  # type: ignore[arg-type]
    ) as gate:
        await gate.remember("m", ["one", "two", "one"])
    assert store.vectors[0] is not None
    assert dict(store.vectors[0].by_text) == {"one": (1.0, 0.0), "two": (1.0, 0.0)}


async def test_without_a_vector_channel_nobody_is_embedded() -> None:
    """An embedder that only the second stage uses costs no write anything."""
    store = Store()
    embedder = Embedder(RuntimeError("must not be asked"))
    async with narrowgate.open(
        load_config(env={}),
        store=store,
        channels=[Channel(ChannelKind.LEXICAL)],
        embedder=embedder,  # type: ignore[arg-type]
    ) as gate:
        receipt = await gate.remember("m", "one")
    assert (store.vectors, receipt.warning) == ([None], None)


@pytest.mark.parametrize("embedder", [Embedder(RuntimeError("text of the memory")), Embedder(made=5)])
async def test_a_failing_embedder_loses_no_memory(embedder: Embedder) -> None:
    """The text is stored, the receipt says that its vector is pending and why, without content."""
    store = Store()
    async with narrowgate.open(
        load_config(env={}),
        store=store,
        channels=[Channel(ChannelKind.VECTOR)],
        embedder=embedder,  # type: ignore[arg-type]
    ) as gate:
        receipt = await gate.remember("m", EntryDraft("one"))
    assert receipt.vectors_pending == 1
    assert receipt.warning is not None
    assert "narrowgate reindex" in receipt.warning
    assert "text of the memory" not in receipt.warning


async def test_a_finished_plan_takes_nothing_more() -> None:
    """Arguments that would be ignored are refused."""
    with pytest.raises(ValueError, match="overrides"):
        async with narrowgate.open(load_config(env={}), overrides={}):
            pytest.fail("must not open")
    with pytest.raises(ValueError, match="injected"):
        async with narrowgate.open(composed([]), embedder=Embedder()):  # type: ignore[arg-type]
            pytest.fail("must not open")


async def test_what_is_injected_wins_over_the_configuration() -> None:
    """The configuration names another store; the application's object is used."""
    config = load_config(overrides={"use": {"store": "nowhere.store", "channels": "none"}}, env={})
    store = Store()
    composition = plan(config, injected={"store": store})
    async with narrowgate.open(composition) as gate:
        await gate.remember("m", "one")
    assert len(store.vectors) == 1


def test_the_synchronous_face_does_the_same() -> None:
    """For scripts: the loop runs in a thread of its own, and everything is closed at the end."""
    log: list[str] = []
    with narrowgate.open_sync(composed(log)) as gate:
        assert gate.remember("m", ["one", "two"]).count("added") == 2
        assert gate.search("harbour", memory="m").hits == ()
    assert log[-1] == "close a.store"


async def test_the_synchronous_face_works_under_a_running_loop() -> None:
    """For notebooks: a loop that runs in this thread is not in the way."""
    with narrowgate.open_sync(composed([])) as gate:
        assert gate.remember("m", "one").revision == 1


def test_importing_the_package_imports_nothing_heavy() -> None:
    """The public names are loaded when they are used."""
    script = "import sys, narrowgate; print(sorted({'numpy', 'pluggy', 'attrs', 'anyio', 'apsw'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    """`__all__` is sorted, and each of its names can be had; another gives an AttributeError."""
    names = narrowgate.__all__
    assert sorted(names) == names
    assert all(getattr(narrowgate, name) is not None for name in names)
    assert set(names) <= set(dir(narrowgate))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = narrowgate.nonsense


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(narrowgate.ConfigError, match=r"absent\.toml"), narrowgate.open_sync(tmp_path / "absent.toml"):
        pytest.fail("must not open")
