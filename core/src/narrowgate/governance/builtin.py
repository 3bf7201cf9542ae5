"""The policies that come with narrowgate: all in shadow and local only, until they are measured on one's own data.

A verdict is about the way that things would go without a gate, not about the subject: ALLOW, nothing is to be raised; DENY,
the declared effect may be taken; REVIEW, somebody should look. That is why a consumer that may only propose maps the answer
that makes a proposal to REVIEW, whether that answer is yes or no; see docs/policies.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from narrowgate.governance.consumers import (
    APPLICABILITY_KIND,
    CONFLICT_KIND,
    CONTRADICTION_KIND,
    DUPLICATE_KIND,
    HANDOFF_KIND,
    TOPIC_KIND,
)
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import RERANK_KIND, RERANK_QUESTION, DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, FailurePolicy, PromotionCriteria

_YES_PASSES: Final = {DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.DENY}
_YES_IS_PROPOSED: Final = {DecisionOutcome.YES: GateVerdict.REVIEW, DecisionOutcome.NO: GateVerdict.ALLOW}
_ONLY_TOLD: Final = {DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.ALLOW}
"""Of a question that only leads to others: no answer to it raises anything."""
_NO_IS_PROPOSED: Final = {DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.REVIEW}

_HOLDING: Final = PromotionCriteria(
    min_labelled=200,
    min_held_out=200,
    min_precision=0.95,
    max_fallback_rate=0.02,
    max_added_latency_ms=1000.0,
    max_requests_per_decision=1.0,
    max_reviews_per_day=10.0,
)
"""Of a gate that holds writes back: a false hold costs somebody's attention, and until then the memory lacks an entry."""

_PROPOSING: Final = PromotionCriteria(
    min_labelled=100,
    min_held_out=100,
    min_precision=0.8,
    max_fallback_rate=0.05,
    max_added_latency_ms=2000.0,
    max_requests_per_decision=1.0,
    max_reviews_per_day=20.0,
)
"""Of a gate that only proposes: a false proposal costs a look."""

_DESCRIBED: Final = PromotionCriteria(
    min_labelled=200,
    min_held_out=200,
    min_precision=0.9,
    max_fallback_rate=0.0,
    max_added_latency_ms=2000.0,
    max_requests_per_decision=1.0,
    max_reviews_per_day=0.0,
)
"""Of the second stage, which has no fallback and asks nobody for review."""

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
    outcome_mapping=_YES_PASSES,
    promotion_criteria=_HOLDING,
    effect="hold",
)

TOPIC: Final = DecisionPolicy(
    policy_id="memory.topic.relation.v1",
    decision_kind=TOPIC_KIND,
    version="1",
    consumer="duplicate_conflict",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Are these two entries about the same thing?",
        "zh": "这两条记忆是否关于同一事物？",
    },
    subject_selector="entry.text",
    evidence_selector="existing_entry.text",
    outcome_mapping=_ONLY_TOLD,
    promotion_criteria=_PROPOSING,
)

DUPLICATE: Final = DecisionPolicy(
    policy_id="memory.duplicate.relation.v1",
    decision_kind=DUPLICATE_KIND,
    version="1",
    consumer="duplicate_conflict",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Do these two entries state the same fact about the same thing, under the same conditions?",
        "zh": "这两条记忆是否在相同条件下陈述了关于同一事物的同一事实？",
    },
    subject_selector="entry.text",
    evidence_selector="existing_entry.text",
    outcome_mapping=_YES_IS_PROPOSED,
    promotion_criteria=_PROPOSING,
)

CONFLICT: Final = DecisionPolicy(
    policy_id="memory.conflict.relation.v1",
    decision_kind=CONFLICT_KIND,
    version="1",
    consumer="duplicate_conflict",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Can these two entries not both be true of the same thing at the same time and under the same conditions?",
        "zh": "在相同时间和相同条件下，这两条记忆是否不可能同时为真？",
    },
    subject_selector="entry.text",
    evidence_selector="existing_entry.text",
    outcome_mapping=_YES_IS_PROPOSED,
    promotion_criteria=_PROPOSING,
)

HANDOFF: Final = DecisionPolicy(
    policy_id="handoff.evidence.consult.v1",
    decision_kind=HANDOFF_KIND,
    version="1",
    consumer="handoff_evidence_consult",
    local_rules=("local.evidence-resolves", "local.length-bounds", "local.cooldown"),
    question={
        "en": "Does the attached evidence support this claim?",
        "zh": "所附证据是否支持这一说法？",
    },
    subject_selector="claim.text",
    evidence_selector="claim.evidence",
    outcome_mapping=_NO_IS_PROPOSED,
    promotion_criteria=_PROPOSING,
)

CONTRADICTION: Final = DecisionPolicy(
    policy_id="handoff.contradiction.consult.v1",
    decision_kind=CONTRADICTION_KIND,
    version="1",
    consumer="handoff_evidence_consult",
    local_rules=("local.evidence-resolves", "local.length-bounds", "local.cooldown"),
    question={
        "en": "Does the attached evidence contradict this claim?",
        "zh": "所附证据是否与这一说法相矛盾？",
    },
    subject_selector="claim.text",
    evidence_selector="claim.evidence",
    outcome_mapping=_YES_IS_PROPOSED,
    promotion_criteria=_PROPOSING,
)

APPLICABILITY: Final = DecisionPolicy(
    policy_id="experience.applicability.v1",
    decision_kind=APPLICABILITY_KIND,
    version="1",
    consumer="experience_applicability",
    local_rules=("local.length-bounds", "local.cooldown"),
    question={
        "en": "Do the conditions of this experience or skill fit the task?",
        "zh": "这条经验或技能的适用条件是否符合当前任务？",
    },
    subject_selector="experience.conditions",
    evidence_selector="task.text",
    outcome_mapping=_YES_IS_PROPOSED,
    promotion_criteria=_PROPOSING,
)

RERANK: Final = DecisionPolicy(
    policy_id="memory.rerank.decision.v1",
    decision_kind=RERANK_KIND,
    version="2",  # 1 asked in English whatever the language
    consumer="memory_rerank",
    failure_policy=FailurePolicy.FAIL_CLOSED,
    question=RERANK_QUESTION,  # what `decision.keep-drop` asks
    subject_selector="candidate.text",
    evidence_selector="query.text",
    outcome_mapping=_YES_PASSES,
    promotion_criteria=_DESCRIBED,
)

BUILT_IN: Final[Mapping[str, DecisionPolicy]] = {
    policy.policy_id: policy for policy in (WRITE, TOPIC, DUPLICATE, CONFLICT, HANDOFF, CONTRADICTION, APPLICABILITY, RERANK)
}
"""Id -> policy."""
