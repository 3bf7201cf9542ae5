"""The rerank role: whatever a second stage does, the search says so, counts it, and leaves nothing running."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest
from second_stage_parts import EMBEDDED, SECRET, Channel, Store

from narrowgate.decisions import FailOpen, spending
from narrowgate.errors import DeadlineError, DecisionError, GenerationError, NarrowgateError, RecallError, RerankError
from narrowgate.memory.drafts import content_of
from narrowgate.recall.second_stage import WARN_SECONDS, NamedReranker, SecondStage
from narrowgate.recall.service import NamedChannel, SearchService
from narrowgate.recall.settings import RerankSettings, SearchSettings
from narrowgate.values.decision import NO_USAGE, DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.entry import EntryDraft
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import (
    Candidate,
    ChannelKind,
    ChannelQuery,
    ChannelResult,
    RerankDecision,
    SearchPage,
    SearchRequest,
)

Does = Callable[[Sequence[Candidate], int], Awaitable[Any]]


class Reranker:
    """Does as it is told."""

    policy_id = "scripted.v1"

    def __init__(self, does: Does) -> None:
        self.does = does
        self.ended = 0

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> Any:
        """Do it."""
        try:
            return await self.does(candidates, limit)
        finally:
            self.ended += 1


def returns(answer: object) -> Does:
    """Return what answers with `answer`, after a turn of the loop."""

    async def does(candidates: Sequence[Candidate], limit: int) -> object:
        await anyio.lowlevel.checkpoint()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return does


def search_with(does: Does, on_failure: str = "raise", **settings: Any) -> tuple[SearchService, Reranker]:
    """Return a service whose second stage is a scripted reranker."""
    reranker = Reranker(does)
    role = RerankSettings(on_failure=on_failure)  # type: ignore[arg-type]
    channels = [NamedChannel("test.channel", Channel())]
    named = NamedReranker("test.stage", reranker)
    return SearchService(Store(), channels, named, SearchSettings(**settings), role), reranker  # type: ignore[arg-type]


def hits(page: SearchPage) -> str:
    """Return the entries of a page in order."""
    return "".join(hit.ref.entry for hit in page.hits)


REQUEST = SearchRequest("the harbour plan", ("m",), 2)

ONE = Usage(1, 1, None, None)
"""What a failed stage is charged with that says nothing: one request with unknown tokens."""


class CodedError(NarrowgateError):
    """An error of a plugin's own with a code, as the HTTP client's is."""

    code = "rate-limited"

    def usage(self, calls: int) -> Usage:
        """Is a method there, and no usage."""
        raise AssertionError


FAULTS = [
    pytest.param(RerankError("HTTP 429", Usage(2, 2, 9, 0), "rate-limited"), "rate-limited", Usage(2, 2, 9, 0), id="rerank"),
    pytest.param(RerankError("nothing was asked", NO_USAGE, "unreachable"), "unreachable", NO_USAGE, id="nothing-spent"),
    pytest.param(RerankError("no code", Usage(1, 1)), None, Usage(1, 1), id="without-code"),
    pytest.param(RerankError("no cost"), None, ONE, id="without-cost"),
    pytest.param(DecisionError("401", Usage(1, 1, 0, 0), "unauthorised"), "unauthorised", Usage(1, 1, 0, 0), id="decision"),
    pytest.param(GenerationError("cut", Usage(1, 3), "cut-answer"), "cut-answer", Usage(1, 3), id="generation"),
    pytest.param(RerankError("a sentence as a code", ONE, f"{SECRET}!"), None, ONE, id="code-that-is-none"),
    pytest.param(RerankError("bad cost", 7), None, ONE, id="cost-that-is-none"),  # type: ignore[arg-type]
    pytest.param(CodedError("429"), "rate-limited", ONE, id="plugin-error"),
    pytest.param(ValueError(SECRET), None, ONE, id="foreign"),
    pytest.param(TimeoutError(SECRET), "timeout", ONE, id="timeout"),
    pytest.param(ExceptionGroup(SECRET, [OSError(SECRET)]), None, ONE, id="group"),
    pytest.param(None, "invalid-answer", ONE, id="none"),
    pytest.param([1, 2], "invalid-answer", ONE, id="list"),
    pytest.param(RerankDecision((1,), usage=None), "invalid-answer", ONE, id="no-usage"),  # type: ignore[arg-type]
    pytest.param(RerankDecision((1,), Usage(-1)), "invalid-answer", ONE, id="negative-usage"),
    pytest.param(RerankDecision((4,), ONE), "invalid-answer", ONE, id="rank-beyond"),
    pytest.param(RerankDecision((1, 1), ONE), "invalid-answer", ONE, id="rank-twice"),
    pytest.param(RerankDecision((1, 2, 3), ONE), "invalid-answer", ONE, id="too-many"),
    pytest.param(RerankDecision((), ONE), "invalid-answer", ONE, id="nothing-without-saying-so"),
    pytest.param(RerankDecision((1,), ONE, partial=SECRET), "invalid-answer", ONE, id="partial-sentence"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("fault", "code", "cost"), FAULTS)
async def test_a_fault_is_an_error_of_the_search_with_cost_and_code(fault: object, code: str | None, cost: Usage) -> None:
    """Case 27, fail-closed: `RerankError` with the cost of the whole search so far and the cause's code, and no content."""
    service, reranker = search_with(returns(fault))
    with pytest.raises(RerankError, match=r"test\.stage") as caught:
        await service.search(REQUEST)
    assert (caught.value.code, caught.value.usage) == (code, EMBEDDED + cost)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is not None
    assert reranker.ended == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("fault", "code", "cost"), FAULTS)
