"""Who may ask a gate, and what each may do with the answer. Anything else is refused at start-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from narrowgate.values.policy import FailurePolicy

TOPIC_KIND: Final = "memory.topic"
DUPLICATE_KIND: Final = "memory.duplicate"
CONFLICT_KIND: Final = "memory.conflict"
HANDOFF_KIND: Final = "handoff.consult"
CONTRADICTION_KIND: Final = "handoff.contradiction"
APPLICABILITY_KIND: Final = "experience.applicability"


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
        kinds: for a consumer that asks several questions, or is called by name: decision kind of each -> the built-in policy
            that asks it. Empty for one whose policies may have any.
        asks_in: whose language the question is asked in: that of the subject; or that of the (first) evidence, where one
            piece of evidence, such as a query, is what many subjects are judged against.
    """

    name: str
    summary: str
    failure: FailurePolicy
    passed: str
    flagged: str | None
    effects: Mapping[str, str]
    kinds: Mapping[str, str] = attrs.field(factory=dict)
    asks_in: Literal["subject", "evidence"] = "subject"


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
            kinds={
                TOPIC_KIND: "memory.topic.relation.v1",
                DUPLICATE_KIND: "memory.duplicate.relation.v1",
                CONFLICT_KIND: "memory.conflict.relation.v1",
            },
        ),
        Consumer(
            name="handoff_evidence_consult",
            summary="Does the attached evidence support this claim? An annotation, never an acceptance.",
            failure=FailurePolicy.FAIL_OPEN,
            passed="handoff_consult_none",
            flagged="handoff_consult_verify",
            effects={},
            kinds={HANDOFF_KIND: "handoff.evidence.consult.v1", CONTRADICTION_KIND: "handoff.contradiction.consult.v1"},
        ),
        Consumer(
            name="experience_applicability",
            summary="Do the conditions of this experience or skill fit the task? A recommendation, with an explicit none.",
            failure=FailurePolicy.FAIL_OPEN,
            passed="applicability_none",
            flagged="applicability_recommend",
            effects={},
            kinds={APPLICABILITY_KIND: "experience.applicability.v1"},
        ),
        Consumer(
            name="memory_rerank",
            summary="Does this candidate hold evidence for the query? Described and observed; fails closed.",
            failure=FailurePolicy.FAIL_CLOSED,
            passed="memory_rerank_select",
            flagged=None,
            effects={"fail_search": "memory_rerank_fail"},
            asks_in="evidence",
        ),
    )
}
"""Name -> consumer."""
