"""Which candidates of a channel may be fused: a bar per channel, before fusion; nothing that fails it comes back later.

`strict` is spec 1.3 to the letter. `open` is what measurement favours (docs/adr/0004-admission.md).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

from narrowgate.values.search import AnalysedQuery

Preset = Literal["open", "strict"]

STRICT_COSINE: Final = 0.3
"""Spec 1.3: cosine = 1 - d^2/2 for unit vectors."""


def required_matches(terms: int) -> int:
    """Return how many of `terms` distinct query terms a text must hold under `strict` (spec 1.3); 0 admits nothing.

    Args:
        terms: number of distinct query terms, >= 0.
    """
    if terms <= 2:
        return min(terms, 1)
    return max(2, -(-terms // 4))


def needs_text(preset: Preset) -> bool:
    """Tell whether lexical admission looks at the candidates' texts; `open` does not, and so costs nothing."""
    return preset == "strict"


def admit_lexical(preset: Preset, query: AnalysedQuery, terms: Collection[str] = ()) -> bool:
    """Tell whether a hit of a lexical channel is admitted.

    Args:
        preset: the rules.
        query: the analysed query.
        terms: the candidate text's distinct index terms; looked at under `strict` only. Best a set.
    """
    if preset == "open":
        return bool(query.terms)
    needed = required_matches(len(query.terms))
    return needed > 0 and sum(term in terms for term in query.terms) >= needed


def vector_bar(threshold: float | None = None) -> float:
    """Return the least cosine with which a hit of a vector channel is admitted; the presets do not differ here.

    Args:
        threshold: the cosine below which a candidate is noise for the model in use; `None` means `STRICT_COSINE`.
    """
    return STRICT_COSINE if threshold is None else threshold
