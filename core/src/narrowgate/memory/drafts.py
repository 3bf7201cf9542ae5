"""From what an application hands in to what a store takes: normalised, within the limits, with a digest (spec 1.1)."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final

from narrowgate.errors import InputError
from narrowgate.values.entry import EntryContent, EntryDraft, Evidence, Put, Refused, Scalar
from narrowgate.values.identity import check_id
from narrowgate.values.text import MAX_REF_BYTES, normalise_line, normalise_reason, normalise_text
from narrowgate.values.times import parse_instant

MAX_NAME_BYTES: Final = 128
"""The longest kind, author and attribute key, in UTF-8 bytes."""

MAX_VALUE_BYTES: Final = 2048
"""The longest source and the longest text value of an attribute, in UTF-8 bytes."""

MAX_ATTRIBUTES: Final = 32
"""The most attributes of one entry."""

MAX_EVIDENCE: Final = 256
"""The most pieces of evidence of one draft."""

MAX_EVIDENCE_BYTES: Final = 65_536
"""The longest text of one piece of evidence, in UTF-8 bytes."""

_MAX_INTEGER: Final = 2**63 - 1

_DIGEST_DOMAIN: Final = b"narrowgate:entry-content:v1\0"

_canonical: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def prepare(draft: EntryDraft | str) -> Put | Refused:
    """Return the operation that stores `draft`, or the refusal that says which rule it breaks.

    A plain string is a draft with that text and nothing else.
    """
    try:
        return prepare_strictly(EntryDraft(draft) if isinstance(draft, str) else draft)
    except InputError as error:
        return Refused(error.code, str(error))


def prepare_strictly(draft: EntryDraft) -> Put:
    """Return the operation that stores `draft`.

    Raises:
        InputError: the rule that the draft breaks: the codes of `normalise_text`, `time-format`, `time-range`,
            `attributes-...`, `id-format`, `draft-type`.
    """
    if not isinstance(draft, EntryDraft):
        raise InputError("draft-type", f"a draft is an EntryDraft or a string, not {type(draft).__name__}")
    if draft.entry is not None:
        check_id(draft.entry, "entry")
    elif draft.expected_version is not None:
        raise InputError("expected-version", "expected_version goes with entry: name the entry that it speaks of")
    evidence = _evidence(draft.evidence) if draft.evidence else ()
    return Put(content_of(draft), draft.entry, draft.expected_version, normalise_reason(draft.reason), evidence)


def content_of(draft: EntryDraft) -> EntryContent:
    """Return the normalised content of `draft` with its digest; raises as `prepare_strictly` does."""
    text = normalise_text(draft.text)
    kind = _line(draft.kind, "kind", MAX_NAME_BYTES)
    source = None if draft.source is None else _line(draft.source, "source", MAX_VALUE_BYTES)
    author = None if draft.author is None else _line(draft.author, "author", MAX_NAME_BYTES)
    occurred_at = None if draft.occurred_at is None else _occurred(draft.occurred_at)
    attributes = _attributes(draft.attributes) if draft.attributes else {}
    digest = content_digest(text, kind, source, author, occurred_at, attributes)
    return EntryContent(text, kind, source, author, occurred_at, attributes, digest)


def content_digest(
    text: str,
    kind: str,
    source: str | None,
    author: str | None,
    occurred_at: datetime | None,
    attributes: Mapping[str, Scalar],
) -> str:
    """Return SHA-256 over a domain prefix and canonical JSON of the content, as 64 lowercase hex digits.

    Canonical: NFC strings, keys sorted, no white space, UTF-8. Times count with their offset, as they were written.
    """
    # Put together by hand: every ingested entry comes by here, and most have no attributes for the general encoder.
    strings = (text, kind, source, author, None if occurred_at is None else occurred_at.isoformat())
    fields = ["null" if string is None else encode_basestring(string) for string in strings]
    fields.append(_canonical(attributes) if attributes else "{}")
    return hashlib.sha256(_DIGEST_DOMAIN + f"[{','.join(fields)}]".encode()).hexdigest()


def _evidence(raw: object) -> tuple[Evidence, ...]:
    if isinstance(raw, str | bytes) or not isinstance(raw, Sequence) or len(raw) > MAX_EVIDENCE:
        raise InputError("evidence-type", f"evidence is a list of at most {MAX_EVIDENCE} Evidence objects or references")
    found = []
    for item in raw:
        given = Evidence(item) if isinstance(item, str) else item
        if not isinstance(given, Evidence):
            raise InputError("evidence-type", f"evidence is an Evidence or a reference, not {type(given).__name__}")
        text = None if given.text is None else normalise_text(given.text, what="evidence", max_bytes=MAX_EVIDENCE_BYTES)
        found.append(Evidence(_line(given.ref, "the reference of evidence", MAX_REF_BYTES), text))
    return tuple(found)


def _line(raw: object, what: str, max_bytes: int) -> str:
    if type(raw) is str and len(raw) <= MAX_NAME_BYTES:
        return _known_line(raw, what, max_bytes)  # kinds, authors and names of attributes are few and come again
    return _checked_line(raw, what, max_bytes)


def _checked_line(raw: object, what: str, max_bytes: int) -> str:
    return normalise_line(raw, what=what, max_bytes=max_bytes)


_known_line: Final = lru_cache(maxsize=1024)(_checked_line)


def _occurred(value: str | date | datetime) -> datetime:
    moment = parse_instant(value, what="occurred_at")
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise InputError("time-range", "occurred_at lies outside the years 1 to 9999 in UTC") from None
    return moment


def _attributes(raw: Mapping[str, Scalar]) -> dict[str, Scalar]:
    if not isinstance(raw, Mapping):
        raise InputError("attributes-type", f"attributes must be a mapping, not {type(raw).__name__}")
    if len(raw) > MAX_ATTRIBUTES:
        raise InputError("attributes-many", f"{len(raw)} attributes; the limit is {MAX_ATTRIBUTES}")
    checked: dict[str, Scalar] = {}
    for key, value in raw.items():
        name = _line(key, "an attribute's name", MAX_NAME_BYTES)
        if any(char in "=<>^ " for char in name):
            raise InputError("attributes-name", "an attribute's name holds none of = < > ^ and no space")
        checked[name] = _value(value)
    if len(checked) != len(raw):
        raise InputError("attributes-name", "two attributes have the same name after normalisation")
    return dict(sorted(checked.items()))


def _value(value: Scalar) -> Scalar:
    if isinstance(value, str):
        text = unicodedata.normalize("NFC", value).strip()
        return normalise_text(text, what="an attribute's value", max_bytes=MAX_VALUE_BYTES) if text else ""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > _MAX_INTEGER:
            raise InputError("attributes-value", "an attribute's whole number must fit in 64 bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError("attributes-value", "an attribute's number must be finite")
        return value
    raise InputError("attributes-value", f"an attribute is a string, number, bool or None, not {type(value).__name__}")
