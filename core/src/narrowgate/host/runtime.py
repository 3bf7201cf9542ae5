"""From a plan to services that run: builds components in order, owns their lifetimes, hands out the services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import attrs

from narrowgate.decisions.account import MeteredBackend, MeteredGenerator
from narrowgate.errors import CompositionError, InputError, NarrowgateError
from narrowgate.governance.advice import Advice
from narrowgate.governance.polarity import polarity
from narrowgate.governance.rerank_watch import WatchedReranker
from narrowgate.host import codes, report
from narrowgate.host.composition import Chosen, Composition, plan
from narrowgate.host.config import Config, load_config
from narrowgate.host.governing import Governing, governing
from narrowgate.memory.review import ReviewService
from narrowgate.memory.service import MemoryService
from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate.recall.service import NamedChannel, NamedReranker, SearchService
from narrowgate.recall.settings import SearchSettings
from narrowgate.seams.component import Deps, Probe, Problem, Seam
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.seams.ports import DecisionBackend, Embedder, EntryStore, Generator, RecallChannel, Reranker
from narrowgate.seams.workers import left_behind
from narrowgate.values.entry import Change, EntryDraft, EntryVersion, MemoryHead, WriteReceipt
from narrowgate.values.filters import Filter, parse_filter
from narrowgate.values.held import HeldEntry, HeldItem, HeldOutcome, HeldState
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelKind, Mode, SearchPage, SearchRequest

_METERS: Final = {Seam.DECISION_BACKEND: MeteredBackend, Seam.GENERATOR: MeteredGenerator}


class Narrowgate:
    """A running composition: memories to write to and to search. Made by `open`.

    Attributes:
        composition: what runs.
        memory: the write service and exact reads.
        review: the held queue.
        search_service: the search service.
        governing: what its policies run.
        advice: what policies that may only propose say when they are asked.
    """

    def __init__(self, composition: Composition, built: Mapping[str, Any], governing: Governing) -> None:
        self.composition: Composition = composition
        self.governing: Governing = governing
        self._built = dict(built)
        self._settings: SearchSettings = composition.config.search
        self._store: EntryStore = self._of(Seam.ENTRY_STORE)[0][1]
        embedders = self._of(Seam.EMBEDDER)
        embedder: Embedder | None = embedders[0][1] if embedders else None
        channels: list[tuple[str, RecallChannel]] = self._of(Seam.RECALL_CHANNEL)
        vectors = any(channel.kind is ChannelKind.VECTOR for _, channel in channels)
        # Without a vector channel nobody would look at vectors, so that writes need not wait for a model.
        queue = self._store if isinstance(self._store, HeldQueue) else None
        self.memory: MemoryService = MemoryService(self._store, embedder if vectors else None, governing.write_gate, queue)
        self.review: ReviewService = ReviewService(self._store, queue, embedder if vectors else None)
        threshold = embedder.profile.threshold if embedder is not None else None
        rerankers: list[tuple[str, Reranker]] = self._of(Seam.RERANKER)
        named = [
            NamedChannel(name, channel, threshold if channel.kind is ChannelKind.VECTOR else None)
            for name, channel in channels
        ]
        stage = NamedReranker(*rerankers[0]) if rerankers else None
        if stage is not None and governing.rerank_watch is not None:
            stage = attrs.evolve(stage, reranker=WatchedReranker(stage.reranker))
        self.search_service: SearchService = SearchService(
            self._store, named, stage, self._settings, composition.config.rerank
        )
        self.advice: Advice = governing.advice(self._store, SearchService(self._store, named, None, self._settings))

    def _of(self, seam: Seam) -> list[tuple[str, Any]]:
        return [(item.name, self._built[item.name]) for item in self.composition.of(seam)]

    def component(self, name: str) -> Any:
        """Return the object built for a component of the composition.

        Raises:
            KeyError: it is not part of the composition.
        """
        return self._built[name]

    async def remember(
        self,
        memory: str,
        drafts: EntryDraft | str | Iterable[EntryDraft | str],
        *,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """Store drafts as one batch; see `MemoryService.remember`."""
        return await self.memory.remember(memory, drafts, strict=strict, expected_revision=expected_revision)

    async def forget(
        self,
        memory: str,
        entries: EntryRef | str | Iterable[EntryRef | str],
        *,
        reason: str | None = None,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """Deactivate entries, reversibly; see `MemoryService.forget`."""
        return await self.memory.forget(memory, entries, reason=reason, strict=strict, expected_revision=expected_revision)

    async def reactivate(
        self,
        memory: str,
        entries: EntryRef | str | Iterable[EntryRef | str],
        *,
        reason: str | None = None,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """Undo `forget`; see `MemoryService.reactivate`."""
        return await self.memory.reactivate(
            memory, entries, reason=reason, strict=strict, expected_revision=expected_revision
        )

    async def held(
        self,
        memory: str | None = None,
        *,
        policy: str | None = None,
        state: HeldState | None = "pending",
        after: str | None = None,
        limit: int = 100,
    ) -> tuple[HeldEntry, ...]:
        """Return writes that a gate holds back, without content, oldest first; see `ReviewService.held`."""
        return await self.review.held(memory, policy=policy, state=state, after=after, limit=limit)

    async def held_one(self, held_id: str) -> HeldItem:
        """Return one of them, with its content while it waits; see `ReviewService.held_one`."""
        return await self.review.held_one(held_id)

    async def release(
        self, held_ids: str | Iterable[str], *, by: str | None = None, reason: str | None = None
    ) -> tuple[HeldOutcome, ...]:
        """Write held entries, each as a revision of its own; see `ReviewService.release`."""
        return await self.review.release(held_ids, by=by, reason=reason)

    async def reject(
        self, held_ids: str | Iterable[str], *, by: str | None = None, reason: str | None = None
    ) -> tuple[HeldOutcome, ...]:
        """Close held entries without writing them; see `ReviewService.reject`."""
        return await self.review.reject(held_ids, by=by, reason=reason)

    async def purge_held(self, state: HeldState, *, memory: str | None = None, before: datetime | None = None) -> int:
        """Remove what expired, or records of what was resolved, for good; see `ReviewService.purge`."""
        return await self.review.purge(state, memory=memory, before=before)

    async def read(self, ref: EntryRef | str) -> EntryVersion:
        """Return exactly the version that `ref` names."""
        return await self.memory.read(ref)

    async def current(self, memory: str, entry: str) -> EntryVersion:
        """Return an entry's current version, active or not."""
        return await self.memory.current(memory, entry)

    async def history(self, memory: str, entry: str) -> tuple[Change, ...]:
        """Return every change of an entry, oldest first."""
        return await self.memory.history(memory, entry)

    async def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> tuple[Change, ...]:
        """Return what changed after revision `since`, whole revisions in order."""
        return await self.memory.changes(memory, since=since, limit=limit)

    async def memories(self) -> tuple[MemoryHead, ...]:
        """Return every memory with its head, by id."""
        return await self.memory.memories()

    async def search(
        self,
        text: str,
        *,
        memory: str | Sequence[str] = "default",
        limit: int | None = None,
        mode: Mode | str | None = None,
        filters: Iterable[Filter | str] = (),
    ) -> SearchPage:
        """Search one or several memories.

        Args:
            text: the question; blank or punctuation alone has an empty page.
            memory: one id or several; a memory that holds nothing yet gives nothing.
            limit: the most hits, 1..100; `[search] limit` by default.
            mode: `auto`, `lexical`, `vector` or `hybrid`; `[search] mode` by default.
            filters: all must hold: `Filter` objects or texts like `kind=decision` (see `parse_filter`).

        Raises:
            InputError: a bad argument.
            RecallError: see `SearchService.search`.
        """
        request = SearchRequest(
            text,
            (memory,) if isinstance(memory, str) else tuple(memory),
            self._settings.limit if limit is None else limit,
            self._settings.mode if mode is None else _mode(mode),
            tuple(parse_filter(item) if isinstance(item, str) else item for item in filters),
        )
        watch = self.governing.rerank_watch
        if watch is None:
            return await self.search_service.search(request)
        with watch.search() as settled:
            page = await self.search_service.search(request)
            settled(page)
        return page

    async def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild the store's indexes; return the number of entries indexed. `progress` is called with (done, total)."""
        return await self.memory.reindex(progress)

    async def health(self) -> Mapping[str, str | int | float | bool]:
        """Return content-free facts about the store, and counts of sinks and shadow evaluations where policies are in use.

        `held.pending`, `held.expired`, `held.released`, `held.rejected` count the held queue; those of 0 are left out.

        `workers_left_behind` is there when it is not 0: worker threads of this process that run synchronous code whose
        caller has left, e.g. after a deadline (see `narrowgate.seams.workers`).
        """
        held = {f"held.{state}": number for state, number in (await self.review.counts()).items()}
        facts = {**await self._store.health(), **held, **self.governing.health()}
        behind = left_behind()
        return {**facts, "workers_left_behind": behind} if behind else facts

    async def probe(self) -> tuple[Problem, ...]:
        """Ask every component and gate that can be asked a question whose answer is known; return what is wrong.

        May cost calls.
        """
        problems: list[Problem] = []
        for chosen in self.composition.chosen:
            if chosen.component.probe is not None:
                problems += await _probe(chosen, chosen.component.probe, self._built[chosen.name])
        for gate in self.governing.gates.values():
            problems += await polarity(gate)
        return report.in_order(problems)


