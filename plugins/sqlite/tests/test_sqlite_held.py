"""The held queue: what is held waits in the file, a release is one transaction, nothing is lost and nothing overwritten."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from held_parts import DAY, NOON, draft
from sqlite_parts import HashEmbedder, disagreements, opened, put, vectors_of

from narrowgate.errors import EntryReferenceError, InputError, StoreError
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.values.entry import SetActive, VectorBatch
from narrowgate.values.identity import EntryRef

pytestmark = pytest.mark.anyio


def bytes_of(file: Path) -> bytes:
    """Return what is on the disk: the file, and its log while it is open."""
    log = file.with_name(file.name + "-wal")
    return file.read_bytes() + (log.read_bytes() if log.exists() else b"")


async def test_what_is_held_waits_with_all_that_was_handed_in(file: Path):
    """Every field of write and place comes back as it was, from the file, in both languages; a page has no content."""
    given = draft(
        "灯塔的网关退回旧固件 because of the storm",
        base=("E1", 3),
        entry="E1",
        version=3,
        kind="decision",
        author="Ana",
        occurred_at="2026-03-01T10:00:00+08:00",
        attributes={"project": "atlas", "size": 2.5, "open": True, "none": None},
        reason="heard it",
        evidence=(("source:1", "text"), ("m@1/E/1", None)),
        place=7,
    )
    async with opened(file) as part:
        assert isinstance(part.store, HeldQueue)
        (entry,) = await part.store.hold([given])
    async with opened(file) as part:
        assert await part.store.held(now=NOON) == (entry,)
        item = await part.store.held_one(entry.held_id, now=NOON)
    assert item.entry == entry
    assert item.put == given.put
    assert (entry.memory, entry.base, entry.batch, entry.place) == ("m", ("E1", 3), "batch-1", 7)
    assert (entry.policy_id, entry.policy_version, entry.fingerprint) == ("gate.v1", "1", "f" * 64)
    assert (entry.code, entry.observation_id) == ("insufficient_coverage", "observation-7")
    assert (entry.held_at, entry.expires_at, entry.state) == (NOON, NOON + 30 * DAY, "pending")
    assert (entry.digest, entry.entry, entry.expected_version) == (given.put.content.digest, "E1", 3)
    assert "storm" not in repr(entry)


async def test_holding_the_same_again_is_a_no_op(file: Path):
    """The same write on the same evidence, policy and version has one place; whatever differs of it has its own."""
    same, others = (
        draft("held"),
        [
            draft("other text"),
            draft("held", memory="n"),
            draft("held", entry="E1"),
            draft("held", entry="E1", version=2),
            draft("held", entry="E1", base=("E1", 4)),
            draft("held", evidence=(("source:1", "another text"),)),
            draft("held", evidence=(("source:2", "what the source says"),)),
            draft("held", evidence=()),
        ],
    )
    async with opened(file) as part:
        first, twin = await part.store.hold([same, draft("held", place=5)])
        assert first == twin
        (again,) = await part.store.hold([draft("held", at=NOON + DAY)])
        assert again == first
        rest = await part.store.hold(others)
        assert len({first.held_id, *(entry.held_id for entry in rest)}) == 9
        assert [entry.held_id for entry in await part.store.held(now=NOON)] == sorted(
            entry.held_id for entry in (first, *rest)
        )


async def test_pages_and_filters(file: Path):
    """A page is of one memory, policy and state, in order of time, and the next one begins where it ended."""
    async with opened(file) as part:
        store = part.store
        held = await store.hold([draft(f"text {n}", memory="mn"[n % 2], policy=f"gate.v{n % 3}") for n in range(9)])
        ids = [entry.held_id for entry in held]
        assert [entry.held_id for entry in await store.held(now=NOON, limit=4)] == ids[:4]
        assert [entry.held_id for entry in await store.held(now=NOON, after=ids[3], limit=4)] == ids[4:8]
        assert [entry.held_id for entry in await store.held(now=NOON, memory="n")] == ids[1::2]
        assert [entry.held_id for entry in await store.held(now=NOON, policy_id="gate.v1")] == ids[1::3]
        assert await store.held(now=NOON, memory="n", policy_id="gate.v0", state="expired") == ()
        assert await store.held_counts(now=NOON) == {"pending": 9}
        await store.reject_held(ids[0], now=NOON)
        await store.release_held(ids[1], now=NOON)
        assert [entry.held_id for entry in await store.held(now=NOON, state="rejected")] == ids[:1]
        assert [entry.held_id for entry in await store.held(now=NOON, state=None)] == ids
        assert await store.held_counts(now=NOON + 31 * DAY) == {"expired": 7, "rejected": 1, "released": 1}


async def test_a_release_is_a_revision_of_its_own(file: Path):
    """The entry is written with text, vector and history; the place keeps who, when, why and the reference, no content."""
    embedder = HashEmbedder()
    async with opened(file, embedder) as part:
        await part.commit([put("before")])
        given = draft("the released text")
        (entry,) = await part.store.hold([given])
        done = await part.store.release_held(
            entry.held_id,
            now=NOON + DAY,
            by="ana",
            reason="checked by phone",
            remark="released",
            vectors=vectors_of(embedder, [given.put]),
        )
        assert (done.outcome.status, done.outcome.ref.revision, done.vectors_pending) == ("added", 2, False)
        assert done.entry.state == "released"
        assert (done.entry.resolved_by, done.entry.resolved_at, done.entry.reason) == ("ana", NOON + DAY, "checked by phone")
        assert done.entry.ref == done.outcome.ref
        assert (await part.store.held_one(entry.held_id, now=NOON)).put is None
        version = await part.store.read(done.outcome.ref)
        assert (version.content, version.reason) == (given.put.content, "released")
        assert await part.texts(await part.words("released")) == ["the released text"]
        assert await part.texts(await part.near("the released text", limit=1)) == ["the released text"]
    assert disagreements(file, embedder) == []


async def test_a_release_keeps_the_reason_of_the_write(file: Path):
    """Why it was written is the author's to say."""
    async with opened(file) as part:
        (entry,) = await part.store.hold([draft("text", reason="told so")])
        done = await part.store.release_held(entry.held_id, now=NOON, remark="released")
        assert (await part.store.read(done.outcome.ref)).reason == "told so"


