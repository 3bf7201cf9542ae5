"""A decision policy: one narrow question, who may be asked it, and how far the answer reaches (spec 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

import attrs
from attrs import validators as v

from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome

MAX_QUESTION: Final = 8192
"""Bytes of a question in UTF-8."""

POLICY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
"""What a policy's id looks like: it names files and stands in lines of tables."""

VERSION: Final = re.compile(r"(?=.{1,64}\Z)[!-~](?:[ -~]*[!-~])?")
"""What a version looks like: printable ASCII, no space at either end; e.g. `1` or `1;hold_on=yes;threshold=0.4`."""

LANGUAGE: Final = re.compile(r"[a-z]{2,3}")
"""What the label of a language looks like: ISO 639, without region or script."""


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
            backend's own yes.
        no_at: at or below which it is no; `None` takes the backend's own no. What is neither is an abstention.

    Raises:
        ValueError: one is not finite, or `no_at` is not below `yes_at`: an answer could then be yes and no.
    """

    yes_at: float | None = None
    no_at: float | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse what no number could meet."""
        if any(item is not None and not isfinite(item) for item in (self.yes_at, self.no_at)):
            raise ValueError("thresholds are finite numbers")
        if self.yes_at is not None and self.no_at is not None and self.no_at >= self.yes_at:
            raise ValueError(f"no_at {self.no_at:g} is not below yes_at {self.yes_at:g}: no answer would lie between")

    def outcome(self, said: DecisionOutcome, number: float | None) -> DecisionOutcome:
        """Return what an answer counts as.

        Args:
            said: the backend's own word. An abstention stays one: a backend that declines to judge has its reasons, and no
                threshold turns them into a judgement.
            number: its probability or score; without one its own word counts.
        """
        if number is None or said is DecisionOutcome.ABSTAIN:
            return said
        if self.yes_at is not None and number >= self.yes_at:
            return DecisionOutcome.YES
        if self.no_at is not None and number <= self.no_at:
            return DecisionOutcome.NO
        own = self.yes_at if said is DecisionOutcome.YES else self.no_at
        return said if own is None else DecisionOutcome.ABSTAIN


_FINITE: Final = [v.ge(0.0), v.lt(float("inf"))]


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
    max_added_latency_ms: float = attrs.field(default=1000.0, validator=_FINITE)
    max_requests_per_decision: float = attrs.field(default=1.0, validator=_FINITE)
    max_reviews_per_day: float = attrs.field(default=20.0, validator=_FINITE)


def _listed(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _frozen(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(dict(value))


def _questions(_policy: Any, _field: Any, value: Mapping[str, str]) -> None:
    if "en" not in value:
        raise ValueError("question has no English text, which stands in where the subject's language has none")
    for language, text in value.items():
        if not LANGUAGE.fullmatch(language):
            raise ValueError(f"question: {language!r} is no label of a language, like 'en' or 'zh'")
        if not text.strip() or len(text.encode()) > MAX_QUESTION:
            raise ValueError(f"question.{language} is not 1 to {MAX_QUESTION} bytes long")


def _yes_and_no(_policy: Any, _field: Any, value: Mapping[DecisionOutcome, GateVerdict]) -> None:
    if set(value) != {DecisionOutcome.YES, DecisionOutcome.NO}:
        raise ValueError("outcome_mapping says what yes and no mean, and nothing else: an abstention is always unknown")
    if not set(value.values()) <= {GateVerdict.ALLOW, GateVerdict.DENY, GateVerdict.REVIEW}:
        raise ValueError("outcome_mapping: yes and no are allow, deny or review")


def _labels(_policy: Any, _field: Any, value: tuple[str, ...]) -> None:
    if not value or not all(LANGUAGE.fullmatch(item) for item in value):
        raise ValueError("languages are labels like 'en' or 'zh', at least one")


@attrs.frozen(kw_only=True)
class DecisionPolicy:
    """A policy. Immutable: another question, threshold or mapping is another version.

    Attributes:
        policy_id: stable id, e.g. `memory.write.evidence_sufficiency.v1`: see `POLICY_ID`.
        decision_kind: low-cardinality label of the request, at most 128 characters.
        version: of question and schema, not of a model: see `VERSION`.
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
        origin: the file it was read from, the name of its constant, or `built-in`; no part of its identity.
        rule_settings: `<rule>.<option>` -> what the deployment sets of its local rules; a number or a flag as it is,
            anything else as a hash. No field of a file: whoever reads a policy for a deployment fills it in, since a bound
            that decides without a backend decides as much as a threshold does.

    Raises:
        ValueError: a value is out of these bounds. What its consumer does not allow is told by
            `narrowgate.governance.files.contradictions`.
    """

    policy_id: str = attrs.field(validator=v.matches_re(POLICY_ID, func=re.fullmatch))
    decision_kind: str = attrs.field(validator=[v.min_len(1), v.max_len(128)])
    version: str = attrs.field(validator=v.matches_re(VERSION, func=re.fullmatch))
    consumer: str = attrs.field(validator=[v.min_len(1), v.max_len(128)])
    mode: GateMode = attrs.field(default=GateMode.SHADOW, validator=v.instance_of(GateMode))
    failure_policy: FailurePolicy = attrs.field(default=FailurePolicy.FAIL_OPEN, validator=v.instance_of(FailurePolicy))
    privacy_boundary: PrivacyBoundary = attrs.field(
        default=PrivacyBoundary.LOCAL_ONLY, validator=v.instance_of(PrivacyBoundary)
    )
    local_rules: tuple[str, ...] = attrs.field(default=(), converter=_listed)
    question: Mapping[str, str] = attrs.field(converter=_frozen, validator=_questions)
    subject_selector: str = attrs.field(validator=[v.min_len(1), v.max_len(512)])
    evidence_selector: str = attrs.field(validator=[v.min_len(1), v.max_len(512)])
    outcome_mapping: Mapping[DecisionOutcome, GateVerdict] = attrs.field(converter=_frozen, validator=_yes_and_no)
    promotion_criteria: PromotionCriteria
    thresholds: Thresholds = attrs.field(factory=Thresholds)
    effect: str | None = None
    languages: tuple[str, ...] = attrs.field(default=("en", "zh"), converter=_listed, validator=_labels)
    author: str | None = None
    origin: str = attrs.field(default="built-in", eq=False)
    rule_settings: Mapping[str, float | bool | str] = attrs.field(factory=dict, converter=_frozen)
