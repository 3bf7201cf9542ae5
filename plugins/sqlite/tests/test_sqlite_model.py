"""The store against a simple model in memory, over random histories: membership, statuses, feed, and both indexes."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlite_parts import HashEmbedder, disagreements, opened, put, vectors_of

from narrowgate.recall.analysis import index_terms
from narrowgate.values.entry import Put, SetActive
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelHit

WORDS = ["rain", "oslo", "会议", "tea", "c++"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
SOURCES = st.sampled_from([None, None, "a", "b"])
MEMORIES = st.sampled_from(["m", "n"])


@attrs.define
class Entry:
    """An entry of the model: its versions, and whether it is active."""

    versions: list[tuple[str, str | None]]
    active: bool = True

    @property
    def now(self) -> tuple[str, str | None]:
        """Text and source of the current version."""
        return self.versions[-1]


@attrs.define
class Memory:
    """A memory of the model: its entries, and the state of all of them at each revision."""

    entries: dict[str, Entry] = attrs.field(factory=dict)
    states: list[dict[str, tuple[int, str, bool]]] = attrs.field(factory=lambda: [{}])

    def close(self) -> None:
        """Make the present a revision."""
        self.states.append({key: (len(e.versions), e.now[0], e.active) for key, e in self.entries.items()})


class Model(RuleBasedStateMachine):
    """Batches of random operations."""

    def __init__(self) -> None:
        super().__init__()
        self.exit = ExitStack()
        self.path = Path(self.exit.enter_context(tempfile.TemporaryDirectory())) / "memory.db"
        self.portal = self.exit.enter_context(start_blocking_portal())
        self.embedder = HashEmbedder()
        self.part = self.exit.enter_context(self.portal.wrap_async_context_manager(opened(self.path, self.embedder)))
        self.memories = {"m": Memory(), "n": Memory()}
        self.refs: dict[EntryRef, tuple[str, bool]] = {}

    def teardown(self) -> None:
        """Close the file and look whether its indexes agree with its entries."""
        self.portal.call(self.part.store.engine.close)
        found = disagreements(self.path, self.embedder)
        self.exit.close()
        assert found == []

    @rule(
        memory=MEMORIES,
        data=st.data(),
        steps=st.lists(st.sampled_from(["put", "put", "revise", "off", "on"]), min_size=1, max_size=5),
        with_vectors=st.booleans(),
    )
    def batch(self, memory: str, data: Any, steps: list[str], with_vectors: bool) -> None:
        """Commit a batch, and let the model do the same one by one."""
        model = self.memories[memory]
        known = [*self.memories["m"].entries, *self.memories["n"].entries, "nothing"]
        operations: list[Any] = []
        for step in steps:
            if step == "put":
                operations.append(put(data.draw(TEXTS), source=data.draw(SOURCES)))
            elif step == "revise":
                entry, version = data.draw(st.sampled_from(known)), data.draw(st.sampled_from([None, None, 1, 2]))
                change = put(data.draw(TEXTS), source=data.draw(SOURCES), entry=entry, version=version)
                operations.append(change)
            else:
                operations.append(SetActive(data.draw(st.sampled_from(known)), active=step == "on"))
        previewed = self.portal.call(self.part.store.preview, memory, operations)
        options = {"vectors": vectors_of(self.embedder, operations) if with_vectors else None}
        receipt = self.portal.call(lambda: self.part.commit(operations, memory=memory, **options))
        assert [(item.status, item.code) for item in previewed] == [(item.status, item.code) for item in receipt.items]
        expected = [self.step(model, operation, item) for operation, item in zip(operations, receipt.items, strict=True)]
        assert [(item.status, item.code) for item in receipt.items] == expected
        if any(status not in ("unchanged", "refused") for status, _ in expected):
            model.close()
        assert receipt.revision == len(model.states) - 1
        for item in receipt.items:
            if item.ref is not None:
                number, text, active = model.states[-1][item.ref.entry]
                assert item.ref == EntryRef(memory, receipt.revision, item.ref.entry, number)
                self.refs[item.ref] = (text, active)

    def step(self, model: Memory, operation: Any, item: Any) -> tuple[str, str | None]:
        """Return what must become of one operation; the id of an added entry is taken from the item."""
        if isinstance(operation, SetActive):
            entry = model.entries.get(operation.entry)
            if entry is None:
                return "refused", "unknown-entry"
            if entry.active == operation.active:
                return "unchanged", None
            entry.active = operation.active
            return ("reactivated" if operation.active else "deactivated"), None
        return self.step_put(model, operation, item)

    def step_put(self, model: Memory, operation: Put, item: Any) -> tuple[str, str | None]:
        """The same for a put."""
        content = (operation.content.text, operation.content.source)
        if operation.entry is not None:
            entry = model.entries.get(operation.entry)
            if entry is None:
                return "refused", "unknown-entry"
            if operation.expected_version not in (None, len(entry.versions)):
                return "refused", "stale-version"
            return self.revise(model, entry, content)
        if content[1] is not None:
            for entry in model.entries.values():
                if entry.now[1] == content[1]:
                    return self.revise(model, entry, content)
        else:
            same = [entry for entry in model.entries.values() if entry.now == content]
            if any(entry.active for entry in same):
                return "unchanged", None
            if same:
                return "refused", "entry-inactive"
        model.entries[item.ref.entry] = Entry([content])
        return "added", None

    def revise(self, model: Memory, entry: Entry, content: tuple[str, str | None]) -> tuple[str, str | None]:
        """The same for a revision."""
        if not entry.active:
            return "refused", "entry-inactive"
        if entry.now == content:
            return "unchanged", None
        if content[1] is not None and any(
            other.now[1] == content[1] for other in model.entries.values() if other is not entry
        ):
            return "refused", "source-taken"
        entry.versions.append(content)
        return "revised", None

    @rule()
    def rebuild(self) -> None:
        """Rebuilding changes nothing but vectors that were missing."""
        self.portal.call(self.part.store.reindex, self.embedder)

    @invariant()
    def every_reference_stays_exact(self) -> None:
        """Each reference ever returned reads the text and the state that it named, for ever."""

        async def read() -> None:
            for ref, (text, active) in self.refs.items():
                found = await self.part.store.read(ref)
                assert (found.content.text, found.active, found.ref) == (text, active, ref)

        self.portal.call(read)

    @invariant()
    def both_channels_agree_with_the_entries(self) -> None:
        """Words and vectors find exactly the active entries in their current versions, whatever the memory."""

        async def look() -> None:
            pending = 0
            for name, model in self.memories.items():
                active = {(key, len(e.versions)): e.now[0] for key, e in model.entries.items() if e.active}
                for word in WORDS:
                    found = await self.part.words(word, memories=[name])
                    assert all(hit.score > 0 for hit in found.hits)
                    expected = {key for key, text in active.items() if {*index_terms(word)} & {*index_terms(text)}}
                    assert {(hit.entry, hit.version) for hit in found.hits} == expected
                near = await self.part.near("rain", memories=[name])
                assert {(hit.entry, hit.version) for hit in near.hits} <= set(active)
                assert near.complete == (len(near.hits) == len(active))
                pending += len(active) - len(near.hits)
                assert near.revisions == found.revisions == {name: len(model.states) - 1}
                (head,) = await self.part.store.heads([name])
                assert (head.revision, head.active, head.inactive) == (
                    *(len(model.states) - 1, len(active)),
                    len(model.entries) - len(active),
                )
            health = await self.part.store.health()
            assert health["pending_vectors"] == (pending if health["embedding"] else 0)

        self.portal.call(look)

    @invariant()
    def membership_holds_at_every_revision(self) -> None:
        """At each revision exactly the versions of then resolve; the feed replays to the present."""

        async def look() -> None:
            for name, model in self.memories.items():
                hits = [
                    ChannelHit(name, key, number, 1.0)
                    for key, entry in model.entries.items()
                    for number in range(1, len(entry.versions) + 1)
                ]
                for revision, state in enumerate(model.states[-4:], max(0, len(model.states) - 4)):
                    found = await self.part.store.resolve({name: revision}, hits)
                    expected = {(name, key, number): text for key, (number, text, active) in state.items() if active}
                    assert {key: version.content.text for key, version in found.items()} == expected
                replayed: dict[str, tuple[int, bool]] = {}
                for change in await self.part.store.changes(name):
                    replayed[change.ref.entry] = (change.ref.version, change.kind != "deactivate")
                    await self.part.store.read(change.ref)
                assert replayed == {key: (number, active) for key, (number, _, active) in model.states[-1].items()}
                scanned = await self.part.store.scan(name)
                assert [version.ref.entry for version in scanned] == sorted(
                    key for key, e in model.entries.items() if e.active
                )

        self.portal.call(look)


Model.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None, derandomize=True)
TestModel = Model.TestCase
