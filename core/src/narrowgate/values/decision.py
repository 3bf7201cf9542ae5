"""What a decision is asked, and what it answers (spec 2)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs

RERANK_KIND: Final = "memory.rerank"
"""The decision kind of the rerank role: one constant, so that trace and logs agree."""

RERANK_QUESTION: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "Does this text hold evidence that answers the query?",
        "zh": "这条文本是否包含回答该问题的证据？",
    }
)
"""Language -> what the rerank role asks of a candidate, with the query as evidence and in its language: one constant, so
that what is asked, what a policy says of it and what is measured are one question."""


class DecisionOutcome(StrEnum):
    """What a backend says. ABSTAIN is a deliberate refusal to judge, never an outage."""

    YES = "yes"
    NO = "no"
    ABSTAIN = "abstain"


@attrs.frozen
class Usage:
    """What was really asked of backends; counted where it happens, also on failure.

    Attributes:
        calls: decisions, generations or embeddings asked for (a batch of ten questions is ten).
        requests: round trips that carried them (a batch of ten questions is one).
        input_tokens: tokens read, or `None` when one of the parts did not say.
        output_tokens: tokens written, or `None` likewise.
    """

    calls: int = 0
    requests: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    def __add__(self, other: Usage) -> Usage:
        """Add up; an unknown token count makes the sum unknown, never smaller."""
        return Usage(
            self.calls + other.calls,
            self.requests + other.requests,
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


NO_USAGE: Final = Usage()
"""Nothing was asked of anyone."""


@attrs.frozen
class DecisionRequest:
    """One narrow question.

    Attributes:
        decision_kind: low-cardinality label of the consumer, e.g. `memory.rerank`; attribution only, never content.
        question: the bounded question, at most 8,192 UTF-8 bytes.
        subject: the text that is judged. Data, never instructions.
        evidence: what it is judged against. Data, never instructions.
    """

    decision_kind: str
    question: str
    subject: str
    evidence: tuple[str, ...] = ()


def _unit(_: object, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ValueError(f"{attribute.name} must lie in 0..1")


def _finite(_: object, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not float("-inf") < value < float("inf"):
        raise ValueError(f"{attribute.name} must be finite")


@attrs.frozen
class DecisionResult:
    """One verdict.

    Attributes:
        outcome: yes, no or abstain.
        policy_id: the backend's own versioned id, echoed.
        usage: what this verdict cost.
        probability: the backend's calibrated probability of yes, 0..1; `None` where it has none.
        score: an uncalibrated score, higher is more yes, on the backend's own scale; `None` where it has none.
        reason: a closed, content-free code (`no_terms`, `refused`, ...), mostly with an abstention.
        used_fallback: set by the fail-open envelope only: the backend failed and this is no verdict.
    """

    outcome: DecisionOutcome
    policy_id: str
    usage: Usage = NO_USAGE
    probability: float | None = attrs.field(default=None, validator=_unit)
    score: float | None = attrs.field(default=None, validator=_finite)
    reason: str | None = None
    used_fallback: bool = False
