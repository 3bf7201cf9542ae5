"""How good an order is: recall, nDCG and reciprocal rank of one ranked list, and their means over queries.

Everything here is pure. A ranked list is a sequence of document ids, best first, no id twice. `grades` maps the relevant
ids to their grade (> 0); an id that is not in it counts as not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

METRICS: Final = ("recall@10", "recall@30", "ndcg@10", "mrr")
"""The names of the figures, in the order in which they are shown."""


def folded(
    ranked: Sequence[str], grades: Mapping[str, int], facts: Mapping[str, str]
) -> tuple[Sequence[str], Mapping[str, int]]:
    """Return list and grades with the documents that state one fact folded into one.

    Near-duplicates of one fact are one result to a reader: the fact stands where its first document stands, with the highest
    grade of its documents.

    Args:
        ranked: document ids, best first.
        grades: relevant id -> grade.
        facts: id -> name of the fact that it states; an id that is not in it is a fact of its own.
    """
    best: dict[str, int] = {}
    for doc, grade in grades.items():
        fact = facts.get(doc, doc)
        best[fact] = max(grade, best.get(fact, 0))
    return list(dict.fromkeys(facts.get(doc, doc) for doc in ranked)), best


def recall(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the share of the relevant documents that are among the first `k`, 0..1.

    Args:
        ranked: document ids, best first.
        grades: relevant id -> grade; at least one above 0.
        k: how many places count, >= 1.
    """
    wanted = {doc for doc, grade in grades.items() if grade > 0}
    return len(wanted.intersection(ranked[:k])) / len(wanted)


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first `k` places, 0..1.

    The gain of grade g is 2^g - 1 and the discount of rank r is log2(r + 1) (Burges et al. 2005); the ideal order holds the
    relevant documents by falling grade.
    """
    ideal = _gain(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k])
    return _gain([grades.get(doc, 0) for doc in ranked[:k]]) / ideal


def _gain(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1.0) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return 1 / rank of the first relevant document, 0 when there is none in the list."""
    return next((1.0 / rank for rank, doc in enumerate(ranked, 1) if grades.get(doc, 0) > 0), 0.0)


@attrs.frozen
class Ranking:
    """The figures of one list, or their means over several.

    Attributes:
        values: name of `METRICS` -> figure, 0..1.
    """

    values: Mapping[str, float]

    @classmethod
    def of(cls, ranked: Sequence[str], grades: Mapping[str, int], facts: Mapping[str, str] | None = None) -> Ranking:
        """Measure one list; recall is of the folded list where `facts` are named. See `folded` for the arguments."""
        results, wanted = folded(ranked, grades, facts) if facts else (ranked, grades)
        return cls(
            {
                "recall@10": recall(results, wanted, 10),
                "recall@30": recall(results, wanted, 30),
                "ndcg@10": ndcg(ranked, grades, 10),
                "mrr": reciprocal_rank(ranked, grades),
            }
        )


def mean(rankings: Sequence[Ranking]) -> Ranking | None:
    """Return the mean of each figure, every list weighted alike; `None` of no lists."""
    if not rankings:
        return None
    return Ranking({name: math.fsum(one.values[name] for one in rankings) / len(rankings) for name in METRICS})


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0..1) of the values do not exceed; `None` of no values.

    This is the nearest-rank definition: the answer is always one of the values measured.
    """
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
