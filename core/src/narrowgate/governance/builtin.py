"""The policies that come with narrowgate: all in shadow and local only, until they are measured on one's own data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import RERANK_KIND, DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, FailurePolicy, PromotionCriteria

_SUPPORTED: Final = {DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.DENY}
_ASKED_FOR_REVIEW: Final = {DecisionOutcome.YES: GateVerdict.REVIEW, DecisionOutcome.NO: GateVerdict.ALLOW}

WRITE: Final = DecisionPolicy(
    policy_id="memory.write.evidence_sufficiency.v1",
    decision_kind="memory.write-gate",
    version="1",
    consumer="memory_write_gate",
    local_rules=("local.evidence-resolves", "local.length-bounds", "local.already-adjudicated", "local.cooldown"),
    question={
        "en": "Does the cited evidence support everything that this entry states?",
        "zh": "所引用的证据是否支持这条记忆中的全部陈述？",
    },
    subject_selector="entry.text",
    evidence_selector="entry.evidence",
    outcome_mapping=_SUPPORTED,
    promotion_criteria=PromotionCriteria(),
    effect="hold",
)

DUPLICATE: Final = DecisionPolicy(
    policy_id="memory.duplicate.relation.v1",
    decision_kind="memory.duplicate",
    version="1",
    consumer="duplicate_conflict",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Do these two entries state the same fact about the same thing, under the same conditions?",
        "zh": "这两条记忆是否在相同条件下陈述了关于同一事物的同一事实？",
    },
    subject_selector="entry.text",
    evidence_selector="existing_entry.text",
    outcome_mapping=_ASKED_FOR_REVIEW,
    promotion_criteria=PromotionCriteria(),
)

CONFLICT: Final = DecisionPolicy(
    policy_id="memory.conflict.relation.v1",
    decision_kind="memory.conflict",
    version="1",
    consumer="duplicate_conflict",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Can these two entries not both be true of the same thing at the same time and under the same conditions?",
        "zh": "在相同时间和相同条件下，这两条记忆是否不可能同时为真？",
    },
    subject_selector="entry.text",
    evidence_selector="existing_entry.text",
    outcome_mapping=_ASKED_FOR_REVIEW,
    promotion_criteria=PromotionCriteria(),
)

HANDOFF: Final = DecisionPolicy(
    policy_id="handoff.evidence.consult.v1",
    decision_kind="handoff.consult",
    version="1",
    consumer="handoff_evidence_consult",
    local_rules=("local.evidence-resolves", "local.length-bounds", "local.cooldown"),
    question={
        "en": "Does the attached evidence support this claim?",
        "zh": "所附证据是否支持这一说法？",
    },
    subject_selector="claim.text",
    evidence_selector="claim.evidence",
    outcome_mapping={DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.REVIEW},
    promotion_criteria=PromotionCriteria(),
)

APPLICABILITY: Final = DecisionPolicy(
    policy_id="experience.applicability.v1",
    decision_kind="experience.applicability",
    version="1",
    consumer="experience_applicability",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Do the conditions of this experience or skill fit the task?",
        "zh": "这条经验或技能的适用条件是否符合当前任务？",
    },
    subject_selector="experience.conditions",
    evidence_selector="task.text",
    outcome_mapping={DecisionOutcome.YES: GateVerdict.REVIEW, DecisionOutcome.NO: GateVerdict.ALLOW},
    promotion_criteria=PromotionCriteria(),
)

RERANK: Final = DecisionPolicy(
    policy_id="memory.rerank.decision.v1",
    decision_kind=RERANK_KIND,
    version="1",
    consumer="memory_rerank",
    failure_policy=FailurePolicy.FAIL_CLOSED,
    question={
        "en": "Does this text hold evidence that answers the query?",
        "zh": "Does this text hold evidence that answers the query?",
    },
    subject_selector="candidate.text",
    evidence_selector="query.text",
    outcome_mapping=_SUPPORTED,
    promotion_criteria=PromotionCriteria(),
)

BUILT_IN: Final[Mapping[str, DecisionPolicy]] = {
    policy.policy_id: policy for policy in (WRITE, DUPLICATE, CONFLICT, HANDOFF, APPLICABILITY, RERANK)
}
"""Id -> policy."""
