"""Evaluation in shadow, off the caller's path: a bounded queue beside the domain action, a deadline for each evaluation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from narrowgate.governance.background import workers

WORKERS: Final = 2
"""Evaluations under way at once: shadow is not to take the backend from those who wait for it."""

CLOSING: Final = 30.0
"""Seconds that closing waits for evaluations that were accepted."""

NOTES: Final = 1000
"""Observations of unasked questions under way at once."""

Evaluation = Callable[[], Awaitable[None]]
"""Assesses and observes; nobody waits for it."""

_log = logging.getLogger("narrowgate.governance")


@attrs.define
class ShadowState:
    """How the queue fares.

    Attributes:
        done: evaluations that ended by themselves.
        late: evaluations that the deadline ended.
        failed: evaluations that raised.
        full: evaluations that found no room.
        notes: observations of such evaluations that are under way.
        lost: those that found no room either.
    """

    done: int = 0
    late: int = 0
    failed: int = 0
    full: int = 0
    notes: int = 0
    lost: int = 0


class Shadow:
    """Takes evaluations and runs them when there is time. Made by `shadow`."""

    def __init__(self, stream: MemoryObjectSendStream[Evaluation], state: ShadowState, notes: TaskGroup) -> None:
        self._stream, self.state, self._notes = stream, state, notes

    def offer(self, evaluation: Evaluation) -> bool:
        """Take an evaluation, without waiting; `False` when the queue is full: the caller observes that nobody was asked."""
        try:
            self._stream.send_nowait(evaluation)
        except anyio.WouldBlock:
            self.state.full += 1
            return False
        return True

    def offer_note(self, note: Evaluation) -> None:
        """Run something that asks nobody, such as the observation that the queue was full; counted where too many wait."""
        if self.state.notes >= NOTES:
            self.state.lost += 1
            return
        self.state.notes += 1
        self._notes.start_soon(_noted, note, self.state)


@asynccontextmanager
async def shadow(queue: int, deadline: float) -> AsyncIterator[Shadow]:
    """Run the workers; at the end, accepted evaluations are finished within `CLOSING` seconds.

    Args:
        queue: evaluations that may wait at once, >= 1.
        deadline: seconds for one evaluation, > 0.
    """
    state = ShadowState()
    send, receive = anyio.create_memory_object_stream[Evaluation](queue)
    async with workers(send.close, CLOSING) as tasks:
        for _ in range(WORKERS):
            tasks.start_soon(_work, receive.clone(), state, deadline)
        receive.close()
        yield Shadow(send, state, tasks)


async def _noted(note: Evaluation, state: ShadowState) -> None:
    try:
        await note()
    except Exception as error:  # noqa: BLE001 - as for an evaluation
        _failed(state, error)
    finally:
        state.notes -= 1


def _failed(state: ShadowState, error: Exception) -> None:
    state.failed += 1
    _log.warning("an evaluation in shadow failed with %s", type(error).__name__, extra={"event": "shadow.failed"})


async def _work(stream: MemoryObjectReceiveStream[Evaluation], state: ShadowState, deadline: float) -> None:
    async with stream:
        async for evaluate in stream:
            with anyio.move_on_after(deadline) as scope:
                try:
                    await evaluate()
                    state.done += 1
                except Exception as error:  # noqa: BLE001 - what happens in shadow stays there
                    _failed(state, error)
            state.late += scope.cancelled_caught
