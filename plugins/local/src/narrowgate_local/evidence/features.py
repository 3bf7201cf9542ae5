"""The features of a pair (query, text). They depend on the pair and the index's statistics, on nothing else."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

import attrs

from narrowgate_local.evidence.analysis import QueryView, TextView, word_prefix
from narrowgate_local.evidence.statistics import Idf

FITTED: Final = (
    "coverage",
    "matched_mass",
    "numbers",
    "names",
    "no_name",
    "answers",
    "question",
    "length",
    "new_terms",
    "query_terms",
    "query_mass",
)
"""The features with fitted coefficients that need no embedder."""

EMBEDDING: Final = "embedding"
"""The fitted feature that needs an embedder: the cosine of query and text."""

HAND: Final = ("speaker", "first_person")
"""Features whose coefficients are set by hand: no permissively licensed set holds speakers."""

_PREFIX_CREDIT: Final = 0.5


@attrs.frozen
class Asked:
    """A query with the weights of its terms.

    Attributes:
        view: the query.
        mass: term -> weight of the term times its inverse document frequency.
    """

    view: QueryView
    mass: dict[str, float]

    @classmethod
    def of(cls, view: QueryView, idf: Idf) -> Asked:
        """Weigh the terms of `view`."""
        weights = idf.weights(view.terms.weight)
        return cls(view, {term: weight * weights[term] for term, weight in view.terms.weight.items()})


def values(asked: Asked, text: TextView) -> dict[str, float]:
    """Return every feature but `embedding`, by name.

    The name of the text's speaker counts neither as asked nor as held. `coverage`: share of the query's mass that the text
    holds; a word that shares only its first four letters counts half. `matched_mass`: log of the mass held. `numbers`,
    `names`: share of the query's numbers and proper names that the text holds; `no_name`: it has names and none is held.
    `answers`: 1 when the text's form fits the kind of question, -1 when it does not, 0 for a question of no kind.
    `question`: the text is one. `length`, `new_terms`, `query_terms`, `query_mass`: logs of how many words the text has, of
    the weight of its terms that are not the query's, of the weight of the query's terms and of their mass. `speaker`: 1 when
    the speaker is named in the query, -1 when the query names somebody else, 0 otherwise. `first_person`: the writer speaks
    of himself.
    """
    query = asked.view
    mass = {term: value for term, value in asked.mass.items() if term not in text.speaker}
    held = text.terms.weight
    total = sum(mass.values())
    exact = sum(value for term, value in mass.items() if term in held)
    near = sum(value for term, value in mass.items() if term not in held and word_prefix(term) in text.prefixes)
    names = query.terms.names - text.speaker
    share_of_names = _share(names, held)
    return {
        "coverage": (exact + _PREFIX_CREDIT * near) / total if total else 0.0,
        "matched_mass": math.log1p(exact),
        "numbers": _share(query.terms.numbers, held),
        "names": share_of_names,
        "no_name": float(bool(names) and share_of_names == 0.0),
        "answers": 0.0 if query.ask is None else 1.0 if query.ask in text.answers else -1.0,
        "question": float(text.question),
        "length": math.log1p(text.terms.length),
        "new_terms": math.log1p(sum(weight for term, weight in held.items() if term not in mass)),
        "query_terms": math.log1p(sum(query.terms.weight[term] for term in mass)),
        "query_mass": math.log1p(total),
        "speaker": _speaker(query, text),
        "first_person": float(text.first_person),
    }


def _share(wanted: Collection[str], held: Collection[str]) -> float:
    return sum(item in held for item in wanted) / len(wanted) if wanted else 0.0


def _speaker(query: QueryView, text: TextView) -> float:
    if not text.speaker:
        return 0.0
    if text.speaker.intersection(query.terms.weight):
        return 1.0
    return -1.0 if query.terms.names else 0.0
