"""From the channels' hits to one order (docs/adr/0003-fusion.md has the measurements)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, count
from math import isfinite
from operator import attrgetter, eq, itemgetter
from typing import Any, Final, Literal, NamedTuple

from narrowgate.errors import ChannelError
from narrowgate.values.search import ChannelHit, ChannelKind

Key = tuple[str, str, int]
"""(memory, entry, version): what makes two hits the same candidate. Never the text."""

_key: Final[Callable[[ChannelHit], Key]] = itemgetter(slice(3))  # a hit is a tuple: its first three fields
_score: Final[Callable[[tuple[Key, float]], float]] = itemgetter(1)

Method = Literal["per-term", "rrf"]

WEIGHTS: Final[Mapping[ChannelKind, float]] = {ChannelKind.LEXICAL: 1.0, ChannelKind.VECTOR: 0.75}
"""The default weight of each channel; measured. In `fuse`, the vector's is what a cosine of 1 is worth in BM25 per term."""

RRF_K: Final = 60
"""The constant of reciprocal rank fusion, as published and as in spec 1.5."""


class Fused(NamedTuple):
    """One candidate after fusion.

    Attributes:
        key: its identity.
        score: the fused score; higher is better.
        matched_by: the channels that found it, in the order of `ChannelKind`.
    """

    key: Key
    score: float
    matched_by: tuple[ChannelKind, ...]


def check_hits(channel: str, hits: Sequence[ChannelHit]) -> None:
    """Refuse hits that name nothing: they would all be fused into one.

    Args:
        channel: full name of the channel's component, for the error.
        hits: what it answered.

    Raises:
        ChannelError: a hit without memory, entry or version, or with a score that is not finite.
    """
    if _all_sound(hits):
        return
    for place, hit in enumerate(hits, 1):
        # A channel is third-party code: what its hits really hold is not what their types say.
        memory, entry, version, score = _fields(hit)
        if not (_is_name(memory) and _is_name(entry) and type(version) is int and version >= 1):
            raise ChannelError(channel, f"channel {channel} returned a hit without identity at place {place}")
        if not isinstance(score, int | float) or not isfinite(score):
            raise ChannelError(channel, f"channel {channel} returned a score that is no finite number at place {place}")


_fields: Final[Callable[[ChannelHit], tuple[Any, Any, Any, Any]]] = attrgetter("memory", "entry", "version", "score")


def _all_sound(hits: Sequence[ChannelHit]) -> bool:
    """Tell whether all hits are of the plainest types and sound: whole columns at once, as this is done in every search."""
    if not hits:
        return True
    if {*map(type, hits)} != {ChannelHit}:
        return False
    memories, entries, versions, scores = zip(*hits, strict=True)
    return (
        {*map(type, memories), *map(type, entries)} == {str}
        and all(memories)
        and all(entries)
        and {*map(type, versions)} == {int}
        and min(versions) >= 1
        and {*map(type, scores)} == {float}
        and isfinite(sum(scores))
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def name(method: Method, weights: Mapping[ChannelKind, float] = WEIGHTS) -> str:
    """Return the fusion with its version and weights, for the trace: `per-term-1(lexical=1,vector=0.75)`."""
    return f"{method}-1({','.join(f'{kind.value}={weights[kind]:g}' for kind in ChannelKind)})"


def fuse(
    lists: Mapping[ChannelKind, Sequence[ChannelHit]],
    *,
    terms: int = 1,
    floor: float = 0.0,
    weights: Mapping[ChannelKind, float] = WEIGHTS,
) -> Iterator[Fused]:
    """Fuse by scores that tell how much of the query a channel found.

    The formula: `lexical * BM25 / terms + vector * max(0, (cosine - floor) / (1 - floor))`, where `lexical` and `vector` are
    the weights.

    BM25 divided by the number of query terms is the mean weight that a text earns per term. It is low for a query whose
    words are hardly in the index (another language, other words), and then the cosine decides; it is high where the words
    are there, and then the cosine orders what they leave close. Nothing is scaled by the best or the worst hit of a list,
    so where a list was cut changes nothing for the candidates that are in it. A candidate that a list lacks gets nothing
    from it.

    Args:
        lists: each channel's admitted hits, best first; a repeated candidate counts where it stands first.
        terms: number of distinct query terms; below 1 counts as 1.
        floor: the cosine that says nothing (the embedding profile's threshold), below 1.
        weights: one for each channel, >= 0.

    Returns:
        All candidates, one after the other; score descending, then memory, entry and version ascending by UTF-8 bytes.
    """
    share = weights[ChannelKind.LEXICAL] / max(terms, 1)
    slope = weights[ChannelKind.VECTOR] / (1.0 - floor)
    found: dict[ChannelKind, dict[Key, float]] = {}
    for kind, hits in lists.items():
        if kind is ChannelKind.LEXICAL:
            found[kind] = _first(hits, [score * share for _, _, _, score in hits])
        else:
            found[kind] = _first(hits, [(score - floor) * slope if score > floor else 0.0 for _, _, _, score in hits])
    return _ordered(found)


def rrf(
    lists: Mapping[ChannelKind, Sequence[ChannelHit]],
    weights: Mapping[ChannelKind, float] | None = None,
    k: int = RRF_K,
) -> Iterator[Fused]:
    """Fuse by reciprocal rank (Cormack, Clarke, Buettcher 2009; spec 1.5): weight / (k + rank), summed over the lists.

    Ranks count from 1. A candidate that a list repeats counts where it stands first, and the repetition uses up a rank. A
    list that lacks a candidate gives it nothing.

    Args:
        lists: each channel's hits, best first.
        weights: one for each channel, >= 0; 1 where none is given.
        k: the constant of the formula, >= 0.

    Returns:
        As `fuse`.
    """
    found: dict[ChannelKind, dict[Key, float]] = {}
    for kind, hits in lists.items():
        weight = 1.0 if weights is None else weights.get(kind, 1.0)
        found[kind] = _first(hits, [weight / (k + rank) for rank in range(1, len(hits) + 1)])
    return _ordered(found)


def _first(hits: Sequence[ChannelHit], scores: Sequence[float]) -> dict[Key, float]:
    """Return each candidate's score at its first place."""
    found = dict(zip(map(_key, hits), scores, strict=True))
    if len(found) < len(hits):  # written again from last to first, so that the first stays
        found.update(zip(map(_key, reversed(hits)), reversed(scores), strict=True))
    return found


def _ordered(found: Mapping[ChannelKind, dict[Key, float]]) -> Iterator[Fused]:
    """Add up in the order of `ChannelKind` (sums of floats depend on it) and sort by score, then identity."""
    kinds = [kind for kind in ChannelKind if found.get(kind)]
    scores: dict[Key, float] = {}
    for kind in kinds:
        mine = found[kind]
        total = scores | mine
        for key in scores.keys() & mine.keys():
            total[key] = scores[key] + mine[key]
        scores = total
    for key, score in _by_score(scores):
        yield Fused(key, score, tuple([kind for kind in kinds if key in found[kind]]))


def _by_score(scores: Mapping[Key, float]) -> list[tuple[Key, float]]:
    """Return the pairs by score, highest first, then by key: keys are compared only where scores tie.

    Strings compare by code points, which is the order of their UTF-8 bytes.
    """
    pairs = sorted(scores.items(), key=_score, reverse=True)
    values = [*map(_score, pairs)]
    done = 0
    for first in compress(count(), map(eq, values, values[1:])):
        if first >= done:
            done = first + values[first:].count(values[first])
            pairs[first:done] = sorted(pairs[first:done])
    return pairs
