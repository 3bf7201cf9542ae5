"""From candidates to documents: blank texts are left out, identical ones are sent once, and long pools are split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

_ENVELOPE: Final = 1024
"""Bytes kept free for what a request's body has beside query and documents."""


@attrs.frozen
class Pool:
    """What of a pool of candidates is sent.

    Attributes:
        texts: the distinct texts that are not blank, in the order of their first candidate.
        places: for each candidate its place in `texts`; `None` for a blank text.
    """

    texts: tuple[str, ...]
    places: tuple[int | None, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Pool:
        """Return the pool of the candidates' texts.

        Some servers refuse a request with a blank document and some pass over it, so that none is sent. Candidates with the
        same text stay candidates of their own, and get the same score.
        """
        known: dict[str, int] = {}
        places = tuple(known.setdefault(text, len(known)) if text.strip() else None for text in texts)
        return cls(tuple(known), places)


def batches(
    query: str, texts: Sequence[str], max_documents: int | None, max_bytes: int | None
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield (place of its first text, texts) of each request, in order: as few as the limits allow.

    A text that is too long for any request goes alone: whether it is refused or cut is for the server to say.

    Args:
        query: sent with every request.
        texts: at least one.
        max_documents: the most in one request, >= 1, or `None`.
        max_bytes: the longest body of a request, or `None`.
    """
    room = None if max_bytes is None else max_bytes - _ENVELOPE - _size(query)
    start, used = 0, 0
    for place, text in enumerate(texts):
        size = 0 if room is None else _size(text)
        full = max_documents is not None and place - start == max_documents
        if place > start and (full or (room is not None and used + size > room)):
            yield start, texts[start:place]
            start, used = place, 0
        used += size
    yield start, texts[start:]


def _size(text: str) -> int:
    """Return the length of a text in a body, in bytes, with the comma behind it."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1
