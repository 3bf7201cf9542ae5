"""Worker threads of one store, with a short way there and back.

`anyio.to_thread.run_sync` passes a call through a limiter, several turns of the event loop and a queue written in Python.
That is little beside most work, but a search of a few thousand entries takes about a millisecond and crosses two or three
times. On asyncio a call here costs one queue and one turn of the loop; on any other loop anyio does it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

T = TypeVar("T")

_Task = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Workers:
    """Threads that are made when none is idle and end with `close`."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._idle = 0
        self._closed = False

    async def run(self, call: Callable[[], T], limiter: anyio.CapacityLimiter) -> T:
        """Run `call` in a thread when the limiter has room; when cancelled, leave it to itself and drop what it returns."""
        if not _in_asyncio_task():
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
        await anyio.lowlevel.checkpoint_if_cancelled()
        try:
            limiter.acquire_nowait()
        except anyio.WouldBlock:
            await limiter.acquire()
        try:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[T] = loop.create_future()
            self._put((call, future, loop))
            return await future
        finally:
            limiter.release()

    def _put(self, task: _Task) -> None:
        with self._lock:
            # There are never more calls waiting than threads idle: each finds one at once, also beside abandoned work.
            if self._idle and not self._closed:
                self._idle -= 1
            else:
                self._threads += 1
                threading.Thread(target=self._work, name="narrowgate-sqlite", daemon=True).start()
            self._tasks.put(task)
            if self._closed:  # what comes too late is still answered, by a thread that ends with it
                self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            call, future, loop = task
            result, failure = None, None
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - it is raised where the call was awaited
                failure = error
            with self._lock:
                self._idle += 1
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, result, failure)
            del task, call, future, loop, result, failure  # an idle thread keeps nothing alive

    def close(self) -> None:
        """End every thread once it has done what it was given."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._tasks.put(None)
            self._threads = self._idle = 0


def _in_asyncio_task() -> bool:
    try:
        return asyncio.current_task() is not None  # none where trio runs as a guest of asyncio
    except RuntimeError:
        return False


def _settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if future.cancelled():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
