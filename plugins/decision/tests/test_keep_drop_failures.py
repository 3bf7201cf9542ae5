"""When a call fails: an error with the true cost, nothing started any more, everything under way waited for."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import DecisionOutcome, DecisionResult, FailOpen, Usage
from narrowgate.errors import DecisionError, RerankError
from narrowgate_decision import KeepDrop, KeepDropSettings

YES, NO = DecisionOutcome.YES, DecisionOutcome.NO
TEXTS = [f"t{n}" for n in range(10)]
SECRET = "what the memory says"


async def never() -> None:
    await anyio.Event().wait()


@pytest.mark.anyio
@given(
    fault=st.integers(0, 9),
    outcomes=st.lists(st.sampled_from([YES, NO]), min_size=10, max_size=10),
    limit=st.integers(1, 10),
    batch_limit=st.integers(1, 4),
    concurrency=st.integers(1, 5),
    error=st.sampled_from([DecisionError("503", Usage(1, 2, 9, 0)), DecisionError("refused"), ValueError(SECRET)]),
)
async def test_a_fault_at_any_call_is_an_error_with_its_cost(
    scripted, pool, fault, outcomes, limit, batch_limit, concurrency, error
):
    """The first failure is the error; its cost is what the backend counted, cancelled requests included."""
    answers = dict(zip(TEXTS, outcomes, strict=True)) | {TEXTS[fault]: error}
    backend = scripted(answers, batch_limit=batch_limit, concurrency=concurrency)
    if outcomes[:fault].count(YES) >= limit:
        await KeepDrop(backend).rerank("q", pool(TEXTS), limit)
        assert TEXTS[fault] not in backend.asked
        return
    with pytest.raises(RerankError) as caught:
        await KeepDrop(backend).rerank("q", pool(TEXTS), limit)
    usage = caught.value.usage
    assert caught.value.__cause__ is error
    assert backend.under_way == 0
    assert backend.sent_after_failure == 0
    # The failing request says itself what it cost, where it says anything.
    said = isinstance(error, DecisionError) and error.usage is not None
    batch_of_fault = next(batch for batch in backend.batches if TEXTS[fault] in batch)
    assert usage.calls == len(backend.asked) + (1 - len(batch_of_fault) if said else 0)
    assert usage.requests == backend.sent + (1 if said else 0)
    if said and not backend.cancelled:
        assert usage.input_tokens == 7 * (len(backend.asked) - len(batch_of_fault)) + 9
    else:
        assert usage.input_tokens is None


@pytest.mark.anyio
@given(
    texts=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12),
    outcomes=st.fixed_dictionaries({letter: st.sampled_from(DecisionOutcome) for letter in "abcdefgh"}),
    index=st.integers(0, 9),
    batch_limit=st.integers(1, 9),
    concurrency=st.integers(1, 9),
    error=st.sampled_from([DecisionError("429", code="rate-limited"), DecisionError("?"), TimeoutError(), KeyError(SECRET)]),
    data=st.data(),
)
async def test_a_fault_of_the_nth_request(scripted, pool, texts, outcomes, index, batch_limit, concurrency, error, data):
    """Whichever request fails: nothing was asked but what the scan asks, and usage is the questions that were started."""
    limit = data.draw(st.integers(1, len(texts)))

    class FailsAt(scripted):
        async def _send(self, requests):
            number = self.sent
            answers = await super()._send(requests)
            if number == index:
                self.failed = True
                raise error
            return answers

    wanted = scripted(outcomes)
    reference = await KeepDrop(wanted).rerank("q", pool(texts), limit)
    backend = FailsAt(outcomes, batch_limit=batch_limit, concurrency=concurrency)
    reranker = KeepDrop(backend)
    decision, failure = None, None
    try:
        decision = await reranker.rerank("q", pool(texts), limit)
    except RerankError as caught:
        failure = caught
    asked = backend.asked
    assert len(asked) == len(set(asked))
    if failure is None:
        assert backend.sent <= index
        assert sorted(asked) == sorted(wanted.asked)
        assert (decision.selected_ranks, decision.usage.calls) == (reference.selected_ranks, len(asked))
        return
    assert backend.sent > index
    assert failure.__cause__ is error
    assert failure.code == {DecisionError: getattr(error, "code", None), TimeoutError: "timeout"}.get(type(error))
    assert failure.usage == Usage(len(asked), backend.sent, None, None)
    assert set(asked) <= set(wanted.asked)
    assert (backend.under_way, backend.sent_after_failure) == (0, 0)
    if concurrency == 1:
        assert asked == wanted.asked[: len(asked)]
        assert backend.sent == index + 1


@pytest.mark.anyio
@pytest.mark.parametrize(("batch_limit", "asked"), [(1, 4), (2, 8)])
async def test_a_failure_cancels_what_hangs_beside_it(scripted, pool, batch_limit, asked):
    """The search does not wait for calls whose answers nobody wants any more; they count, nothing else is started."""
    entered = []

    async def one_returns():
        entered.append(None)
        if len(entered) < 4:
            await never()

    backend = scripted(dict.fromkeys(TEXTS, ValueError()), batch_limit=batch_limit, concurrency=4, waits=one_returns)
    with pytest.raises(RerankError, match="ValueError") as caught:
        await KeepDrop(backend).rerank("q", pool(TEXTS), 10)
    assert (backend.sent, backend.cancelled, backend.under_way) == (4, 3, 0)
    assert caught.value.usage == Usage(asked, 4, None, None)


@pytest.mark.anyio
async def test_an_auth_error_is_an_error_of_the_stage(scripted, pool):
    """Case 27: no coarse order and no invented score; the reason names backend and cause, without content."""
    backend = scripted({SECRET: DecisionError("HTTP 401: check the key", Usage(1, 1, 0, 0))})
    with pytest.raises(RerankError, match=r"scripted\.v1.*DecisionError: HTTP 401") as caught:
        await KeepDrop(backend).rerank("a private question", pool([SECRET]), 1)
    assert caught.value.usage == Usage(1, 1, 0, 0)
    assert SECRET not in str(caught.value)
    assert "private" not in str(caught.value)


@pytest.mark.anyio
async def test_a_foreign_exception_is_named_by_type_only(scripted, pool):
    """Only our own errors promise messages without content, so that no other message is repeated."""
    with pytest.raises(RerankError, match="KeyError") as caught:
        await KeepDrop(scripted({SECRET: KeyError(SECRET)})).rerank("q", pool([SECRET]), 1)
    assert SECRET not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.usage == Usage(1, 1, None, None)


@pytest.mark.anyio
async def test_a_fallback_answer_is_no_verdict(scripted, pool):
    """A backend that says it stood in for an outage fails the stage, also when its outcome would keep; its cost counts."""
    degraded = DecisionResult(DecisionOutcome.ABSTAIN, "x", Usage(1, 1, 4, 0), used_fallback=True)
    with pytest.raises(RerankError, match="used_fallback") as caught:
        await KeepDrop(scripted({"a": degraded})).rerank("q", pool(["a"]), 1)
    assert (caught.value.usage, caught.value.code) == (Usage(1, 1, 4, 0), "used-fallback")


@pytest.mark.anyio
@pytest.mark.parametrize("batch_limit", [1, 4])
async def test_the_fail_open_envelope_cannot_serve_this_role(scripted, pool, batch_limit):
    """An envelope that is injected as the backend still fails the stage: its abstentions would else keep everything."""
    down = scripted(dict.fromkeys("abc", DecisionError("HTTP 503", Usage(1, 1, 0, 0))), batch_limit=batch_limit)
    with pytest.raises(RerankError, match="used_fallback") as caught:
        await KeepDrop(FailOpen(down)).rerank("q", pool(list("abc")), 3)
    assert caught.value.code == "used-fallback"
    assert caught.value.usage == Usage(1, 1, 0, 0)


@pytest.mark.anyio
async def test_what_a_backend_retried_is_added_up(scripted, pool):
    """Case 43: bad JSON for 100 tokens, then a good answer for 120, is one call of two requests and 220 tokens."""
    retried = DecisionResult(YES, "x", Usage(1, 2, 220, 2))
    decision = await KeepDrop(scripted({"a": retried, "b": YES})).rerank("q", pool(["a", "b"]), 2)
    assert decision.usage == Usage(2, 3, 227, 3)
    failing = scripted({"a": retried, "b": DecisionError("invalid twice", Usage(1, 2, 220, 2))})
    with pytest.raises(RerankError) as caught:
        await KeepDrop(failing).rerank("q", pool(["a", "b"]), 2)
    assert caught.value.usage == Usage(2, 4, 440, 4)


@pytest.mark.anyio
@pytest.mark.parametrize("answer", ["yes", None, True, 0.7])
async def test_an_answer_that_is_no_result_is_refused(scripted, pool, answer):
    """What is no DecisionResult is never read as a verdict."""
    with pytest.raises(RerankError, match="DecisionResult") as caught:
        await KeepDrop(scripted({"a": answer})).rerank("q", pool(["a"]), 1)
    assert caught.value.usage == Usage(1, 1, None, None)


@pytest.mark.anyio
@pytest.mark.parametrize("length", [0, 2, 4])
async def test_a_batch_of_the_wrong_length_is_refused(scripted, pool, length):
    """Too few or too many answers belong to nobody; the request still counts with all its questions."""

    class Wrong(scripted):
        async def evaluate_many(self, requests):
            return (await super().evaluate_many(requests))[:1] * length

    backend = Wrong({"a": YES, "b": YES, "c": YES}, batch_limit=5)
    with pytest.raises(RerankError, match=f"{length} of 3") as caught:
        await KeepDrop(backend).rerank("q", pool(["a", "b", "c"]), 3)
    assert caught.value.usage == Usage(3, 1, None, None)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["batch_limit", "concurrency"])
@pytest.mark.parametrize("bound", [0, -1, None, 2.5, "4", True])
async def test_impossible_bounds_of_a_backend_are_named(scripted, pool, name, bound):
    """A backend that may be asked nothing at a time is an error, not an endless wait; nothing was asked or is charged."""
    backend = scripted({"a": YES}, **{name: bound})
    with pytest.raises(RerankError, match="whole number") as caught:
        await KeepDrop(backend).rerank("q", pool(["a"]), 1)
    assert (caught.value.code, caught.value.usage, backend.sent) == ("invalid-bounds", Usage(), 0)


@pytest.mark.anyio
async def test_the_deadline_ends_a_hanging_scan(scripted, pool):
    """A backend that never answers: an error that names the deadline, all requests cancelled, waited for and counted."""
    backend = scripted(dict.fromkeys(TEXTS, YES), concurrency=4, waits=never)
    with pytest.raises(RerankError, match=r"deadline of 0\.2 s") as caught:
        await KeepDrop(backend, KeepDropSettings(deadline=0.2)).rerank("q", pool(TEXTS), 10)
    assert (backend.cancelled, backend.under_way) == (4, 0)
    assert caught.value.code == "deadline"
    assert caught.value.usage == Usage(4, 4, None, None)


@pytest.mark.anyio
async def test_the_deadline_is_for_the_whole_scan(scripted, pool):
    """The first wave is answered, the second hangs: its cost is on top of the first's."""
    waves = iter([checkpoint, never])
    backend = scripted({"a": NO, "b": YES}, waits=lambda: next(waves)())
    with pytest.raises(RerankError, match="deadline") as caught:
        await KeepDrop(backend, KeepDropSettings(deadline=0.2)).rerank("q", pool(["a", "b"]), 1)
    assert (caught.value.usage.calls, caught.value.usage.requests) == (2, 2)


