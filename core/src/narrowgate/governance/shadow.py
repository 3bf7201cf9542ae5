"""Evaluation in shadow, off the caller's path: a bounded queue beside the domain action, a deadline for each evaluation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from time import process_time
from typing import Final, TypeVar

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from narrowgate.decisions import Account, Usage, account
from narrowgate.governance.background import apart, workers

WORKERS: Final = 2
"""Evaluations under way at once: shadow is not to take the backend from those who wait for it."""

CLOSING: Final = 30.0
"""Seconds that closing waits for evaluations that were accepted."""

PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.05
"""Seconds of rest after each evaluation: as much as the process worked meanwhile, within these bounds.

An event loop that never rests keeps the interpreter's lock from the threads that callers wait for: behind 2,000 writes whose
evaluations took 0.3 ms each, the next one took 230 ms instead of 2.
"""

NOTES: Final = 1000
"""Notes that may wait at once, such as the observation that the queue was full."""

Evaluation = Callable[[], Awaitable[None]]
"""Assesses and observes; nobody waits for it."""

Cut = Callable[[str, Usage | None], Awaitable[None]]
"""Observes that an evaluation came to nothing: a closed code, and what its calls cost, `None` where nobody was asked."""

FULL: Final = "shadow_queue_full"
LATE: Final = "shadow_deadline"
FAILED: Final = "shadow_failed"
CLOSED: Final = "shadow_closed"

LAST_WORDS: Final = 2.0
"""Seconds that closing takes, after `CLOSING`, to observe what it leaves undone."""

_Item = tuple[Evaluation, Cut]
T = TypeVar("T")

_log = logging.getLogger("narrowgate.governance")


@attrs.define
class ShadowState:
    """How the queue fares.

    Attributes:
        done: evaluations that ended by themselves.
        late: evaluations that the deadline ended.
        failed: evaluations that raised.
        full: evaluations that found no room.
        undone: evaluations that closing did not wait for.
        notes: notes that wait or are under way, such as the observation that the queue was full.
        lost: those that found no room either, or no time.
    """

    done: int = 0
    late: int = 0
    failed: int = 0
    full: int = 0
    undone: int = 0
    notes: int = 0
    lost: int = 0


class Shadow:
    """Takes evaluations and runs them when there is time. Made by `shadow`."""

    def __init__(
        self, stream: MemoryObjectSendStream[_Item], notes: MemoryObjectSendStream[Evaluation], state: ShadowState
    ) -> None:
        self._stream, self._notes = stream, notes
        self.state: ShadowState = state
        self._closed = False

    def close(self) -> None:
        """Take nothing more; what was taken is finished."""
        self._closed = True
        self._stream.close()
        self._notes.close()

    def offer(self, evaluate: Evaluation, cut: Cut) -> None:
        """Take an evaluation, without waiting.

        Args:
            evaluate: what to do when there is time. It runs in the scope of an open account (see
                `narrowgate.decisions.account`).
            cut: is called instead when the queue is full, and after it when the deadline ended it, when it raised, and when
                closing leaves it undone: every attempt is observed.
        """
        try:
            self._stream.send_nowait((evaluate, cut))
        except anyio.WouldBlock:
            self.state.full += 1
            self.offer_note(partial(cut, FULL, None))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self.state.undone += 1

    async def rest(self, began: float) -> None:
        """Leave the process to its callers for a while; at once when there are none any more.

        Args:
            began: processor time of the process (`time.process_time`) when the work began.
        """
        if not self._closed:
            await anyio.sleep(min(max(PAUSE, process_time() - began), LONGEST_PAUSE))

    def offer_note(self, note: Evaluation) -> None:
        """Run something that asks nobody, such as observing what was judged elsewhere; counted where too many wait."""
        try:
            self._notes.send_nowait(note)
            self.state.notes += 1
        except (anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self.state.lost += 1


@asynccontextmanager
async def shadow(queue: int, deadline: float) -> AsyncIterator[Shadow]:
    """Run the workers; at the end, accepted evaluations are finished within `CLOSING` seconds.

    However much waits, no more than `WORKERS` evaluations and one note take turns with the callers in the event loop.

    Args:
        queue: evaluations that may wait at once, >= 1.
        deadline: seconds for one evaluation, > 0.
    """
    state = ShadowState()
    send, receive = anyio.create_memory_object_stream[_Item](queue)
    note, noted = anyio.create_memory_object_stream[Evaluation](NOTES)
    taking = Shadow(send, note, state)
    async with workers(taking.close, CLOSING) as tasks:
        for _ in range(WORKERS):
            tasks.start_soon(_work, receive.clone(), taking, deadline)
        tasks.start_soon(_note, noted, taking)
        receive.close()
        yield taking


async def _note(stream: MemoryObjectReceiveStream[Evaluation], taking: Shadow) -> None:
    state = taking.state
    with stream:
        try:
            async for note in stream:
                began = process_time()
                await _observed(note, state)
                state.notes -= 1
                await taking.rest(began)
        except anyio.get_cancelled_exc_class():
            left = [*_drained(stream)]
            state.lost += state.notes - len(left)  # one at most: that which was under way
            with anyio.move_on_after(LAST_WORDS, shield=True):
                while left:
                    await _observed(left.pop(0), state)
            state.lost += len(left)
            state.notes = 0
            raise


async def _observed(note: Evaluation, state: ShadowState) -> None:
    try:
        await apart(note)
    except Exception as error:  # noqa: BLE001 - what happens in shadow stays there
        _failed(state, error)


def _failed(state: ShadowState, error: Exception) -> None:
    state.failed += 1
    _log.warning("an evaluation in shadow failed with %s", type(error).__name__, extra={"event": "shadow.failed"})


async def _work(stream: MemoryObjectReceiveStream[_Item], taking: Shadow, deadline: float) -> None:
    state = taking.state
    with stream:
        under_way: Cut | None = None
        own = Account()
        try:
            async for evaluate, cut in stream:
                under_way, reason, began = cut, None, process_time()
                with account() as own, anyio.move_on_after(deadline) as scope:
                    try:
                        await apart(evaluate)
                        state.done += 1
                    except Exception as error:  # noqa: BLE001 - as above
                        _failed(state, error)
                        reason = FAILED
                if scope.cancelled_caught:
                    state.late += 1
                    reason = LATE
                if reason is not None:
                    await _observed(partial(cut, reason, own.usage), state)
                under_way = None
                await taking.rest(began)
        except anyio.get_cancelled_exc_class():
            # Closing has no more time, or the application was cancelled: what was accepted is still told.
            left = [] if under_way is None else [partial(under_way, CLOSED, own.usage)]
            left += [partial(cut, CLOSED, None) for _, cut in _drained(stream)]
            state.undone += len(left)
            with anyio.move_on_after(LAST_WORDS, shield=True):
                for note in left:
                    await _observed(note, state)
            raise


def _drained(stream: MemoryObjectReceiveStream[T]) -> Iterator[T]:
    while True:
        try:
            yield stream.receive_nowait()
        except (anyio.WouldBlock, anyio.EndOfStream):
            return