async def test_a_fault_is_on_the_page_where_coarse_order_was_asked_for(
    fault: object, code: str | None, cost: Usage, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 27, fail-open on demand: status, closed code, sentence, cost, coarse order cut to the limit, one warning."""
    service, _ = search_with(returns(fault), "coarse")
    with caplog.at_level(logging.WARNING, "narrowgate"):
        page = await service.search(REQUEST)
    assert (hits(page), page.status, page.reason) == ("ab", "failed", code or "error")
    assert page.usage == EMBEDDED + cost
    trace = page.trace.rerank
    assert trace is not None
    assert (trace.status, trace.reason, trace.usage, trace.decision) == ("failed", code or "error", cost, None)
    assert trace.detail is not None
    assert trace.detail.startswith("test.stage")
    (record,) = caplog.records
    assert SECRET not in trace.detail + caplog.text + repr(vars(record))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("decision", "found", "status", "reason"),
    [
        (RerankDecision((2,)), "b", "applied", None),
        (RerankDecision((1, 2), used_fallback=True), "ab", "applied", "no-valid-selection"),
        (RerankDecision((2,), partial="over_budget"), "b", "partial", "over_budget"),
        (RerankDecision((), nothing_kept=True), "", "none_relevant", "nothing-kept"),
        (RerankDecision((1, 2), nothing_kept=True, used_fallback=True), "ab", "none_relevant", "nothing-kept"),
        (RerankDecision((), nothing_kept=True, partial="over-budget", unseen_count=1), "", "none_relevant", "over-budget"),
    ],
)
async def test_every_outcome_is_visible_with_a_closed_code(
    decision: RerankDecision, found: str, status: str, reason: str | None
) -> None:
    """Case 33: chosen, chosen among a part, none relevant and a stand-in are told apart on the page itself."""
    service, _ = search_with(returns(decision))
    page = await service.search(REQUEST)
    assert (hits(page), page.status, page.reason) == (found, status, reason)
    assert page.trace.rerank is not None
    assert (page.trace.rerank.status, page.trace.rerank.reason, page.trace.rerank.detail) == (status, reason, None)


@pytest.mark.anyio
async def test_a_stage_that_was_not_asked_says_why() -> None:
    """Nothing to look up and nothing found are `not_applied` with a code; without a second stage there is none."""
    service, reranker = search_with(returns(None))
    page = await service.search(SearchRequest("???", ("m",)))
    assert (page.status, page.reason) == ("not_applied", "no-terms")

    class Empty(Channel):
        async def find(self, query: ChannelQuery) -> ChannelResult:
            return ChannelResult((), {"m": 1})

    named = NamedReranker("test.stage", reranker)
    page = await SearchService(Store(), [NamedChannel("c", Empty())], named).search(REQUEST)  # type: ignore[arg-type]
    assert (page.status, page.reason, reranker.ended) == ("not_applied", "no-candidates", 0)
    for request in (REQUEST, SearchRequest("???", ("m",))):
        page = await SearchService(Store(), [NamedChannel("c", Empty())]).search(request)  # type: ignore[arg-type]
        assert (page.status, page.reason) == ("not_applied", None)


async def hang(candidates: Sequence[Candidate], limit: int) -> None:
    """Never answer."""
    await anyio.sleep_forever()


async def hang_after_two(candidates: Sequence[Candidate], limit: int) -> None:
    """Ask twice, and hang the second time; the account says so."""
    spent = [Usage(1, 1, 7, 1)]
    with spending(lambda: sum(spent, NO_USAGE)):
        await anyio.lowlevel.checkpoint()
        spent.append(Usage(1, 1, None, None))
        await anyio.sleep_forever()


async def hang_renaming(candidates: Sequence[Candidate], limit: int) -> None:
    """Turn the cancellation into an error of one's own."""
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        raise RerankError("connection closed", Usage(9, 9)) from None


HANGING = [(hang, ONE), (hang_after_two, Usage(2, 2, None, None)), (hang_renaming, ONE)]


@pytest.mark.anyio
@pytest.mark.parametrize(("does", "cost"), HANGING)
async def test_the_deadline_of_the_search_keeps_the_cost_of_the_stage(does: Does, cost: Usage) -> None:
    """A stage cut off by `[search] deadline`: the error carries what was asked until then, at least the stage itself."""
    service, reranker = search_with(does, deadline=0.2)
    with pytest.raises(DeadlineError, match=r"test\.stage.*\[search\] deadline") as caught:
        await service.search(REQUEST)
    assert (caught.value.usage, caught.value.code) == (EMBEDDED + cost, "deadline")
    assert reranker.ended == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("does", "cost"), HANGING)
