"""The entry store: what a batch means, and that exact reads stay exact."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_parts import HashEmbedder, disagreements, opened, put, vectors_of

from narrowgate.errors import BatchRefusedError, ConflictError, EntryReferenceError, StoreError
from narrowgate.seams.ports import EntryStore
from narrowgate.values.entry import MemoryHead, Refused, SetActive, VectorBatch
from narrowgate.values.filters import parse_filter
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelHit

pytestmark = pytest.mark.anyio


def codes(receipt):
    """Return status and code of each item."""
    return [(item.status, item.code) for item in receipt.items]


async def test_content_survives_as_it_was_written(file: Path):
    """Text, kind, source, author, time with its offset, attributes, reason and digest come back equal."""
    async with opened(file) as part:
        assert isinstance(part.store, EntryStore)
        draft = put(
            "Tea at nine. 会议纪要\nsecond line",
            kind="decision",
            source="journal/2026.md#1",
            author="Ana",
            occurred_at="2026-03-01T10:00+09:00",
            attributes={'od"d\\key': "v", "size": 3, "share": 0.5, "done": True, "none": None, "键": "值"},
            reason="first",
        )
        receipt = await part.commit([draft])
        ref = receipt.items[0].ref
        for found in (await part.store.read(ref), await part.store.current("m", ref.entry), (await part.store.scan("m"))[0]):
            assert found.content == draft.content
            assert found.content.occurred_at.isoformat() == "2026-03-01T10:00:00+09:00"
            assert (found.ref, found.active, found.reason) == (ref, True, "first")
            assert found.created_at.utcoffset().total_seconds() == 0
    async with opened(file) as part:
        assert (await part.store.read(ref)).content == draft.content


async def test_put_adds_revises_by_source_and_knows_equal_content(file: Path):
    """A source names one entry; equal content is a no-op that writes nothing; two sources are two entries (Case 11)."""
    async with opened(file) as part:
        first = await part.commit(
            [
                put("one", source="a"),
                put("loose"),
                put("Rest days are paid.", source="x"),
                put("Rest days are paid.", source="y"),
            ]
        )
        assert [item.status for item in first.items] == ["added"] * 4
        assert len({item.ref.entry for item in first.items}) == 4
        before = file.with_name(file.name + "-wal").stat().st_size
        again = await part.commit([put("one", source="a"), put("loose")])
        assert (again.revision, codes(again)) == (1, [("unchanged", None)] * 2)
        assert again.items[0].ref == first.items[0].ref
        assert file.with_name(file.name + "-wal").stat().st_size == before
        changed = await part.commit([put("two", source="a")])
        assert (changed.revision, codes(changed)) == (2, [("revised", None)])
        assert changed.items[0].ref == EntryRef("m", 2, first.items[0].ref.entry, 2)
        other = await part.commit([put("one", source="a")], memory="n")
        assert other.items[0].status == "added", "another memory knows nothing of it"


async def test_put_by_entry(file: Path):
    """Revising by id refuses an unknown entry, a version that moved on, a forgotten entry and another entry's source."""
    async with opened(file) as part:
        added = await part.commit([put("one", source="a"), put("two", source="b"), put("three")])
        one, two, three = (item.ref.entry for item in added.items)
        assert codes(await part.commit([put("x", entry=one)], memory="n")) == [("refused", "unknown-entry")]
        receipt = await part.commit(
            [
                put("x", entry="nothing"),
                put("x", entry=one, version=2),
                put("x", entry=one, source="b"),
                put("one, again", entry=one, version=1, source="c"),
                put("two, again", entry=two, source="a"),
                put("three", entry=three),
            ]
        )
        assert codes(receipt) == [
            ("refused", "unknown-entry"),
            ("refused", "stale-version"),
            ("refused", "source-taken"),
            ("revised", None),
            ("revised", None),
            ("unchanged", None),
        ]
        await part.commit([SetActive(three, active=False)])
        assert codes(await part.commit([put("four", entry=three)])) == [("refused", "entry-inactive")]
        assert disagreements(file) == []


