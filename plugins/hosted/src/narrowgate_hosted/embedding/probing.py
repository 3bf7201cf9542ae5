"""Asking the embedder what is known: whether its vectors mean anything, and whether the model asked for made them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from narrowgate.seams import Problem
from narrowgate_hosted.embedding.embedder import HostedEmbedder

_QUERY: Final = "When does the backup of the database run?"
_SAME: Final = "Every night at two o'clock the database is backed up."
_OTHER: Final = "The canteen serves vegetable soup on Fridays."

_EQUAL: Final = 0.999
"""The least cosine of two vectors of one text. Servers that batch round differently from call to call."""


async def probe(embedder: HostedEmbedder) -> list[Problem]:
    """Embed a query twice, and two texts: one that answers it and one that has nothing to do with it. Costs three requests.

    Length, dimension and finiteness of every vector are checked by the embedder itself, which raises.

    Raises:
        EmbeddingError: the server failed, or sent no vectors.
    """
    (first,) = await embedder.embed([_QUERY], query=True)
    (second,) = await embedder.embed([_QUERY], query=True)
    same, other = await embedder.embed([_SAME, _OTHER])
    return list(_found(embedder, _cosine(first, second), _cosine(first, same), _cosine(first, other)))


def _found(embedder: HostedEmbedder, again: float, near: float, far: float) -> Iterator[Problem]:
    model, threshold = embedder.settings.model, embedder.settings.threshold
    if again < _EQUAL:
        text = f"the model {model!r} gave one text two vectors, of cosine {again:.3f}"
        yield Problem("probe-failed", text, "use a model whose vectors can be found again")
    if near <= far:
        text = (
            f"the model {model!r} finds a text that answers a query (cosine {near:.3f}) no nearer to it than one that "
            f"has nothing to do with it ({far:.3f})"
        )
        hint = "use an embedding model, and set the prefixes or fields that it wants for queries and documents"
        yield Problem("probe-failed", text, hint)
    elif not far < threshold <= near:
        text = f"threshold is {threshold:g}; an answer to a query has cosine {near:.3f} and an unrelated text {far:.3f}"
        hint = f"set a threshold between, e.g. threshold = {(near + far) / 2:.2f}, or measure one on your own entries"
        yield Problem("probe-failed", text, hint, severity="warning")
    named = embedder.answered_by
    if named is not None and not _alike(named, model):
        text = f"the server says that {named[:80]!r} answered, and {model!r} was asked for"
        yield Problem("probe-failed", text, "set `model` to what the server serves", severity="warning")


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _alike(named: str, model: str) -> bool:
    """Return whether two names may be of one model: a path, a tag or a date may be on one of them only."""
    left, right = (set(re.findall(r"[^\W_]+", name.casefold())) for name in (named, model))
    return left <= right or right <= left
