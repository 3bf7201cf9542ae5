"""Rebuilding the indexes: complete, restartable, and no obstacle to readers and writers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_parts import HashEmbedder, disagreements, opened, put

from narrowgate.values.entry import SetActive
from narrowgate_sqlite import _reindex

pytestmark = pytest.mark.anyio


class Crash(BaseException):
    """Ends a rebuild where a killed process would."""


async def filled(part, count: int = 12) -> list[str]:
    """Store entries, one of them revised and one forgotten; return their ids."""
    receipt = await part.commit([put(f"entry number {n}", source=str(n)) for n in range(count)])
    ids = [item.ref.entry for item in receipt.items]
    await part.commit([put("entry revised", source="1"), SetActive(ids[2], active=False)])
    return ids


async def test_rebuilds_from_the_texts(file: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever the old index held, the new one holds today's terms; progress rises to the total."""
    monkeypatch.setattr(_reindex, "_BATCH", 5)
    async with opened(file, analyser="a0") as part:
        await filled(part)
    seen = []
    async with opened(file, allow_stale_index=True) as part:
        await part.store.engine.write(lambda db: db.execute("DELETE FROM lexical"))
        assert await part.store.reindex(None, lambda done, total: seen.append((done, total))) == 11
        assert len((await part.words("entry")).hits) == 11
        assert (await part.store.health())["rebuild_unfinished"] is False
    assert [total for _, total in seen] == [11] * len(seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == 11
    assert disagreements(file) == []


async def test_goes_on_after_a_crash(file: Path, monkeypatch: pytest.MonkeyPatch):
    """A rebuild that dies leaves the old index in use and says so; the next one goes on where it was."""
    monkeypatch.setattr(_reindex, "_BATCH", 4)
    async with opened(file) as part:
        ids = await filled(part)

        def crash(done: int, total: int) -> None:
            if done > 4:
                raise Crash

        with pytest.raises(Crash):
            await part.store.reindex(None, crash)
        assert (await part.store.health())["rebuild_unfinished"] is True
        assert len((await part.words("entry")).hits) == 11
        await part.commit([put("entry changed meanwhile", source="0"), SetActive(ids[2], active=True), put("entry new")])
    async with opened(file) as part:
        seen = []
        await part.store.reindex(None, lambda done, total: seen.append(done))
        assert seen[0] > 8, "the batches before the crash were not made again"
        found = await part.texts(await part.words("entry"))
        assert len(found) == 13
        assert {"entry changed meanwhile", "entry new"} <= set(found)
    assert disagreements(file) == []


async def test_writes_during_a_rebuild_are_kept(file: Path, monkeypatch: pytest.MonkeyPatch):
    """Entries added, revised, forgotten and put into new memories while it runs are in the new index."""
    monkeypatch.setattr(_reindex, "_BATCH", 4)
    monkeypatch.setattr(_reindex, "_CATCH_UP", 2)
    embedder, newer = HashEmbedder(), HashEmbedder("2")
    async with opened(file, embedder) as part:
        ids = await filled(part)
        steps = iter(
            [
                ([put("entry late")], "m"),
                ([put("entry replaced", source="3"), SetActive(ids[5], active=False)], "m"),
                ([put("entry elsewhere")], "n"),
                ([put("entry replaced again", source="3")], "m"),
            ]
        )

        class Interfering(HashEmbedder):
            async def embed(self, texts, *, query=False):
                step = next(steps, None)
                if step is not None:
                    await part.commit(step[0], memory=step[1])
                return await super().embed(texts, query=query)

        monkeypatch.setattr(_reindex, "_EMBED_BATCH", 3)
        step = next(steps)
        await part.commit(step[0], memory=step[1])
        await part.store.reindex(Interfering("2"))
        assert next(steps, None) is None
        await part.store.reindex()
        found = await part.words("entry", memories=["m", "n"])
        assert len(found.hits) == 12
    async with opened(file, newer) as part:
        near = await part.near("entry", memories=["m", "n"])
        assert near.complete
        assert {(hit.entry, hit.version) for hit in near.hits} == {(hit.entry, hit.version) for hit in found.hits}
    assert disagreements(file, newer) == []


async def test_foreign_vectors_stay_until_all_are_made(file: Path, monkeypatch: pytest.MonkeyPatch):
    """While vectors of a new model are made the old ones answer; a crash keeps them and what was already made."""
    monkeypatch.setattr(_reindex, "_EMBED_BATCH", 4)
    old, new = HashEmbedder("1"), HashEmbedder("2", 8)
    async with opened(file, old) as part:
        await filled(part)

        def crash(done: int, total: int) -> None:
            if done > 16:
                raise Crash

        with pytest.raises(Crash):
            await part.store.reindex(new, crash)
        assert (await part.near("entry")).complete
        new.asked.clear()
        await part.store.reindex(new)
        assert sum(count for count, _ in new.asked) < 8
    async with opened(file, new) as part:
        assert (await part.near("entry")).complete
        assert (await part.store.health())["embedding"] == "hash/2/8"
    assert disagreements(file, new) == []