async def test_a_release_never_writes_over_what_came_later(file: Path):
    """An entry that has moved on since is left alone; the refusal says so, and the held text is still there."""
    async with opened(file) as part:
        receipt = await part.commit([put("one", source="s")])
        ref = receipt.items[0].ref
        (by_source,) = await part.store.hold([draft("held", source="s", base=(ref.entry, 1))])
        (by_version,) = await part.store.hold([draft("held", entry=ref.entry, version=1, base=(ref.entry, 1))])
        (by_entry,) = await part.store.hold([draft("held too", entry=ref.entry, base=(ref.entry, 1))])
        await part.commit([put("two", source="s")])
        for entry in (by_source, by_version, by_entry):
            done = await part.store.release_held(entry.held_id, now=NOON)
            assert (done.outcome.status, done.outcome.code, done.entry) == ("refused", "stale-version", entry)
            assert (await part.store.held_one(entry.held_id, now=NOON)).put is not None
        assert (await part.store.current("m", ref.entry)).content.text == "two"
        assert (await part.store.heads(["m"]))[0].revision == 2


async def test_a_write_that_would_have_added_does_not_revise(file: Path):
    """A source that was free when a write was held and is taken now refuses the release: nothing newer is overwritten."""
    async with opened(file) as part:
        (entry,) = await part.store.hold([draft("older", source="s")])
        await part.commit([put("newer", source="s")])
        done = await part.store.release_held(entry.held_id, now=NOON)
        assert (done.outcome.status, done.outcome.code) == ("refused", "stale-version")
        assert done.outcome.message == (
            "when it was held it would have added an entry, now it would revise version 1 of "
            f"{(await part.store.scan('m'))[0].ref.entry}: compare the two, remember what is right, reject this"
        )


@pytest.mark.parametrize("forgotten", [True, False])
async def test_releasing_what_is_stored_meanwhile(file: Path, forgotten: bool):
    """The same content counts as released without a revision; where it was forgotten since, the release is refused."""
    async with opened(file) as part:
        (entry,) = await part.store.hold([draft("the same")])
        ref = (await part.commit([put("the same")])).items[0].ref
        if forgotten:
            await part.commit([SetActive(ref.entry, active=False)])
        before = (await part.store.heads(["m"]))[0]
        done = await part.store.release_held(entry.held_id, now=NOON)
        if forgotten:
            assert (done.outcome.status, done.outcome.code, done.entry.state) == ("refused", "entry-inactive", "pending")
        else:
            assert (done.outcome.status, done.entry.state, done.entry.ref) == ("unchanged", "released", ref)
        assert (await part.store.heads(["m"]))[0] == before


async def test_what_is_decided_is_decided(file: Path):
    """Released or rejected, a second decision of either kind is refused and changes nothing; an unknown id is told."""
    async with opened(file) as part:
        one, two = await part.store.hold([draft("one"), draft("two")])
        await part.store.release_held(one.held_id, now=NOON)
        rejected = await part.store.reject_held(two.held_id, now=NOON, by="ana", reason="no")
        assert (rejected.state, rejected.resolved_by, rejected.reason, rejected.ref) == ("rejected", "ana", "no", None)
        for entry in (one, two):
            for decide in (part.store.release_held, part.store.reject_held):
                with pytest.raises(EntryReferenceError) as caught:
                    await decide(entry.held_id, now=NOON)
                assert caught.value.code == "held-resolved"
        for call in (part.store.release_held, part.store.reject_held, part.store.held_one):
            with pytest.raises(EntryReferenceError) as caught:
                await call("nothing", now=NOON)
            assert caught.value.code == "held-unknown"
        assert (await part.store.heads(["m"]))[0].revision == 1


