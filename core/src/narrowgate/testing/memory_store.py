"""An entry store in memory: the contract of `EntryStore` in its plainest form, for tests of what stands on a store."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import anyio.lowlevel
import attrs

from narrowgate.errors import BatchRefusedError, ConflictError, EntryReferenceError
from narrowgate.seams.ports import Embedder
from narrowgate.testing.matching import matches
from narrowgate.values.entry import (
    Change,
    ChangeKind,
    EntryContent,
    EntryVersion,
    ItemOutcome,
    MemoryHead,
    Operation,
    Put,
    Refused,
    SetActive,
    VectorBatch,
    WriteReceipt,
)
from narrowgate.values.filters import Filter
from narrowgate.values.identity import EntryRef, new_entry_ids
from narrowgate.values.search import ChannelHit

_CHANGES: Final = ("added", "revised", "deactivated", "reactivated")


@attrs.define
class _Version:
    revision: int
    content: EntryContent
    at: datetime
    reason: str | None
    until: int | None = None


@attrs.define
class _Entry:
    versions: list[_Version]
    active: bool = True
    switches: list[tuple[int, int, bool]] = attrs.field(factory=list)
    """(revision, version, active), in order."""

    @property
    def content(self) -> EntryContent:
        return self.versions[-1].content

    def was_active(self, revision: int) -> bool:
        return next((active for at, _, active in reversed(self.switches) if at <= revision), True)


@attrs.define
class _Memory:
    revision: int = 0
    entries: dict[str, _Entry] = attrs.field(factory=dict)
    feed: list[Change] = attrs.field(factory=list)


class MemoryStore:
    """An `EntryStore` that lasts as long as the object: no file, no vectors, no other process.

    Attributes:
        clock: says when a batch is written, UTC.
    """

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.clock = clock
        self._memories: dict[str, _Memory] = {}

    async def heads(self, memories: Sequence[str] | None = None) -> tuple[MemoryHead, ...]:
        """See `EntryStore.heads`."""
        await anyio.lowlevel.checkpoint()
        return tuple(self._head(name) for name in sorted(self._memories if memories is None else {*memories}))

    async def preview(self, memory: str, operations: Sequence[Operation]) -> tuple[ItemOutcome, ...]:
        """See `EntryStore.preview`."""
        await anyio.lowlevel.checkpoint()
        batch = _Batch(memory, self._memories.get(memory) or _Memory(), self.clock())
        return tuple(
            attrs.evolve(item, ref=None) if item.status == "added" else item for item in map(batch.step, operations)
        )

    async def commit(
        self,
        memory: str,
        operations: Sequence[Operation],
        *,
        expected_revision: int | None = None,
        strict: bool = False,
        vectors: VectorBatch | None = None,  # noqa: ARG002 - the port's; nothing here searches by vectors
    ) -> WriteReceipt:
        """See `EntryStore.commit`."""
        await anyio.lowlevel.checkpoint()
        now = self._memories.get(memory) or _Memory()
        if expected_revision is not None and expected_revision != now.revision:
            raise ConflictError(memory, expected_revision, now.revision)
        batch = _Batch(memory, now, self.clock())
        items = [batch.step(operation) for operation in operations]
        if strict and any(item.status == "refused" for item in items):
            raise BatchRefusedError(items)
        after = now
        if any(item.status in _CHANGES for item in items):
            after = self._memories[memory] = batch.memory
        return WriteReceipt(memory, after.revision, tuple(_as_of(item, memory, after) for item in items))

    async def read(self, ref: EntryRef) -> EntryVersion:
        """See `EntryStore.read`."""
        await anyio.lowlevel.checkpoint()
        found = self._at(ref)
        if found is None:
            raise EntryReferenceError(
                "ref-unknown", f"{ref} names nothing: the memory never held that version at that revision"
            )
        return found

    async def current(self, memory: str, entry: str) -> EntryVersion:
        """See `EntryStore.current`."""
        await anyio.lowlevel.checkpoint()
        known = self._entry(memory, entry)
        return self._version(EntryRef(memory, self._memories[memory].revision, entry, len(known.versions)), known.active)

    async def locate(self, entry: str) -> str | None:
        """See `EntryStore.locate`."""
        await anyio.lowlevel.checkpoint()
        return next((name for name, memory in self._memories.items() if entry in memory.entries), None)

    async def resolve(
        self, revisions: Mapping[str, int], hits: Sequence[ChannelHit]
    ) -> dict[tuple[str, str, int], EntryVersion]:
        """See `EntryStore.resolve`."""
        await anyio.lowlevel.checkpoint()
        found: dict[tuple[str, str, int], EntryVersion] = {}
        for hit in hits:
            if hit.memory in revisions:
                version = self._at(EntryRef(hit.memory, revisions[hit.memory], hit.entry, hit.version))
                if version is not None and version.active:
                    found[hit.memory, hit.entry, hit.version] = version
        return found

    async def history(self, memory: str, entry: str) -> tuple[Change, ...]:
        """See `EntryStore.history`."""
        await anyio.lowlevel.checkpoint()
        self._entry(memory, entry)
        return tuple(change for change in self._memories[memory].feed if change.ref.entry == entry)

    async def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> tuple[Change, ...]:
        """See `EntryStore.changes`."""
        await anyio.lowlevel.checkpoint()
        later = [change for change in (self._memories.get(memory) or _Memory()).feed if change.ref.revision > since]
        last = later[min(max(limit, 1), len(later)) - 1].ref.revision if later else 0
        return tuple(change for change in later if change.ref.revision <= last)

    async def scan(
        self, memory: str, *, filters: Sequence[Filter] = (), after: str | None = None, limit: int = 1000
    ) -> tuple[EntryVersion, ...]:
        """See `EntryStore.scan`."""
        await anyio.lowlevel.checkpoint()
        known = self._memories.get(memory) or _Memory()
        names = sorted(name for name, entry in known.entries.items() if entry.active and name > (after or ""))
        passed = [name for name in names if matches(known.entries[name].content, filters)]
        return tuple(
            self._version(EntryRef(memory, known.revision, name, len(known.entries[name].versions)), active=True)
            for name in passed[: max(limit, 0)]
        )

    async def health(self) -> Mapping[str, str | int | float | bool]:
        """See `EntryStore.health`."""
        await anyio.lowlevel.checkpoint()
        heads = [self._head(name) for name in self._memories]
        return {
            "memories": len(heads),
            "entries": sum(head.active for head in heads),
            "forgotten": sum(head.inactive for head in heads),
        }

    async def reindex(
        self,
        embedder: Embedder | None = None,  # noqa: ARG002 - the port's
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """See `EntryStore.reindex`. There is no index: every entry is as found as it was."""
        await anyio.lowlevel.checkpoint()
        entries = sum(self._head(name).active for name in self._memories)
        if progress is not None:
            progress(entries, entries)
        return entries

    def _head(self, name: str) -> MemoryHead:
        memory = self._memories.get(name) or _Memory()
        active = sum(entry.active for entry in memory.entries.values())
        return MemoryHead(name, memory.revision, active, len(memory.entries) - active)

    def _entry(self, memory: str, entry: str) -> _Entry:
        known = (self._memories.get(memory) or _Memory()).entries.get(entry)
        if known is None:
            raise EntryReferenceError("entry-unknown", f"memory {memory!r} holds no entry {entry!r}")
        return known

    def _at(self, ref: EntryRef) -> EntryVersion | None:
        memory = self._memories.get(ref.memory) or _Memory()
        entry = memory.entries.get(ref.entry)
        if entry is None or ref.revision > memory.revision or not 1 <= ref.version <= len(entry.versions):
            return None
        version = entry.versions[ref.version - 1]
        current = version.until is None or ref.revision < version.until
        # One that a batch wrote, or switched, and then replaced was there at that revision, inactive.
        passing = version.revision == ref.revision or (ref.revision, ref.version) in {item[:2] for item in entry.switches}
        if version.revision > ref.revision or not (current or passing):
            return None
        return self._version(ref, current and entry.was_active(ref.revision))

    def _version(self, ref: EntryRef, active: bool) -> EntryVersion:
        version = self._memories[ref.memory].entries[ref.entry].versions[ref.version - 1]
        return EntryVersion(ref, version.content, version.at, active, version.reason)


def _as_of(item: ItemOutcome, name: str, memory: _Memory) -> ItemOutcome:
    """Return an outcome with its entry as it stands after the whole batch."""
    if item.ref is None:
        return item
    entry = memory.entries[item.ref.entry]
    return attrs.evolve(item, ref=EntryRef(name, memory.revision, item.ref.entry, len(entry.versions)))


class _Batch:
    """Each operation against the entries as they stand, in order, on a copy."""

    def __init__(self, name: str, memory: _Memory, at: datetime) -> None:
        self._name, self._at, self.memory = name, at, _copy(memory)
        self.memory.revision += 1

    def step(self, operation: Operation) -> ItemOutcome:
        if isinstance(operation, Refused):
            return ItemOutcome("refused", code=operation.code, message=operation.message)
        if isinstance(operation, SetActive):
            return self._set_active(operation)
        return self._put(operation)

    def _put(self, put: Put) -> ItemOutcome:
        name = put.entry if put.entry is not None else self._same(put.content)
        if name is None:
            return self._add(put) if put.expected_version is None else _unknown()
        entry = self.memory.entries.get(name)
        if entry is None:
            return _unknown()
        if put.expected_version not in (None, len(entry.versions)):
            return _stale(put.expected_version, len(entry.versions))
        if not entry.active:
            return _refused("entry-inactive", "the entry was forgotten: reactivate it to change it")
        if entry.content.digest == put.content.digest:
            return ItemOutcome("unchanged", self._ref(name))
        source = put.content.source
        others = [other for key, other in self.memory.entries.items() if key != name]
        if source is not None and any(other.content.source == source for other in others):
            return _refused("source-taken", "another entry of this memory has that source: revise that one")
        entry.versions[-1].until = self.memory.revision
        entry.versions.append(_Version(self.memory.revision, put.content, self._at, put.reason))
        return self._changed("revised", "revise", name, put.reason)

    def _same(self, content: EntryContent) -> str | None:
        """Return the entry that a put without an id means: by source, else by equal content, an active one first."""
        by_source = content.source is not None
        same = [
            (not entry.active, place, name)
            for place, (name, entry) in enumerate(self.memory.entries.items())
            if (entry.content.source == content.source if by_source else entry.content.digest == content.digest)
            and (by_source or entry.content.source is None)
        ]
        return min(same)[2] if same else None

    def _add(self, put: Put) -> ItemOutcome:
        (name,) = new_entry_ids(1)
        self.memory.entries[name] = _Entry([_Version(self.memory.revision, put.content, self._at, put.reason)])
        return self._changed("added", "add", name, put.reason)

    def _set_active(self, wanted: SetActive) -> ItemOutcome:
        entry = self.memory.entries.get(wanted.entry)
        if entry is None:
            return _unknown()
        if wanted.expected_version not in (None, len(entry.versions)):
            return _stale(wanted.expected_version, len(entry.versions))
        if entry.active == wanted.active:
            return ItemOutcome("unchanged", self._ref(wanted.entry))
        entry.active = wanted.active
        entry.switches.append((self.memory.revision, len(entry.versions), wanted.active))
        status: Any = "reactivated" if wanted.active else "deactivated"
        return self._changed(status, "reactivate" if wanted.active else "deactivate", wanted.entry, wanted.reason)

    def _changed(self, status: Any, kind: ChangeKind, name: str, reason: str | None) -> ItemOutcome:
        ref = self._ref(name)
        self.memory.feed.append(Change(ref, kind, self._at, reason))
        return ItemOutcome(status, ref)

    def _ref(self, name: str) -> EntryRef:
        return EntryRef(self._name, self.memory.revision, name, len(self.memory.entries[name].versions))


def _copy(memory: _Memory) -> _Memory:
    entries = {
        name: attrs.evolve(entry, versions=[copy.copy(version) for version in entry.versions], switches=[*entry.switches])
        for name, entry in memory.entries.items()
    }
    return _Memory(memory.revision, entries, [*memory.feed])


def _refused(code: str, message: str) -> ItemOutcome:
    return ItemOutcome("refused", code=code, message=message)


def _unknown() -> ItemOutcome:
    return _refused("unknown-entry", "this memory holds no such entry")


def _stale(expected: int | None, actual: int) -> ItemOutcome:
    return _refused("stale-version", f"the entry is at version {actual}, not at {expected}: read it and try again")
