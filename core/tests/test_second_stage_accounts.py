"""A second stage of a stranger that is cut off: its backend says what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from second_stage_parts import EMBEDDED, Channel, Store

import narrowgate
from narrowgate.errors import DeadlineError
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage


class HangsAtTheThird:
    """A backend that answers twice."""

    policy_id, batch_limit, concurrency = "slow.v1", 1, 1

    def __init__(self) -> None:
        self.asked = 0

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer, or hang."""
        self.asked += 1
        if self.asked == 3:
            await anyio.sleep_forever()
        return DecisionResult(DecisionOutcome.NO, self.policy_id, Usage(1, 1, 7, 1))

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Not offered."""
        raise AssertionError


@pytest.mark.anyio
async def test_a_foreign_reranker_that_is_cut_off_is_charged_by_its_backend(install: Any) -> None:
    """A reranker of a third party that knows nothing of accounts: the calls it started are in the error all the same."""
    install(
        "third",
        """
from contextlib import asynccontextmanager
from narrowgate.values.decision import DecisionRequest
PLUGIN = Plugin("{id}", (1, 0))
class OneByOne:
    policy_id = "third.v1"
    def __init__(self, backend):
        self.backend = backend
    async def rerank(self, query, candidates, limit):
        for candidate in candidates:
            await self.backend.evaluate(DecisionRequest("memory.rerank", "?", candidate.content.text, (query,)))
@asynccontextmanager
async def build(settings, deps):
    yield OneByOne(deps.one(Seam.DECISION_BACKEND))
@hookimpl
def narrowgate_rerankers():
    need = (Need(Seam.DECISION_BACKEND),)
    return [Component("third.one-by-one", Seam.RERANKER, "Asks one after the other.", build, needs=need)]
""",
    )
    overrides = {"use": {"reranker": "third.one-by-one"}, "search": {"deadline": 0.5}}
    parts: dict[str, Any] = {"store": Store(), "channels": [Channel()], "decision_backend": HangsAtTheThird()}
    async with narrowgate.open(env={}, overrides=overrides, **parts) as host:
        with pytest.raises(DeadlineError) as caught:
            await host.search("the harbour plan")
    assert caught.value.usage == EMBEDDED + Usage(3, 3, None, None)
