"""The engine beside the modes: batches and concurrency, cooldown on the way, parts that break, what is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from gate_engine_parts import COST, Ruled, Scripted, policy, question

from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult, MeteredBackend, Usage, account
from narrowgate.errors import DecisionError
from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.gate import Gate
from narrowgate.governance.recording import observation_of
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import ContentJudgement, RuleInput
from narrowgate.values.assessment import Attempt, GateMode, GateVerdict
from narrowgate.values.policy import FailurePolicy

pytestmark = pytest.mark.anyio


def gate(backend: Any, rules: Sequence[Any] = (), settings: GateSettings | None = None, **changes: Any) -> Gate:
    """Return a gate over a backend in process."""
    named = NamedBackend("x.backend", Locality.IN_PROCESS, backend)
    return Gate(policy(**changes), backend=named, rules=[("x.rule", item) for item in rules], settings=settings)


def judging(requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
    """Say no to odd notes."""
    odd = [int(item.subject.split()[1]) % 2 for item in requests]
    outcomes = [DecisionOutcome.NO if item else DecisionOutcome.YES for item in odd]
    return tuple(DecisionResult(item, "scripted.v1", COST) for item in outcomes)


@pytest.mark.parametrize(("batch", "concurrency", "most"), [(1, 1, 1), (1, 4, 4), (3, 2, 2), (100, 4, 1), (True, 0.5, 1)])
async def test_many_questions_are_answered_in_their_order(batch: Any, concurrency: Any, most: int) -> None:
    """Each on its own, in requests of the size that the backend takes, as many at once as it takes."""
    backend = Scripted(judging, batch_limit=batch, concurrency=concurrency)
    found = await gate(backend).assess_many([question(f"note {number}") for number in range(10)])
    verdicts = [item.assessment.verdict for item in found]
    assert verdicts == [GateVerdict.ALLOW, GateVerdict.DENY] * 5
    assert [item.question.subject for item in found] == [f"note {number}" for number in range(10)]
    assert len(backend.asked) == 10
    assert backend.most == most


async def test_a_backend_that_fails_on_the_way_is_left_alone() -> None:
    """After so many failures in a row nothing more is sent; what was not sent is no failure of the backend's."""
    backend = Scripted("raise")
    asked = gate(backend, settings=GateSettings(cooldown_after=2, cooldown=60))
    found = await asked.assess_many([question(f"note {number}") for number in range(5)])
    assert [item.assessment.attempt for item in found] == [Attempt.BACKEND_FALLBACK] * 2 + [Attempt.NO_CALL] * 3
    assert [item.assessment.reason for item in found[2:]] == ["cooldown"] * 3
    assert len(backend.asked) == 2
    assert asked.cooling


async def test_only_failures_in_a_row_count() -> None:
    """One answer between them, and the count begins anew; so it does when the backend was left alone for long enough."""
    now = 0.0
    backend = Scripted()
    named = NamedBackend("x.backend", Locality.IN_PROCESS, backend)
    asked = Gate(policy(), backend=named, settings=GateSettings(cooldown_after=2, cooldown=60), clock=lambda: now)
    for does, cooling in (("raise", False), ("abstain", False), ("raise", False), ("garbage", True), ("yes", True)):
        backend.does = does
        await asked.assess(question())
        assert asked.cooling is cooling, does
    assert len(backend.asked) == 4
    now = 60.0
    for cooling in (False, True):
        backend.does = "raise"
        await asked.assess(question())
        assert asked.cooling is cooling


async def test_a_failed_batch_costs_once() -> None:
    """The cost of a request that failed stands with its first question."""
    found = await gate(Scripted("raise", batch_limit=4)).assess_many([question(f"note {number}") for number in range(4)])
    assert [item.assessment.usage.calls for item in found] == [4, 0, 0, 0]
    assert {item.fallback_reason for item in found} == {"unavailable"}


async def test_a_backend_without_a_readable_bound_or_name_is_one_that_failed() -> None:
    """Whatever a third party's property does, nothing of it comes out of a role that fails open."""

    class Broken:
        @property
        def policy_id(self) -> str:
            raise RuntimeError("secret")

        batch_limit = concurrency = policy_id

        async def evaluate(self, request: DecisionRequest) -> DecisionResult:
            raise RuntimeError(request.subject)

    judged = await gate(Broken()).assess(question())
    assert (judged.assessment.attempt, judged.fallback_reason) == (Attempt.BACKEND_FALLBACK, "backend_failed")
    assert judged.assessment.usage == Usage(1, 1, None, None)


