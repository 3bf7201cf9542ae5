"""The one fail-open envelope of the code base.

A role that only advises puts it around its backend: an outage becomes an abstention that says so. A role whose answer must
be a judgement or an error, like the second stage of a search, uses the bare backend instead. Which of the two holds is the
role's business, never the backend's: one backend may serve both.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from narrowgate.decisions.answers import checked, checked_many, code_of, cost_of, name_of
from narrowgate.seams.ports import DecisionBackend
from narrowgate.values.decision import NO_USAGE, DecisionOutcome, DecisionRequest, DecisionResult

_LOG: Final = logging.getLogger("narrowgate.decisions")

FALLBACK_REASON: Final = "backend_failed"
"""The reason code of an abstention that stands for a failure without a code of its own: an exception of third-party code."""


class FailOpen:
    """A `DecisionBackend` that abstains where its delegate fails.

    A failure is any exception but a cancellation, an answer that is no verdict, or the timeout. It gives `ABSTAIN` with
    `used_fallback=True` and, as its `reason`, the failure's own code (see `code_of`; else `FALLBACK_REASON`), so that an
    answer which nobody can read is told from a backend that is down. It bears the cost of the failed call (see `cost_of`; a
    failed batch has it on its first result). One WARNING without content goes to the logger
    `narrowgate.decisions`, with the extra fields `event` (`decision.fallback`), `decision_kind`, `policy_id`,
    `exception_type` and `code` (`None` where it has none).

    Args:
        delegate: the backend that is asked.
        timeout: seconds for one call, finite and > 0; `None` for no limit.

    Raises:
        ValueError: `timeout`.
    """

    def __init__(self, delegate: DecisionBackend, timeout: float | None = None) -> None:
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ValueError("timeout must be a finite number of seconds > 0, or None")
        self._delegate = delegate
        self._timeout = timeout

    @property
    def policy_id(self) -> str:
        """The delegate's."""
        return self._delegate.policy_id

    @property
    def batch_limit(self) -> int:
        """The delegate's."""
        return self._delegate.batch_limit

    @property
    def concurrency(self) -> int:
        """The delegate's."""
        return self._delegate.concurrency

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return the delegate's verdict, or an abstention with `used_fallback`."""
        try:
            with anyio.fail_after(self._timeout):
                return checked(await self._delegate.evaluate(request))
        except Exception as error:  # noqa: BLE001 - whatever a backend raises, an advisory role goes on
            return (await self._abstain([request], error))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return the delegate's verdicts, or as many abstentions with `used_fallback`."""
        if not requests:
            return ()
        try:
            with anyio.fail_after(self._timeout):
                return checked_many(await self._delegate.evaluate_many(requests), len(requests))
        except Exception as error:  # noqa: BLE001 - as above
            return await self._abstain(requests, error)

    async def _abstain(self, requests: Sequence[DecisionRequest], error: Exception) -> tuple[DecisionResult, ...]:
        # A backend may turn a cancellation into an error of its own; the cancellation still counts.
        await checkpoint_if_cancelled()
        policy_id, exception_type, code = name_of(self._delegate.policy_id), type(error).__name__, code_of(error)
        decision_kind = ",".join(sorted({request.decision_kind for request in requests}))
        _LOG.warning(
            "decision backend %s failed with %s: abstained from %d questions of kind %s",
            policy_id,
            exception_type if code is None else f"{exception_type} [{code}]",
            len(requests),
            decision_kind,
            extra={
                "event": "decision.fallback",
                "decision_kind": decision_kind,
                "policy_id": policy_id,
                "exception_type": exception_type,
                "code": code,
            },
        )
        costs = [cost_of(error, len(requests))] + [NO_USAGE] * (len(requests) - 1)
        reason = code or FALLBACK_REASON
        return tuple(
            DecisionResult(DecisionOutcome.ABSTAIN, policy_id, cost, reason=reason, used_fallback=True) for cost in costs
        )
