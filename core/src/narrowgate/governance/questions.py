"""What a consumer puts to a gate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import attrs

from narrowgate.governance.consumers import CONSUMERS
from narrowgate.seams.gate_ports import ContentJudgement
from narrowgate.values.language import asked_in, language_of
from narrowgate.values.policy import DecisionPolicy


@attrs.frozen(kw_only=True)
class Question:
    """One thing to be judged.

    Attributes:
        operation_id: names the caller's operation, at most 256 characters.
        scope_id: the memory (or other scope) concerned.
        subject: the text that is judged.
        evidence: what it is judged against.
        subject_refs: exact references of the subject.
        evidence_refs: likewise of the evidence.
        labels: bounded, non-secret labels of the subject, for the boundary `references_only`.
        unresolved_refs: evidence references that name nothing.
        allowed_scopes: scopes that the operation may touch; `None` for any.
        prejudged: what the consumer's own rules say before any other, e.g. that no evidence is cited.
        metadata: counts for the observation.
    """

    operation_id: str
    scope_id: str
    subject: str
    evidence: tuple[str, ...] = ()
    subject_refs: tuple[str, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    labels: Mapping[str, str] = attrs.field(factory=dict)
    unresolved_refs: tuple[str, ...] = ()
    allowed_scopes: frozenset[str] | None = None
    prejudged: ContentJudgement | None = None
    metadata: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def language(self) -> str:
        """Label of the subject's language."""
        return language_of(self.subject)

    def text_of(self, policy: DecisionPolicy) -> str:
        """Return the policy's question in the language that its consumer asks in, else in English; see `Consumer`."""
        by_evidence = CONSUMERS[policy.consumer].asks_in == "evidence" and self.evidence
        return asked_in(policy.question, language_of(self.evidence[0]) if by_evidence else self.language)

    def content_hash(self, fingerprint: str) -> str:
        """Return a key of this content under this policy."""
        digest = hashlib.sha256(fingerprint.encode())
        for text in (self.subject, *self.evidence):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "big") + raw)
        return digest.hexdigest()
