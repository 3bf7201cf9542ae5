"""What the tests of the ledger share: observations of every kind of attempt, in English and Chinese."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.identity import new_entry_ids
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import PrivacyBoundary, Thresholds
from narrowgate_sqlite.ledger import SqliteLedger, open_ledger
from narrowgate_sqlite.settings import LedgerSettings

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
KEPT_FOR_EVER = LedgerSettings(keep_days=0, keep_rows=0)

_COVERED: dict[Attempt, dict[str, Any]] = {
    Attempt.NO_CALL: {"reason": "no_backend"},
    Attempt.LOCAL_RULE: {"verdict": GateVerdict.DENY, "source": VerdictSource.LOCAL_RULE, "reason": "needs_evidence"},
    Attempt.BACKEND: {
        "verdict": GateVerdict.ALLOW,
        "source": VerdictSource.DECISION_MODEL,
        "reason": "decision_model_verdict",
        "outcome": DecisionOutcome.YES,
        "probability": 0.1 + 0.2,
        "score": -1.5e-300,
        "confidence": 0.1 + 0.2,
        "usage": Usage(1, 1, 123, None),
    },
    Attempt.BACKEND_FALLBACK: {"reason": "decision_model_fallback", "usage": Usage(1, 1, None, None)},
    Attempt.PRIVACY_FALLBACK: {"reason": "privacy_boundary"},
    Attempt.PARSE_FAILURE: {"reason": "decision_model_fallback"},
}


def assessment(attempt: Attempt, policy: str = "p") -> DecisionAssessment:
    """Return an assessment of one kind of attempt."""
    said = {"verdict": GateVerdict.UNKNOWN, "source": VerdictSource.NONE, **_COVERED[attempt]}
    judged = attempt in (Attempt.LOCAL_RULE, Attempt.BACKEND)
    return DecisionAssessment(
        policy_id=policy,
        policy_version="1",
        mode=GateMode.SHADOW,
        attempt=attempt,
        coverage=Coverage.ADJUDICATED if judged else Coverage.UNADJUDICATED,
        used_fallback=attempt.value.endswith("fallback") or attempt is Attempt.PARSE_FAILURE,
        latency_ms=3.25,
        **said,
    )


def observation(number: int = 0, attempt: Attempt = Attempt.BACKEND, **changes: Any) -> DecisionObservation:
    """Return an observation; `number` minutes after the start."""
    fallback = assessment(attempt).used_fallback
    made = DecisionObservation(
        observation_id=f"{number:08}",
        created_at=START + timedelta(minutes=number, microseconds=7),
        operation_id=f"operation-{number}",
        scope_id="团队" if number % 2 else "team",
        consumer="memory_write_gate",
        fingerprint="ab" * 32,
        assessment=assessment(attempt, changes.pop("policy", "p")),
        backend_outcome=DecisionOutcome.YES if attempt is Attempt.BACKEND else None,
        thresholds=Thresholds(yes_at=0.25, no_at=None),
        subject_refs=(f"team@{number + 1}/{new_entry_ids(1)[0]}/1",),
        evidence_refs=("https://wiki.example/页面", "b"),
        privacy_boundary=PrivacyBoundary.LOCAL_ONLY,
        privacy_outcome="local_model_called",
        redactions={"email": 2},
        provider_id="local.evidence" if attempt is Attempt.BACKEND else None,
        model_policy_id="local.evidence.v1" if attempt is Attempt.BACKEND else None,
        final_action="memory_write_accept",
        fallback_reason="timeout" if fallback else None,
        language="zh" if number % 2 else "en",
        metadata={"candidates": 1, "evidence": 2},
    )
    return attrs.evolve(made, **changes)


@asynccontextmanager
async def opened(path: Path, settings: LedgerSettings = KEPT_FOR_EVER) -> AsyncIterator[SqliteLedger]:
    """Open a ledger."""
    async with open_ledger(path, settings) as ledger:
        yield ledger
