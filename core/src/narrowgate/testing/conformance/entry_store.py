"""The contract of an entry store: immutable versions, numbered revisions, batches that happen whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import anyio
import pytest

from narrowgate.errors import BatchRefusedError, ConflictError, EntryReferenceError
from narrowgate.memory.drafts import prepare_strictly
from narrowgate.seams.ports import EntryStore
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance
from narrowgate.testing.conformance.processes import drafts, lines, process
from narrowgate.testing.conformance.texts import HOSTILE, ORDINARY
from narrowgate.values.entry import EntryDraft, ItemOutcome, Operation, Put, Refused, SetActive
from narrowgate.values.filters import parse_filter
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelHit

KILLS = 5
"""How often a writing process is killed, each time after one more batch was acknowledged."""


def put(text: str, *, entry: str | None = None, expected: int | None = None, **fields: object) -> Put:
    """Return the operation that stores a text."""
    return prepare_strictly(EntryDraft(text, entry=entry, expected_version=expected, **fields))  # type: ignore[arg-type]


def said(items: Sequence[ItemOutcome]) -> list[tuple[str, str | None]]:
    """Return status and code of each item."""
    return [(item.status, item.code) for item in items]


async def add(store: EntryStore, memory: str, *texts: str) -> list[EntryRef]:
    """Add texts as one batch and return their references."""
    receipt = await store.commit(memory, [put(text) for text in texts])
    return [item.ref for item in receipt.items if item.ref is not None]


class EntryStoreConformance(Conformance):
    """The rules for an `EntryStore`.

    Attributes:
        durable: what is committed is there when the store is opened again, also by another process.
    """

    durable: ClassVar[bool] = True

    @pytest.fixture
    def elsewhere(self) -> str:
        """Return Python source that defines `build`, which opens the same store in a process of its own."""
        if not self.durable:
            pytest.skip("lasts as long as the object")
        pytest.fail(f"{type(self).__name__} needs a fixture `elsewhere`, or `durable = False`")

    async def test_fulfils_the_protocol(self, build: Builder[EntryStore]) -> None:
        """It has the members of `EntryStore`, and health without content."""
        async with build() as store:
            assert isinstance(store, EntryStore)
            await add(store, "notes", "canary-4711")
            health = await store.health()
            assert all(isinstance(value, str | int | float | bool) for value in health.values())
            assert "canary-4711" not in str(health)

    async def test_a_batch_is_one_revision(self, build: Builder[EntryStore]) -> None:
        """Revisions count from 1, one for each batch that changes anything, in each memory by itself."""
        async with build() as store:
            assert [head.revision for head in await store.heads(["nothing"])] == [0]
            first = await store.commit("notes", [put("one"), put("二")])
            assert (first.revision, said(first.items)) == (1, [("added", None)] * 2)
            assert (await store.commit("notes", [put("three")])).revision == 2
            assert (await store.commit("other", [put("one")])).revision == 1
            heads = {head.memory: (head.revision, head.active, head.inactive) for head in await store.heads()}
            assert heads == {"notes": (2, 3, 0), "other": (1, 1, 0)}

    async def test_equal_content_is_no_change(self, build: Builder[EntryStore]) -> None:
        """The same text again, with the same source or with none, adds nothing and makes no revision."""
        async with build() as store:
            await store.commit("notes", [put("one"), put("two", source="a")])
            again = await store.commit("notes", [put("one"), put("two", source="a")])
            assert (again.revision, said(again.items)) == (1, [("unchanged", None)] * 2)
            assert len(await store.changes("notes")) == 2

    async def test_a_source_names_an_entry(self, build: Builder[EntryStore]) -> None:
        """Another text under a known source is the next version of its entry, by a name compared byte for byte."""
        async with build() as store:
            first = await store.commit("notes", [put("one", source="Läufer")])
            second = await store.commit("notes", [put("two", source="Läufer"), put("three", source="läufer")])
            assert said(second.items) == [("revised", None), ("added", None)]
            assert first.items[0].ref is not None
            assert second.items[0].ref == EntryRef("notes", 2, first.items[0].ref.entry, 2)

    async def test_versions_never_change(self, build: Builder[EntryStore]) -> None:
        """A reference reads the same text for good, and says whether the entry was active at its revision."""
        async with build() as store:
            (ref,) = await add(store, "notes", "first words")
            before = await store.read(ref)
            await store.commit("notes", [put("other words", entry=ref.entry, reason="corrected")])
            await store.commit("notes", [SetActive(ref.entry, active=False, reason="obsolete")])
            assert await store.read(ref) == before
            assert before.content.text == "first words"
            later = await store.read(EntryRef("notes", 2, ref.entry, 2))
            assert (later.content.text, later.active, later.reason) == ("other words", True, "corrected")
            assert not (await store.read(EntryRef("notes", 3, ref.entry, 2))).active
            assert (await store.current("notes", ref.entry)).active is False

    async def test_a_reference_to_nothing_is_an_error(self, build: Builder[EntryStore]) -> None:
        """An unknown memory, entry, version, or a revision that is yet to come: `ref-unknown` or `entry-unknown`."""
        async with build() as store:
            (ref,) = await add(store, "notes", "one")
            for wrong in (
                EntryRef("other", 1, ref.entry, 1),
                EntryRef("notes", 1, ref.entry + "x", 1),
                EntryRef("notes", 1, ref.entry, 2),
                EntryRef("notes", 2, ref.entry, 1),
            ):
                with pytest.raises(EntryReferenceError) as caught:
                    await store.read(wrong)
                assert caught.value.code == "ref-unknown"
            for call in (store.current("notes", "nothing"), store.history("notes", "nothing")):
                with pytest.raises(EntryReferenceError) as caught:
                    await call
                assert caught.value.code == "entry-unknown"
            assert (await store.locate(ref.entry), await store.locate("nothing")) == ("notes", None)

    async def test_texts_come_back_byte_for_byte(self, build: Builder[EntryStore]) -> None:
        """Every script, and what means something to a query language, is stored as it is; so is all metadata."""
        texts = [*ORDINARY, *HOSTILE, "line one\nline two\ttab"]
        async with build() as store:
            refs = await add(store, "notes", *texts)
            assert [(await store.read(ref)).content.text for ref in refs] == [put(text).content.text for text in texts]
            rich = put(
                "富文本",
                kind="decision",
                source="日志/2026.md#3",
                author="林涛",
                occurred_at="2026-03-01T09:00:00+08:00",
                attributes={"团队": "网关", "size": 3, "ratio": 0.5, "open": True, "none": None},
            )
            (item,) = (await store.commit("notes", [rich])).items
            assert item.ref is not None
            assert (await store.read(item.ref)).content == rich.content

    async def test_forgetting_is_reversible(self, build: Builder[EntryStore]) -> None:
        """A forgotten entry is neither scanned nor resolved, takes no revision, and comes back as it was."""
        async with build() as store:
            (ref,) = await add(store, "notes", "one")
            off = await store.commit("notes", [SetActive(ref.entry, active=False)])
            assert said(off.items) == [("deactivated", None)]
            assert await store.scan("notes") == ()
            refused = await store.commit("notes", [put("two", entry=ref.entry), put("one")])
            assert said(refused.items) == [("refused", "entry-inactive")] * 2
            assert refused.revision == off.revision
            on = await store.commit("notes", [SetActive(ref.entry, active=True)])
            assert said(on.items) == [("reactivated", None)]
            assert [version.content.text for version in await store.scan("notes")] == ["one"]
            assert said((await store.commit("notes", [SetActive(ref.entry, active=True)])).items) == [("unchanged", None)]

    async def test_items_are_refused_one_by_one(self, build: Builder[EntryStore]) -> None:
        """A refused item harms no other: each has its code, and the rest of the batch is written."""
        async with build() as store:
            (ref,) = await add(store, "notes", "one")
            receipt = await store.commit(
                "notes",
                [
                    put("two"),
                    put("three", entry="nothing"),
                    put("four", entry=ref.entry, expected=7),
                    Refused("text-too-long", "too long"),
                    SetActive("nothing", active=False),
                    put("five", entry=ref.entry, expected=1),
                ],
            )
            assert said(receipt.items) == [
                ("added", None),
                ("refused", "unknown-entry"),
                ("refused", "stale-version"),
                ("refused", "text-too-long"),
                ("refused", "unknown-entry"),
                ("revised", None),
            ]
            assert receipt.revision == 2

    async def test_a_strict_batch_is_refused_whole(self, build: Builder[EntryStore]) -> None:
        """With `strict` one refused item is an error that tells of all, and nothing is written."""
        async with build() as store:
            with pytest.raises(BatchRefusedError) as caught:
                await store.commit("notes", [put("one"), put("two", entry="nothing")], strict=True)
            assert said(caught.value.outcomes)[1] == ("refused", "unknown-entry")
            assert (await store.heads(["notes"]))[0].revision == 0
            assert await store.scan("notes") == ()

    async def test_compare_and_swap(self, build: Builder[EntryStore]) -> None:
        """A batch that expects another revision than the memory's is an error and writes nothing."""
        async with build() as store:
            await store.commit("notes", [put("one")], expected_revision=0)
            with pytest.raises(ConflictError) as caught:
                await store.commit("notes", [put("two")], expected_revision=0)
            assert (caught.value.expected, caught.value.actual) == (0, 1)
            assert len(await store.scan("notes")) == 1

    async def test_a_preview_is_what_commit_would_do(self, build: Builder[EntryStore]) -> None:
        """Equal statuses and codes, and nothing is written."""
        async with build() as store:
            (ref,) = await add(store, "notes", "one")
            batch: list[Operation] = [
                put("two"),
                put("two"),
                put("three", entry=ref.entry),
                SetActive(ref.entry, active=False),
                put("four", entry=ref.entry),
                put("five", entry="nothing"),
            ]
            previewed = await store.preview("notes", batch)
            assert (await store.heads(["notes"]))[0].revision == 1
            assert said(previewed) == said((await store.commit("notes", batch)).items)
            assert previewed[0].ref is None, "an entry that would be added has no reference yet"

    async def test_the_change_feed_is_whole_and_in_order(self, build: Builder[EntryStore]) -> None:
        """Every change stands in it once, in order; a page holds whole revisions; histories are its parts."""
        async with build() as store:
            (ref,) = await add(store, "notes", "one")
            await store.commit("notes", [put("two", entry=ref.entry), put("three"), put("four")])
            await store.commit("notes", [SetActive(ref.entry, active=False, reason="gone")])
            feed = await store.changes("notes")
            assert [(change.ref.revision, change.kind) for change in feed] == [
                (1, "add"),
                (2, "revise"),
                (2, "add"),
                (2, "add"),
                (3, "deactivate"),
            ]
            assert await store.changes("notes", since=1) == feed[1:]
            assert await store.changes("notes", since=1, limit=1) == feed[1:4]
            assert await store.changes("notes", since=3) == ()
            assert await store.history("notes", ref.entry) == tuple(item for item in feed if item.ref.entry == ref.entry)
            assert feed[-1].reason == "gone"

    async def test_resolves_what_was_current_then(self, build: Builder[EntryStore]) -> None:
        """Of the hits, those that were current and active at the revisions given; later writes do not matter."""
        async with build() as store:
            one, two = await add(store, "notes", "one", "two")
            await store.commit("notes", [put("new one", entry=one.entry), SetActive(two.entry, active=False)])
            hits = [ChannelHit("notes", ref.entry, number, 0.0) for ref in (one, two) for number in (1, 2)]
            then = await store.resolve({"notes": 1}, [*hits, ChannelHit("other", one.entry, 1, 0.0)])
            assert {key[1:]: version.content.text for key, version in then.items()} == {
                (one.entry, 1): "one",
                (two.entry, 1): "two",
            }
            assert {version.ref.revision for version in then.values()} == {1}
            now = await store.resolve({"notes": 2}, hits)
            assert {key[1:]: version.content.text for key, version in now.items()} == {(one.entry, 2): "new one"}

    async def test_scans_in_pages_and_by_filters(self, build: Builder[EntryStore]) -> None:
        """Active entries in the order of their ids, page by page, those alone that pass all filters."""
        async with build() as store:
            batch = [put(f"note {number}", kind="decision" if number % 3 else "note") for number in range(10)]
            await store.commit("notes", [*batch, put("有标签", attributes={"团队": "网关", "size": 3})])
            everything = await store.scan("notes")
            ids = [version.ref.entry for version in everything]
            assert ids == sorted(ids)
            assert len(ids) == 11
            pages: list[str] = []
            while page := await store.scan("notes", after=pages[-1] if pages else None, limit=4):
                pages += [version.ref.entry for version in page]
            assert pages == ids
            for condition, number in (("kind=decision", 6), ("团队=网关", 1), ("size>=3", 1), ("size<3", 0)):
                assert len(await store.scan("notes", filters=[parse_filter(condition)])) == number, condition

    async def test_writers_at_once_lose_nothing(self, build: Builder[EntryStore]) -> None:
        """Batches that are committed at the same time have revisions of their own, and all entries are there."""
        async with build() as store:
            revisions: list[int] = []

            async def write(who: str) -> None:
                for number in range(5):
                    receipt = await store.commit("notes", drafts(who, number))
                    revisions.append(receipt.revision)

            async with anyio.create_task_group() as tasks:
                for who in ("ana", "bo", "林涛"):
                    tasks.start_soon(write, who)
            assert sorted(revisions) == list(range(1, 16))
            assert len(await store.scan("notes")) == 30

    async def test_a_cancelled_batch_happens_whole_or_not_at_all(self, build: Builder[EntryStore]) -> None:
        """Cancelled before it began or while it runs, a batch leaves all of its entries or none, and the store works."""
        async with build() as store:
            for number in range(6):
                with anyio.CancelScope() as scope:

                    async def cut(scope: anyio.CancelScope = scope, turns: int = number) -> None:
                        for _ in range(turns):
                            await anyio.lowlevel.checkpoint()
                        scope.cancel()

                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(cut)
                        await store.commit("notes", drafts("cut", number))
                sources = {version.content.source for version in await store.scan("notes")}
                parts = {f"cut/{number}/a", f"cut/{number}/b"}
                assert parts <= sources or not parts & sources
            assert (await store.commit("notes", [put("after")])).count("added") == 1

    async def test_lasts_from_one_opening_to_the_next(self, build: Builder[EntryStore]) -> None:
        """What was committed is there when the store is opened again, under the same references."""
        if not self.durable:
            pytest.skip("lasts as long as the object")
        async with build() as store:
            refs = await add(store, "notes", *ORDINARY)
            before = [await store.read(ref) for ref in refs]
        async with build() as store:
            assert [await store.read(ref) for ref in refs] == before
            assert (await store.heads(["notes"]))[0].active == len(refs)

    async def test_sees_what_other_processes_write(self, build: Builder[EntryStore], elsewhere: str) -> None:
        """Two processes that write at once lose nothing, and this one sees each batch once it is acknowledged."""
        async with build() as store:
            await store.commit("notes", [put("here")])
            with (
                process(elsewhere, "append", "notes", "ana", 8) as ana,
                process(elsewhere, "append", "notes", "bo", 8) as bo,
            ):
                assert len(await lines(ana, 1)) == 1
                assert {"ana/0/a", "ana/0/b"} <= {version.content.source for version in await store.scan("notes")}
                assert (len(await lines(ana, 8)), len(await lines(bo, 9))) == (7, 8)
            head = (await store.heads(["notes"]))[0]
            assert (head.revision, head.active) == (17, 33)

    async def test_a_killed_writer_leaves_whole_batches(self, build: Builder[EntryStore], elsewhere: str) -> None:
        """After a SIGKILL at any moment every acknowledged batch is there, and none in part."""
        for kill in range(KILLS):
            who = f"kill{kill}"
            with process(elsewhere, "append", "notes", who, 1000) as child:
                done = len(await lines(child, kill + 1))
                child.kill()
            assert done == kill + 1
            async with build() as store:
                sources = {version.content.source for version in await store.scan("notes", limit=100_000)}
            numbers = [number for number in range(1000) if f"{who}/{number}/a" in sources]
            assert numbers == [number for number in range(1000) if f"{who}/{number}/b" in sources]
            assert numbers[:done] == list(range(done))
