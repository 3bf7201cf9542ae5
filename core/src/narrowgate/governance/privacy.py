"""The privacy boundary, enforced where a request is built: nothing else in a gate hands content to a backend."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

import attrs

from narrowgate.governance.questions import Question
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import Sanitiser
from narrowgate.values.decision import DecisionRequest
from narrowgate.values.policy import DecisionPolicy, PrivacyBoundary

PLACEHOLDER: Final = re.compile(r"\[[A-Z][A-Z0-9_]*-\d+\]")
"""What a sanitiser puts in place of a value."""

LEAST_LEFT: Final = 2
"""Words or characters of scripts without spaces that subject and evidence must still have after redaction."""

_TOKEN: Final = re.compile(r"[^\W_]+")


@attrs.frozen
class Projection:
    """What may be sent.

    Attributes:
        request: the request as the backend gets it; `None` when the boundary forbids the call.
        outcome: a closed code for the observation.
        redactions: detector -> number of places replaced.
    """

    request: DecisionRequest | None
    outcome: str
    redactions: Mapping[str, int] = attrs.field(factory=dict)


def project(policy: DecisionPolicy, question: Question, locality: Locality, sanitiser: Sanitiser | None) -> Projection:
    """Return what of a question may reach a backend at `locality` under the policy's boundary.

    Args:
        policy: its boundary and question text.
        question: the content.
        locality: where the backend is.
        sanitiser: the deployment's redaction; without one `hosted_redacted` sends nothing.
    """
    boundary = policy.privacy_boundary
    plain = DecisionRequest(policy.decision_kind, question.text_of(policy), question.subject, question.evidence)
    if boundary is PrivacyBoundary.NO_EXTERNAL_CALL:
        return Projection(None, "no_external_call")
    if locality is not Locality.HOSTED:
        return Projection(plain, "local_model_called")
    if boundary is PrivacyBoundary.LOCAL_ONLY:
        return Projection(None, "local_only_refused")
    if boundary is PrivacyBoundary.REFERENCES_ONLY:
        return Projection(_references(plain, question), "references_only_called")
    if sanitiser is None:
        return Projection(None, "no_sanitiser")
    return _redacted(plain, sanitiser)


def _references(plain: DecisionRequest, question: Question) -> DecisionRequest:
    """Return a request of references and labels alone."""

    def said(refs: tuple[str, ...], labels: Mapping[str, str]) -> str:
        return json.dumps({"refs": list(refs), "labels": dict(labels)}, ensure_ascii=False, sort_keys=True)

    evidence = (said(question.evidence_refs, {}),) if question.evidence_refs else ()
    return attrs.evolve(plain, subject=said(question.subject_refs, question.labels), evidence=evidence)


def _redacted(plain: DecisionRequest, sanitiser: Sanitiser) -> Projection:
    subject, *evidence = sanitiser.redact((plain.subject, *plain.evidence))
    found: dict[str, int] = {}
    for item in (subject, *evidence):
        for detector, number in item.found.items():
            found[detector] = found.get(detector, 0) + number
    enough = _left(subject.text) >= LEAST_LEFT or not subject.found
    if evidence:
        enough = enough and (any(_left(item.text) >= LEAST_LEFT for item in evidence) or not any(i.found for i in evidence))
    if not enough:
        # What is left cannot answer the question; an answer to it would be an answer to another one.
        return Projection(None, "redaction_removed_needed", found)
    request = attrs.evolve(plain, subject=subject.text, evidence=tuple(item.text for item in evidence))
    return Projection(request, "hosted_redacted_called", found)


def _left(text: str) -> int:
    words = _TOKEN.findall(PLACEHOLDER.sub(" ", text))
    return sum(1 if word.isascii() else len(word) for word in words)
