"""An advisory role over HTTP: an answer that nobody can read is told from a backend that is down, by code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import anyio
import attrs
import pytest

from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.decisions.answers import INVALID_ANSWER
from narrowgate.governance.builtin import WRITE
from narrowgate.governance.gate import PARSE_CODES, Gate, GateSettings, Judged, NamedBackend
from narrowgate.governance.questions import Question
from narrowgate.seams import Deps, Locality
from narrowgate.values.assessment import Attempt, Coverage
from narrowgate_hosted.chat import answers
from narrowgate_hosted.plugin import narrowgate_decision_backends
from narrowgate_http import CURES
from narrowgate_http.testing import ALL_FAULTS, PLACES, Answer, FaultServer, fault_server, without_waits

UNREADABLE: Final = {"empty-body", "html-body", "nan", "wrong-shape", "wrong-content-type"}
"""Faults of a server that answers with success, and with nothing that is a verdict. All others are failures of the backend:
it was not reached, refused, failed, broke off, or sent more than is read."""

POLICY: Final = attrs.evolve(WRITE, local_rules=())
ASKED: Final = Question(
    operation_id="op-1", scope_id="team", subject="备份每天凌晨四点开始。", evidence=("The backup starts at four.",)
)


async def judged(component: str, url: str, question: Question = ASKED, **settings: Any) -> Judged:
    """Return what a gate makes of one question to a component."""
    (found,) = [item for item in narrowgate_decision_backends() if item.name == component]
    options = {"base_url": url, "timeout": 0.5, "deadline": 1.5, "retries": 1, "allow_http": True, **settings}
    async with found.build(found.settings(**options), Deps({}, analyser="any")) as backend:
        named = NamedBackend(component, Locality.LOOPBACK, backend)
        return await Gate(POLICY, backend=named, settings=GateSettings(timeout=20)).assess(question)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_every_fault_is_an_attempt_of_its_kind(fault: str) -> None:
    """Case 27, advisory: never judged; kind, code and cost of the failure are in the assessment."""
    with fault_server(fault) as server, without_waits(), anyio.fail_after(60):
        found = await judged("hosted.systemone", server.url, model="m-1.0.0")
        await server.deserted()
        reached = len(server.requests)
    assessment = found.assessment
    assert assessment.attempt is (Attempt.PARSE_FAILURE if fault in UNREADABLE else Attempt.BACKEND_FALLBACK)
    assert (assessment.coverage, assessment.used_fallback) == (Coverage.UNADJUDICATED, True)
    assert found.fallback_reason in CURES
    assert (found.fallback_reason in PARSE_CODES) is (fault in UNREADABLE)
    assert (assessment.usage.calls, assessment.usage.requests) == ((1, reached) if reached else (0, 0))
    assert (reached == 0) is (fault in PLACES)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("content", "end", "code"),
    [
        ("I would say yes.", "stop", "prose"),
        ('{"answer":"perhaps"}', "stop", "wrong-schema"),
        ('{"answer":"ye', "length", "cut-answer"),
        ("", "stop", "no-answer"),
    ],
)
async def test_what_a_language_model_wrote_in_place_of_a_verdict(content: str, end: str, code: str) -> None:
    """It answered, so that it is not down: a failure to read, with the model's own code."""
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage}
    with FaultServer(Answer(json=reply)) as server, anyio.fail_after(60):
        found = await judged("hosted.chat-decision", server.url, model="m")
    assert (found.assessment.attempt, found.fallback_reason) == (Attempt.PARSE_FAILURE, code)
    assert found.assessment.usage.requests == len(server.requests)


@attrs.frozen
class Says:
    """A backend in this process that returns or raises what it is given."""

    what: Any
    policy_id: str = "says.v1"
    batch_limit: int = 1
    concurrency: int = 1

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        if isinstance(self.what, Exception):
            raise self.what
        return self.what  # type: ignore[no-any-return]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        raise AssertionError


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("what", "attempt", "reason"),
    [
        ("yes", Attempt.PARSE_FAILURE, INVALID_ANSWER),
        (DecisionResult("maybe", "says.v1"), Attempt.PARSE_FAILURE, INVALID_ANSWER),  # type: ignore[arg-type]
        (ValueError("the entry's own text"), Attempt.BACKEND_FALLBACK, "backend_failed"),
        (TimeoutError(), Attempt.BACKEND_FALLBACK, "timeout"),
        (DecisionResult(DecisionOutcome.ABSTAIN, "says.v1", Usage(1, 1), reason="refused"), Attempt.BACKEND, None),
    ],
)
async def test_a_backend_of_somebody_else(what: object, attempt: Attempt, reason: str | None) -> None:
    """What breaks the contract is an answer that cannot be read; what is raised without a code is a failure without one."""
    found = await Gate(POLICY, backend=NamedBackend("third.says", Locality.IN_PROCESS, Says(what))).assess(ASKED)
    assert (found.assessment.attempt, found.fallback_reason) == (attempt, reason)


def test_every_code_of_an_unreadable_answer_is_given_by_somebody() -> None:
    """No code stands in the list that nobody raises, and what a model wrote in place of an answer is never an outage."""
    assert {INVALID_ANSWER} | set(CURES) | set(answers.CURES) >= PARSE_CODES
    assert set(answers.CURES) - {"refused"} <= PARSE_CODES
