"""What the tests of this distribution share: an observation with everything in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import PrivacyBoundary, Thresholds

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def observation(number: int = 0, **changes: Any) -> DecisionObservation:
    """Return an observation; `number` minutes after the start."""
    made = DecisionObservation(
        observation_id=f"{number:08}",
        created_at=START + timedelta(minutes=number),
        operation_id="operation",
        scope_id="团队",
        consumer="memory_write_gate",
        fingerprint="ab" * 32,
        assessment=DecisionAssessment(
            policy_id="team.write.v1",
            policy_version="1",
            mode=GateMode.ENFORCING,
            attempt=Attempt.BACKEND,
            coverage=Coverage.ADJUDICATED,
            verdict=GateVerdict.DENY,
            source=VerdictSource.DECISION_MODEL,
            reason="decision_model_verdict",
            outcome=DecisionOutcome.NO,
            probability=0.125,
            confidence=0.875,
            usage=Usage(1, 1, 100, 3),
            latency_ms=12.5,
        ),
        backend_outcome=DecisionOutcome.NO,
        thresholds=Thresholds(yes_at=0.5, no_at=0.25),
        subject_refs=("team@3/01ABC/1",),
        evidence_refs=("a", "b"),
        privacy_boundary=PrivacyBoundary.HOSTED_REDACTED,
        privacy_outcome="hosted_redacted_called",
        redactions={"email": 2, "phone": 1},
        provider_id="hosted.systemone",
        backend_model_id="jev-1",
        model_policy_id="hosted.systemone.v1",
        final_action="memory_write_hold",
        language="zh",
        snippet="the canary sings 金丝雀在唱歌",
        metadata={"candidates": 1},
    )
    return attrs.evolve(made, **changes)
