"""Parts of the tests of rescoring: stored observations made by a real gate's rules of the game, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import numpy as np

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.gate import Gate
from narrowgate.seams.observing import Coded
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.columns import BY_NAME, ColumnType, record_of
from narrowgate.values.decision import DecisionOutcome, DecisionResult, Usage
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import DecisionPolicy
from narrowgate_cli.rescoring.stored import READ, Stored

POLICY = attrs.evolve(BUILT_IN["memory.write.evidence_sufficiency.v1"], policy_id="team.write.v1", origin="test")
START = datetime(2026, 3, 1, tzinfo=UTC)


def answer(said: str, probability: float | None = None, score: float | None = None) -> DecisionResult:
    """Return what a backend said."""
    return DecisionResult(DecisionOutcome(said), "judge.v1", Usage(1, 1, 10, 1), probability=probability, score=score)


def observed(number: int, result: DecisionResult | str, policy: DecisionPolicy = POLICY, **more: Any) -> DecisionObservation:
    """Return the observation of an answer as a gate maps it; of a text, that nobody answered for this reason."""
    about: dict[str, Any] = {
        "policy_id": policy.policy_id,
        "policy_version": policy.version,
        "mode": GateMode.SHADOW,
        "latency_ms": 10.0 + number,
    }
    backend = None
    if isinstance(result, str):
        attempt = Attempt.NO_CALL if result == "cooldown" else Attempt.BACKEND_FALLBACK
        assessment = DecisionAssessment(
            **about,
            attempt=attempt,
            coverage=Coverage.UNADJUDICATED,
            verdict=GateVerdict.UNKNOWN,
            source=VerdictSource.NONE,
            reason="cooldown" if attempt is Attempt.NO_CALL else "decision_model_fallback",
            used_fallback=attempt is not Attempt.NO_CALL,
        )
    else:
        outcome, confidence = Gate(policy).outcome_of(result)
        decided = outcome is not DecisionOutcome.ABSTAIN
        backend = result.outcome
        assessment = DecisionAssessment(
            **about,
            attempt=Attempt.BACKEND,
            coverage=Coverage.ADJUDICATED if decided else Coverage.UNADJUDICATED,
            verdict=policy.outcome_mapping[outcome] if decided else GateVerdict.UNKNOWN,
            source=VerdictSource.DECISION_MODEL,
            reason="decision_model_verdict" if decided else "abstain",
            outcome=outcome,
            probability=result.probability,
            score=result.score,
            confidence=confidence,
            usage=result.usage,
        )
    values: dict[str, Any] = {
        "observation_id": f"{number:026}",
        "created_at": START + timedelta(hours=6 * number),
        "operation_id": "test",
        "scope_id": "m",
        "consumer": policy.consumer,
        "fingerprint": fingerprint(policy),
        "assessment": assessment,
        "backend_outcome": backend,
        "thresholds": policy.thresholds,
        "privacy_boundary": policy.privacy_boundary,
        "privacy_outcome": "local_model_called",
        "provider_id": "local.evidence" if backend is not None else None,
        "final_action": "memory_write_accept",
        "fallback_reason": result if isinstance(result, str) and assessment.used_fallback else None,
        "language": "zh" if number % 2 else "en",
    }
    return DecisionObservation(**{**values, **more})


def ruled(number: int, verdict: str, reason: str, policy: DecisionPolicy = POLICY) -> DecisionObservation:
    """Return the observation of a local rule's verdict."""
    assessment = DecisionAssessment(
        policy_id=policy.policy_id,
        policy_version=policy.version,
        mode=GateMode.SHADOW,
        attempt=Attempt.LOCAL_RULE,
        coverage=Coverage.ADJUDICATED,
        verdict=GateVerdict(verdict),
        source=VerdictSource.LOCAL_RULE,
        reason=reason,
    )
    return observed(number, "cooldown", policy, assessment=assessment)


def stored(observations: list[DecisionObservation]) -> Stored:
    """Return observations as columns."""
    records = [record_of(item) for item in observations]
    columns: dict[str, Any] = {}
    for name in READ:
        given = [record[name] for record in records]
        kind = BY_NAME[name].type
        if kind is ColumnType.LABEL:
            values = sorted({value for value in given if value is not None})
            codes = [-1 if value is None else values.index(value) for value in given]
            columns[name] = Coded(np.array(codes, np.int32), tuple(values))
        elif kind is ColumnType.TIME:
            columns[name] = np.array([int(item.created_at.timestamp() * 1e6) for item in observations], np.int64)
        elif kind is ColumnType.REAL:
            columns[name] = np.array([np.nan if value is None else value for value in given], np.float64)
        else:
            columns[name] = np.array([-1 if value is None else value for value in given], np.int64)
    return Stored(columns)