@pytest.mark.anyio
async def test_cancellation_from_outside_passes(scripted, pool):
    """Case 39: the caller's cancellation fails no stage, nothing is asked again, and all has ended when it arrives."""
    entered = anyio.Event()

    async def wait_for_ever():
        entered.set()
        await never()

    backend = scripted(dict.fromkeys(TEXTS, YES), concurrency=3, waits=wait_for_ever)

    async def search(scope):
        with scope:
            await KeepDrop(backend).rerank("q", pool(TEXTS), 10)

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(search, scope)
        await entered.wait()
        scope.cancel()
    assert scope.cancelled_caught
    assert backend.under_way == 0
    assert backend.cancelled == backend.sent == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_cancellation_of_a_plain_asyncio_task_passes(anyio_backend, scripted, pool):
    """`task.cancel()` of an application that does not use anyio ends as CancelledError."""
    entered = anyio.Event()

    async def wait_for_ever():
        entered.set()
        await never()

    backend = scripted(dict.fromkeys(TEXTS, YES), concurrency=3, waits=wait_for_ever)
    task = asyncio.ensure_future(KeepDrop(backend).rerank("q", pool(TEXTS), 10))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.under_way == 0


@pytest.mark.anyio
async def test_a_cancellation_that_a_backend_renames_still_passes(scripted, pool):
    """A backend that turns its cancellation into an error of its own does not turn it into a failed search."""
    scope = anyio.CancelScope()

    class Renaming(scripted):
        async def evaluate(self, request):
            scope.cancel()
            try:
                return await super().evaluate(request)
            except anyio.get_cancelled_exc_class():
                raise DecisionError("connection closed") from None

    with scope:
        await KeepDrop(Renaming({"a": YES})).rerank("q", pool(["a"]), 1)
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_a_backend_that_never_waits_can_be_cancelled(scripted, pool):
    """Between two calls the scan looks up, so that no further question is asked after a cancellation."""
    scope = anyio.CancelScope()

    class Busy(scripted):
        async def evaluate(self, request):
            self.requests.append(request)
            if len(self.requests) == 3:
                scope.cancel()
            return DecisionResult(YES, self.policy_id, Usage(1, 0))

    backend = Busy({})
    with scope:
        await KeepDrop(backend).rerank("q", pool(TEXTS), 10)
    assert scope.cancelled_caught
    assert len(backend.requests) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, BaseException])
