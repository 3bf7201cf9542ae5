"""Connections: cancellation leaves them clean, transactions are whole, closing waits."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import anyio
import apsw
import pytest
from sqlite_parts import disagreements, opened, put

from narrowgate.errors import StoreError
from narrowgate_sqlite._engine import READERS, Job

pytestmark = pytest.mark.anyio

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"


async def test_a_cancelled_read_stops_at_once(file: Path):
    """An endless statement ends with its caller, more often than there are connections, and reading goes on after."""
    async with opened(file) as part:
        await part.commit([put("tea")])
        for _ in range(READERS + 6):
            started = anyio.Event()

            def endless(reader, started=started):
                anyio.from_thread.run_sync(started.set)
                return reader.db.execute(ENDLESS).fetchall()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(part.store.engine.read, endless)
                await started.wait()
                tasks.cancel_scope.cancel()
        assert len((await part.words("tea")).hits) == 1


async def test_a_read_behind_hanging_ones_ends_with_its_caller(file: Path):
    """Case 41: when reads that hang hold every connection, a caller that leaves does not leave a waiting thread behind."""
    async with opened(file) as part:
        engine = part.store.engine
        held = [engine._take(Job()) for _ in range(READERS + 4)]
        waiting = Job()
        waiting.cancelled = True
        with pytest.raises(apsw.InterruptError):
            engine._take(waiting)
        for reader in held:
            engine._give(reader)
        await part.commit([put("tea")])
        assert len((await part.words("tea")).hits) == 1


async def test_a_cancelled_write_is_rolled_back(file: Path):
    """A write that is cancelled before its commit leaves nothing, and the next one works at once."""
    async with opened(file) as part:
        await part.commit([put("tea")])
        started = anyio.Event()

        def endless(db):
            db.execute("DELETE FROM entries; DELETE FROM lexical")
            anyio.from_thread.run_sync(started.set)
            db.execute(ENDLESS).fetchall()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(part.store.engine.write, endless)
            await started.wait()
            tasks.cancel_scope.cancel()
        assert (await part.commit([put("coffee")])).revision == 2
        assert len((await part.words("tea coffee")).hits) == 2
    assert disagreements(file) == []


async def test_waiting_for_a_lock_can_be_cancelled(file: Path):
    """A write that waits for another process gives up when its caller does, long before the bound."""
    async with opened(file, busy_timeout=600) as part:
        holder = apsw.Connection(str(file))
        holder.execute("BEGIN IMMEDIATE")
        with anyio.move_on_after(0.05) as scope:
            await part.commit([put("tea")])
        assert scope.cancelled_caught
        holder.execute("ROLLBACK")
        holder.close()
        assert (await part.commit([put("coffee")])).revision == 1
        assert len((await part.words("tea")).hits) == 0


async def test_a_cancelled_write_before_its_turn_does_nothing(file: Path):
    """A write that is cancelled while another of this process runs is never begun."""
    async with opened(file) as part:
        running, release = anyio.Event(), threading.Event()

        def slow(db):
            anyio.from_thread.run_sync(running.set)
            release.wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(part.store.engine.write, slow)
            await running.wait()
            with anyio.move_on_after(0.01) as scope:
                await part.commit([put("tea")])
            assert scope.cancelled_caught
            release.set()
        assert await part.store.heads() == ()


async def test_an_error_leaves_nothing_behind(file: Path):
    """When the work of a write fails, all of it is undone."""
    async with opened(file) as part:
        await part.commit([put("tea")])

        def broken(db):
            db.execute("DELETE FROM entries")
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await part.store.engine.write(broken)
        with pytest.raises(StoreError) as caught:
            await part.store.engine.read(lambda reader: reader.db.execute("SELECT secret FROM nothing"))
        assert caught.value.code == "engine"
        assert "secret" not in str(caught.value)
        with pytest.raises(StoreError) as caught:
            await part.store.engine.read(lambda reader: reader.db.execute("DELETE FROM entries"))
        assert (await part.store.heads())[0].active == 1


async def test_one_snapshot_for_each_read(file: Path):
    """Everything that one read looks at is of one moment, whatever is written in between."""
    async with opened(file) as part, opened(file) as other:
        await part.commit([put("a")])
        count = "SELECT sum(active) FROM memories"
        seen, written = threading.Event(), threading.Event()

        def twice(reader):
            first = reader.db.execute(count).fetchone()
            seen.set()
            written.wait()
            return first, reader.db.execute(count).fetchone()

        results = []

        async def reading():
            results.append(await part.store.engine.read(twice))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading)
            await anyio.to_thread.run_sync(seen.wait)
            await other.commit([put("b")])
            written.set()
        assert results == [((1,), (1,))]


async def test_many_at_once(file: Path):
    """Far more searches and writes than connections all come to their end, and no write is lost."""
    async with opened(file) as part:
        await part.commit([put("tea")])

        async def write(number: int) -> None:
            await part.commit([put(f"tea {number}")])

        async def search() -> None:
            found = await part.words("tea", limit=100)
            texts = await part.texts(found)
            assert len(texts) == len(found.hits) == found.revisions["m"]

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(write, number)
                tasks.start_soon(search)
        assert len((await part.words("tea", limit=100)).hits) == 41


async def test_a_closed_store_says_so(file: Path):
    """After closing, a call is refused instead of opening the file again; no log is left beside the file."""
    async with opened(file) as part:
        await part.commit([put("tea")])
    for call in (part.words("tea"), part.commit([put("a")])):
        with pytest.raises(StoreError) as caught:
            await call
        assert caught.value.code == "closed"
    assert [item.name async for item in anyio.Path(file.parent).iterdir()] == [file.name]


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being deleted")
async def test_a_file_that_is_gone_takes_no_write(file: Path, replaced: bool):
    """What is written to a file that nobody can open any more would be acknowledged and lost: it is refused, reads too."""
    other = file.with_name("other.db")
    async with opened(other) as part:
        await part.commit([put("another tea")])
    async with opened(file) as part:
        await part.commit([put("tea")])
        assert len((await part.words("tea")).hits) == 1
        if replaced:
            await anyio.Path(other).replace(file)
        else:
            await anyio.Path(file).unlink()
        for call in (part.commit([put("coffee")]), part.words("tea"), part.store.health(), part.store.heads()):
            with pytest.raises(StoreError) as caught:
                await call
            assert caught.value.code == "file-gone"
            assert str(file) in str(caught.value)


async def test_the_current_folder_may_change(file: Path, monkeypatch: pytest.MonkeyPatch):
    """A relative path means the file that it named when the store was opened."""
    monkeypatch.chdir(file.parent)
    async with opened(Path(file.name)) as part:
        await part.commit([put("tea")])
        (file.parent / "elsewhere").mkdir()
        monkeypatch.chdir(file.parent / "elsewhere")
        await part.commit([put("more tea")])
        assert len((await part.words("tea")).hits) == 2
        assert (await part.store.health())["entries"] == 2
