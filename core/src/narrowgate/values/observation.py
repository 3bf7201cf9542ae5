"""The audit record of one attempt: what was asked of whom, what came of it, what was really done (spec 3.4). No content."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs
from attrs import validators as v

from narrowgate.values.assessment import DecisionAssessment
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import PrivacyBoundary, Thresholds


def _counts(_: object, attribute: attrs.Attribute[Mapping[str, int]], value: Mapping[str, object]) -> None:
    # Counts and nothing else: what is free to be text would one day hold content.
    for name, number in value.items():
        if len(name) > 128 or type(number) is not int or number < 0:
            raise ValueError(f"{attribute.name} maps short names to whole numbers >= 0")


@attrs.frozen(kw_only=True)
class DecisionObservation:
    """One attempt of a gate. What it holds suffices to rescore: outcome, numbers, thresholds, model, fingerprint.

    Attributes:
        observation_id: generated, unique; sorts by time.
        created_at: UTC.
        operation_id: names the caller's operation, at most 256 characters; one operation may have many attempts.
        scope_id: the memory (or other scope) concerned, at most 256 characters.
        consumer: the policy's consumer.
        fingerprint: of the policy: 64 lowercase hex digits.
        assessment: what came of it; has policy id, version and mode.
        backend_outcome: what the backend itself said; the assessment's outcome is what the thresholds made of it. Needed to
            rescore: no threshold turns a backend's own abstention into a judgement.
        thresholds: those of the policy at the time.
        subject_refs: exact references of what was judged, at most 512 characters each.
        evidence_refs: likewise of what it was judged against.
        privacy_boundary: the policy's.
        privacy_outcome: what the boundary did: `no_call`, `local_rule`, `local_model_called`, `hosted_redacted_called`,
            `references_only_called`, `local_only_refused`, `no_external_call`, `redaction_removed_needed`, ...
        redactions: detector -> number of places that redaction replaced.
        provider_id: full name of the backend's component, when one was called.
        backend_model_id: the exact model that answered, where known.
        model_policy_id: the backend's own versioned id.
        final_action: what the consumer really did: `memory_write_accept`, `memory_write_hold`, ...
        fallback_reason: a closed code when a failure or refusal stood in for a judgement.
        language: of the subject: `en`, `zh`, ... or `und`.
        snippet: text of the subject, only where a deployment asked for its retention.
        metadata: counts only.
    """

    observation_id: str
    created_at: datetime
    operation_id: str = attrs.field(validator=v.max_len(256))
    scope_id: str = attrs.field(validator=v.max_len(256))
    consumer: str = attrs.field(validator=v.max_len(128))
    fingerprint: str
    assessment: DecisionAssessment
    backend_outcome: DecisionOutcome | None = None
    thresholds: Thresholds
    subject_refs: tuple[str, ...] = attrs.field(default=(), validator=v.deep_iterable(v.max_len(512)))
    evidence_refs: tuple[str, ...] = attrs.field(default=(), validator=v.deep_iterable(v.max_len(512)))
    privacy_boundary: PrivacyBoundary
    privacy_outcome: str = attrs.field(validator=v.max_len(128))
    redactions: Mapping[str, int] = attrs.field(factory=dict, validator=_counts)
    provider_id: str | None = None
    backend_model_id: str | None = None
    model_policy_id: str | None = None
    final_action: str = attrs.field(validator=v.max_len(128))
    fallback_reason: str | None = attrs.field(default=None, validator=v.optional(v.max_len(256)))
    language: str = "und"
    snippet: str | None = None
    metadata: Mapping[str, int] = attrs.field(factory=dict, validator=_counts)