async def test_forgotten_content_is_not_added_again(file: Path):
    """Putting the source or the content of a forgotten entry is refused and says to reactivate it."""
    async with opened(file) as part:
        added = await part.commit([put("one", source="a"), put("loose")])
        await part.commit([SetActive(item.ref.entry, active=False) for item in added.items])
        receipt = await part.commit([put("one", source="a"), put("two", source="a"), put("loose")])
        assert codes(receipt) == [("refused", "entry-inactive")] * 3
        assert all("reactivate" in item.message for item in receipt.items)
        assert receipt.revision == 2


async def test_set_active(file: Path):
    """Forgetting and reactivating are changes of their own, no-ops where nothing changes, and find the words again."""
    async with opened(file) as part:
        entry = (await part.commit([put("a walk to the lighthouse")])).items[0].ref.entry
        assert codes(await part.commit([SetActive("no", active=False)])) == [("refused", "unknown-entry")]
        assert codes(await part.commit([SetActive(entry, active=False, expected_version=2)])) == [
            ("refused", "stale-version")
        ]
        assert codes(await part.commit([SetActive(entry, active=True)])) == [("unchanged", None)]
        gone = await part.commit([SetActive(entry, active=False, reason="private")])
        assert codes(gone) == [("deactivated", None)]
        assert (await part.words("lighthouse")).hits == ()
        assert not (await part.store.read(gone.items[0].ref)).active
        assert (await part.store.read(EntryRef("m", 1, entry, 1))).active
        assert await part.store.heads(["m"]) == (MemoryHead("m", 2, 0, 1),)
        back = await part.commit([SetActive(entry, active=True)])
        assert codes(back) == [("reactivated", None)]
        assert len((await part.words("lighthouse")).hits) == 1
        history = await part.store.history("m", entry)
        assert [(change.kind, change.ref.revision, change.reason) for change in history] == [
            ("add", 1, None),
            ("deactivate", 2, "private"),
            ("reactivate", 3, None),
        ]


async def test_one_batch_meets_the_same_entry_many_times(file: Path):
    """Operations of one batch see each other in order; the batch is one revision, and every ref in it can be read."""
    async with opened(file) as part:
        receipt = await part.commit(
            [put("one", source="a"), put("two", source="a"), put("two", source="a"), put("x"), put("x")]
        )
        assert [item.status for item in receipt.items] == ["added", "revised", "unchanged", "added", "unchanged"]
        entry = receipt.items[0].ref.entry
        assert {item.ref for item in receipt.items[:3]} == {EntryRef("m", 1, entry, 2)}
        receipt = await part.commit(
            [
                SetActive(entry, active=False),
                put("three", source="a"),
                SetActive(entry, active=True),
                put("three", source="a"),
                put("back", entry=entry, source="b"),
                put("new", source="a"),
            ]
        )
        assert codes(receipt) == [
            ("deactivated", None),
            ("refused", "entry-inactive"),
            ("reactivated", None),
            ("revised", None),
            ("revised", None),
            ("added", None),
        ]
        changes = await part.store.changes("m")
        assert [change.kind for change in changes] == [
            *("add", "revise", "add"),
            *("deactivate", "reactivate", "revise", "revise", "add"),
        ]
        for change in changes:
            await part.store.read(change.ref)
        assert not (await part.store.read(EntryRef("m", 2, entry, 3))).active, "it was replaced within its revision"
        assert disagreements(file) == []


async def test_refused_items_keep_their_place(file: Path):
    """A refusal from before the store is an outcome like any other; `strict` then writes nothing at all."""
    async with opened(file) as part:
        operations = [put("a"), Refused("text-too-long", "too long"), put("b")]
        with pytest.raises(BatchRefusedError) as caught:
            await part.commit(operations, strict=True)
        assert [item.code for item in caught.value.outcomes] == [None, "text-too-long", None]
        assert await part.store.heads() == ()
        receipt = await part.commit(operations)
        assert codes(receipt) == [("added", None), ("refused", "text-too-long"), ("added", None)]
        assert receipt.items[1].message == "too long"
        assert codes(await part.commit([])) == []


