"""A policy held against labelled cases: each asked of its gate, one by one, and what came of them in figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Final

import attrs

from narrowgate.decisions.answers import is_code
from narrowgate.errors import InputError, RecallError
from narrowgate.governance.bundles import PARTS, SEVERITIES, Bundle, Case
from narrowgate.governance.gate import Gate
from narrowgate.governance.questions import Question
from narrowgate.values.assessment import Attempt, Coverage, GateVerdict
from narrowgate.values.decision import NO_USAGE, DecisionOutcome
from narrowgate.values.policy import DecisionPolicy

BINS: Final = 10
"""Equally wide bins of the calibration curve."""

AGAINST: Final = (GateVerdict.DENY, GateVerdict.REVIEW)
"""The verdicts that raise something: the policy acts, or would. An action on a case that should pass is a false one."""

_ANSWERS: Final = (DecisionOutcome.YES, DecisionOutcome.NO)

FAILED: Final = "backend_failed"


@attrs.frozen(kw_only=True)
class CaseResult:
    """What became of one case. No content.

    Attributes:
        case_id, part, language, severity, expected, digest: of the case.
        right: the verdict that the expected answer has under the policy.
        attempt: kind of attempt.
        verdict: the verdict.
        judged: whether the content was judged.
        fallback: why not, where a failure or a refusal stands in for a judgement, or nobody was asked.
        outcome: the answer under the policy's thresholds.
        backend_outcome: the backend's own word.
        probability, score: its numbers.
        backend_model_id: the exact model, where it is known.
        model_policy_id: the backend's own id.
        latency_ms: wall time of the question.
        calls, requests, input_tokens, output_tokens: what it cost.
    """

    case_id: str
    part: str
    language: str
    severity: str
    expected: DecisionOutcome
    digest: str
    right: GateVerdict
    attempt: Attempt
    verdict: GateVerdict
    judged: bool
    fallback: str | None = None
    outcome: DecisionOutcome | None = None
    backend_outcome: DecisionOutcome | None = None
    probability: float | None = None
    score: float | None = None
    backend_model_id: str | None = None
    model_policy_id: str | None = None
    latency_ms: float = 0.0
    calls: int = 0
    requests: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    @property
    def acts(self) -> bool:
        """Whether the policy acts, or would."""
        return self.judged and self.verdict in AGAINST

    @property
    def should_act(self) -> bool:
        """Whether it should."""
        return self.right in AGAINST


async def evaluate(
    gate: Gate, bundle: Bundle, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[CaseResult, ...]:
    """Return what becomes of each case, in order. One question at a time, so that each latency is that of one question.

    A backend that fails is a fallback of that case, also for a policy that fails closed.

    Raises:
        InputError: `bundle-mismatch`: its cases are of another kind of question.
    """
    policy = gate.policy
    if bundle.decision_kind != policy.decision_kind:
        text = f"bundle {bundle.name!r} is of {bundle.decision_kind!r}, and policy {policy.policy_id!r} asks "
        raise InputError("bundle-mismatch", f"{text}{policy.decision_kind!r}: name a bundle of that kind")
    results = []
    for number, case in enumerate(bundle.cases):
        results.append(await _asked(gate, bundle, case))
        progress(number + 1, len(bundle.cases))
    return tuple(results)


async def _asked(gate: Gate, bundle: Bundle, case: Case) -> CaseResult:
    question = Question(
        operation_id=f"evaluate:{case.case_id}",
        scope_id=bundle.name[:256],
        subject=case.subject,
        evidence=case.evidence,
        subject_refs=(f"case:{case.case_id}",),
        evidence_refs=tuple(f"case:{case.case_id}:{place}" for place in range(len(case.evidence))),
        metadata={"candidates": 1, "evidence": len(case.evidence)},
    )
    about: dict[str, Any] = {
        **{name: getattr(case, name) for name in ("case_id", "part", "language", "severity", "expected", "digest")},
        "right": gate.policy.outcome_mapping[case.expected],
    }
    try:
        judged = await gate.assess(question)
    except RecallError as error:
        usage = error.usage or NO_USAGE
        return CaseResult(
            **about,
            attempt=Attempt.BACKEND_FALLBACK,
            verdict=GateVerdict.UNKNOWN,
            judged=False,
            fallback=error.code if is_code(error.code) else FAILED,
            **attrs.asdict(usage),
        )
    said = judged.assessment
    unasked = said.attempt is Attempt.NO_CALL
    fallback = (judged.fallback_reason or said.reason) if said.used_fallback or unasked else None
    return CaseResult(
        **about,
        attempt=said.attempt,
        verdict=said.verdict,
        judged=said.coverage is Coverage.ADJUDICATED,
        fallback=None if fallback is None else fallback if is_code(fallback) else "withheld",
        outcome=said.outcome,
        backend_outcome=judged.backend_outcome,
        probability=said.probability,
        score=said.score,
        backend_model_id=judged.backend_model_id,
        model_policy_id=judged.model_policy_id,
        latency_ms=said.latency_ms,
        **attrs.asdict(said.usage),
    )


def summary(results: Sequence[CaseResult]) -> dict[str, Any]:
    """Return figures of each part as a whole and by language; see `figures`."""
    parts = {}
    for part in PARTS:
        of = [item for item in results if item.part == part]
        languages = sorted({item.language for item in of})
        parts[part] = {
            "all": figures(of),
            "languages": {name: figures([item for item in of if item.language == name]) for name in languages},
        }
    return {"parts": parts}


def figures(results: Sequence[CaseResult]) -> dict[str, Any]:
    """Return what a number of cases show.

    precision: of the actions, the share on cases that call for one; `None` where nothing was done. recall: of the cases that
    call for an action, the share that had one; `None` where there are none. An abstention or a fallback is no action.
    right_answers, wrong_answers: yes and no as expected or not, also of a policy that never acts.
    """
    actions = [item for item in results if item.acts]
    calling = [item for item in results if item.should_act]
    right = sum(item.should_act for item in actions)
    missed = [item for item in calling if not item.acts]
    latency = sorted(item.latency_ms for item in results)
    return {
        "cases": len(results),
        "calling_for_action": len(calling),
        "judged": sum(item.judged for item in results),
        "right_answers": sum(item.outcome is item.expected for item in results),
        "wrong_answers": sum(item.outcome in _ANSWERS and item.outcome is not item.expected for item in results),
        "abstained": sum(item.attempt is Attempt.BACKEND and not item.judged for item in results),
        "fallbacks": _counted(item.fallback for item in results if item.fallback is not None),
        "actions": len(actions),
        "precision": right / len(actions) if actions else None,
        "recall": right / len(calling) if calling else None,
        "false_actions": _by_severity(item for item in actions if not item.should_act),
        "missed": _by_severity(missed),
        "calibration": calibration(results),
        "latency_ms": {"p50": _rank(latency, 0.5), "p95": _rank(latency, 0.95), "max": latency[-1] if latency else None},
        "calls": sum(item.calls for item in results),
        "requests": sum(item.requests for item in results),
        "requests_per_decision": sum(item.requests for item in results) / len(results) if results else None,
        "input_tokens": _sum(item.input_tokens for item in results),
        "output_tokens": _sum(item.output_tokens for item in results),
    }


def calibration(results: Iterable[CaseResult]) -> dict[str, Any]:
    """Return the calibration curve and the expected calibration error of the probabilities of yes.

    Equal-width bins over 0..1, each closed below and the last closed above too; the error is the mean distance of mean
    probability and share of yes, weighted by the cases of a bin (Naeini, Cooper & Hauskrecht, AAAI 2015). Only what has a
    probability counts; `None` where nothing has.
    """
    bins: list[list[CaseResult]] = [[] for _ in range(BINS)]
    for item in results:
        if item.probability is not None:
            bins[min(int(item.probability * BINS), BINS - 1)].append(item)
    total = sum(map(len, bins))
    curve = []
    error = 0.0
    for place, of in enumerate(bins):
        if of:
            mean = sum(item.probability or 0.0 for item in of) / len(of)
            share = sum(item.expected is DecisionOutcome.YES for item in of) / len(of)
            error += abs(mean - share) * len(of) / total
            curve.append({"from": place / BINS, "to": (place + 1) / BINS, "cases": len(of), "mean": mean, "yes": share})
    return {"cases": total, "error": error if total else None, "curve": curve}


def _by_severity(results: Iterable[CaseResult]) -> dict[str, int]:
    found = _counted(item.severity for item in results)
    return {severity: found.get(severity, 0) for severity in SEVERITIES}


def _counted(values: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return dict(sorted(found.items()))


def _rank(ordered: Sequence[float], share: float) -> float | None:
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def follows(result: CaseResult, policy: DecisionPolicy) -> bool:
    """Return whether a result is what this policy makes of the stored answer, with the right verdict that it expects."""
    if result.right is not policy.outcome_mapping[result.expected]:
        return False
    if result.attempt is not Attempt.BACKEND or result.backend_outcome is None:
        return result.attempt is not Attempt.BACKEND
    number = result.probability if result.probability is not None else result.score
    outcome = policy.thresholds.outcome(result.backend_outcome, number)
    decided = outcome is not DecisionOutcome.ABSTAIN
    verdict = policy.outcome_mapping[outcome] if decided else GateVerdict.UNKNOWN
    return (result.outcome, result.judged, result.verdict) == (outcome, decided, verdict)


def as_table(result: CaseResult) -> dict[str, Any]:
    """Return a result as it stands in an evidence file."""
    return attrs.asdict(result, value_serializer=lambda _owner, _field, value: getattr(value, "value", value))


def from_table(said: Mapping[str, Any]) -> CaseResult:
    """Return the result that an evidence file holds.

    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    fields = dict(said)
    for name, kind in (
        ("expected", DecisionOutcome),
        ("right", GateVerdict),
        ("attempt", Attempt),
        ("verdict", GateVerdict),
    ):
        fields[name] = kind(fields[name])
    for name in ("outcome", "backend_outcome"):
        fields[name] = None if fields[name] is None else DecisionOutcome(fields[name])
    result = CaseResult(**fields)
    if result.part not in PARTS or result.severity not in SEVERITIES or not isinstance(result.judged, bool):
        raise ValueError("part, severity or judged")
    sure = result.verdict in (GateVerdict.ALLOW, GateVerdict.DENY)
    if result.expected is DecisionOutcome.ABSTAIN or (sure if not result.judged else result.verdict is GateVerdict.UNKNOWN):
        raise ValueError("expected or verdict")
    return result
