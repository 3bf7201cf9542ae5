"""Synchronous code in worker threads, so that a caller whose time is over is back at once and leaves no heap of threads.

A thread cannot be stopped from outside. Code that hangs goes on when its caller has left; what can be done is to bound how
many such threads there are, and to count them. `anyio.to_thread.run_sync(..., abandon_on_cancel=True)` alone does not bound
them on asyncio, where its limiter forgets a thread that was left behind.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import current_token

T = TypeVar("T")

_LOCK: Final = threading.Lock()
_left_behind = 0


def left_behind() -> int:
    """Return how many worker threads of this process still run code whose caller has left; `Narrowgate.health` tells it."""
    return _left_behind


class Workers:
    """At most `limit` worker threads at once, those that were left behind included.

    Args:
        limit: the most threads, >= 1; 1 for code that one thread at a time may run.

    Raises:
        ValueError: `limit`.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self._places = anyio.CapacityLimiter(limit)
        self._unlimited = anyio.CapacityLimiter(math.inf)

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` in a worker thread, when there is a place, and return what it returns.

        When cancelled it is back at once. Code that has begun runs on without a caller and keeps its place until it ends;
        what it then returns or raises is dropped.
        """
        job = _Job(call)
        try:
            self._places.acquire_on_behalf_of_nowait(job)
        except anyio.WouldBlock:
            await self._places.acquire_on_behalf_of(job)
        try:
            return await anyio.to_thread.run_sync(job, abandon_on_cancel=True, limiter=self._unlimited)
        finally:
            job.leave(partial(self._places.release_on_behalf_of, job))


class _Job(Generic[T]):
    """One call. Its place is given back by its caller, or by its thread when that was left behind."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._begun = self._ended = self._left = False
        self._give_back: Callable[[], object] | None = None

    def __call__(self) -> T:
        with _LOCK:
            if self._left:
                raise RuntimeError("the caller had left before this could begin")
            self._begun = True
        try:
            return self._call()
        finally:
            self._end()

    def leave(self, release: Callable[[], object]) -> None:
        """Let the caller go. `release` gives the place back, in the event loop's thread."""
        global _left_behind
        with _LOCK:
            self._left = True
            if self._begun and not self._ended:
                self._give_back = partial(_scheduler(), release)
                _left_behind += 1
                return
        release()

    def _end(self) -> None:
        global _left_behind
        with _LOCK:
            self._ended = True
            if self._give_back is None:
                return
            _left_behind -= 1
        # A loop that has ended meanwhile wants no place back.
        with suppress(RuntimeError):
            self._give_back()


def _scheduler() -> Callable[[Callable[[], object]], object]:
    """Return what has a function called soon by the running event loop, from any thread and without waiting for it."""
    token: Any = current_token()
    loop = getattr(token, "native_token", token)  # anyio < 4.11 hands out the loop's own token
    schedule: Callable[[Callable[[], object]], object]
    schedule = loop.call_soon_threadsafe if hasattr(loop, "call_soon_threadsafe") else loop.run_sync_soon
    return schedule