async def test_a_rejection_sticks_until_its_record_is_purged(file: Path):
    """The very write that a person rejected is not held anew; on other evidence, or after the purge, it is."""
    async with opened(file) as part:
        (entry,) = await part.store.hold([draft("text")])
        rejected = await part.store.reject_held(entry.held_id, now=NOON)
        assert await part.store.hold([draft("text")]) == (rejected,)
        (other,) = await part.store.hold([draft("text", evidence=(("source:2", "better"),))])
        assert other.state == "pending"
        assert await part.store.purge_held("rejected", now=NOON) == 1
        (fresh,) = await part.store.hold([draft("text")])
        assert (fresh.state, fresh.held_id != entry.held_id) == ("pending", True)


async def test_expiry_loses_nothing(file: Path):
    """What waited too long is told apart, keeps its content, can still be decided, and is gone only by a purge."""
    end = NOON + 30 * DAY
    async with opened(file) as part:
        store = part.store
        short, long, other = await store.hold([draft("short"), draft("long", days=60), draft("other", memory="n")])
        assert len(await store.held(now=end - timedelta(microseconds=1))) == 3
        assert [entry.held_id for entry in await store.held(now=end)] == [long.held_id]
        late = await store.held(now=end, state="expired")
        assert [(entry.held_id, entry.state) for entry in late] == [(short.held_id, "expired"), (other.held_id, "expired")]
        assert (await store.held_one(short.held_id, now=end)).put == draft("short").put
        assert await store.heads() == ()  # nobody wrote it
        (again,) = await store.hold([draft("short", at=end)])
        assert (again.held_id, again.state, again.held_at, again.expires_at) == (
            short.held_id,
            "pending",
            NOON,
            end + 30 * DAY,
        )
        assert (await store.release_held(other.held_id, now=end)).outcome.status == "added"
        assert await store.purge_held("expired", now=end) == 0
        with pytest.raises(InputError) as caught:
            await store.purge_held("pending", now=end)
        assert caught.value.code == "held-pending"
        assert await store.purge_held("expired", now=end + 90 * DAY, memory="n") == 0
        assert await store.purge_held("expired", now=end + 90 * DAY, before=end + 30 * DAY) == 0
        assert await store.purge_held("expired", now=end + 90 * DAY) == 2
        assert await store.purge_held("released", now=end + 90 * DAY, before=end + DAY) == 1
        assert await store.held(now=end, state=None) == ()


async def test_decided_content_is_erased_from_the_file(file: Path):
    """Of what was rejected, released elsewhere or purged nothing can be read in the file's bytes, free pages included."""
    words = ["canary" + name for name in ("rejected", "purged", "evidence")]
    async with opened(file) as part:
        texts = [f"{word} " * 300 for word in words]
        held = await part.store.hold(
            [draft(texts[0]), draft(texts[1], days=1), draft("the third", evidence=(("source:1", texts[2]),))]
        )
        for word in words:
            assert word.encode() in bytes_of(file)
        await part.store.reject_held(held[0].held_id, now=NOON)
        await part.store.release_held(held[2].held_id, now=NOON)
        assert await part.store.purge_held("expired", now=NOON + 2 * DAY) == 1
        assert [word for word in words if word.encode() in bytes_of(file)] == [], (
            "the log is no copy, also of a store that runs on"
        )
    assert [word for word in words if word.encode() in bytes_of(file)] == []


async def test_forgetting_and_scanning_do_not_see_what_is_held(file: Path):
    """No read, search, export or count of a memory knows the queue."""
    async with opened(file, HashEmbedder()) as part:
        await part.commit([put("written")])
        before = (await part.store.heads(), await part.store.scan("m"), await part.store.changes("m"))
        await part.store.hold([draft("held words"), draft("held words", memory="n")])
        assert (await part.store.heads(), await part.store.scan("m"), await part.store.changes("m")) == before
        assert (await part.words("held")).hits == ()
        assert await part.texts(await part.near("held words")) == ["written"]
        await part.store.reindex(HashEmbedder())
        assert len(await part.store.held(now=NOON)) == 2
        health = await part.store.health()
        assert (health["memories"], health["entries"]) == (1, 1)


async def test_a_failing_release_changes_nothing(file: Path):
    """A write that the store cannot do leaves the place as it was: write and decision are one transaction."""
    embedder = HashEmbedder()
    async with opened(file, embedder) as part:
        (entry,) = await part.store.hold([draft("text")])
        wrong = VectorBatch(embedder.profile, {"text": [1.0, 2.0]})
        with pytest.raises(StoreError) as caught:
            await part.store.release_held(entry.held_id, now=NOON, vectors=wrong)
        assert caught.value.code == "vector-shape"
        assert await part.store.held(now=NOON, state=None) == (entry,)
        assert await part.store.heads() == ()


async def test_a_reference_of_a_release_is_exact(file: Path):
    """The record's reference reads the version that was written, whatever comes after."""
    async with opened(file) as part:
        (entry,) = await part.store.hold([draft("text", source="s")])
        await part.store.release_held(entry.held_id, now=NOON)
        await part.commit([put("later", source="s")])
        ref = (await part.store.held_one(entry.held_id, now=NOON)).entry.ref
        assert isinstance(ref, EntryRef)
        assert (await part.store.read(ref)).content.text == "text"
