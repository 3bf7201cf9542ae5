"""Parts of the tests of the gate: policies, questions, and a backend and rules that do what they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
import attrs

from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.errors import DecisionError
from narrowgate.governance.questions import Question
from narrowgate.seams.gate_ports import RuleInput, RuleVerdict
from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.policy import DecisionPolicy, PromotionCriteria

COST: Final = Usage(1, 1, 10, 1)


def policy(**changes: Any) -> DecisionPolicy:
    """Return a write policy in shadow that may hold."""
    made: dict[str, Any] = {
        "policy_id": "p.v1",
        "decision_kind": "memory.write-gate",
        "version": "1",
        "consumer": "memory_write_gate",
        "mode": GateMode.SHADOW,
        "question": {"en": "Is it so?", "zh": "是这样吗？"},
        "subject_selector": "entry.text",
        "evidence_selector": "entry.evidence",
        "outcome_mapping": {DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.DENY},
        "promotion_criteria": PromotionCriteria(),
        "effect": "hold",
        **changes,
    }
    return DecisionPolicy(**made)


def question(subject: str = "The order service runs on Postgres.", *evidence: str, **changes: Any) -> Question:
    """Return a question; by default with one piece of evidence."""
    texts = evidence or ("It moved to Postgres in March.",)
    made: dict[str, Any] = {
        "operation_id": "op",
        "scope_id": "team",
        "subject": subject,
        "evidence": texts,
        "subject_refs": ("team@1/a/1",),
        "evidence_refs": tuple(f"team@1/e{place}/1" for place in range(len(texts))),
        **changes,
    }
    return Question(**made)


@attrs.define
class Scripted:
    """A backend that does what it is told, and keeps what it was asked.

    Attributes:
        does: `yes`, `no`, `abstain`, `raise`, `garbage`, `hang`, `short` (too few answers), `nan`, `sentence` (a reason that
            is none), `fallback` (it answers for another that is down), or a function of the requests.
        batch_limit: questions in one request.
        concurrency: requests at once.
        asked: every request, in the order in which they came.
        most: the most calls that were under way at once.
    """

    does: str | Callable[[Sequence[DecisionRequest]], Any] = "yes"
    batch_limit: Any = 1
    concurrency: Any = 1
    policy_id: str = "scripted.v1"
    asked: list[DecisionRequest] = attrs.field(factory=list)
    most: int = 0
    _now: int = 0

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        answers = await self._answer((request,))
        return answers[0] if isinstance(answers, tuple) and answers else answers  # type: ignore[no-any-return]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some."""
        return await self._answer(requests)  # type: ignore[no-any-return]

    async def _answer(self, requests: Sequence[DecisionRequest]) -> Any:
        self.asked += requests
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await anyio.lowlevel.checkpoint()
            if not isinstance(self.does, str):
                return self.does(requests)
            return await getattr(self, f"_{self.does}", self._said)(requests)
        finally:
            self._now -= 1

    async def _said(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        outcome = DecisionOutcome(str(self.does))
        number = {DecisionOutcome.YES: 0.9, DecisionOutcome.NO: 0.1}.get(outcome)
        return tuple(DecisionResult(outcome, self.policy_id, COST, number) for _ in requests)

    async def _raise(self, requests: Sequence[DecisionRequest]) -> Any:
        raise DecisionError("out", Usage(len(requests), 1, 0, 0), "unavailable")

    async def _hang(self, _requests: Sequence[DecisionRequest]) -> Any:
        await anyio.sleep_forever()

    async def _garbage(self, _requests: Sequence[DecisionRequest]) -> Any:
        return ("yes",)

    async def _short(self, _requests: Sequence[DecisionRequest]) -> Any:
        return ()

    async def _nan(self, requests: Sequence[DecisionRequest]) -> Any:
        result = DecisionResult(DecisionOutcome.YES, self.policy_id, COST, 0.5)
        object.__setattr__(result, "probability", float("nan"))
        return tuple(result for _ in requests)

    async def _sentence(self, requests: Sequence[DecisionRequest]) -> Any:
        return tuple(DecisionResult(DecisionOutcome.YES, self.policy_id, COST, reason="Ana said so.") for _ in requests)

    async def _fallback(self, requests: Sequence[DecisionRequest]) -> Any:
        return tuple(DecisionResult(DecisionOutcome.YES, self.policy_id, COST, used_fallback=True) for _ in requests)


@attrs.define
class Ruled:
    """A local rule that says what it is told, or raises it."""

    says: RuleVerdict | Exception | object | None = None
    saw: list[RuleInput] = attrs.field(factory=list)

    def judge(self, given: RuleInput) -> Any:
        """Say it."""
        self.saw.append(given)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says
