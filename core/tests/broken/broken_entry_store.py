"""Entry stores that break their contract, each in the way that `breaks` names: `MemoryStore` with one thing done wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import anyio.lowlevel
import attrs
import pytest

from narrowgate.errors import BatchRefusedError, ConflictError, EntryReferenceError
from narrowgate.memory.drafts import prepare_strictly
from narrowgate.testing import Builder, EntryStoreConformance, MemoryStore
from narrowgate.values.entry import EntryDraft, Put, SetActive
from narrowgate.values.identity import EntryRef

DURABLE = {
    "test_lasts_from_one_opening_to_the_next",
    "test_sees_what_other_processes_write",
    "test_a_killed_writer_leaves_whole_batches",
}
ELSEWHERE = """
from contextlib import nullcontext
from narrowgate.testing import MemoryStore
build = lambda: nullcontext(MemoryStore())
"""


class Broken(EntryStoreConformance):
    """What is said of each of them."""

    durable = False
    breaks: ClassVar[frozenset[str]] = frozenset()
    store: ClassVar[Callable[[], Any]] = MemoryStore

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the store of this class."""
        return lambda: nullcontext(type(self).store())


class TestSound(Broken):
    """Breaks nothing."""


class TestForgetful(Broken):
    """Says that it lasts, and lasts as long as the object."""

    durable = True
    breaks = frozenset(DURABLE)

    @pytest.fixture
    def elsewhere(self) -> str:
        """Open another one, and take it for the same."""
        return ELSEWHERE


class Telling(MemoryStore):
    """Shows a text in its health."""

    async def health(self) -> Any:
        """Say too much."""
        return {**await super().health(), "first": str(await self.scan("notes"))}


class TestTelling(Broken):
    """Health holds no content."""

    store = Telling
    breaks = frozenset({"test_fulfils_the_protocol"})


class Counting(MemoryStore):
    """Counts the revisions of all memories together in what it says."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Add up."""
        receipt = await super().commit(memory, operations, **options)
        total = sum(head.revision for head in await self.heads())
        return attrs.evolve(receipt, revision=total if memory == "other" else receipt.revision)


class TestCounting(Broken):
    """Each memory counts for itself."""

    store = Counting
    breaks = frozenset({"test_a_batch_is_one_revision"})


class Repeating(MemoryStore):
    """Adds an equal text again."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Tell equal texts apart by a counter."""
        known = {version.content.text for version in await self.scan(memory)}
        fresh = [
            prepare_strictly(EntryDraft(item.content.text, author="again"))
            if isinstance(item, Put) and item.content.source is None and item.content.text in known and item.entry is None
            else item
            for item in operations
        ]
        return await super().commit(memory, fresh, **options)


class TestRepeating(Broken):
    """Equal content is a no-op."""

    store = Repeating
    breaks = frozenset({"test_equal_content_is_no_change"})


class Folding(MemoryStore):
    """Takes sources without regard to case."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Fold them."""
        folded = [
            attrs.evolve(item, content=attrs.evolve(item.content, source=item.content.source.casefold()))
            if isinstance(item, Put) and item.content.source == "Läufer"
            else item
            for item in operations
        ]
        return await super().commit(memory, folded, **options)


class TestFolding(Broken):
    """Names are bytes."""

    store = Folding
    breaks = frozenset({"test_a_source_names_an_entry"})


class Rewriting(MemoryStore):
    """Reads the current text for every reference."""

    async def read(self, ref: EntryRef) -> Any:
        """Read what is there now."""
        then = await super().read(ref)
        return attrs.evolve(then, content=(await self.current(ref.memory, ref.entry)).content)


class TestRewriting(Broken):
    """A version is for good."""

    store = Rewriting
    breaks = frozenset({"test_versions_never_change"})


class Vague(MemoryStore):
    """Reads something for a reference that names nothing."""

    async def read(self, ref: EntryRef) -> Any:
        """Read the first version instead."""
        try:
            return await super().read(ref)
        except EntryReferenceError:
            return await super().read(attrs.evolve(ref, revision=1, version=1))


class TestVague(Broken):
    """Nothing is invented."""

    store = Vague
    breaks = frozenset({"test_a_reference_to_nothing_is_an_error"})


class Trimming(MemoryStore):
    """Stores texts without what comes after a tab."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Cut them."""
        cut = [
            attrs.evolve(item, content=attrs.evolve(item.content, text=item.content.text.partition("\t")[0]))
            if isinstance(item, Put)
            else item
            for item in operations
        ]
        return await super().commit(memory, cut, **options)


class TestTrimming(Broken):
    """A text is stored whole."""

    store = Trimming
    breaks = frozenset({"test_texts_come_back_byte_for_byte"})


