"""From scores to places in the pool. No input or output."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from narrowgate.decisions import Usage
from narrowgate.values.search import Candidate, RerankDecision
from narrowgate_rerank_api.pools import Pool
from narrowgate_rerank_api.settings import ScoringSettings
from narrowgate_rerank_api.weighting import factor, relevances

TINY: Final = 1e-9
"""Scores that all lie this close to 0 come from a model that was asked in a form it was not trained on."""


def decide(
    scores: Mapping[int, float],
    pool: Pool,
    candidates: Sequence[Candidate],
    limit: int,
    settings: ScoringSettings,
    now: datetime,
    usage: Usage,
) -> RerankDecision:
    """Return the selection: the scored by weighted score, best first, equal ones in coarse order; then the unscored.

    Args:
        scores: place in `pool.texts` -> score.
        pool: what was sent.
        candidates: the coarse pool, with ranks 1, 2, ...
        limit: 1 .. len(candidates).
        settings: see `ScoringSettings`.
        now: the present, for recency.
        usage: what it cost.
    """
    scored = [(place, scores[text]) for place, text in enumerate(pool.places) if text is not None and text in scores]
    others = [place for place, text in enumerate(pool.places) if text is None or text not in scores]
    if settings.min_score is not None:
        scored = [(place, score) for place, score in scored if score >= settings.min_score]
    weighted = [
        relevance * factor(candidates[place].content, settings.weights, now)
        for (place, _), relevance in zip(
            scored, relevances([score for _, score in scored], settings.score_range), strict=True
        )
    ]
    order = sorted(range(len(scored)), key=lambda item: (-weighted[item], -scored[item][1], scored[item][0]))
    places = [scored[item][0] for item in order]
    if settings.unscored == "after":
        places += others
    return RerankDecision(
        selected_ranks=tuple(candidates[place].rank for place in places[:limit]),
        usage=usage,
        used_fallback=not scores and bool(places),
        nothing_kept=not places,
        partial=shortcoming(scores.values(), len(pool.texts)),
    )


def shortcoming(scores: Collection[float], sent: int) -> str | None:
    """Return why a selection is less than a full judgement, or `None`.

    `blank`: there was no text to send. `unscored`: the server did not name every text. `flat_scores`: it gave three texts or
    more all the same score, so that the order is the coarse one. `tiny_scores`: those of three or more all lie within `TINY`
    of 0. Two texts may well be equally good, or both be far off.

    Args:
        scores: one for each text that was named.
        sent: how many were sent.
    """
    if sent == 0:
        return "blank"
    if len(scores) < sent:
        return "unscored"
    if sent <= 2:
        return None
    if len(set(scores)) == 1:
        return "flat_scores"
    return "tiny_scores" if max(map(abs, scores)) < TINY else None
