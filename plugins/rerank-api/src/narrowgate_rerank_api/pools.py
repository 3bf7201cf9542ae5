"""From candidates to documents: blank texts are left out, identical ones are sent once, and long pools are split."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs


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
    texts: Sequence[str],
    body: Callable[[Sequence[str]], Mapping[str, Any]],
    max_documents: int | None,
    max_bytes: int | None,
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield (place of its first text, texts) of each request, in order: as few as the limits allow.

    A text that is too long for any request goes alone: whether it is refused or cut is for the server to say.

    Args:
        texts: at least one.
        body: makes a request's body of its texts; what is in it beside them counts too.
        max_documents: the most in one request, >= 1, or `None`.
        max_bytes: the longest body of a request, or `None`.
    """
    frame = 0 if max_bytes is None else _size(body(()))
    # The number of documents may stand in the body too, with more digits than in one without documents.
    room = None if max_bytes is None else max_bytes - frame - len(str(len(texts)))
    start, used = 0, 0
    for place, text in enumerate(texts):
        # With the comma behind it.
        size = 0 if room is None else _size(body((text,))) - frame + 1
        full = max_documents is not None and place - start == max_documents
        if place > start and (full or (room is not None and used + size > room)):
            yield start, texts[start:place]
            start, used = place, 0
        used += size
    yield start, texts[start:]


def _size(body: Mapping[str, Any]) -> int:
    """Return the bytes of a body as the client writes it. What cannot be written has a size too: sending it tells why."""
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