async def test_compare_and_swap(file: Path):
    """A batch that expects another revision is refused whole, also when it would change nothing."""
    async with opened(file) as part:
        await part.commit([put("a")], expected_revision=0)
        for expected in (0, 2):
            with pytest.raises(ConflictError) as caught:
                await part.commit([put("a")], expected_revision=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 1)
        assert (await part.commit([put("b")], expected_revision=1)).revision == 2


async def test_preview_says_what_commit_then_does(file: Path):
    """The same statuses and codes, nothing written; refs only of entries that are there, and all of them readable."""
    async with opened(file) as part:
        added = await part.commit([put("one", source="a"), put("two", source="b")])
        operations = [
            put("one, again", source="a"),
            put("new", source="c"),
            put("newer", source="c"),
            SetActive(added.items[1].ref.entry, active=False),
            put("x", entry="nothing"),
            put("two", source="b"),
        ]
        before = await part.store.heads()
        outcomes = await part.store.preview("m", operations)
        assert await part.store.heads() == before
        for outcome in outcomes:
            if outcome.ref is not None:
                await part.store.read(outcome.ref)
        assert [outcome.ref is None for outcome in outcomes] == [False, True, True, False, True, True]
        receipt = await part.commit(operations)
        assert [(item.status, item.code) for item in outcomes] == codes(receipt)
        assert [item.status for item in await part.store.preview("new", [put("a"), put("a")])] == ["added", "unchanged"]


async def test_exact_reads_know_membership(file: Path):
    """A reference is read only where that version was the memory's at that revision; anything else names nothing."""
    async with opened(file) as part:
        first = (await part.commit([put("one", source="a")])).items[0].ref
        await part.commit([put("other")])
        second = (await part.commit([put("two", source="a")])).items[0].ref
        assert (await part.store.read(EntryRef("m", 2, first.entry, 1))).content.text == "one"
        assert (await part.store.read(second)).content.text == "two"
        for ref in (
            EntryRef("m", 3, first.entry, 1),
            EntryRef("m", 2, first.entry, 2),
            EntryRef("m", 4, first.entry, 2),
            EntryRef("m", 3, first.entry, 3),
            EntryRef("n", 1, first.entry, 1),
            EntryRef("m", 1, "no", 1),
        ):
            with pytest.raises(EntryReferenceError) as caught:
                await part.store.read(ref)
            assert caught.value.code == "ref-unknown"
        for call in (part.store.current("m", "no"), part.store.history("n", first.entry)):
            with pytest.raises(EntryReferenceError) as caught:
                await call
            assert caught.value.code == "entry-unknown"
        assert await part.store.locate(first.entry) == "m"
        assert await part.store.locate("no") is None


async def test_resolve_returns_what_was_current_and_active(file: Path):
    """Hits of other revisions, of forgotten entries and of other memories are left out; refs carry the given revision."""
    async with opened(file) as part:
        added = await part.commit([put("one", source="a"), put("two", source="b"), put("three", source="c")])
        one, two, three = (item.ref.entry for item in added.items)
        await part.commit([put("one, again", source="a"), SetActive(two, active=False)])
        other = (await part.commit([put("elsewhere")], memory="n")).items[0].ref
        hits = [ChannelHit("m", e, v, 1.0) for e, v in ((one, 1), (one, 2), (two, 1), (three, 1), ("no", 1), (three, 2))]
        hits += [ChannelHit("n", other.entry, 1, 1.0), ChannelHit("q", one, 1, 1.0)]
        then = await part.store.resolve({"m": 1, "n": 1, "q": 0}, hits)
        assert set(then) == {("m", one, 1), ("m", two, 1), ("m", three, 1), ("n", other.entry, 1)}
        now = await part.store.resolve({"m": 2}, hits)
        assert {key: version.ref.revision for key, version in now.items()} == {("m", one, 2): 2, ("m", three, 1): 2}
        assert all(version.active for version in now.values())


