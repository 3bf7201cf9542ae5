"""Narrow questions: what is asked, what is answered, what it cost, and the one fail-open envelope."""

from narrowgate.decisions.account import Account, MeteredBackend, MeteredGenerator, account, spending
from narrowgate.decisions.answers import checked, checked_many, code_of, cost_of, name_of, total, unreported
from narrowgate.decisions.envelope import FailOpen
from narrowgate.values.decision import (
    NO_USAGE,
    RERANK_KIND,
    RERANK_QUESTION,
    DecisionOutcome,
    DecisionRequest,
    DecisionResult,
    Usage,
)

__all__ = [
    "NO_USAGE",
    "RERANK_KIND",
    "RERANK_QUESTION",
    "Account",
    "DecisionOutcome",
    "DecisionRequest",
    "DecisionResult",
    "FailOpen",
    "MeteredBackend",
    "MeteredGenerator",
    "Usage",
    "account",
    "checked",
    "checked_many",
    "code_of",
    "cost_of",
    "name_of",
    "spending",
    "total",
    "unreported",
]