async def test_the_deadline_of_the_search_is_a_failure_of_the_stage(does: Does, cost: Usage) -> None:
    """Where coarse order was asked for, it is returned when the time is over, with code and cost."""
    service, reranker = search_with(does, "coarse", deadline=0.2)
    page = await service.search(REQUEST)
    assert (hits(page), page.status, page.reason, page.usage) == ("ab", "failed", "deadline", EMBEDDED + cost)
    assert reranker.ended == 1


@pytest.mark.anyio
@pytest.mark.parametrize("on_failure", ["raise", "coarse"])
@pytest.mark.parametrize("does", [hang, hang_after_two, hang_renaming])
async def test_cancellation_passes_the_role(does: Does, on_failure: str) -> None:
    """Case 39: the caller's cancellation is no error of the stage and no coarse order, whatever the stage makes of it."""
    entered = anyio.Event()

    async def enter(candidates: Sequence[Candidate], limit: int) -> object:
        entered.set()
        return await does(candidates, limit)

    service, reranker = search_with(enter, on_failure)
    ended = []

    async def search(scope: anyio.CancelScope) -> None:
        with scope:
            ended.append(await service.search(REQUEST))

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(search, scope)
        await entered.wait()
        scope.cancel()
    assert scope.cancelled_caught
    assert (ended, reranker.ended) == ([], 1)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
