"""Evaluation off the caller's path: bounded, with a deadline, and nothing that was accepted goes untold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest
from gate_engine_parts import Scripted, question

from narrowgate.decisions import MeteredBackend, Usage
from narrowgate.governance import shadow as module
from narrowgate.governance.shadow import Shadow, shadow

pytestmark = pytest.mark.anyio


@attrs.define
class Told:
    """Makes evaluations, and keeps what was told of those that came to nothing."""

    done: list[int] = attrs.field(factory=list)
    cut: list[tuple[int, str, Usage | None]] = attrs.field(factory=list)
    two_cut: anyio.Event = attrs.field(factory=anyio.Event)

    def offer(self, queue: Shadow, number: int, work: Callable[[], Any] | None = None) -> None:
        """Offer an evaluation."""

        async def evaluate() -> None:
            if work is not None:
                await work()
            self.done.append(number)

        async def cut(reason: str, usage: Usage | None) -> None:
            self.cut.append((number, reason, usage))
            if len(self.cut) == 2:
                self.two_cut.set()

        queue.offer(evaluate, cut)


async def fail() -> None:
    """Raise what third-party code may raise."""
    raise RuntimeError("what was judged")


async def ask_for_ever() -> None:
    """Ask a backend that never answers."""
    backend = MeteredBackend(Scripted("hang"))
    from narrowgate.decisions import DecisionRequest

    await backend.evaluate(DecisionRequest("k", "q", question().subject))


async def test_evaluations_are_done_and_counted() -> None:
    """In their order, and those that are accepted are finished before the end."""
    told = Told()
    async with shadow(100, 60) as queue:
        for number in range(20):
            told.offer(queue, number)
    assert sorted(told.done) == list(range(20))
    assert (queue.state.done, told.cut) == (20, [])


async def test_a_full_queue_is_told_at_once() -> None:
    """Whoever offers never waits; that nobody was asked is observed."""
    told = Told()
    opened = anyio.Event()
    async with shadow(2, 60) as queue:
        for number in range(2):
            told.offer(queue, number, opened.wait)
        await anyio.wait_all_tasks_blocked()
        for number in range(2, 6):
            told.offer(queue, number)
        await told.two_cut.wait()
        assert sorted(told.cut) == [(4, "shadow_queue_full", None), (5, "shadow_queue_full", None)]
        opened.set()
    assert sorted(told.done) == [0, 1, 2, 3]
    assert queue.state.full == 2


async def test_what_the_deadline_ends_is_told_with_its_cost() -> None:
    """One that asked somebody says what that cost as far as it is known; one that asked nobody costs nothing."""
    told = Told()
    async with shadow(10, 0.01) as queue:
        told.offer(queue, 0, ask_for_ever)
        told.offer(queue, 1, anyio.sleep_forever)
        told.offer(queue, 2)
    assert told.done == [2]
    assert sorted(told.cut) == [(0, "shadow_deadline", Usage(1, 1, None, None)), (1, "shadow_deadline", None)]
    assert (queue.state.late, queue.state.done) == (2, 1)


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_one_that_was_told_it_was_cancelled_ends_nothing_but_itself() -> None:
    """Evaluations run beside the application: a cancellation that nobody asked for must not become one of its block."""

    async def stray() -> None:
        raise asyncio.CancelledError

    told = Told()
    reached = False
    async with shadow(10, 60) as queue:
        told.offer(queue, 0, stray)
        queue.offer_note(stray)
        await anyio.wait_all_tasks_blocked()
        told.offer(queue, 1)
        reached = True
    assert reached
    assert (told.done, told.cut) == ([1], [(0, "shadow_failed", None)])
    assert (queue.state.failed, queue.state.undone, queue.state.lost) == (2, 0, 0)


async def test_one_that_raises_is_told_and_harms_nobody() -> None:
    """Its type is logged; the others go on."""
    told = Told()
    async with shadow(10, 60) as queue:
        told.offer(queue, 0, fail)
        told.offer(queue, 1)
    assert (told.done, told.cut, queue.state.failed) == ([1], [(0, "shadow_failed", None)], 1)


async def test_closing_tells_what_it_leaves_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits a while; then what is under way, and what waits behind it, is observed as not judged."""
    monkeypatch.setattr(module, "CLOSING", 0.01)
    told = Told()
    async with shadow(10, 60) as queue:
        for number in range(5):
            told.offer(queue, number, anyio.sleep_forever)
    assert sorted(told.cut) == [(number, "shadow_closed", None) for number in range(5)]
    assert queue.state.undone == 5


async def test_a_cancelled_application_is_told_too() -> None:
    """The cancellation passes, and the same holds."""
    told = Told()
    with anyio.CancelScope() as scope:
        async with shadow(10, 60) as queue:
            told.offer(queue, 0, ask_for_ever)
            told.offer(queue, 1, anyio.sleep_forever)
            told.offer(queue, 2, anyio.sleep_forever)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert sorted(told.cut) == [
        (0, "shadow_closed", Usage(1, 1, None, None)),
        (1, "shadow_closed", None),
        (2, "shadow_closed", None),
    ]


async def test_nothing_is_taken_after_the_end() -> None:
    """A caller that comes late is not harmed either."""
    told = Told()
    async with shadow(10, 60) as queue:
        pass
    told.offer(queue, 0)
    queue.offer_note(fail)
    assert (told.done, told.cut, queue.state.undone, queue.state.lost) == ([], [], 1, 1)


async def test_notes_have_a_bound_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot even be noted is counted."""
    monkeypatch.setattr(module, "NOTES", 2)
    opened = anyio.Event()
    async with shadow(1, 60) as queue:
        for _ in range(3):
            queue.offer_note(opened.wait)
        assert (queue.state.notes, queue.state.lost) == (2, 1)
        opened.set()
    assert queue.state.notes == 0


async def test_the_process_is_left_alone_after_each_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as it worked, within bounds; not once there are no callers any more."""
    rests: list[float] = []
    began = iter([0.0, 0.0, 0.0, 0.0])
    ended = iter([0.0, 0.02, 7.0, 7.0])
    monkeypatch.setattr(module, "process_time", lambda: next(ended))

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    async with shadow(10, 60) as queue:
        monkeypatch.setattr(module.anyio, "sleep", sleep)
        for _ in range(3):
            await queue.rest(next(began))
        monkeypatch.undo()
        assert rests == [module.PAUSE, 0.02, module.LONGEST_PAUSE]
    await queue.rest(0.0)
    assert len(rests) == 3
