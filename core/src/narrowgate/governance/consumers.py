"""Who may ask a gate, and what each may do with the answer. Anything else is refused at start-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from narrowgate.values.policy import FailurePolicy


@attrs.frozen(kw_only=True)
class Consumer:
    """One kind of caller.

    Attributes:
        name: as policies name it.
        summary: what it decides, one sentence.
        failure: the only failure policy that its policies may have.
        passed: the action when the gate has no say: what happens without any policy.
        flagged: the action of an advisory policy that does not allow; `None` where there is no such action.
        effects: effect -> the action that it stands for; empty for a consumer that may never enforce.
    """

    name: str
    summary: str
    failure: FailurePolicy
    passed: str
    flagged: str | None
    effects: Mapping[str, str]


CONSUMERS: Final[Mapping[str, Consumer]] = {
    item.name: item
    for item in (
        Consumer(
            name="memory_write_gate",
            summary="May this entry be written on the evidence that it cites?",
            failure=FailurePolicy.FAIL_OPEN,
            passed="memory_write_accept",
            flagged="memory_write_flag",
            effects={"hold": "memory_write_hold"},
        ),
        Consumer(
            name="duplicate_conflict",
            summary="How does an entry relate to those that are there? Observed, proposed for review, never acted on.",
            failure=FailurePolicy.FAIL_OPEN,
            passed="duplicate_conflict_observe",
            flagged="duplicate_conflict_propose",
            effects={},
        ),
        Consumer(
            name="handoff_evidence_consult",
            summary="Does the attached evidence support this claim? An annotation, never an acceptance.",
            failure=FailurePolicy.FAIL_OPEN,
            passed="handoff_consult_none",
            flagged="handoff_consult_verify",
            effects={},
        ),
        Consumer(
            name="experience_applicability",
            summary="Do the conditions of this experience or skill fit the task? A recommendation, with an explicit none.",
            failure=FailurePolicy.FAIL_OPEN,
            passed="applicability_none",
            flagged="applicability_recommend",
            effects={},
        ),
        Consumer(
            name="memory_rerank",
            summary="Does this candidate hold evidence for the query? Described and observed; fails closed.",
            failure=FailurePolicy.FAIL_CLOSED,
            passed="memory_rerank_select",
            flagged=None,
            effects={"fail_search": "memory_rerank_fail"},
        ),
    )
}
"""Name -> consumer."""
