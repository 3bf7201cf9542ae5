"""Worker threads: every call gets its own answer, cancellation abandons, closing ends the threads."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from narrowgate_sqlite._workers import Workers

pytestmark = pytest.mark.anyio


async def test_every_call_gets_its_own_answer():
    """Fifty calls at once, three at a time, each return what they made, away from the event loop's thread."""
    workers, limiter = Workers(), anyio.CapacityLimiter(3)
    here, found = threading.get_ident(), {}
    lock, running, most = threading.Lock(), 0, 0

    def call(number):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            return number, threading.get_ident()
        finally:
            with lock:
                running -= 1

    async def ask(number):
        found[number] = await workers.run(lambda: call(number), limiter)

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(ask, number)
    workers.close()
    assert [found[number][0] for number in range(50)] == list(range(50))
    assert here not in {thread for _, thread in found.values()}
    assert most <= 3
    assert limiter.borrowed_tokens == 0


async def test_an_error_is_raised_where_the_call_was_awaited():
    """The very exception comes out, and the thread goes on to serve."""
    workers, limiter = Workers(), anyio.CapacityLimiter(1)
    failure = ValueError("broken")

    def broken():
        raise failure

    for _ in range(2):
        with pytest.raises(ValueError, match="broken") as caught:
            await workers.run(broken, limiter)
        assert caught.value is failure
    assert await workers.run(lambda: 7, limiter) == 7
    workers.close()


async def test_a_cancelled_call_is_abandoned():
    """The caller goes at once, what the call returns later reaches nobody, and other calls do not wait for it."""
    workers, limiter = Workers(), anyio.CapacityLimiter(4)
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def slow():
        started.set()
        release.wait()
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(workers.run, slow, limiter)
        await anyio.to_thread.run_sync(started.wait)
        tasks.cancel_scope.cancel()
    assert not ended.is_set()
    assert await workers.run(lambda: 7, limiter) == 7
    release.set()
    assert await anyio.to_thread.run_sync(lambda: ended.wait(10))
    await anyio.lowlevel.checkpoint()
    assert await workers.run(lambda: 8, limiter) == 8
    workers.close()


async def test_a_call_of_a_cancelled_task_is_never_begun():
    """A task that is cancelled already does not reach a thread."""
    workers, limiter = Workers(), anyio.CapacityLimiter(1)
    begun = threading.Event()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await workers.run(begun.set, limiter)
    assert scope.cancelled_caught
    assert not begun.is_set()
    workers.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_closing_ends_the_threads():
    """No thread of the store outlives it, not even one that a late call makes."""
    workers, limiter = Workers(), anyio.CapacityLimiter(2)
    thread = await workers.run(threading.current_thread, limiter)
    assert thread.is_alive()
    workers.close()
    late = [await workers.run(threading.current_thread, limiter) for _ in range(3)]
    for ended in (thread, *late):
        await anyio.to_thread.run_sync(ended.join, 10)
        assert not ended.is_alive()
