"""From a judged question and the action really taken to an observation."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from narrowgate.governance.gate import Gate, Judged
from narrowgate.values.identity import new_entry_ids
from narrowgate.values.observation import DecisionObservation

SNIPPET: Final = 512
"""The longest snippet, in characters, where a deployment asked for snippets."""


def observation_of(gate: Gate, judged: Judged, final_action: str, *, snippets: bool = False) -> DecisionObservation:
    """Return the observation of one attempt.

    Args:
        gate: the gate that judged.
        judged: what it made of the question.
        final_action: what the consumer really did.
        snippets: keep the head of the subject's text; off unless a deployment says so.
    """
    question = judged.question
    return DecisionObservation(
        observation_id=new_entry_ids(1)[0],
        created_at=datetime.fromtimestamp(time.time(), UTC),
        operation_id=question.operation_id,
        scope_id=question.scope_id,
        consumer=gate.policy.consumer,
        fingerprint=gate.fingerprint,
        assessment=judged.assessment,
        thresholds=gate.policy.thresholds,
        subject_refs=question.subject_refs,
        evidence_refs=question.evidence_refs,
        privacy_boundary=gate.policy.privacy_boundary,
        privacy_outcome=judged.privacy_outcome,
        redactions=judged.redactions,
        provider_id=judged.provider_id,
        model_policy_id=judged.model_policy_id,
        final_action=final_action,
        fallback_reason=judged.fallback_reason,
        language=question.language,
        snippet=question.subject[:SNIPPET] if snippets else None,
        metadata=dict(question.metadata),
    )
