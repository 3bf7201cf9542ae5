"""Putting the questions of a wave to a backend: batches, bounded concurrency, and a cost that is right whatever happens."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled

from narrowgate.decisions import (
    NO_USAGE,
    DecisionRequest,
    DecisionResult,
    Usage,
    checked,
    checked_many,
    code_of,
    cost_of,
    name_of,
    total,
    unreported,
)
from narrowgate.errors import DecisionError, RecallError, RerankError
from narrowgate.seams.ports import DecisionBackend


class Asker:
    """Asks one backend for the length of one scan and keeps the account.

    Args:
        backend: the bare backend, never the fail-open envelope.
        max_concurrency: the most requests under way at once, >= 1; `None` for the backend's own bound. The smaller holds.

    Raises:
        RerankError: the backend states a batch limit or a concurrency that is no whole number from 1 on; it costs nothing.
    """

    def __init__(self, backend: DecisionBackend, max_concurrency: int | None = None) -> None:
        self._backend = backend
        self._batch_limit, concurrency = backend.batch_limit, backend.concurrency
        if not (_is_bound(self._batch_limit) and _is_bound(concurrency)):
            named = name_of(backend.policy_id)
            text = f"decision backend {named!r} states a batch_limit or concurrency that is no whole number >= 1"
            raise RerankError(text, NO_USAGE, "invalid-bounds")
        self._workers = concurrency if max_concurrency is None else min(concurrency, max_concurrency)
        self._costs: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """What was really asked so far; a call that was cancelled on its way counts, with unknown tokens."""
        return total(self._costs)

    async def ask(self, requests: Sequence[DecisionRequest]) -> list[DecisionResult]:
        """Return one verdict for each request, in order.

        When a call fails, no further one is started, and those under way are cancelled and waited for.

        Raises:
            RerankError: the first failure; carries `usage` and the failure's code.
            BaseException: what ends the program (`KeyboardInterrupt`, ...), as the backend raised it.
        """
        size = self._batch_limit
        batches = [requests[start : start + size] for start in range(0, len(requests), size)]
        answers: dict[int, Sequence[DecisionResult]] = {}
        failures: list[BaseException] = []
        open_batches = enumerate(batches)

        async def work() -> None:
            for place, batch in open_batches:
                # A backend that never waits would else keep deadline and cancellation from being noticed.
                await checkpoint()
                # Sure at once, and not only when the cancellation below reaches this task.
                if failures:
                    return
                try:
                    answers[place] = await self._call(batch)
                except (anyio.get_cancelled_exc_class(), GeneratorExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - kept, and raised below once every call has ended
                    failures.append(error)
                    group.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as group:
            for _ in range(min(self._workers, len(batches))):
                group.start_soon(work)
        if failures and not isinstance(failures[0], Exception):
            # From here and not from its task, where the group would wrap it.
            raise failures[0]
        if failures or len(answers) < len(batches):
            # A backend may turn a cancellation into an error of its own; the cancellation still counts.
            await checkpoint_if_cancelled()
        if failures:
            raise self._failed(failures[0]) from failures[0]
        if len(answers) < len(batches):
            # On asyncio, whoever awaits a task that somebody cancelled is told CancelledError, as if it were its own.
            named = name_of(self._backend.policy_id)
            text = f"decision backend {named!r} ended a call as cancelled, and nobody had cancelled it"
            raise RerankError(text, self.usage, "cancelled")
        return [result for place in range(len(batches)) for result in answers[place]]

    async def _call(self, batch: Sequence[DecisionRequest]) -> Sequence[DecisionResult]:
        entry = len(self._costs)
        # Entered before the call and corrected after it, so that a cancelled call stays in the account.
        self._costs.append(unreported(len(batch)))
        try:
            results: Sequence[DecisionResult]
            if self._batch_limit > 1:
                results = checked_many(await self._backend.evaluate_many(batch), len(batch))
            else:
                results = (checked(await self._backend.evaluate(batch[0])),)
        except Exception as error:
            self._costs[entry] = cost_of(error, len(batch))
            raise
        self._costs[entry] = total(result.usage for result in results)
        if any(result.used_fallback for result in results):
            text = "it answered for a backend that is down (used_fallback), which is no verdict"
            raise DecisionError(text, code="used-fallback")
        return results

    def _failed(self, error: BaseException) -> RerankError:
        # Only our own errors promise a message without content.
        detail = f": {error}" if isinstance(error, RecallError) else ""
        text = f"decision backend {name_of(self._backend.policy_id)!r} failed with {type(error).__name__}{detail}"
        return RerankError(text, self.usage, code_of(error))


def _is_bound(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
