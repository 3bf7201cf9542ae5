"""Evaluation in shadow, off the caller's path: a bounded queue beside the domain action, a deadline for each evaluation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

WORKERS: Final = 2
"""Evaluations under way at once: shadow is not to take the backend from those who wait for it."""

CLOSING: Final = 30.0
"""Seconds that closing waits for evaluations that were accepted."""

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
    """

    done: int = 0
    late: int = 0
    failed: int = 0
    full: int = 0


class Shadow:
    """Takes evaluations and runs them when there is time. Made by `shadow`."""

    def __init__(self, stream: MemoryObjectSendStream[Evaluation], state: ShadowState) -> None:
        self._stream, self.state = stream, state

    def offer(self, evaluation: Evaluation) -> bool:
        """Take an evaluation, without waiting; `False` when the queue is full: the caller observes that nobody was asked."""
        try:
            self._stream.send_nowait(evaluation)
        except anyio.WouldBlock:
            self.state.full += 1
            return False
        return True


@asynccontextmanager
async def shadow(queue: int, deadline: float) -> AsyncIterator[Shadow]:
    """Run the workers; at the end, accepted evaluations are finished within `CLOSING` seconds.

    Args:
        queue: evaluations that may wait at once, >= 1.
        deadline: seconds for one evaluation, > 0.
    """
    state = ShadowState()
    send, receive = anyio.create_memory_object_stream[Evaluation](queue)
    async with anyio.create_task_group() as tasks:
        for _ in range(WORKERS):
            tasks.start_soon(_work, receive.clone(), state, deadline)
        receive.close()
        try:
            yield Shadow(send, state)
        finally:
            send.close()
            tasks.cancel_scope.deadline = anyio.current_time() + CLOSING


async def _work(stream: MemoryObjectReceiveStream[Evaluation], state: ShadowState, deadline: float) -> None:
    async with stream:
        async for evaluate in stream:
            with anyio.move_on_after(deadline) as scope:
                try:
                    await evaluate()
                    state.done += 1
                except Exception as error:  # noqa: BLE001 - what happens in shadow stays there
                    state.failed += 1
                    name = type(error).__name__
                    _log.warning("an evaluation in shadow failed with %s", name, extra={"event": "shadow.failed"})
            state.late += scope.cancelled_caught
