"""Values for tests that a running narrowgate would make: a coarse pool, an observation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs

from narrowgate.memory.drafts import prepare_strictly
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.entry import EntryDraft, Operation
from narrowgate.values.identity import EntryRef
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import PrivacyBoundary, Thresholds
from narrowgate.values.search import Candidate, ChannelKind

START: Final = datetime(2026, 3, 1, 10, tzinfo=UTC)
"""When the first made observation was made."""


def operations(items: Sequence[EntryDraft | Operation]) -> list[Operation]:
    """Return what a store is handed for drafts, as narrowgate would prepare them; operations stay as they are.

    Raises:
        InputError: a draft that memory would refuse.
    """
    return [prepare_strictly(item) if isinstance(item, EntryDraft) else item for item in items]


def pool(texts: Sequence[str], *, memory: str = "notes", **draft: Any) -> tuple[Candidate, ...]:
    """Return a coarse pool of texts, rank 1 first, each an entry of its own.

    Args:
        texts: one for each candidate.
        memory: where they stand.
        draft: further fields of the `EntryDraft` that all of them come from.

    Raises:
        InputError: a text that memory would refuse.
    """
    return tuple(
        Candidate(
            rank,
            EntryRef(memory, 1, f"e{rank}", 1),
            prepare_strictly(EntryDraft(text, **draft)).content,
            1 / (60 + rank),
            (ChannelKind.LEXICAL,),
        )
        for rank, text in enumerate(texts, 1)
    )


def observation(number: int = 0, **changes: Any) -> DecisionObservation:
    """Return an observation with every field filled: a hosted model denied a write, which was held.

    Args:
        number: `number` minutes after `START`, and part of its id.
        changes: fields with other values; those of `assessment` too, by their names.
    """
    assessment = DecisionAssessment(
        policy_id="team.write.v1",
        policy_version="1",
        mode=GateMode.ENFORCING,
        attempt=Attempt.BACKEND,
        coverage=Coverage.ADJUDICATED,
        verdict=GateVerdict.DENY,
        source=VerdictSource.DECISION_MODEL,
        reason="decision_model_verdict",
        outcome=DecisionOutcome.NO,
        probability=0.125,
        confidence=0.875,
        usage=Usage(1, 1, 100, 3),
        latency_ms=12.5,
    )
    own = {field.name for field in attrs.fields(DecisionObservation)}
    inner = {name: value for name, value in changes.items() if name not in own}
    made = DecisionObservation(
        observation_id=f"{number:08}",
        created_at=START + timedelta(minutes=number),
        operation_id=f"operation-{number}",
        scope_id="notes",
        consumer="memory_write_gate",
        fingerprint="ab" * 32,
        assessment=attrs.evolve(assessment, **inner),
        backend_outcome=DecisionOutcome.NO,
        thresholds=Thresholds(yes_at=0.5, no_at=0.25),
        subject_refs=(f"notes@3/E{number}/1",),
        evidence_refs=("a", "b"),
        privacy_boundary=PrivacyBoundary.HOSTED_REDACTED,
        privacy_outcome="hosted_redacted_called",
        redactions={"email": 2, "phone": 1},
        provider_id="hosted.systemone",
        backend_model_id="jev-1",
        model_policy_id="hosted.systemone.v1",
        final_action="memory_write_hold",
        language="zh",
        metadata={"candidates": 1},
    )
    return attrs.evolve(made, **{name: value for name, value in changes.items() if name in own})