async def _probe(chosen: Chosen, probe: Probe, built: Any) -> list[Problem]:
    try:
        found = list(await probe(built))
    except NarrowgateError as error:
        # Ours promise a message without content, with the cure at its end.
        hint = "see the message; `narrowgate check` shows the settings in force"
        found = [Problem(codes.PROBE_FAILED, f"{chosen.name}: {error}", hint)]
    except Exception as error:  # noqa: BLE001 - third-party code: the other components are still asked
        text = f"the probe of {chosen.name} failed ({type(error).__name__})"
        found = [Problem(codes.PROBE_FAILED, text, "report it to the plugin's author")]
    return [attrs.evolve(item, component=chosen.name, distribution=chosen.distribution) for item in found]


def _mode(said: Mode | str) -> Mode:
    try:
        return Mode(said)
    except ValueError:
        raise InputError("mode-unknown", f"mode must be one of {', '.join(mode.value for mode in Mode)}") from None


@asynccontextmanager
async def open(  # noqa: A001 - `narrowgate.open` is what it is called for
    config: Config | Composition | str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    store: EntryStore | None = None,
    channels: Sequence[RecallChannel] | None = None,
    embedder: Embedder | None = None,
    decision_backend: DecisionBackend | None = None,
    generator: Generator | None = None,
    reranker: Reranker | None = None,
) -> AsyncIterator[Narrowgate]:
    """Build what the configuration enables, and close it again in reverse order.

    Args:
        config: a configuration, a plan, the path of a TOML file, or `None` for the usual places (see `load_config`).
        overrides: sections that win over file and environment; only where `config` is a path or `None`.
        env: the environment; `os.environ` by default.
        store, channels, embedder, decision_backend, generator, reranker: objects of the application, which win over the
            configuration. Their lifetime stays the application's. One that sends content to another machine says so by an
            attribute `locality` (`Locality.HOSTED`): without it, it counts as in process, and no boundary keeps content in.

    Raises:
        ConfigError: the file cannot be read.
        CompositionError: what is enabled cannot run.
        StoreError: the store cannot be opened.
        ValueError: an argument that a finished configuration or plan leaves no room for.
    """
    injected = {
        "store": store,
        "channels": channels,
        "embedder": embedder,
        "decision_backend": decision_backend,
        "generator": generator,
        "reranker": reranker,
    }
    composition = _composition(config, overrides, env, injected)
    async with AsyncExitStack() as stack:
        built: dict[str, Any] = {}
        for chosen in composition.chosen:
            manager, built[chosen.name] = await _build(chosen, built)
            stack.push_async_exit(partial(_close, chosen, manager))
        # Entered last: gates and sinks end before what they use.
        yield Narrowgate(composition, built, await stack.enter_async_context(governing(composition, built)))


