"""A decision policy: one narrow question, who may be asked it, and how far the answer reaches (spec 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs
from attrs import validators as v

from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome


class FailurePolicy(StrEnum):
    """What a role does when its backend fails."""

    FAIL_OPEN = "fail_open"
    FAIL_CLOSED = "fail_closed"


class PrivacyBoundary(StrEnum):
    """Where the content of a question may go (spec 3.9)."""

    LOCAL_ONLY = "local_only"
    HOSTED_REDACTED = "hosted_redacted"
    REFERENCES_ONLY = "references_only"
    NO_EXTERNAL_CALL = "no_external_call"


@attrs.frozen(kw_only=True)
class Thresholds:
    """When an answer with a number counts.

    Attributes:
        yes_at: probability (or, where the backend has none, score) at or above which the answer is yes; `None` takes the
            backend's own word.
        no_at: at or below which it is no; between the two it is an abstention.
    """

    yes_at: float | None = None
    no_at: float | None = None


@attrs.frozen(kw_only=True)
class PromotionCriteria:
    """What must be shown before a policy may enforce (spec 3.8). Numbers belong to the policy's own loss.

    Attributes:
        min_labelled: labelled cases in the calibration part, >= 0.
        min_held_out: labelled cases in the held-out part, >= 0.
        languages: languages that the held-out part must cover.
        max_high_severity_false_actions: known false actions of high severity, in the held-out part.
        min_precision: of the action, in the held-out part, 0..1.
        max_fallback_rate: share of attempts that were fallbacks, over all reasons, 0..1.
        max_added_latency_ms: 95th percentile of the added latency.
        max_requests_per_decision: mean number of backend requests.
        max_reviews_per_day: the friction budget: holds and reviews that people must look at.
    """

    min_labelled: int = attrs.field(default=100, validator=v.ge(0))
    min_held_out: int = attrs.field(default=100, validator=v.ge(0))
    languages: tuple[str, ...] = ("en", "zh")
    max_high_severity_false_actions: int = attrs.field(default=0, validator=v.ge(0))
    min_precision: float = attrs.field(default=0.9, validator=[v.ge(0.0), v.le(1.0)])
    max_fallback_rate: float = attrs.field(default=0.05, validator=[v.ge(0.0), v.le(1.0)])
    max_added_latency_ms: float = attrs.field(default=1000.0, validator=v.ge(0.0))
    max_requests_per_decision: float = attrs.field(default=1.0, validator=v.ge(0.0))
    max_reviews_per_day: float = attrs.field(default=20.0, validator=v.ge(0.0))


@attrs.frozen(kw_only=True)
class DecisionPolicy:
    """A policy. Immutable: another question, threshold or mapping is another version.

    Attributes:
        policy_id: stable id, at most 256 characters, e.g. `memory.write.evidence_sufficiency.v1`.
        decision_kind: low-cardinality label of the request, at most 128 characters.
        version: of question and schema, not of a model; at most 64 characters.
        consumer: who asks, at most 128 characters; see `narrowgate.governance.consumers`.
        mode: how far the answer reaches.
        failure_policy: what the role does when its backend fails.
        privacy_boundary: where content may go.
        local_rules: full names of local rules, in the order in which they are asked.
        question: language -> the bounded question, at most 8,192 UTF-8 bytes each; `en` is always there.
        subject_selector: which value of the consumer is judged, at most 512 characters.
        evidence_selector: what it is judged against, at most 512 characters.
        outcome_mapping: yes and no -> verdict; an abstention is always unknown.
        promotion_criteria: what must be shown before it may enforce.
        thresholds: when an answer with a number counts.
        effect: the one action that `enforcing` may take, of those that the consumer defines; `None` for a policy that never
            enforces.
        languages: the languages of the content that it will see.
        author: who answers for the policy; an approver must be another where duties are separated.
        origin: the file it was read from, or `built-in`; no part of its identity.
    """

    policy_id: str = attrs.field(validator=[v.min_len(1), v.max_len(256)])
    decision_kind: str = attrs.field(validator=[v.min_len(1), v.max_len(128)])
    version: str = attrs.field(validator=[v.min_len(1), v.max_len(64)])
    consumer: str = attrs.field(validator=[v.min_len(1), v.max_len(128)])
    mode: GateMode = GateMode.SHADOW
    failure_policy: FailurePolicy = FailurePolicy.FAIL_OPEN
    privacy_boundary: PrivacyBoundary = PrivacyBoundary.LOCAL_ONLY
    local_rules: tuple[str, ...] = ()
    question: Mapping[str, str]
    subject_selector: str = attrs.field(validator=[v.min_len(1), v.max_len(512)])
    evidence_selector: str = attrs.field(validator=[v.min_len(1), v.max_len(512)])
    outcome_mapping: Mapping[DecisionOutcome, GateVerdict]
    promotion_criteria: PromotionCriteria
    thresholds: Thresholds = attrs.field(factory=Thresholds)
    effect: str | None = None
    languages: tuple[str, ...] = ("en", "zh")
    author: str | None = None
    origin: str = attrs.field(default="built-in", eq=False)
