"""What a consumer puts to a gate."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

import attrs

from narrowgate.seams.gate_ports import ContentJudgement
from narrowgate.values.policy import DecisionPolicy

_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_OTHER: Final = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
}
LANGUAGES: Final = ("en", "zh", *_OTHER)
"""The labels that `language_of` gives and a policy's question may have a text for."""

_LATIN: Final = re.compile(r"[A-Za-z]")


def language_of(text: str) -> str:
    """Return a label for the language of a text, by its script alone: `zh`, `ja`, `ko`, `th`, `en` (any Latin), `und`."""
    for name, script in _OTHER.items():
        if script.search(text):
            return name
    if _HAN.search(text):
        return "zh"
    return "en" if _LATIN.search(text) else "und"


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
        """Return the policy's question in the subject's language, else in English."""
        return policy.question.get(self.language) or policy.question["en"]

    def content_hash(self, fingerprint: str) -> str:
        """Return a key of this content under this policy."""
        digest = hashlib.sha256(fingerprint.encode())
        for text in (self.subject, *self.evidence):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "big") + raw)
        return digest.hexdigest()
