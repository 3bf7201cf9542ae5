"""The one place where ranks become hits. A model can only name places in the pool; identity never passes through it."""

from __future__ import annotations

from collections.abc import Sequence

from narrowgate.decisions.answers import INVALID_ANSWER
from narrowgate.errors import RerankError
from narrowgate.values.search import Candidate, Hit, RerankDecision


def resolve_ranks(decision: RerankDecision, candidates: Sequence[Candidate], limit: int) -> tuple[Hit, ...]:
    """Return the hits that `decision` selects, in its order.

    Args:
        decision: what a reranker returned.
        candidates: the coarse pool, rank 1 first.
        limit: the most ranks that were asked for.

    Raises:
        RerankError: the decision breaks the contract: a rank that is no integer of 1..n, named twice, more than `limit`
            of them, or none although something was kept. Nothing is repaired: a repaired selection is an invented one.
    """
    ranks = decision.selected_ranks
    if not ranks and not decision.nothing_kept:
        raise _refused("the reranker selected nothing and did not say that it kept nothing", decision)
    if len(ranks) > limit:
        raise _refused(f"the reranker selected {len(ranks)} places; at most {limit} were asked for", decision)
    seen: set[int] = set()
    for rank in ranks:
        if type(rank) is not int or not 1 <= rank <= len(candidates) or rank in seen:
            text = f"the reranker selected a place that is no integer of 1..{len(candidates)}, or one twice"
            raise _refused(text, decision)
        seen.add(rank)
    return tuple(as_hit(candidates[rank - 1]) for rank in ranks)


def _refused(text: str, decision: RerankDecision) -> RerankError:
    return RerankError(text, decision.usage, INVALID_ANSWER)


def as_hit(candidate: Candidate) -> Hit:
    """Return the hit that stands for a candidate: same identity, content, score."""
    return Hit(candidate.ref, candidate.content, candidate.score, candidate.matched_by)
