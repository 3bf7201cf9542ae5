"""Stand-ins for tests: they answer as they are told, count what they are asked, and conform to their contracts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio.lowlevel
import attrs

from narrowgate.errors import DecisionError, GenerationError
from narrowgate.seams.ports import Generation
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.search import Candidate, RerankDecision

Answer = DecisionOutcome | DecisionResult | Exception
"""What a `FakeBackend` says: an outcome, a whole result, or an exception that it raises."""


@attrs.define
class FakeBackend:
    """A decision backend that answers from a table or a function.

    Attributes:
        answers: subject -> answer, or a function of the whole question. A subject that is not in the table has `otherwise`.
        otherwise: see `answers`.
        policy_id: its versioned id.
        batch_limit: questions in one request, >= 1.
        concurrency: requests at once, >= 1.
        wait: awaited inside each request before it is answered, e.g. `anyio.Event().wait` for a backend that hangs.
        asked: every question that reached it, in order.
        requests: how many requests carried them.
    """

    answers: Mapping[str, Answer] | Callable[[DecisionRequest], Answer] = attrs.field(factory=dict)
    otherwise: Answer = DecisionOutcome.ABSTAIN
    policy_id: str = "fake.backend.v1"
    batch_limit: int = 8
    concurrency: int = 1
    wait: Callable[[], Awaitable[Any]] = anyio.lowlevel.checkpoint
    asked: list[DecisionRequest] = attrs.field(factory=list, init=False)
    requests: int = attrs.field(default=0, init=False)

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some in one request, which is charged to the first of them.

        Raises:
            ValueError: more than `batch_limit`.
            DecisionError: an answer is an exception; one that is no `DecisionError` is its cause.
        """
        if len(requests) > self.batch_limit:
            raise ValueError(f"at most {self.batch_limit} questions, not {len(requests)}")
        if not requests:
            return ()
        self.asked += requests
        self.requests += 1
        await self.wait()
        return tuple(self._result(request, requests, first=place == 0) for place, request in enumerate(requests))

    def _result(self, request: DecisionRequest, together: Sequence[DecisionRequest], *, first: bool) -> DecisionResult:
        answer = self.answers(request) if callable(self.answers) else self.answers.get(request.subject, self.otherwise)
        if isinstance(answer, DecisionError):
            raise answer
        if isinstance(answer, Exception):
            usage = Usage(len(together), 1, None, None)
            raise DecisionError(f"the fake backend raised {type(answer).__name__}", usage) from answer
        usage = Usage(calls=1, requests=int(first))
        if isinstance(answer, DecisionOutcome):
            return DecisionResult(answer, self.policy_id, usage)
        return attrs.evolve(answer, policy_id=self.policy_id, usage=usage)


@attrs.define
class FakeReranker:
    """A reranker that names the ranks it is told to, as far as the pool has them; those of the pool by default.

    Attributes:
        ranks: which, in order; `None` for the coarse order.
        policy_id: its versioned policy.
        fails: raised instead.
        pools: every pool that it was shown.
    """

    ranks: Sequence[int] | None = None
    policy_id: str = "fake.reranker.v1"
    fails: Exception | None = None
    pools: list[tuple[Candidate, ...]] = attrs.field(factory=list, init=False)

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:  # noqa: ARG002 - the port
        """Return the ranks.

        Raises:
            ValueError: no candidate, or a limit outside 1..len(candidates).
        """
        if not 1 <= limit <= len(candidates):
            raise ValueError(f"limit is {limit}; it must be 1..{len(candidates)}, with at least one candidate")
        await anyio.lowlevel.checkpoint()
        self.pools.append(tuple(candidates))
        if self.fails is not None:
            raise self.fails
        wanted = range(1, len(candidates) + 1) if self.ranks is None else self.ranks
        chosen = tuple(dict.fromkeys(rank for rank in wanted if 1 <= rank <= len(candidates)))[:limit]
        return RerankDecision(chosen, nothing_kept=not chosen)


@attrs.define
class FakeGenerator:
    """A generator that answers with a value or by a function, whatever the schema.

    Attributes:
        answers: the value, a function of (instructions, data, schema), or an exception that is raised.
        model: the model that it names.
        policy_id: its versioned id.
        wait: awaited before it answers, e.g. `anyio.sleep_forever` for one that hangs.
        asked: the data of every generation, in order.
    """

    answers: Any = attrs.field(factory=lambda: {"ranks": []})
    model: str = "fake-model-1"
    policy_id: str = "fake.generator.v1"
    wait: Callable[[], Awaitable[Any]] = anyio.lowlevel.checkpoint
    asked: list[Mapping[str, Any]] = attrs.field(factory=list, init=False)

    async def generate(self, instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> Generation:
        """Answer.

        Raises:
            GenerationError: the answer is an exception; one that is no `GenerationError` is its cause.
        """
        self.asked.append(data)
        await self.wait()
        answer = self.answers(instructions, data, schema) if callable(self.answers) else self.answers
        if isinstance(answer, GenerationError):
            raise answer
        if isinstance(answer, Exception):
            usage = Usage(1, 1, None, None)
            raise GenerationError(f"the fake generator raised {type(answer).__name__}", usage) from answer
        return Generation(answer, self.model, Usage(calls=1, requests=1))


@attrs.define
class RecordingSink:
    """An observation sink that remembers what it is given.

    Attributes:
        fails: raised by `observe` and `flush` instead.
        wait: awaited before each record is taken.
        taken: the records, in order.
        flushed: how many of them stood when `flush` was called last.
    """

    fails: Exception | None = None
    wait: Callable[[], Awaitable[Any]] = anyio.lowlevel.checkpoint
    taken: list[DecisionObservation] = attrs.field(factory=list, init=False)
    flushed: int = attrs.field(default=0, init=False)

    async def observe(self, observation: DecisionObservation) -> None:
        """Take one."""
        await self.wait()
        if self.fails is not None:
            raise self.fails
        self.taken.append(observation)

    async def flush(self) -> None:
        """Note how many there are."""
        await anyio.lowlevel.checkpoint()
        if self.fails is not None:
            raise self.fails
        self.flushed = len(self.taken)
