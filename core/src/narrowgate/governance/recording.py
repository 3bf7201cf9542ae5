"""From a judged question and the action really taken to an observation. What came from outside is let in as codes only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import attrs

from narrowgate.decisions.answers import WITHHELD, is_code, name_of
from narrowgate.governance.gate import Gate, Judged
from narrowgate.governance.privacy import LONGEST_REF, is_exact, masked
from narrowgate.values.identity import new_entry_ids
from narrowgate.values.observation import DecisionObservation

SNIPPET: Final = 512
"""The longest snippet, in characters, where a deployment asked for snippets."""


def observation_of(
    gate: Gate, judged: Judged, final_action: str, *, snippets: bool = False, observation_id: str | None = None
) -> DecisionObservation:
    """Return the observation of one attempt.

    Reasons that backends and rules give are codes by contract; one that is a sentence, and an id that is none, becomes
    `withheld`: a model that repeats what it was shown must not write it into an audit record. Of a reference that is a URL,
    user name, password and all behind the path are masked before it is cut; where a sanitiser is in use, references and the
    snippet are redacted before that.

    Args:
        gate: the gate that judged.
        judged: what it made of the question.
        final_action: what the consumer really did.
        snippets: keep the head of the subject's text; off unless a deployment says so.
        observation_id: its id, where it was given out before; a new one by default.
    """
    question, assessment = judged.question, judged.assessment
    return DecisionObservation(
        observation_id=observation_id or new_entry_ids(1)[0],
        created_at=datetime.fromtimestamp(time.time(), UTC),
        operation_id=question.operation_id,
        scope_id=question.scope_id,
        consumer=gate.policy.consumer,
        fingerprint=gate.fingerprint,
        assessment=assessment if is_code(assessment.reason) else attrs.evolve(assessment, reason=WITHHELD),
        backend_outcome=judged.backend_outcome,
        thresholds=gate.policy.thresholds,
        subject_refs=_refs(gate, question.subject_refs),
        evidence_refs=_refs(gate, question.evidence_refs),
        privacy_boundary=gate.policy.privacy_boundary,
        privacy_outcome=judged.privacy_outcome,
        redactions=_detectors(judged.redactions),
        provider_id=judged.provider_id,
        backend_model_id=None if judged.backend_model_id is None else name_of(judged.backend_model_id),
        model_policy_id=None if judged.model_policy_id is None else name_of(judged.model_policy_id),
        final_action=final_action,
        fallback_reason=None if judged.fallback_reason is None else _code(judged.fallback_reason),
        language=question.language,
        snippet=_snippet(gate, question.subject) if snippets else None,
        metadata=dict(question.metadata),
    )


def _code(said: str) -> str:
    return said if is_code(said) else WITHHELD


def _detectors(found: Mapping[str, int]) -> dict[str, int]:
    """Return counts by detector; those whose name may be what they found are one."""
    kept: dict[str, int] = {}
    for name, number in found.items():
        kept[_code(name)] = kept.get(_code(name), 0) + number
    return kept


def _refs(gate: Gate, said: tuple[str, ...]) -> tuple[str, ...]:
    """Return references as they are kept: exact ones as they are, since replays resolve them; names of sources cleaned."""
    names = tuple(ref for ref in said if not is_exact(ref))
    clean = gate.cleaned(names)
    shown = dict(zip(names, [WITHHELD] * len(names) if clean is None else clean, strict=True))
    return tuple(_valid(masked(shown[ref])[:LONGEST_REF]) if ref in shown else ref for ref in said)


def _snippet(gate: Gate, subject: str) -> str:
    """Return the head of a text. Redacted as a whole: half of a value at the cut would be none that a detector knows."""
    clean = gate.cleaned((subject,))
    return WITHHELD if clean is None else _valid(clean[0][:SNIPPET])


def _valid(text: str) -> str:
    """Return a text without halves of characters, which a sanitiser of somebody else may leave and no file can hold."""
    return text.encode(errors="replace").decode()
