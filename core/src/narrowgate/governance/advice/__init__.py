"""Advice on request: how entries relate, whether evidence bears a claim, which experience fits. It never acts."""

from narrowgate.governance.advice.service import Advice
from narrowgate.governance.advice.values import (
    Applicability,
    ApplicabilityAdvice,
    ExperienceAdvice,
    Finding,
    Fit,
    HandoffAdvice,
    Proposal,
    Relation,
    RelationAdvice,
    RelationsAdvice,
)

__all__ = [
    "Advice",
    "Applicability",
    "ApplicabilityAdvice",
    "ExperienceAdvice",
    "Finding",
    "Fit",
    "HandoffAdvice",
    "Proposal",
    "Relation",
    "RelationAdvice",
    "RelationsAdvice",
]
