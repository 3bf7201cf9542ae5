"""What the tests of the keep/drop reranker share: both event loops, a coarse pool, a backend that keeps its own account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import settings

from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.entry import EntryContent
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")


@pytest.fixture(params=["asyncio", "trio"], scope="session")
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)


class Scripted:
    """A backend that answers from a table and counts, on its own side of the port, what it is asked.

    A question costs 7 tokens in and 1 out; a request is charged to the first question that it carries.

    Args:
        answers: text -> an outcome, a whole result, or an exception to raise.
        waits: awaited inside each request, before it answers.
    """

    policy_id = "scripted.v1"

    def __init__(
        self,
        answers: Mapping[str, Any],
        *,
        batch_limit: int = 1,
        concurrency: int = 1,
        waits: Callable[[], Any] = checkpoint,
    ) -> None:
        self.answers, self.batch_limit, self.concurrency, self.waits = answers, batch_limit, concurrency, waits
        self.requests: list[DecisionRequest] = []
        self.batches: list[list[str]] = []
        self.sent = self.under_way = self.most_under_way = self.cancelled = self.sent_after_failure = 0
        self.failed = False

    @property
    def asked(self) -> list[str]:
        return [request.subject for request in self.requests]

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        return (await self._send([request]))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        assert len(requests) <= self.batch_limit
        return await self._send(requests)

    async def _send(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        self.batches.append([request.subject for request in requests])
        self.requests.extend(requests)
        self.sent += 1
        self.sent_after_failure += self.failed
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.waits()
            return tuple(self._answer(request, first=not place) for place, request in enumerate(requests))
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1

    def _answer(self, request: DecisionRequest, *, first: bool) -> DecisionResult:
        answer = self.answers[request.subject]
        if isinstance(answer, Exception):
            self.failed = True
            raise answer
        if not isinstance(answer, DecisionOutcome):
            return answer
        return DecisionResult(answer, self.policy_id, Usage(1, int(first), 7, 1))


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    """Return the class of scripted backends."""
    return Scripted


@pytest.fixture(scope="session")
def pool() -> Callable[[Sequence[str]], list[Candidate]]:
    """Return a function that makes a coarse pool of texts."""

    def make(texts: Sequence[str]) -> list[Candidate]:
        return [
            Candidate(
                rank=rank,
                ref=EntryRef("m", 1, f"e{rank}", 1),
                content=EntryContent(text, "note", None, None, None, {}, "0" * 64),
                score=1 / (60 + rank),
                matched_by=(ChannelKind.LEXICAL,),
            )
            for rank, text in enumerate(texts, 1)
        ]

    return make