def _composition(
    config: Config | Composition | str | Path | None,
    overrides: Mapping[str, Any] | None,
    env: Mapping[str, str] | None,
    injected: Mapping[str, Any],
) -> Composition:
    if isinstance(config, Config | Composition) and (overrides is not None or env is not None):
        raise ValueError("overrides and env go with a file: a finished configuration holds both already")
    if isinstance(config, Composition):
        if any(item is not None for item in injected.values()):
            raise ValueError("a finished plan takes no further objects: hand them to plan(injected=...)")
        return config
    if not isinstance(config, Config):
        config = load_config(config, overrides=overrides, env=env)
    return plan(config, injected=injected)


async def _build(chosen: Chosen, built: Mapping[str, Any]) -> tuple[AbstractAsyncContextManager[Any], Any]:
    met = {seam: tuple(built[name] for name in names) for seam, names in chosen.needs.items()}
    if chosen.component.seam is Seam.RERANKER:
        # A reranker that is cut off cannot say what it spent: its backends say so.
        met |= {seam: tuple(map(meter, met[seam])) for seam, meter in _METERS.items() if seam in met}
    try:
        manager = chosen.component.build(chosen.settings, Deps(met, ANALYSER_VERSION))
        return manager, await manager.__aenter__()
    except NarrowgateError:
        raise
    except Exception as error:
        # Only the type: a foreign exception's text may hold what the settings hold, keys too.
        text = f"{chosen.name} could not be built ({type(error).__name__})"
        hint = "run `narrowgate check`; the cause is chained to this error"
        problem = Problem(codes.BUILD_FAILED, text, hint, chosen.name, chosen.distribution)
        raise CompositionError([problem], report.render([problem])) from error


async def _close(
    chosen: Chosen,
    manager: AbstractAsyncContextManager[Any],
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Close a component. It never swallows what the application raised, and its own failure says whose it is."""
    try:
        await manager.__aexit__(kind, error, trace)
    except Exception as failure:
        if failure is not error:
            failure.add_note(f"raised while closing {chosen.name} of {chosen.distribution}")
        raise
