"""A small search by vectors is done where it is asked, and goes to a thread where it would have to wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import apsw
import pytest
from sqlite_parts import HashEmbedder, opened, put

import narrowgate_sqlite.vector as channel
from narrowgate.errors import StoreError
from narrowgate.values.filters import parse_filter

pytestmark = pytest.mark.anyio

TEXTS = [f"{colour} {thing}" for colour in ("red", "blue", "青い", "蓝色") for thing in ("kite", "boat", "风筝", "house")]


@pytest.fixture
def threads() -> Iterator[list[int]]:
    """Return the threads in which the looks at a memory's row were run, in order."""
    seen: list[int] = []

    def note(_cursor: object, sql: str, _bindings: object) -> bool:
        if "vector_epoch" in sql and sql.lstrip().startswith("SELECT"):
            seen.append(threading.get_ident())
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    apsw.connection_hooks.append(hook)
    yield seen
    apsw.connection_hooks.remove(hook)


async def test_the_second_search_needs_no_thread(file: Path, threads: list[int]):
    """The first search loads the vectors in a worker thread; the next run in the event loop's own, with equal results."""
    here = threading.get_ident()
    async with opened(file, HashEmbedder()) as part:
        await part.commit([put(text) for text in TEXTS])
        threads.clear()
        first = await part.near("blue kite 风筝")
        assert len(threads) == 1
        assert here not in threads
        assert await part.near("blue kite 风筝") == first
        assert threads[1:] == [here]


@pytest.mark.parametrize("query", ["filtered", "large", "unknown"])
async def test_what_may_take_long_goes_to_a_thread(file: Path, threads: list[int], query: str, monkeypatch):
    """A filter, more vectors than the bound and a memory not searched before are never looked at in the event loop."""
    async with opened(file, HashEmbedder()) as part:
        await part.commit([put(text) for text in TEXTS])
        await part.commit([put(text) for text in TEXTS], memory="other")
        await part.near("blue kite")
        threads.clear()
        if query == "filtered":
            await part.near("blue kite", parse_filter("kind=note"))
        elif query == "large":
            monkeypatch.setattr(channel, "BRIEF", len(TEXTS) * 16 - 1)
            await part.near("blue kite")
        else:
            await part.near("blue kite", memories=("m", "other"))
        assert threads
        assert threading.get_ident() not in threads


async def test_what_changed_meanwhile_is_loaded_in_a_thread(file: Path, threads: list[int]):
    """After a write of another connection the vectors are followed up in a worker thread, and what was written is found."""
    here = threading.get_ident()
    async with opened(file, HashEmbedder()) as part, opened(file, HashEmbedder()) as other:
        await part.commit([put(text) for text in TEXTS])
        await part.near("green whale")
        await other.commit([put("green whale")])
        threads.clear()
        found = await part.near("green whale")
        assert (await part.texts(found))[0] == "green whale"
        assert threads[-1] != here
        threads.clear()
        assert await part.near("green whale") == found
        assert threads == [here]


async def test_a_busy_channel_is_waited_for_in_a_thread(file: Path, threads: list[int]):
    """While another search loads vectors the event loop does not wait for its lock."""
    async with opened(file, HashEmbedder()) as part:
        assert part.vector is not None
        await part.commit([put(text) for text in TEXTS])
        before = await part.near("blue kite")
        threads.clear()
        results = []
        async with anyio.create_task_group() as tasks:
            with part.vector._lock:

                async def search() -> None:
                    results.append(await part.near("blue kite"))

                tasks.start_soon(search)
                while not part.store.engine._starting and part.store.engine._reading.borrowed_tokens == 0:
                    await anyio.lowlevel.checkpoint()
        assert results == [before]
        assert threading.get_ident() not in threads


async def test_no_idle_connection_means_a_thread(file: Path, threads: list[int]):
    """The event loop never opens a connection: with all of them at work the search goes the long way."""
    async with opened(file, HashEmbedder()) as part:
        await part.commit([put(text) for text in TEXTS])
        before = await part.near("blue kite")
        engine = part.store.engine
        taken, engine._idle[:] = [*engine._idle], []
        threads.clear()
        assert await part.near("blue kite") == before
        engine._idle += taken
        assert threading.get_ident() not in threads


async def test_cancellation_and_a_closed_store_are_seen_before_the_work(file: Path, threads: list[int]):
    """A search whose caller is gone asks nothing; one on a closed store says so."""
    async with opened(file, HashEmbedder()) as part:
        await part.commit([put(text) for text in TEXTS])
        await part.near("blue kite")
        threads.clear()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await part.near("blue kite")
        assert scope.cancelled_caught
        assert threads == []
    with pytest.raises(StoreError, match="closed"):
        await part.near("blue kite")
