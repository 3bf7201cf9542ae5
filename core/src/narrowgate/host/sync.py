"""The same services without `async`, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from narrowgate.errors import StoreError
from narrowgate.governance.advice import ApplicabilityAdvice, HandoffAdvice, RelationsAdvice
from narrowgate.governance.cited import Cited
from narrowgate.host.composition import Composition
from narrowgate.host.config import Config
from narrowgate.host.runtime import Narrowgate, open  # noqa: A004 - `narrowgate.open` is what it is called for
from narrowgate.seams.component import Problem
from narrowgate.values.entry import Change, EntryDraft, EntryVersion, MemoryHead, WriteReceipt
from narrowgate.values.filters import Filter
from narrowgate.values.held import HeldEntry, HeldItem, HeldOutcome, HeldState
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Mode, SearchPage

T = TypeVar("T")


class SyncAdvice:
    """`Advice` with plain methods."""

    def __init__(self, call: Callable[..., Any], host: Narrowgate) -> None:
        self._call, self._advice = call, host.advice

    def relations(self, memory: str, text: str | EntryRef, *, limit: int = 5) -> RelationsAdvice:
        """See `Advice.relations`."""
        found: RelationsAdvice = self._call(partial(self._advice.relations, memory, text, limit=limit))
        return found

    def handoff(self, claim: str, evidence: Iterable[Cited] | Cited, *, scope: str = "handoff") -> HandoffAdvice:
        """See `Advice.handoff`."""
        found: HandoffAdvice = self._call(partial(self._advice.handoff, claim, evidence, scope=scope))
        return found

    def applicability(
        self, task: str, experiences: Iterable[Cited] | Cited, *, scope: str = "applicability"
    ) -> ApplicabilityAdvice:
        """See `Advice.applicability`."""
        found: ApplicabilityAdvice = self._call(partial(self._advice.applicability, task, experiences, scope=scope))
        return found


class SyncNarrowgate:
    """`Narrowgate` with plain methods. Made by `open_sync`; may be used from several threads."""

    def __init__(self, portal: BlockingPortal, host: Narrowgate) -> None:
        self._portal = portal
        self._host = host
        self._closed = False
        self.advice: SyncAdvice = SyncAdvice(self._call, host)

    def _call(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        if self._closed:
            raise StoreError("closed", "this narrowgate is closed: open it again")
        return self._portal.call(function, *args)

    @property
    def composition(self) -> Composition:
        """What runs."""
        return self._host.composition

    def component(self, name: str) -> Any:
        """See `Narrowgate.component`; its own methods are for the loop's thread."""
        return self._host.component(name)

    def remember(
        self,
        memory: str,
        drafts: EntryDraft | str | Iterable[EntryDraft | str],
        *,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """See `Narrowgate.remember`."""
        call = partial(self._host.remember, memory, drafts, strict=strict, expected_revision=expected_revision)
        return self._call(call)

    def forget(
        self,
        memory: str,
        entries: EntryRef | str | Iterable[EntryRef | str],
        *,
        reason: str | None = None,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """See `Narrowgate.forget`."""
        call = self._host.forget
        return self._call(partial(call, memory, entries, reason=reason, strict=strict, expected_revision=expected_revision))

    def reactivate(
        self,
        memory: str,
        entries: EntryRef | str | Iterable[EntryRef | str],
        *,
        reason: str | None = None,
        strict: bool = False,
        expected_revision: int | None = None,
    ) -> WriteReceipt:
        """See `Narrowgate.reactivate`."""
        call = self._host.reactivate
        return self._call(partial(call, memory, entries, reason=reason, strict=strict, expected_revision=expected_revision))

    def held(
        self,
        memory: str | None = None,
        *,
        policy: str | None = None,
        state: HeldState | None = "pending",
        after: str | None = None,
        limit: int = 100,
    ) -> tuple[HeldEntry, ...]:
        """See `Narrowgate.held`."""
        return self._call(partial(self._host.held, memory, policy=policy, state=state, after=after, limit=limit))

    def held_one(self, held_id: str) -> HeldItem:
        """See `Narrowgate.held_one`."""
        return self._call(self._host.held_one, held_id)

    def release(
        self, held_ids: str | Iterable[str], *, by: str | None = None, reason: str | None = None
    ) -> tuple[HeldOutcome, ...]:
        """See `Narrowgate.release`."""
        return self._call(partial(self._host.release, held_ids, by=by, reason=reason))

    def reject(
        self, held_ids: str | Iterable[str], *, by: str | None = None, reason: str | None = None
    ) -> tuple[HeldOutcome, ...]:
        """See `Narrowgate.reject`."""
        return self._call(partial(self._host.reject, held_ids, by=by, reason=reason))

    def purge_held(self, state: HeldState, *, memory: str | None = None, before: datetime | None = None) -> int:
        """See `Narrowgate.purge_held`."""
        return self._call(partial(self._host.purge_held, state, memory=memory, before=before))

    def read(self, ref: EntryRef | str) -> EntryVersion:
        """See `Narrowgate.read`."""
        return self._call(self._host.read, ref)

    def current(self, memory: str, entry: str) -> EntryVersion:
        """See `Narrowgate.current`."""
        return self._call(self._host.current, memory, entry)

    def history(self, memory: str, entry: str) -> tuple[Change, ...]:
        """See `Narrowgate.history`."""
        return self._call(self._host.history, memory, entry)

    def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> tuple[Change, ...]:
        """See `Narrowgate.changes`."""
        return self._call(partial(self._host.changes, memory, since=since, limit=limit))

    def memories(self) -> tuple[MemoryHead, ...]:
        """See `Narrowgate.memories`."""
        return self._call(self._host.memories)

    def search(
        self,
        text: str,
        *,
        memory: str | Sequence[str] = "default",
        limit: int | None = None,
        mode: Mode | str | None = None,
        filters: Iterable[Filter | str] = (),
    ) -> SearchPage:
        """See `Narrowgate.search`."""
        return self._call(partial(self._host.search, text, memory=memory, limit=limit, mode=mode, filters=filters))

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """See `Narrowgate.reindex`; `progress` is called in the loop's thread."""
        return self._call(self._host.reindex, progress)

    def health(self) -> Mapping[str, str | int | float | bool]:
        """See `Narrowgate.health`."""
        return self._call(self._host.health)

    def probe(self) -> tuple[Problem, ...]:
        """See `Narrowgate.probe`."""
        return self._call(self._host.probe)


@contextmanager
def open_sync(config: Config | Composition | str | Path | None = None, **arguments: Any) -> Iterator[SyncNarrowgate]:
    """Do what `open` does, without `async`: an event loop runs in a thread of its own until the block ends.

    Args:
        config: as for `open`.
        arguments: the other arguments of `open`.

    Raises:
        as `open`.
    """
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open(config, **arguments)) as host:
        face = SyncNarrowgate(portal, host)
        try:
            yield face
        finally:
            face._closed = True