async def test_cancellation_passes_and_its_cost_is_known() -> None:
    """A caller who leaves is not kept; a call that was under way is in the account, with unknown tokens."""
    backend = Scripted("hang", concurrency=2)
    asked = gate(MeteredBackend(backend), settings=GateSettings(timeout=1e6))
    with account() as own:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.assess_many, [question("note 1"), question("note 2")])
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert own.usage == Usage(2, 2, None, None)


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_a_call_that_was_told_it_was_cancelled_is_a_failed_one() -> None:
    """On asyncio, whoever awaits a task that somebody cancelled is told so as if it were its own cancellation."""

    def cancelled(_requests: Sequence[DecisionRequest]) -> Any:
        raise asyncio.CancelledError

    found = await gate(Scripted(cancelled, concurrency=2)).assess_many([question("note 1"), question("note 2")])
    assert found[0].fallback_reason == "cancelled"
    assert {item.assessment.verdict for item in found} == {GateVerdict.UNKNOWN}


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_call_that_was_told_it_was_cancelled_frees_nobody_else(concurrency: int) -> None:
    """One entry that makes a backend stumble must not take the rest of its batch past the gate."""

    def stumbling(requests: Sequence[DecisionRequest]) -> Any:
        if requests[0].subject == "note 1":
            raise asyncio.CancelledError
        return judging(requests)

    asked = gate(Scripted(stumbling, batch_limit=1, concurrency=concurrency))
    found = await asked.assess_many([question(f"note {number}") for number in range(6)])
    assert [item.fallback_reason for item in found] == [None, "cancelled", None, None, None, None]
    assert [item.assessment.attempt for item in found if not item.assessment.used_fallback] == [Attempt.BACKEND] * 5


async def test_a_panic_of_native_code_is_a_failed_call() -> None:
    """Bindings to other languages raise it past `Exception`; a role that fails open goes on."""

    class PanicError(BaseException):
        pass

    def panic(requests: Sequence[DecisionRequest]) -> Any:
        raise PanicError(requests[0].subject)

    found = await gate(Scripted(panic)).assess_many([question("note 1"), question("note 2")])
    assert [item.fallback_reason for item in found] == ["backend_failed"] * 2
    assert found[0].assessment.usage == Usage(1, 1, None, None)


async def test_a_rule_that_breaks_breaks_its_question_alone() -> None:
    """The others are judged; the broken one is not sent, since the rule may be what keeps it here."""

    class Fussy:
        def judge(self, given: RuleInput) -> None:
            if given.request.subject == "note 1":
                raise RuntimeError(given.request.subject)

    backend = Scripted(judging)
    found = await gate(backend, [Fussy()]).assess_many([question(f"note {number}") for number in range(3)])
    assert [item.assessment.attempt for item in found] == [Attempt.BACKEND, Attempt.NO_CALL, Attempt.BACKEND]
    assert found[1].assessment.reason == "rule_failed"
    assert [item.subject for item in backend.asked] == ["note 0", "note 2"]


async def test_a_role_that_fails_closed_raises() -> None:
    """With the cost, and without the fail-open envelope; failures count towards the cooldown all the same."""
    asked = gate(Scripted("raise"), settings=GateSettings(cooldown_after=1), failure_policy=FailurePolicy.FAIL_CLOSED)
    with pytest.raises(DecisionError) as caught:
        await asked.assess(question())
    assert (caught.value.code, caught.value.usage) == ("unavailable", Usage(1, 1, 0, 0))
    assert asked.cooling
    with pytest.raises(RuntimeError, match="broken"):
        await gate(Scripted(), [Ruled(RuntimeError("broken"))], failure_policy=FailurePolicy.FAIL_CLOSED).assess(question())


async def test_what_was_judged_is_remembered_by_policy_and_content() -> None:
    """Only a judgement is: neither a failure nor an abstention nor a rule's word becomes an earlier verdict."""
    ruled = Ruled()
    asked = gate(Scripted("raise"), [ruled])
    backend: Any = asked._named.backend  # type: ignore[union-attr]
    for does, earlier in (("abstain", None), ("no", None), ("yes", GateVerdict.DENY), ("yes", GateVerdict.ALLOW)):
        backend.does = does
        await asked.assess(question("note 1"))
        assert ruled.saw[-1].earlier is earlier
    ruled.says = ContentJudgement(GateVerdict.DENY, "out_of_scope")
    await asked.assess(question("note 1"))
    ruled.says = None
    await asked.assess(question("note 1"))
    assert ruled.saw[-1].earlier is GateVerdict.ALLOW
    await asked.assess(question("note 1", "Other evidence."))
    assert ruled.saw[-1].earlier is None


async def test_the_six_kinds_of_attempt_are_observed_apart() -> None:
    """Each in its own words, and none with content."""
    boundary = gate(Scripted(), privacy_boundary=policy().privacy_boundary)
    hosted = Gate(policy(), backend=NamedBackend("x.far", Locality.HOSTED, Scripted()))
    asked = [
        (Gate(policy()), Attempt.NO_CALL, "no_call", None),
        (gate(Scripted(), [Ruled(ContentJudgement(GateVerdict.DENY, "too_short"))]), Attempt.LOCAL_RULE, "local_rule", None),
        (boundary, Attempt.BACKEND, "local_model_called", None),
        (gate(Scripted("raise")), Attempt.BACKEND_FALLBACK, "local_model_fallback", "unavailable"),
        (hosted, Attempt.PRIVACY_FALLBACK, "local_only_refused", "privacy_boundary"),
        (gate(Scripted("garbage")), Attempt.PARSE_FAILURE, "local_model_fallback", "invalid-answer"),
    ]
    for made, attempt, outcome, reason in asked:
        judged = await made.assess(question("CANARY in the subject", "CANARY in the evidence"))
        seen = observation_of(made, judged, "memory_write_accept")
        assert (seen.assessment.attempt, seen.privacy_outcome, seen.fallback_reason) == (attempt, outcome, reason)
        assert "CANARY" not in repr(seen)
    assert {attempt for _, attempt, _, _ in asked} == set(Attempt)
    assert all(item.policy.mode is GateMode.SHADOW for item, *_ in asked)