async def test_what_ends_the_program_passes_the_role(kind: type[BaseException]) -> None:
    """Only `Exception` is a failure of the stage."""
    service, _ = search_with(returns(kind()), "coarse")
    with pytest.raises(kind):
        await service.search(REQUEST)


@pytest.mark.anyio
async def test_warns_once_per_cause_and_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The cause is the failure's code, or the exception's type where it has none; the clock is the one that was given."""
    now = 1000.0
    answers: list[BaseException] = []

    async def next_fault(candidates: Sequence[Candidate], limit: int) -> object:
        raise answers.pop()

    named = NamedReranker("test.stage", Reranker(next_fault))
    stage = SecondStage(named, RerankSettings(on_failure="coarse"), lambda: now)
    pool = [Candidate(1, EntryRef("m", 1, "a", 1), content_of(EntryDraft("x")), 1.0, (ChannelKind.LEXICAL,))]

    async def causes(*faults: BaseException) -> list[str]:
        caplog.clear()
        for fault in faults:
            answers.append(fault)
            await stage.judge("q", pool, 1)
        return [record.cause for record in caplog.records]  # type: ignore[attr-defined]

    def limited() -> RecallError:
        return RerankError("HTTP 429", code="rate-limited")

    with caplog.at_level(logging.WARNING, "narrowgate.recall"):
        assert await causes(limited(), limited(), KeyError("a"), KeyError("b"), OSError()) == [
            "rate-limited",
            "KeyError",
            "OSError",
        ]
        now += WARN_SECONDS - 0.5
        assert await causes(limited(), KeyError("c")) == []
        now += 0.5
        assert await causes(limited(), limited(), DecisionError("x", code="timeout")) == ["rate-limited", "timeout"]
        now += WARN_SECONDS
        assert await causes(DecisionError("x", code="one-of-many")) == ["one-of-many"]
        assert list(stage._warned) == ["one-of-many"]
    assert all(getattr(record, "event", "") == "recall.rerank_failed" for record in caplog.records)


@pytest.mark.anyio
@pytest.mark.parametrize("named", [RuntimeError(SECRET), None, 7, ""], ids=["raises", "none", "number", "empty"])
async def test_a_stage_that_cannot_name_its_policy_is_not_asked(named: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails as its role says and costs nothing; the message does not repeat what its property raised."""

    def policy_id(_: object) -> object:
        if isinstance(named, Exception):
            raise named
        return named

    monkeypatch.setattr(Reranker, "policy_id", property(policy_id))
    service, reranker = search_with(returns(RerankDecision((1,), ONE)))
    with pytest.raises(RerankError, match="policy_id") as caught:
        await service.search(REQUEST)
    assert (caught.value.code, caught.value.usage, SECRET in str(caught.value)) == ("invalid-answer", EMBEDDED, False)
    service, reranker = search_with(returns(RerankDecision((1,), ONE)), "coarse")
    page = await service.search(REQUEST)
    assert (page.status, page.reason, hits(page), page.usage) == ("failed", "invalid-answer", "ab", EMBEDDED)
    assert page.trace.rerank is not None
    assert page.trace.rerank.policy_id == "unknown"
    assert reranker.ended == 0


@pytest.mark.anyio
async def test_the_envelope_has_no_place_in_this_role() -> None:
    """A backend that stands in for an outage tells this role so, and a reranker that looks can refuse it (see keep-drop)."""

    class Down:
        policy_id, batch_limit, concurrency = "down.v1", 1, 1

        async def evaluate(self, request: DecisionRequest) -> DecisionResult:
            raise DecisionError("HTTP 503", Usage(1, 1, 0, 0), "overloaded")

        async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
            raise AssertionError

    result = await FailOpen(Down()).evaluate(DecisionRequest("memory.rerank", "q", "s"))
    assert (result.outcome, result.used_fallback, result.usage) == (DecisionOutcome.ABSTAIN, True, Usage(1, 1, 0, 0))
