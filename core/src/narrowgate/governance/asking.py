"""Putting a gate's questions to its backend: batches, bounded concurrency, and leaving it alone after failures in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final

import anyio
import attrs

from narrowgate.decisions import (
    NO_USAGE,
    DecisionOutcome,
    DecisionRequest,
    DecisionResult,
    FailOpen,
    checked_many,
    unreported,
)
from narrowgate.decisions.envelope import FALLBACK_REASON
from narrowgate.governance.background import StrayCancellationError, apart
from narrowgate.seams.component import Locality
from narrowgate.seams.ports import DecisionBackend

CANCELLED: Final = "cancelled"
"""The code of a call that ended as cancelled although nobody had cancelled it."""


@attrs.frozen
class NamedBackend:
    """A decision backend as composition knows it: full name, where content goes, the object."""

    name: str
    locality: Locality
    backend: DecisionBackend

    def says(self, name: str) -> Any:
        """Return what the backend says of itself, e.g. its `exact_model`; `None` for one that does not say, or cannot."""
        try:
            return getattr(self.backend, name, None)
        except Exception:  # noqa: BLE001 - third-party code: a verdict is no worse for it
            return None


@attrs.frozen(kw_only=True)
class GateSettings:
    """How a gate treats its backend; the section `[policies]` has the values.

    Attributes:
        timeout: seconds for one call of an advisory role.
        cooldown_after: failures in a row after which the backend is left alone, >= 1.
        cooldown: for how many seconds.
    """

    timeout: float = 10.0
    cooldown_after: int = 3
    cooldown: float = 30.0


class Cooldown:
    """Counts failed requests in a row, and says for how long a backend is left alone.

    Args:
        settings: see `GateSettings`.
        clock: seconds, rising.
    """

    def __init__(self, settings: GateSettings, clock: Callable[[], float] = monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._failures, self._until = 0, float("-inf")

    @property
    def cooling(self) -> bool:
        """Whether the backend is being left alone."""
        return self._clock() < self._until

    def note(self, *, failed: bool) -> None:
        """Take what became of one request."""
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= self._settings.cooldown_after:
            self._until, self._failures = self._clock() + self._settings.cooldown, 0


async def ask_open(
    backend: DecisionBackend, requests: Sequence[DecisionRequest], settings: GateSettings, cooldown: Cooldown
) -> list[DecisionResult | None]:
    """Return one result for each request, in order, through the fail-open envelope; raises nothing of the backend's.

    Up to `backend.concurrency` requests are under way at once. `None` stands for a question that was not asked any more,
    because the backend failed on the way and is left alone.
    """
    size, workers = _bound(backend, "batch_limit"), _bound(backend, "concurrency")
    parts = [requests[start : start + size] for start in range(0, len(requests), size)]
    results: list[DecisionResult | None] = [None] * len(requests)
    envelope = FailOpen(backend, settings.timeout)
    waiting = iter(enumerate(parts))

    async def work() -> None:
        for place, part in waiting:
            if place and cooldown.cooling:
                return
            start = place * size
            answers = await _answers(envelope, part, batched=size > 1)
            cooldown.note(failed=all(answer.used_fallback for answer in answers))
            results[start : start + len(part)] = answers

    async with anyio.create_task_group() as tasks:
        for _ in range(min(workers, len(parts))):
            tasks.start_soon(work)
    return results


async def ask_closed(
    backend: DecisionBackend, requests: Sequence[DecisionRequest], cooldown: Cooldown
) -> list[DecisionResult | None]:
    """Return one result for each request, in order, of the bare backend; see `ask_open` for `None`.

    Raises:
        RecallError: the backend failed, or an answer is no verdict.
    """
    size = _bound(backend, "batch_limit")
    results: list[DecisionResult | None] = []
    for start in range(0, len(requests), size):
        part = requests[start : start + size]
        if start and cooldown.cooling:
            results += [None] * len(part)
            continue
        try:
            said = await backend.evaluate_many(part) if size > 1 else (await backend.evaluate(part[0]),)
            answers = checked_many(said, len(part))
        except Exception:
            cooldown.note(failed=True)
            raise
        cooldown.note(failed=all(answer.used_fallback for answer in answers))
        results += answers
    return results


async def _answers(envelope: FailOpen, part: Sequence[DecisionRequest], *, batched: bool) -> Sequence[DecisionResult]:
    async def ask() -> Sequence[DecisionResult]:
        return await envelope.evaluate_many(part) if batched else (await envelope.evaluate(part[0]),)

    try:
        return await apart(ask)
    except StrayCancellationError:
        return _failed(len(part), CANCELLED)
    except Exception:  # noqa: BLE001 - a backend so broken that even its name raises is one that failed
        return _failed(len(part), FALLBACK_REASON)


def _failed(questions: int, reason: str) -> list[DecisionResult]:
    costs = [unreported(questions)] + [NO_USAGE] * (questions - 1)
    return [DecisionResult(DecisionOutcome.ABSTAIN, "", cost, reason=reason, used_fallback=True) for cost in costs]


def _bound(backend: DecisionBackend, name: str) -> int:
    """Return a bound that a backend states; 1 for one that is none."""
    try:
        value = getattr(backend, name)
    except Exception:  # noqa: BLE001 - third-party code: the call itself will tell
        return 1
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else 1
