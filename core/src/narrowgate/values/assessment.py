"""What a gate made of one question, before any action (spec 3.3). The invariants hold by construction."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs
from attrs import validators as v

from narrowgate.values.decision import NO_USAGE, DecisionOutcome, Usage


class GateMode(StrEnum):
    """How much a policy may do. SHADOW is where every policy begins that was not measured on one's own data."""

    DISABLED = "disabled"
    SHADOW = "shadow"
    ADVISORY = "advisory"
    ENFORCING = "enforcing"


class Coverage(StrEnum):
    """The first question about an assessment: was the content judged at all?"""

    ADJUDICATED = "adjudicated"
    UNADJUDICATED = "unadjudicated"


class GateVerdict(StrEnum):
    """What the judgement means for the consumer. UNKNOWN is all that can be said where nothing was judged."""

    ALLOW = "allow"
    DENY = "deny"
    REVIEW = "review"
    UNKNOWN = "unknown"


class VerdictSource(StrEnum):
    """Who judged."""

    LOCAL_RULE = "local_rule"
    DECISION_MODEL = "decision_model"
    NONE = "none"


class Attempt(StrEnum):
    """The six kinds of attempt that an observation tells apart (spec 3.4).

    NO_CALL: nobody was asked, and neither a backend nor privacy is why (no backend, cooldown, a rule about transport).
    LOCAL_RULE: a rule judged the content. BACKEND: a backend judged or deliberately abstained. BACKEND_FALLBACK: the backend
    failed. PRIVACY_FALLBACK: the privacy boundary forbade the call, or redaction took away what the question needs.
    PARSE_FAILURE: the backend answered with something that is no verdict.
    """

    NO_CALL = "no_call"
    LOCAL_RULE = "local_rule"
    BACKEND = "backend"
    BACKEND_FALLBACK = "backend_fallback"
    PRIVACY_FALLBACK = "privacy_fallback"
    PARSE_FAILURE = "parse_failure"


_FALLBACKS: Final = (Attempt.BACKEND_FALLBACK, Attempt.PRIVACY_FALLBACK, Attempt.PARSE_FAILURE)


@attrs.frozen(kw_only=True)
class DecisionAssessment:
    """What is known about one question to a gate.

    Attributes:
        policy_id: the policy's id.
        policy_version: its version.
        mode: the mode that it ran in.
        attempt: which of the six kinds of attempt this was.
        coverage: whether the content was judged.
        verdict: what that means.
        source: who judged.
        reason: a closed, content-free code.
        outcome: what the backend said; `None` when it said nothing.
        probability: the backend's calibrated probability of yes, 0..1, where it has one.
        score: the backend's uncalibrated score, finite, where it has one.
        confidence: of the verdict, 0..1, where there is one.
        used_fallback: a failure or a refusal stands in for a judgement.
        usage: what it cost.
        latency_ms: wall time, finite and >= 0.

    Raises:
        ValueError: the combination claims a judgement that did not happen.
    """

    policy_id: str
    policy_version: str
    mode: GateMode
    attempt: Attempt
    coverage: Coverage
    verdict: GateVerdict
    source: VerdictSource
    reason: str = attrs.field(validator=[v.min_len(1), v.max_len(4096)])
    outcome: DecisionOutcome | None = None
    probability: float | None = attrs.field(default=None, validator=v.optional([v.ge(0.0), v.le(1.0)]))
    score: float | None = attrs.field(default=None, validator=v.optional([v.gt(float("-inf")), v.lt(float("inf"))]))
    confidence: float | None = attrs.field(default=None, validator=v.optional([v.ge(0.0), v.le(1.0)]))
    used_fallback: bool = False
    usage: Usage = NO_USAGE
    latency_ms: float = attrs.field(default=0.0, validator=[v.ge(0.0), v.lt(float("inf"))])

    def __attrs_post_init__(self) -> None:
        """Refuse what would dress up an outage, a refusal or a silence as a judgement."""
        judged = self.coverage is Coverage.ADJUDICATED
        answered = self.attempt is Attempt.BACKEND
        ruled = self.attempt is Attempt.LOCAL_RULE
        decided = self.outcome in (DecisionOutcome.YES, DecisionOutcome.NO)
        called = self.attempt in (Attempt.BACKEND, Attempt.BACKEND_FALLBACK, Attempt.PARSE_FAILURE)
        numbers = (self.probability, self.score)
        rules = (
            (self.mode is not GateMode.DISABLED, "a disabled policy assesses nothing"),
            (not (self.used_fallback and judged), "used_fallback means unadjudicated"),
            (self.used_fallback is (self.attempt in _FALLBACKS), "used_fallback is exactly the three fallbacks"),
            (judged is not (self.verdict is GateVerdict.UNKNOWN), "what was judged has a verdict, and nothing else has"),
            (ruled is (self.source is VerdictSource.LOCAL_RULE), "the source of a rule's judgement is the rule"),
            (answered is (self.source is VerdictSource.DECISION_MODEL), "the source of a backend's answer is the model"),
            (judged is (ruled or (answered and decided)), "judged is what a rule judged, or a backend by yes or no"),
            (answered is (self.outcome is not None), "a backend that answered has an outcome, and nothing else has"),
            (answered or numbers == (None, None), "only a backend that answered has a probability or a score"),
            (judged or self.confidence is None, "there is no confidence in what was not judged"),
            (called or self.usage == NO_USAGE, "what asked nobody costs nothing"),
        )
        broken = [text for holds, text in rules if not holds]
        if broken:
            raise ValueError("; ".join(broken))
