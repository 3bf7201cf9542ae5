"""The fakes conform to the contracts of their seams, so that what works with them works with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import ClassVar

import anyio
import pytest

from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult
from narrowgate.errors import DecisionError, GenerationError, RerankError
from narrowgate.testing import (
    Builder,
    DecisionBackendConformance,
    FakeBackend,
    FakeGenerator,
    FakeReranker,
    GeneratorConformance,
    ObservationSinkConformance,
    RecordingSink,
    RerankerConformance,
    pool,
)
from narrowgate.values.decision import Usage

YES = DecisionRequest("memory.rerank", "?", "The gateway uses port 8443.", ("port",))
NO = DecisionRequest("memory.rerank", "?", "午饭在十二点。", ("port",))


class TestFakeBackend(DecisionBackendConformance):
    """`FakeBackend` over a table."""

    answers: ClassVar[Mapping[DecisionRequest, DecisionOutcome]] = {YES: DecisionOutcome.YES, NO: DecisionOutcome.NO}
    table: ClassVar[Mapping[str, DecisionOutcome]] = {YES.subject: DecisionOutcome.YES, NO.subject: DecisionOutcome.NO}

    @pytest.fixture
    def build(self) -> Builder[FakeBackend]:
        """Open one that answers."""
        return lambda: nullcontext(FakeBackend(self.table))

    @pytest.fixture
    def failing(self) -> Builder[FakeBackend]:
        """Open one that raises."""
        return lambda: nullcontext(FakeBackend(otherwise=OSError("down")))

    @pytest.fixture
    def hanging(self) -> Builder[FakeBackend]:
        """Open one that never answers."""
        return lambda: nullcontext(FakeBackend(wait=anyio.sleep_forever))


class TestFakeReranker(RerankerConformance):
    """`FakeReranker`, told which ranks are the relevant ones."""

    query = "?"
    relevant = ("The gateway uses port 8443.",)
    irrelevant = ("午饭在十二点。",)
    can_fail = False

    @pytest.fixture
    def build(self) -> Builder[FakeReranker]:
        """Open one that turns the first two places round and then goes on in coarse order."""
        return lambda: nullcontext(FakeReranker([2, 1, *range(3, 100)]))

    selects = False


class TestFakeGenerator(GeneratorConformance):
    """`FakeGenerator`; it does not look at the schema, so that a model that does not keep to one is another's to refuse."""

    @pytest.fixture
    def build(self) -> Builder[FakeGenerator]:
        """Open one that answers."""
        return lambda: nullcontext(FakeGenerator({"ranks": [1]}))

    @pytest.fixture
    def failing(self) -> Builder[FakeGenerator]:
        """Open one that raises."""
        return lambda: nullcontext(FakeGenerator(OSError("down")))

    @pytest.fixture
    def misfitting(self) -> Builder[FakeGenerator]:
        """Open one that is told to fail as a generator does whose model does not keep to a schema."""
        return lambda: nullcontext(FakeGenerator(GenerationError("no JSON", Usage(1, 1), "invalid-answer")))

    @pytest.fixture
    def hanging(self) -> Builder[FakeGenerator]:
        """Open one that never answers."""
        return lambda: nullcontext(FakeGenerator(wait=anyio.sleep_forever))


class TestRecordingSink(ObservationSinkConformance):
    """`RecordingSink`, which remembers what it is given as it is."""

    keeps_snippets = True

    @pytest.fixture
    def sink(self) -> RecordingSink:
        """Return the sink of one rule."""
        return RecordingSink()

    @pytest.fixture
    def build(self, sink: RecordingSink) -> Builder[RecordingSink]:
        """Open it."""
        return lambda: nullcontext(sink)

    @pytest.fixture
    def failing(self) -> Builder[RecordingSink]:
        """Open one that raises."""
        return lambda: nullcontext(RecordingSink(fails=OSError("full")))

    @pytest.fixture
    def taken(self, sink: RecordingSink) -> Callable[[], list[str]]:
        """Read the ids."""
        return lambda: [item.observation_id for item in sink.taken]

    @pytest.fixture
    def everything(self, sink: RecordingSink) -> Callable[[], str]:
        """Read all of it."""
        return lambda: str(sink.taken)


@pytest.mark.anyio
async def test_a_fake_backend_answers_as_told_and_counts():
    """From a table, from a function, with whole results; what it was asked and in how many requests can be read."""
    backend = FakeBackend({"a": DecisionOutcome.YES}, otherwise=DecisionOutcome.NO, batch_limit=2)
    asked = tuple(DecisionRequest("k", "?", text) for text in "ab")
    results = await backend.evaluate_many(asked)
    assert [result.outcome for result in results] == [DecisionOutcome.YES, DecisionOutcome.NO]
    assert [result.usage for result in results] == [Usage(1, 1), Usage(1, 0)]
    assert (backend.asked, backend.requests) == (list(asked), 1)
    whole = DecisionResult(DecisionOutcome.NO, "whatever", probability=0.2, reason="refused")
    told = await FakeBackend(lambda request: whole).evaluate(asked[0])
    assert (told.policy_id, told.probability, told.reason) == ("fake.backend.v1", 0.2, "refused")


@pytest.mark.anyio
async def test_a_fake_backend_raises_as_told():
    """An error of the port as it is; any other as the cause of one, with the cost of the whole request."""
    asked = DecisionRequest("k", "?", "a")
    failure = DecisionError("out", Usage(1, 1), "unavailable")
    with pytest.raises(DecisionError) as caught:
        await FakeBackend(otherwise=failure).evaluate(asked)
    assert caught.value is failure
    with pytest.raises(DecisionError) as caught:
        await FakeBackend(otherwise=OSError("down")).evaluate_many((asked,) * 3)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.usage == Usage(3, 1, None, None)


@pytest.mark.anyio
async def test_a_fake_reranker_does_as_told():
    """It names what the pool has of the ranks it is told, keeps the pools it saw, and raises what it is told to."""
    reranker = FakeReranker([3, 9, 1])
    candidates = pool(["a", "b", "c"])
    assert (await reranker.rerank("?", candidates, 3)).selected_ranks == (3, 1)
    assert reranker.pools == [candidates]
    assert (await FakeReranker([]).rerank("?", candidates, 1)).nothing_kept
    with pytest.raises(RerankError):
        await FakeReranker(fails=RerankError("out")).rerank("?", candidates, 1)
