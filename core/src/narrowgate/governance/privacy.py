"""The privacy boundary, enforced where a request is built: nothing else in a gate hands content to a backend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from narrowgate.errors import EntryReferenceError
from narrowgate.governance.questions import Question
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import Redacted, Sanitiser
from narrowgate.values.decision import DecisionRequest
from narrowgate.values.identity import EntryRef
from narrowgate.values.policy import DecisionPolicy, PrivacyBoundary

PLACEHOLDER: Final = re.compile(r"\[[A-Z][A-Z0-9_]*-\d+\]")
"""What a sanitiser puts in place of a value."""

LEAST_LEFT: Final = 2
"""Words, or characters of scripts without spaces, that each text must still have from which something was taken out."""

LOCAL_CALL: Final = "local_model_called"
"""The outcome of a call that leaves this machine in no case."""

LONGEST_REF: Final = 512
"""The longest reference that is told to anybody, in characters."""

_TOKEN: Final = re.compile(r"[^\W_]+")

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/#-]{0,127}")
"""What a name of a source and a label may look like to go where content may not: no spaces, no `@`, `?` or `=`."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")

_URL_SECRETS: Final = re.compile(r"(?<=//)[^/?#]*(?=@)|(?<=[?#]).+", re.DOTALL)
"""What may be a credential in a URL: user name and password, and everything behind the path."""


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

    Raises:
        Exception: of the sanitiser; nothing may be sent then.
    """
    boundary = policy.privacy_boundary
    plain = DecisionRequest(policy.decision_kind, question.text_of(policy), question.subject, question.evidence)
    if boundary is PrivacyBoundary.NO_EXTERNAL_CALL:
        return Projection(None, "no_external_call")
    if locality is not Locality.HOSTED:
        return Projection(plain, LOCAL_CALL)
    if boundary is PrivacyBoundary.LOCAL_ONLY:
        return Projection(None, "local_only_refused")
    if boundary is PrivacyBoundary.REFERENCES_ONLY:
        return _references(plain, question, sanitiser)
    if sanitiser is None:
        return Projection(None, "no_sanitiser")
    return _redacted(plain, sanitiser)


def leaves(boundary: PrivacyBoundary, locality: Locality) -> bool:
    """Return whether content would go to another machine, were the boundary all that is in its way."""
    apart = (PrivacyBoundary.REFERENCES_ONLY, PrivacyBoundary.NO_EXTERNAL_CALL)
    return locality is Locality.HOSTED and boundary not in apart


def redacted(texts: Sequence[str], sanitiser: Sanitiser) -> tuple[Redacted, ...]:
    """Return texts as a sanitiser leaves them.

    Raises:
        TypeError: it did not give one redacted text for each: a piece that is missing would be missed by nobody. Or one of
            them is no text, or its counts are none.
    """
    said: object = sanitiser.redact(tuple(texts))
    if not isinstance(said, tuple | list) or [type(item) for item in said] != [Redacted] * len(texts):
        raise TypeError("a sanitiser returns one Redacted for each text")
    if not all(type(item.text) is str and _are_counts(item.found) for item in said):
        raise TypeError("a sanitiser's Redacted has a text and counts by detector")
    return tuple(said)


def _are_counts(found: object) -> bool:
    return isinstance(found, Mapping) and all(
        type(name) is str and type(number) is int and number >= 0 for name, number in found.items()
    )


def found_in(items: Iterable[Redacted]) -> dict[str, int]:
    """Return detector -> places replaced, in all of them."""
    found: dict[str, int] = {}
    for item in items:
        for detector, number in item.found.items():
            found[detector] = found.get(detector, 0) + number
    return found


def masked(ref: str) -> str:
    """Return a reference without what may be a credential: of a URL user name, password and all behind the path."""
    return _URL_SECRETS.sub("***", ref) if "://" in ref else ref


def is_name(ref: str) -> bool:
    """Return whether a reference has the shape of an identifier or of a URL. What has not may be a sentence."""
    return _IDENTIFIER.fullmatch(ref) is not None or _URL.fullmatch(ref) is not None


def _references(plain: DecisionRequest, question: Question, sanitiser: Sanitiser | None) -> Projection:
    """Return a request of references and labels alone: what a name or a label says must not be content either."""
    named = (*question.subject_refs, *question.evidence_refs)
    clean = _clean((*named, *question.labels.values()), sanitiser)
    kept = {ref for ref in named if is_exact(ref) or (_IDENTIFIER.fullmatch(ref) and ref in clean)}
    others = dict.fromkeys(ref for ref in named if ref not in kept)
    shown = {ref: f"source-{number}" for number, ref in enumerate(others, 1)}
    labels = {key: value for key, value in question.labels.items() if _IDENTIFIER.fullmatch(value) and value in clean}

    def said(refs: tuple[str, ...], labels: Mapping[str, str]) -> str:
        found = {"refs": [shown.get(ref, ref) for ref in refs], "labels": dict(labels)}
        return json.dumps(found, ensure_ascii=False, sort_keys=True)

    evidence = (said(question.evidence_refs, {}),) if question.evidence_refs else ()
    request = attrs.evolve(plain, subject=said(question.subject_refs, labels), evidence=evidence)
    return Projection(request, "references_only_called")


def is_exact(ref: str) -> bool:
    """Return whether a reference names an entry's version, and so is none of anybody's words."""
    try:
        EntryRef.parse(ref)
    except EntryReferenceError:
        return False
    return True


def _clean(texts: tuple[str, ...], sanitiser: Sanitiser | None) -> frozenset[str]:
    """Return those of some texts in which nothing is found; all of them where there is no sanitiser to ask."""
    if sanitiser is None:
        return frozenset(texts)
    return frozenset(text for text, item in zip(texts, redacted(texts, sanitiser), strict=True) if not item.found)


def _redacted(plain: DecisionRequest, sanitiser: Sanitiser) -> Projection:
    texts = (plain.subject, *plain.evidence)
    items = redacted(texts, sanitiser)
    found = found_in(items)
    # By the texts and not by what the sanitiser says of them: one that counts nothing has taken out as much.
    if any(item.text != text and _left(item.text) < LEAST_LEFT for item, text in zip(items, texts, strict=True)):
        # What is left cannot answer the question; an answer to it would be an answer to another one.
        return Projection(None, "redaction_removed_needed", found)
    subject, *evidence = (item.text for item in items)
    request = attrs.evolve(plain, subject=subject, evidence=tuple(evidence))
    return Projection(request, "hosted_redacted_called", found)


def _left(text: str) -> int:
    words = _TOKEN.findall(PLACEHOLDER.sub(" ", text))
    return sum(1 if word.isascii() else len(word) for word in words)
