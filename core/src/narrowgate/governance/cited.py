"""What a question rests on: pieces of evidence read whole, or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from narrowgate.decisions.answers import WITHHELD
from narrowgate.errors import EntryReferenceError, InputError, NarrowgateError
from narrowgate.governance.privacy import is_exact, is_name
from narrowgate.seams.ports import EntryStore
from narrowgate.values.entry import Evidence
from narrowgate.values.identity import EntryRef
from narrowgate.values.text import MAX_REF_BYTES, normalise_line, normalise_text

MAX_ITEMS: Final = 32
"""Pieces of evidence that a question may hold."""

MAX_CHARACTERS: Final = 16_000
"""Characters of evidence that a question may hold. What does not fit is not judged: truncated evidence is no evidence."""

MISSING: Final = "needs_evidence"
TOO_MUCH: Final = "evidence_limit_exceeded"
UNRESOLVED: Final = "invalid_evidence_reference"
UNREADABLE: Final = "evidence_unreadable"
"""The store failed to read evidence that is there."""

Cited = Evidence | EntryRef | str
"""A source with its text, or an exact reference, which is read."""


@attrs.frozen(kw_only=True)
class Gathered:
    """Evidence that was read.

    Attributes:
        texts: the whole texts, in the order of `refs`; empty where a code says why not.
        refs: what was cited, as records hold it (`told_of`).
        unresolved: those that name nothing.
        code: `needs_evidence`, `evidence_limit_exceeded`, `invalid_evidence_reference`, `evidence_unreadable`, or `None`.
    """

    texts: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    code: str | None = None


def as_evidence(cited: Iterable[Cited] | Cited) -> tuple[Evidence, ...]:
    """Return pieces of evidence, each once, normalised as those of a draft are.

    A blank text stays blank, and a long one long: what cannot be judged as a whole is told as such, not refused.

    Raises:
        InputError: `evidence-type`: something else than a reference or an `Evidence`; a text alone is not one, since nobody
            could say where it stands. Or a code of `normalise_line`: of a reference or a text.
    """
    if isinstance(cited, str | Evidence | EntryRef):
        cited = (cited,)
    return tuple(dict.fromkeys(_piece(item) for item in cited))


def _piece(item: object) -> Evidence:
    if isinstance(item, EntryRef | str) and is_exact(str(item)):
        return Evidence(str(item))
    if not isinstance(item, Evidence):
        raise InputError(
            "evidence-type", "evidence is an exact reference or an Evidence(ref, text): a text needs its source"
        )
    ref = normalise_line(item.ref, what="the reference of evidence", max_bytes=MAX_REF_BYTES)
    text: object = item.text
    if text is None or (isinstance(text, str) and not text.strip()):
        return Evidence(ref, item.text)
    return Evidence(ref, normalise_text(text, what="evidence", max_bytes=sys.maxsize))


def told_of(item: Evidence) -> str:
    """Return a piece of evidence's reference as a record may hold it.

    A source that has no text, and whose name has the shape of neither an identifier nor a URL, is `withheld`: somebody has
    cited what it says in place of where it stands.
    """
    return item.ref if item.text is not None or is_exact(item.ref) or is_name(item.ref) else WITHHELD


async def text_of(store: EntryStore, item: Evidence, known: dict[str, str | None]) -> str | None:
    """Return the text of a piece of evidence; `None` where there is none.

    An exact reference is always read: a text beside it is somebody's word on what stands there.

    Args:
        store: where exact references are read.
        item: the piece.
        known: what was read before; filled in.
    """
    try:
        ref = EntryRef.parse(item.ref)
    except EntryReferenceError:
        return item.text
    if item.ref not in known:
        try:
            known[item.ref] = (await store.read(ref)).content.text
        except EntryReferenceError:
            known[item.ref] = None
    return known[item.ref]


async def gather(store: EntryStore, pieces: Iterable[Evidence]) -> Gathered:
    """Return the texts of all pieces, or why there are none; raises nothing of the store's on purpose."""
    items = tuple(pieces)
    refs = tuple(map(told_of, items))
    if not items:
        return Gathered(code=MISSING)
    if len(items) > MAX_ITEMS:
        return Gathered(refs=refs, code=TOO_MUCH)
    known: dict[str, str | None] = {}
    texts: Mapping[Evidence, str | None]
    try:
        texts = {item: await text_of(store, item, known) for item in items}
    except NarrowgateError:
        return Gathered(refs=refs, code=UNREADABLE)
    unresolved = tuple(item.ref for item, text in texts.items() if text is None or not text.strip())
    if unresolved:
        return Gathered(refs=refs, unresolved=unresolved, code=UNRESOLVED)
    found = tuple(text for text in texts.values() if text is not None)
    if sum(map(len, found)) > MAX_CHARACTERS:
        return Gathered(refs=refs, code=TOO_MUCH)
    return Gathered(texts=found, refs=refs)
