"""How calls end: cancelled ones leave nothing behind, failed ones say nothing that they should not."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import anyio.lowlevel

TURNS: Final = 50
"""Turns of the event loop after which a call has gone as far as it goes without an answer."""

PATIENCE: Final = 30.0
"""Seconds after which a call that should have ended is taken to hang. Nothing waits so long unless a rule is broken."""


async def cancelled_while(call: Callable[[], Awaitable[Any]]) -> None:
    """Start a call that will not be answered, cancel it, and see that it ends as cancelled and leaves no task behind.

    Args:
        call: starts it.
    """
    before = {task.id for task in anyio.get_running_tasks()}
    ended: list[str] = []

    async def run(scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await call()
            except anyio.get_cancelled_exc_class():
                ended.append("cancelled")
                raise
            except Exception as error:  # noqa: BLE001 - the kind is what is looked at below
                ended.append(f"raised {type(error).__name__}")
            else:
                ended.append("returned")

    scope = anyio.CancelScope()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, scope)
            for _ in range(TURNS):
                await anyio.lowlevel.checkpoint()
            assert not ended, f"the call was not to be answered, but {ended[0]}"
            scope.cancel()
    assert ended == ["cancelled"], f"a cancelled call {ended[0] if ended else 'never ended'}"
    left = [task for task in anyio.get_running_tasks() if task.id not in before]
    assert not left, f"{len(left)} tasks outlive the call that started them"


def everything_said(error: BaseException) -> str:
    """Return all that a log could show of an error: messages, arguments, notes, causes and contexts, but no source lines."""
    said: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        said += [*traceback.format_exception_only(one), repr(one.args), *getattr(one, "__notes__", [])]
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return "\n".join(said)
