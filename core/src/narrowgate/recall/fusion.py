"""From the channels' hits to one order (docs/adr/0003-fusion.md has the measurements)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Final

import attrs

from narrowgate.errors import ChannelError
from narrowgate.values.search import ChannelHit, ChannelKind

Key = tuple[str, str, int]
"""(memory, entry, version): what makes two hits the same candidate. Never the text."""

RRF_K: Final = 60

WEIGHTS: Final[Mapping[ChannelKind, float]] = {ChannelKind.LEXICAL: 0.7, ChannelKind.VECTOR: 0.3}

NAME: Final = "score-1(lexical=0.7,vector=0.3)"
"""The default fusion with its version and weights, for the trace."""


@attrs.frozen
class Fused:
    """One candidate after fusion.

    Attributes:
        key: its identity.
        score: the fused score; higher is better.
        matched_by: the channels that found it, in the order of `ChannelKind`.
    """

    key: Key
    score: float
    matched_by: tuple[ChannelKind, ...]


def check_hits(channel: str, hits: Iterable[ChannelHit]) -> None:
    """Refuse hits that name nothing: they would all be fused into one.

    Args:
        channel: full name of the channel's component, for the error.
        hits: what it answered.

    Raises:
        ChannelError: a hit without memory, entry or version, or with a score that is not finite.
    """
    for place, hit in enumerate(hits, 1):
        # A channel is third-party code: what its hits really hold is not what their types say.
        named: tuple[Any, ...] = (hit.memory, hit.entry)
        version: Any = hit.version
        if not all(isinstance(part, str) and part for part in named) or not isinstance(version, int) or version < 1:
            raise ChannelError(channel, f"channel {channel} returned a hit without identity at place {place}")
        if not isfinite(hit.score):
            raise ChannelError(channel, f"channel {channel} returned a score that is not finite at place {place}")


def _order(scores: Mapping[Key, float], found: Mapping[ChannelKind, Mapping[Key, float]]) -> list[Fused]:
    # Code-point order of strings equals the order of their UTF-8 bytes, so plain comparison is the spec's tie-break.
    kinds = [kind for kind in ChannelKind if kind in found]
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return [Fused(key, scores[key], tuple(kind for kind in kinds if key in found[kind])) for key in order]


def rrf(
    lists: Mapping[ChannelKind, Sequence[ChannelHit]],
    weights: Mapping[ChannelKind, float] | None = None,
    k: int = RRF_K,
) -> list[Fused]:
    """Fuse by reciprocal rank (Cormack, Clarke, Buettcher 2009): a candidate scores weight / (k + rank) in each list.

    Ranks count from 1. A candidate that a list repeats counts where it stands first, and the repetition uses up a rank. A
    list that lacks a candidate gives it nothing.

    Args:
        lists: each channel's hits, best first.
        weights: one for each channel, >= 0; 1 where none is given.
        k: the constant of the formula, >= 0.
    """
    found: dict[ChannelKind, dict[Key, float]] = {}
    scores: dict[Key, float] = {}
    for kind in ChannelKind:
        if kind not in lists:
            continue
        weight = 1.0 if weights is None else weights.get(kind, 1.0)
        mine = found[kind] = {}
        for rank, hit in enumerate(lists[kind], 1):
            key = (hit.memory, hit.entry, hit.version)
            if key not in mine:
                mine[key] = weight / (k + rank)
                scores[key] = scores.get(key, 0.0) + mine[key]
    return _order(scores, found)


def fuse(lists: Mapping[ChannelKind, Sequence[ChannelHit]]) -> list[Fused]:
    """Fuse by scores: each channel's score as a share of its best, weighted and added.

    Args:
        lists: each channel's admitted hits, best first.

    Returns:
        All candidates; score descending, then memory, entry and version ascending by UTF-8 bytes.
    """
    found: dict[ChannelKind, dict[Key, float]] = {}
    scores: dict[Key, float] = {}
    for kind in ChannelKind:
        hits = lists.get(kind)
        if not hits:
            continue
        best = max(hit.score for hit in hits)
        weight = WEIGHTS[kind] / best if best > 0 else 0.0
        mine = found[kind] = {}
        for hit in hits:
            key = (hit.memory, hit.entry, hit.version)
            if key not in mine:
                mine[key] = weight * hit.score
                scores[key] = scores.get(key, 0.0) + mine[key]
    return _order(scores, found)
