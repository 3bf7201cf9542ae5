"""Worker threads for synchronous code: a caller whose time is over is back; what it leaves behind is bounded and counted."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

import narrowgate
from narrowgate.seams.workers import Workers, left_behind

pytestmark = pytest.mark.anyio


class Held:
    """Synchronous code that runs until it is let go."""

    def __init__(self) -> None:
        self.entered, self.let_go, self.ended = anyio.Event(), threading.Event(), threading.Event()

    def __call__(self) -> str:
        anyio.from_thread.run_sync(self.entered.set)
        assert self.let_go.wait(60)
        self.ended.set()
        return "late"


async def left(workers: Workers, call: Held) -> None:
    """Start `call`, and leave it behind once it runs."""
    async with anyio.create_task_group() as group:
        group.start_soon(workers.run, call)
        await call.entered.wait()
        group.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    """Wait, turn by turn of the loop, until a thread has done what makes `condition` true."""
    with anyio.fail_after(60):
        while not condition():
            await anyio.to_thread.run_sync(lambda: None)


async def test_returns_and_raises_what_the_code_does() -> None:
    """In the ordinary case nothing is left behind."""
    workers = Workers(1)
    assert await workers.run(lambda: 3) == 3
    with pytest.raises(KeyError):
        await workers.run(lambda: dict[str, int]()["x"])
    assert await workers.run(lambda: 4) == 4
    assert left_behind() == 0


async def test_a_caller_whose_time_is_over_is_back_while_the_code_hangs() -> None:
    """Case 41: with a timeout the caller is back although the code has not ended; the thread is counted until it has."""
    workers, held = Workers(2), Held()
    with pytest.raises(TimeoutError), anyio.fail_after(0.2):
        await workers.run(held)
    assert (held.ended.is_set(), left_behind()) == (False, 1)
    held.let_go.set()
    await until(lambda: left_behind() == 0)
    assert held.ended.is_set()


async def test_what_is_left_behind_is_bounded() -> None:
    """Case 41: code that hangs keeps its place. No further thread begins until one ends, and then the next caller's does."""
    workers, first, second = Workers(2), Held(), Held()
    await left(workers, first)
    await left(workers, second)
    assert left_behind() == 2
    begun = threading.Event()
    with anyio.move_on_after(0.05):
        await workers.run(begun.set)
    assert not begun.is_set()
    async with anyio.create_task_group() as group:
        group.start_soon(workers.run, begun.set)
        first.let_go.set()
    assert begun.is_set()
    assert left_behind() == 1
    second.let_go.set()
    await until(lambda: left_behind() == 0)


async def test_at_most_so_many_run_at_once() -> None:
    """Three calls, one thread: each begins when the one before it has ended."""
    workers = Workers(1)
    running: list[None] = []
    most: list[int] = []

    def work() -> None:
        running.append(None)
        most.append(len(running))
        running.pop()

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(workers.run, work)
    assert most == [1, 1, 1]


async def test_cancelled_before_it_began_runs_nothing() -> None:
    """A caller that is cancelled already starts no thread, and takes no place with it."""
    workers, begun = Workers(1), threading.Event()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await workers.run(begun.set)
    assert scope.cancelled_caught
    assert await workers.run(lambda: 1) == 1
    assert (begun.is_set(), left_behind()) == (False, 0)


def test_a_thread_that_outlives_its_loop_ends_in_peace(anyio_backend: str) -> None:
    """The loop is closed while the code still hangs: when it ends it is counted off, and raises nothing."""
    held: list[Held] = []

    async def main() -> None:
        held.append(Held())
        await left(Workers(1), held[0])

    anyio.run(main, backend=anyio_backend)
    assert left_behind() == 1
    held[0].let_go.set()
    for thread in [item for item in threading.enumerate() if item is not threading.current_thread()]:
        if "AnyIO" in thread.name:
            thread.join(60)

    async def wait() -> None:
        await until(lambda: left_behind() == 0)

    anyio.run(wait, backend=anyio_backend)


async def test_health_counts_what_is_left_behind() -> None:
    """The count is where operators look; without any there is no such fact."""

    class Store:
        async def health(self) -> dict[str, str]:
            return {"path": "here"}

    async with narrowgate.open(env={}, store=Store(), channels=[]) as host:  # type: ignore[arg-type]
        assert await host.health() == {"path": "here"}
        workers, held = Workers(1), Held()
        await left(workers, held)
        assert await host.health() == {"path": "here", "workers_left_behind": 1}
        held.let_go.set()
        await until(lambda: left_behind() == 0)


async def test_a_limit_below_one_is_refused() -> None:
    """Nobody could ever run anything."""
    with pytest.raises(ValueError, match="limit"):
        Workers(0)
