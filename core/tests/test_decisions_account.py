"""The account: what cancelled work has cost can still be read, and nothing is counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from narrowgate.decisions import (
    NO_USAGE,
    DecisionOutcome,
    DecisionRequest,
    DecisionResult,
    MeteredBackend,
    MeteredGenerator,
    Usage,
    account,
    spending,
)
from narrowgate.errors import DecisionError, GenerationError
from narrowgate.seams.ports import DecisionBackend, Generation, Generator

REQUEST = DecisionRequest("memory.rerank", "Is it?", "text", ("query",))
GOOD = DecisionResult(DecisionOutcome.YES, "told.v1", Usage(1, 1, 7, 1))


class Backend:
    """Returns or raises what it is told, or hangs on `...`."""

    policy_id, batch_limit, concurrency, exact_model = "told.v1", 4, 2, "m-1"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Do the next."""
        return await self._next()  # type: ignore[no-any-return]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Do the next."""
        return await self._next()  # type: ignore[no-any-return]

    async def _next(self) -> Any:
        await anyio.lowlevel.checkpoint()
        answer = self.answers.pop(0)
        if answer is ...:
            await anyio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        return answer


class Writer(Backend):
    """A generator that does as it is told."""

    async def generate(self, instructions: str, data: Any, schema: Any) -> Generation:
        """Do the next."""
        return await self._next()  # type: ignore[no-any-return]


def test_an_account_without_a_word_is_unknown_and_not_free() -> None:
    """Nobody said anything: `None`; somebody said that it cost nothing: `NO_USAGE`."""
    with account() as own:
        assert own.usage is None
        with spending(lambda: NO_USAGE):
            assert own.usage == NO_USAGE
    with spending(lambda: Usage(1)):
        assert own.usage == NO_USAGE


@pytest.mark.anyio
async def test_the_outermost_answers_for_what_lies_beneath() -> None:
    """A stage that keeps an account itself is not counted again by the backends it asks, in its task or in others."""
    backend = MeteredBackend(Backend(GOOD, GOOD))
    with account() as own:
        with spending(lambda: Usage(2, 2, 14, 2)):
            await backend.evaluate(REQUEST)
            async with anyio.create_task_group() as group:
                group.start_soon(backend.evaluate, REQUEST)
        assert own.usage == Usage(2, 2, 14, 2)


@pytest.mark.anyio
async def test_each_call_is_entered_when_it_starts() -> None:
    """Answered, failed, answered with rubbish and cut off: each costs what is known of it, never nothing."""
    failed = DecisionError("HTTP 429", Usage(1, 3, 0, 0), "rate-limited")
    backend = MeteredBackend(Backend(GOOD, failed, (GOOD, GOOD), None, (GOOD, 5), ...))
    with account() as own:
        assert await backend.evaluate(REQUEST) is GOOD
        with pytest.raises(DecisionError, match="429"):
            await backend.evaluate(REQUEST)
        assert own.usage == Usage(2, 4, 7, 1)
        assert await backend.evaluate_many([REQUEST] * 2) == (GOOD, GOOD)
        assert own.usage == Usage(4, 6, 21, 3)
        await backend.evaluate(REQUEST)
        assert own.usage == Usage(5, 7, None, None)
        await backend.evaluate_many([REQUEST] * 2)
        assert own.usage == Usage(7, 8, None, None)
        with anyio.move_on_after(0.01):
            await backend.evaluate_many([REQUEST] * 3)
    assert own.usage == Usage(10, 9, None, None)


@pytest.mark.anyio
async def test_searches_side_by_side_have_accounts_of_their_own() -> None:
    """What one search asks is never charged to another."""
    backend = MeteredBackend(Backend(*[GOOD] * 6))
    seen = []

    async def search(calls: int) -> None:
        with account() as own:
            for _ in range(calls):
                await backend.evaluate(REQUEST)
            seen.append(own.usage)

    async with anyio.create_task_group() as group:
        for calls in (1, 2, 3):
            group.start_soon(search, calls)
    assert sorted(usage.calls for usage in seen if usage is not None) == [1, 2, 3]


@pytest.mark.anyio
async def test_a_generator_is_metered_likewise() -> None:
    """One generation is one call; what a failed one says it cost is what it cost."""
    answer = Generation({}, "m", Usage(1, 1, 100, 20))
    writer = MeteredGenerator(Writer(answer, GenerationError("cut", Usage(1, 2, 5, None)), ...))
    assert isinstance(writer, Generator)
    with account() as own:
        assert await writer.generate("i", {}, {}) is answer
        with pytest.raises(GenerationError):
            await writer.generate("i", {}, {})
        assert own.usage == Usage(2, 3, 105, None)
        with anyio.move_on_after(0.01):
            await writer.generate("i", {}, {})
    assert own.usage == Usage(3, 4, None, None)


def test_a_meter_offers_what_its_delegate_offers() -> None:
    """Id, bounds, and whatever else; what is not there is not there."""
    meter = MeteredBackend(Backend())
    assert isinstance(meter, DecisionBackend)
    assert (meter.policy_id, meter.batch_limit, meter.concurrency, meter.exact_model) == ("told.v1", 4, 2, "m-1")
    assert not hasattr(meter, "recalibrate")
    assert not hasattr(MeteredBackend.__new__(MeteredBackend), "_delegate")