@pytest.mark.parametrize(("batch_limit", "concurrency"), [(1, 1), (1, 4), (2, 2)])
async def test_what_ends_the_program_passes_bare(scripted, pool, kind, batch_limit, concurrency):
    """No failure of the stage, and no group of exceptions that `except KeyboardInterrupt` would miss; the rest has ended."""
    entered = []

    async def one_ends():
        entered.append(None)
        if len(entered) == concurrency:
            raise kind
        await never()

    backend = scripted(dict.fromkeys(TEXTS, YES), batch_limit=batch_limit, concurrency=concurrency, waits=one_ends)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - the type is looked at exactly
        await KeepDrop(backend).rerank("q", pool(TEXTS), 10)
    assert type(caught.value) is kind
    assert (backend.sent, backend.under_way) == (concurrency, 0)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
@pytest.mark.parametrize(("batch_limit", "concurrency"), [(1, 1), (1, 4), (3, 2)])
async def test_a_cancellation_that_nobody_asked_for_is_a_failure(anyio_backend, scripted, pool, batch_limit, concurrency):
    """A backend that awaits a task which somebody else cancelled has no answer: an error with a code, not a shorter wave."""

    async def wait_for_another():
        task = asyncio.ensure_future(never())
        task.cancel()
        await task

    answers = dict.fromkeys(TEXTS, YES)
    backend = scripted(answers, batch_limit=batch_limit, concurrency=concurrency, waits=wait_for_another)
    with pytest.raises(RerankError, match="nobody had cancelled") as caught:
        await KeepDrop(backend).rerank("q", pool(TEXTS), 10)
    assert caught.value.code == "cancelled"
    assert caught.value.usage == Usage(len(backend.asked), backend.sent, None, None)
    assert backend.under_way == 0