async def test_change_feed_gives_whole_revisions(file: Path):
    """The feed comes in revision order, never splits a revision, and can be followed to the end."""
    async with opened(file) as part:
        await part.commit([put(f"a{n}") for n in range(5)])
        await part.commit([put("b")])
        entry = (await part.commit([put("c", source="c"), put("d")])).items[0].ref.entry
        await part.commit([SetActive(entry, active=False, reason="why")])
        assert [change.ref.revision for change in await part.store.changes("m", limit=2)] == [1] * 5
        assert [change.ref.revision for change in await part.store.changes("m", since=1, limit=2)] == [2, 3, 3]
        assert [change.kind for change in await part.store.changes("m", since=3)] == ["deactivate"]
        assert await part.store.changes("m", since=4) == ()
        assert await part.store.changes("nothing") == ()
        followed, since = [], 0
        while part_of := await part.store.changes("m", since=since, limit=1):
            followed += part_of
            since = part_of[-1].ref.revision
        assert followed == list(await part.store.changes("m"))
        revisions = [change.ref.revision for change in followed]
        assert revisions == sorted(revisions)


async def test_scan_pages_in_id_order(file: Path):
    """Active entries come in id order, page by page, filters applied before the limit."""
    async with opened(file) as part:
        receipt = await part.commit([put(f"t{n}", kind="even" if n % 2 == 0 else "odd") for n in range(10)])
        ids = [item.ref.entry for item in receipt.items]
        await part.commit([SetActive(ids[4], active=False)])
        await part.commit([put("elsewhere")], memory="n")
        page = await part.store.scan("m", limit=4)
        assert [version.ref.entry for version in page] == ids[:4]
        page = await part.store.scan("m", after=ids[3], limit=100)
        assert [version.ref.entry for version in page] == ids[5:]
        page = await part.store.scan("m", filters=[parse_filter("kind=even")], limit=3)
        assert [version.content.text for version in page] == ["t0", "t2", "t6"]
        assert await part.store.scan("nothing") == ()


async def test_vectors_travel_with_the_batch(file: Path):
    """Entry and vector are committed together; entries without one are counted, those of another profile ignored."""
    embedder, foreign = HashEmbedder(), HashEmbedder("2")
    async with opened(file, embedder) as part:
        plain = await part.store.commit("m", [put("before any profile")])
        assert plain.vectors_pending == 0, "no embedder in sight: nothing is pending"
        assert (await part.store.health())["pending_vectors"] == 0
        failed = await part.store.commit("m", [put("a"), put("b")], vectors=VectorBatch(embedder.profile, {}))
        assert failed.vectors_pending == 2
        done = await part.commit([put("a"), put("c")])
        assert (codes(done)[0][0], done.vectors_pending) == ("unchanged", 1), "the text was not written again"
        other = await part.commit([put("d")], vectors=vectors_of(foreign, [put("d")]))
        assert other.vectors_pending == 1
        health = await part.store.health()
        assert (health["embedding"], health["pending_vectors"], health["entries"]) == ("hash/1/16", 4, 5)
        for wrong in ([0.5] * 15, [float("nan")] * 16):
            with pytest.raises(StoreError) as caught:
                await part.commit([put("e")], vectors=VectorBatch(embedder.profile, {"e": wrong}))
            assert caught.value.code == "vector-shape"
        assert (await part.store.heads())[0].active == 5
        assert disagreements(file, embedder) == []


async def test_health_is_content_free(file: Path):
    """The facts for monitoring name sizes, versions and modes, and no memory."""
    async with opened(file) as part:
        await part.commit([put("a secret"), put("b")])
        health = await part.store.health()
        assert health["journal_mode"] == "wal"
        assert (health["schema_version"], health["memories"], health["entries"], health["forgotten"]) == (2, 1, 2, 0)
        assert health["file_bytes"] > 0
        assert health["stale_index"] is False
        assert "secret" not in repr(health)
