"""Narrow questions: what is asked, what is answered, what it cost, and the one fail-open envelope."""

from narrowgate.decisions.answers import checked, checked_many, cost_of, total, unreported
from narrowgate.decisions.envelope import FailOpen
from narrowgate.values.decision import (
    NO_USAGE,
    RERANK_KIND,
    DecisionOutcome,
    DecisionRequest,
    DecisionResult,
    Usage,
)

__all__ = [
    "NO_USAGE",
    "RERANK_KIND",
    "DecisionOutcome",
    "DecisionRequest",
    "DecisionResult",
    "FailOpen",
    "Usage",
    "checked",
    "checked_many",
    "cost_of",
    "total",
    "unreported",
]
