"""Workers beside a block, and calls of third-party code in them: neither ends what it runs beside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

T = TypeVar("T")


class StrayCancellationError(Exception):
    """A call ended as cancelled although nobody had cancelled it, as one does on asyncio whose own task was cancelled."""


class CrashedCallError(Exception):
    """A call ended with what is no `Exception`, as a panic of native code is: that code has failed, not the application."""


async def apart(call: Callable[[], Awaitable[T]]) -> T:
    """Return what a call of third-party code returns. In a task of its own, so that its cancellations are its own.

    In a worker a stray one would end the worker, with it the task group, and with that the block of the application.

    Raises:
        StrayCancellationError: see there; a cancellation that somebody asked for passes as what it is.
        CrashedCallError: see there. An interrupt, and whoever wants to end the interpreter, passes.
        Exception: what the call raised.
    """
    returned: list[T] = []
    raised: list[Exception] = []

    async def run() -> None:
        try:
            returned.append(await call())
        except Exception as error:  # noqa: BLE001 - raised again below, outside of an exception group
            raised.append(error)
        except (KeyboardInterrupt, SystemExit, GeneratorExit, anyio.get_cancelled_exc_class()):
            raise
        except BaseException:  # noqa: BLE001 - the cause may hold content in its text, and is not chained
            raised.append(CrashedCallError())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
    if raised:
        raise raised[0]
    if not returned:
        raise StrayCancellationError
    return returned[0]


@asynccontextmanager
async def workers(close: Callable[[], None], closing: float) -> AsyncIterator[TaskGroup]:
    """Yield a task group; at the end of the block call `close` and wait for the tasks, at most `closing` seconds.

    A task group alone would hand on a failure of the block inside an exception group: what an application raises while
    plugins run beside it is the application's own, and passes unchanged. A cancellation ends block and tasks at once.
    """
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again when the tasks have ended
            failure = error
        finally:
            close()
            tasks.cancel_scope.deadline = anyio.current_time() + closing
    if failure is not None:
        raise failure
