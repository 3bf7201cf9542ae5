"""Weighting after the scores: what an entry's metadata says, multiplied onto its relevance. No input or output.

    weighted = relevance x priority x vitality x recency        (of these, the ones that the setting `weights` names)

    priority   4, 3, 2, 1 for P0, P1, P2, P3
    vitality   max(0.1, vitality), vitality in 0..1
    recency    max(0.1, 1 / (1 + 0.1 x days since the entry's occurred_at))

The factors are those of agent-memory 2.2 (its `rerank`), which multiplies them onto raw scores. That is wrong as soon as a
score can be negative, as logits are: a greater factor then makes an entry worse. Here the relevance that is multiplied is
never negative. With a declared `score_range` it is the score's place in that range, (score - low) / (high - low), which for
scores in 0..1 is agent-memory's own formula. Without one it is a share of places, 1 - (place - 1) / n, where `place` is one
more than the number of better scores among n. Either way a better score never makes an entry worse, nor does a greater
factor, and where all factors are equal the scores' order stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from narrowgate.values.entry import EntryContent

Weight: TypeAlias = Literal["priority", "vitality", "recency"]

PRIORITY: Final = (4.0, 3.0, 2.0, 1.0)
"""Factor by priority, P0 first."""

FLOOR: Final = 0.1
"""The least factor of vitality and of recency."""

_DAY: Final = 86_400.0


def relevances(scores: Sequence[float], score_range: tuple[float, float] | None) -> list[float]:
    """Return for each score a relevance in 0..1 that rises with it.

    Args:
        scores: finite, on one scale.
        score_range: the scale's ends, where they are declared.
    """
    if score_range is not None:
        low, high = score_range
        return [min(1.0, max(0.0, (score - low) / (high - low))) for score in scores]
    rising = sorted(scores)
    return [bisect_right(rising, score) / len(scores) for score in scores]


def factor(content: EntryContent, weights: Sequence[Weight], now: datetime) -> float:
    """Return the product of an entry's factors, > 0.

    Metadata that is missing or cannot be read is no reason to prefer an entry: the factor is 1 for priority (P3), 1 for
    vitality (which begins at 1), and the floor for recency (of unknown age).

    Args:
        content: the entry. Its attributes `priority` (`"P0"`.. `"P3"`, or 0..3) and `vitality` (0..1), and `occurred_at`.
        weights: which factors count.
        now: the present, with an offset.
    """
    found = {
        "priority": _priority(content.attributes),
        "vitality": _vitality(content.attributes),
        "recency": _recency(content.occurred_at, now),
    }
    product = 1.0
    for weight in weights:
        product *= found[weight]
    return product


def _priority(attributes: Mapping[str, object]) -> float:
    value = attributes.get("priority")
    if isinstance(value, str) and value.strip().upper() in ("P0", "P1", "P2", "P3"):
        value = int(value.strip()[1])
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in (0, 1, 2, 3):
        return PRIORITY[3]
    return PRIORITY[int(value)]


def _vitality(attributes: Mapping[str, object]) -> float:
    value = attributes.get("vitality")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return 1.0
    return max(FLOOR, float(value))


def _recency(moment: datetime | None, now: datetime) -> float:
    if moment is None:
        return FLOOR
    # In seconds, since a subtraction near the ends of the calendar would overflow with some offsets.
    days = max(0.0, (now.timestamp() - _seconds(moment)) / _DAY)
    return max(FLOOR, 1 / (1 + 0.1 * days))


def _seconds(moment: datetime) -> float:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.timestamp()
