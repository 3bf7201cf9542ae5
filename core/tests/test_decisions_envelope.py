"""The fail-open envelope: an outage becomes an abstention that says so and costs what it cost; a cancellation passes."""

from __future__ import annotations

import logging

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from narrowgate.decisions import NO_USAGE, DecisionOutcome, DecisionRequest, DecisionResult, FailOpen, Usage, total
from narrowgate.errors import DecisionError, RerankError
from narrowgate.seams.ports import DecisionBackend

SECRET = "what the memory says"
REQUEST = DecisionRequest("memory.write-gate", "Is it new?", SECRET, (SECRET,))
GOOD = DecisionResult(DecisionOutcome.NO, "delegate.v3", Usage(1, 1, 5, 1), probability=0.2)
USAGES = st.builds(
    Usage, st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 99), st.none() | st.integers(0, 99)
)
FAILURES = st.one_of(
    st.builds(DecisionError, st.just("HTTP 503"), st.none() | USAGES, st.sampled_from([None, "overloaded", "not-json"])),
    st.builds(RerankError, st.just("nested"), USAGES),
    st.sampled_from([ValueError, KeyError, OSError, TimeoutError, RuntimeError, StopAsyncIteration, UnicodeError]).map(
        lambda kind: kind(SECRET)
    ),
    st.just(SECRET).map(lambda text: ExceptionGroup(text, [ValueError(text)])),
)


class Delegate:
    """A backend that does as it is told: returns a value, or raises an exception."""

    policy_id, batch_limit, concurrency = "delegate.v3", 4, 2

    def __init__(self, does):
        self.does = does

    async def evaluate(self, request):
        return await self._do(1)

    async def evaluate_many(self, requests):
        return await self._do(len(requests))

    async def _do(self, questions):
        await anyio.lowlevel.checkpoint()
        if isinstance(self.does, BaseException):
            raise self.does
        return self.does


@pytest.fixture
def records(caplog):
    """Collect the records of the envelope's logger."""
    caplog.set_level(logging.DEBUG, logger="narrowgate.decisions")
    return caplog


def test_mirrors_its_delegate():
    """Id, batch limit and concurrency are the delegate's own, and it fits the same port."""
    envelope = FailOpen(Delegate(GOOD))
    assert (envelope.policy_id, envelope.batch_limit, envelope.concurrency) == ("delegate.v3", 4, 2)
    assert isinstance(envelope, DecisionBackend)


@pytest.mark.anyio
async def test_passes_a_verdict_on_unchanged(records):
    """A healthy delegate's results are returned as they are, a deliberate abstention too, and nothing is logged."""
    abstention = DecisionResult(DecisionOutcome.ABSTAIN, "delegate.v3", reason="no_terms")
    assert await FailOpen(Delegate(GOOD)).evaluate(REQUEST) is GOOD
    assert await FailOpen(Delegate((GOOD, abstention)), timeout=20).evaluate_many([REQUEST] * 2) == (GOOD, abstention)
    assert await FailOpen(Delegate(RuntimeError())).evaluate_many([]) == ()
    assert not records.records


@pytest.mark.anyio
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(failure=FAILURES, questions=st.integers(0, 4))
async def test_any_failure_is_an_abstention_with_its_cost(records, failure, questions):
    """Whatever is raised: ABSTAIN, used_fallback, the failure's own code and usage, and one warning without content."""
    records.clear()
    envelope = FailOpen(Delegate(failure))
    # No questions here stands for the single form.
    results = await envelope.evaluate_many([REQUEST] * questions) if questions else (await envelope.evaluate(REQUEST),)
    asked, kind = questions or 1, type(failure)
    assert len(results) == asked
    for result in results:
        assert (result.outcome, result.policy_id, result.used_fallback) == (DecisionOutcome.ABSTAIN, "delegate.v3", True)
        assert result.probability is None
        assert result.reason == (getattr(failure, "code", None) or ("timeout" if kind is TimeoutError else "backend_failed"))
    carried = getattr(failure, "usage", None)
    assert total(result.usage for result in results) == (Usage(asked, 1, None, None) if carried is None else carried)
    (record,) = records.records
    assert record.levelno == logging.WARNING
    assert (record.event, record.decision_kind) == ("decision.fallback", "memory.write-gate")
    assert (record.policy_id, record.exception_type) == ("delegate.v3", type(failure).__name__)
    assert record.exc_info is None
    assert SECRET not in record.getMessage()
    assert all(SECRET not in str(value) for value in vars(record).values())


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [None, "yes", (), (GOOD,), (GOOD, "no"), (GOOD, GOOD, GOOD)])
async def test_an_answer_that_is_no_verdict_is_a_failure(records, answer):
    """A delegate that returns rubbish has failed as one that raises has."""
    results = await FailOpen(Delegate(answer)).evaluate_many([REQUEST] * 2)
    assert [(result.used_fallback, result.reason) for result in results] == [(True, "invalid-answer")] * 2
    assert total(result.usage for result in results) == Usage(2, 1, None, None)
    (record,) = records.records
    assert record.exception_type == "DecisionError"


@pytest.mark.anyio
async def test_a_call_over_the_timeout_is_a_failure_that_cost_a_request(records):
    """A delegate that hangs is cut off; the request was sent, so that it counts, with unknown tokens."""

    class Hanging(Delegate):
        async def _do(self, questions):
            await anyio.Event().wait()

    result = await FailOpen(Hanging(None), timeout=0.01).evaluate(REQUEST)
    assert (result.outcome, result.used_fallback, result.reason) == (DecisionOutcome.ABSTAIN, True, "timeout")
    assert result.usage == Usage(1, 1, None, None)
    (record,) = records.records
    assert (record.exception_type, record.code) == ("TimeoutError", "timeout")


@pytest.mark.anyio
async def test_a_code_that_is_a_sentence_is_no_reason(records):
    """A plugin that puts content where a code belongs does not get it into a result or a log."""
    result = await FailOpen(Delegate(DecisionError("HTTP 503", code=f"{SECRET}!"))).evaluate(REQUEST)
    assert result.reason == "backend_failed"
    assert SECRET not in records.text + repr(vars(records.records[0]))


@pytest.mark.anyio
@pytest.mark.parametrize("renamed", [False, True])
async def test_cancellation_passes(records, renamed):
    """The caller's cancellation is never an abstention, not even when the delegate turns it into an error of its own."""
    entered = anyio.Event()

    class Hanging(Delegate):
        async def _do(self, questions):
            entered.set()
            try:
                await anyio.Event().wait()
            except anyio.get_cancelled_exc_class():
                if renamed:
                    raise DecisionError("connection closed", NO_USAGE) from None
                raise

    ended = []

    async def ask(scope):
        with scope:
            ended.append(await FailOpen(Hanging(None), timeout=60).evaluate(REQUEST))

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(ask, scope)
        await entered.wait()
        scope.cancel()
    assert scope.cancelled_caught
    assert not ended
    assert not records.records


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_what_is_no_exception_passes(kind):
    """Only `Exception` is degraded: an interrupt ends the program, not the question."""
    delegate = Delegate(GOOD)
    delegate._do = _raiser(kind)
    with pytest.raises(kind):
        await FailOpen(delegate).evaluate(REQUEST)


def _raiser(kind):
    async def do(questions):
        raise kind

    return do


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_out_of_range_is_refused(timeout):
    """A timeout is a finite number of seconds above 0, or None."""
    with pytest.raises(ValueError, match="timeout"):
        FailOpen(Delegate(GOOD), timeout=timeout)
