"""How much a term says: inverse document frequency from the deployment's own index, and what stands in for a missing one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from narrowgate.seams.ports import TermStatistics

COLD_DOCUMENTS: Final = 5
"""An index of N texts counts N / (N + 5) against the plain values below: a handful of texts says little."""

COLD_WORD: Final = 0.7
COLD_UNIGRAM: Final = 0.45
"""The weight of a word (or pair of characters) and of a single character with no index at all: means over query
terms of the training sets (.72 and .45)."""


@attrs.frozen
class Idf:
    """Weights of terms, 0..1: the rarest possible term has 1.

    The formula is BM25's, log(1 + (N - n + .5) / (n + .5)), divided by its value for n = 0, so that an index of 50 texts and
    one of a million give features of one scale. A term that no text holds has weight 1.

    Attributes:
        documents: N, texts in the index; 0 for none.
        frequency: n, by index term.
    """

    documents: int = 0
    frequency: Mapping[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, statistics: TermStatistics) -> Idf:
        """Return the weights under an index's statistics."""
        return cls(max(0, statistics.documents), statistics.frequency)

    def weights(self, terms: Iterable[str]) -> dict[str, float]:
        """Return the weight of each term."""
        total = self.documents
        cold = {term: COLD_UNIGRAM if len(term) == 1 and not term.isascii() else COLD_WORD for term in terms}
        if total == 0:
            return cold
        scale = math.log1p((total + 0.5) / 0.5)
        share = total / (total + COLD_DOCUMENTS)
        found = {}
        for term, plain in cold.items():
            holding = min(total, self.frequency.get(term, 0))
            own = math.log1p((total - holding + 0.5) / (holding + 0.5)) / scale
            found[term] = share * own + (1.0 - share) * plain
        return found
