"""Workers beside a block: what the block raises comes out as it was, and they have a while to finish what they took."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


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
