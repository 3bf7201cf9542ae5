"""Several requests that are one call: so many at once, and the first failure ends all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled

from narrowgate.errors import NarrowgateError

P = TypeVar("P")
R = TypeVar("R")


async def each(parts: Sequence[P], ask: Callable[[P], Awaitable[R]], most: int) -> list[R]:
    """Return what `ask` makes of each part, in order.

    When one fails, no further one is begun, and those under way are cancelled and waited for. Whoever counts costs enters
    one in `ask` before it waits for anything, so that a cancelled part stays in the account.

    Args:
        parts: any number of them.
        ask: raises `NarrowgateError` where there is no answer.
        most: the most parts under way at once, >= 1.

    Raises:
        NarrowgateError: the first failure; a cancellation from outside passes in its place.
    """
    found: dict[int, R] = {}
    failures: list[NarrowgateError] = []
    waiting = enumerate(parts)

    async def work() -> None:
        for place, part in waiting:
            # Sure at once, and not only when the cancellation below reaches this task.
            if failures:
                return
            try:
                found[place] = await ask(part)
            except NarrowgateError as error:
                failures.append(error)
                group.cancel_scope.cancel()
                return

    await checkpoint()
    async with anyio.create_task_group() as group:
        for _ in range(min(most, len(parts))):
            group.start_soon(work)
    if failures:
        # The cancellation of the others must not hide one that came from outside.
        await checkpoint_if_cancelled()
        raise failures[0]
    return [found[place] for place in range(len(parts))]