class Haunted(MemoryStore):
    """Shows what was forgotten."""

    async def scan(self, memory: str, **options: Any) -> Any:
        """Scan all there ever was when nothing is left."""
        found = await super().scan(memory, **options)
        gone = [change for change in await self.changes(memory) if change.kind == "deactivate"]
        return found or tuple([await self.current(memory, change.ref.entry) for change in gone])


class TestHaunted(Broken):
    """What was forgotten is not shown."""

    store = Haunted
    breaks = frozenset({"test_forgetting_is_reversible"})


class Anxious(MemoryStore):
    """Refuses a batch whole, asked or not."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Be strict with what names nothing."""
        return await super().commit(
            memory, operations, **{**options, "strict": len(operations) > 5 or options.get("strict")}
        )


class TestAnxious(Broken):
    """A refused item harms no other."""

    store = Anxious
    breaks = frozenset({"test_items_are_refused_one_by_one", "test_a_preview_is_what_commit_would_do"})


class Lax(MemoryStore):
    """Writes the rest of a strict batch before it refuses it."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Write first."""
        try:
            return await super().commit(memory, operations, **options)
        except BatchRefusedError:
            await super().commit(memory, operations)
            raise


class TestLax(Broken):
    """A strict batch is refused whole."""

    store = Lax
    breaks = frozenset({"test_a_strict_batch_is_refused_whole"})


class Careless(MemoryStore):
    """Writes whatever the memory's revision is."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Write again."""
        try:
            return await super().commit(memory, operations, **options)
        except ConflictError:
            return await super().commit(memory, operations)


class TestCareless(Broken):
    """A swap compares."""

    store = Careless
    breaks = frozenset({"test_compare_and_swap"})


class Hopeful(MemoryStore):
    """Previews everything as added."""

    async def preview(self, memory: str, operations: Any) -> Any:
        """Promise."""
        return tuple([attrs.evolve(item, status="added", code=None) for item in await super().preview(memory, operations)])


class TestHopeful(Broken):
    """A preview says what will be."""

    store = Hopeful
    breaks = frozenset({"test_a_preview_is_what_commit_would_do"})


class Cutting(MemoryStore):
    """Cuts its feed in the middle of a revision."""

    async def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> Any:
        """Take the limit by its word."""
        return (await super().changes(memory, since=since, limit=limit))[:limit]


class TestCutting(Broken):
    """A page of the feed holds whole revisions."""

    store = Cutting
    breaks = frozenset({"test_the_change_feed_is_whole_and_in_order"})


class Modern(MemoryStore):
    """Resolves everything as of now."""

    async def resolve(self, revisions: Any, hits: Any) -> Any:
        """Look at the newest."""
        return await super().resolve({head.memory: head.revision for head in await self.heads([*revisions])}, hits)


class TestModern(Broken):
    """A search speaks of one revision."""

    store = Modern
    breaks = frozenset({"test_resolves_what_was_current_then"})


class Blunt(MemoryStore):
    """Leaves filters out."""

    async def scan(self, memory: str, *, filters: Sequence[Any] = (), **options: Any) -> Any:
        """Scan all."""
        return await super().scan(memory, **options)


class TestBlunt(Broken):
    """Filters filter."""

    store = Blunt
    breaks = frozenset({"test_scans_in_pages_and_by_filters"})


class Racing(MemoryStore):
    """Reads, waits, and writes over what was written meanwhile."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Work on an old copy."""
        before = self._memories.get(memory)
        await anyio.lowlevel.checkpoint()
        if before is not None:
            self._memories[memory] = before
        return await super().commit(memory, operations, **options)


class TestRacing(Broken):
    """Writers at once lose nothing."""

    store = Racing
    breaks = frozenset({"test_writers_at_once_lose_nothing"})


class Tearing(MemoryStore):
    """Commits the items of a batch one by one."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Write each when its turn comes; tell it as if it had been one batch."""
        if len(operations) == 2 and all(
            isinstance(item, Put) and "cut" in (item.content.source or "") for item in operations
        ):
            await super().commit(memory, operations[:1])
            await anyio.lowlevel.checkpoint()
        return await super().commit(memory, operations, **options)


class TestTearing(Broken):
    """A batch happens whole or not at all."""

    store = Tearing
    breaks = frozenset({"test_a_cancelled_batch_happens_whole_or_not_at_all"})


class Stuck(MemoryStore):
    """Never takes a forgotten entry back."""

    async def commit(self, memory: str, operations: Any, **options: Any) -> Any:
        """Leave out reactivations."""
        kept = [item for item in operations if not (isinstance(item, SetActive) and item.active)]
        return await super().commit(memory, kept, **options)


class TestStuck(Broken):
    """Forgetting is reversible."""

    store = Stuck
    breaks = frozenset({"test_forgetting_is_reversible"})
