"""From scores to places: order, the unscored, thresholds, signs of a server that says too little, the policy's id."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from narrowgate.values.decision import NO_USAGE
from narrowgate_http.testing import Answer, FaultServer
from narrowgate_rerank_api import EndpointReranker, EndpointSettings
from narrowgate_rerank_api.pools import Pool
from narrowgate_rerank_api.selection import decide, shortcoming

TEXTS = ["a", "b", "c", "d"]


@pytest.fixture
def choose(pool: Callable[..., Any], now: datetime) -> Callable[..., Any]:
    """Return a function: scores by place, limit, settings -> the decision over `TEXTS`."""

    def made(scores: dict[int, float], limit: int = 4, metadata: Any = (), **settings: Any) -> Any:
        candidates = pool(TEXTS, metadata)
        chosen = EndpointSettings(base_url="http://h", **settings)
        return decide(scores, Pool.of(TEXTS), candidates, limit, chosen, now, NO_USAGE)

    return made


def test_equal_scores_keep_coarse_order(choose: Callable[..., Any]) -> None:
    """Sorting is total: nothing depends on the order of the reply."""
    assert choose({3: 0.5, 0: 0.1, 2: 0.5, 1: 0.5}).selected_ranks == (2, 3, 4, 1)


def test_the_unscored_come_after_in_coarse_order_or_not_at_all(choose: Callable[..., Any]) -> None:
    """They are not documents with a score of 0: a logit below 0 is still better than none."""
    after = choose({2: -3.0, 1: -9.0})
    assert (after.selected_ranks, after.partial) == ((3, 2, 1, 4), "unscored")
    dropped = choose({2: -3.0, 1: -9.0}, unscored="drop")
    assert (dropped.selected_ranks, dropped.partial) == ((3, 2), "unscored")


def test_the_limit_cuts_after_sorting(choose: Callable[..., Any]) -> None:
    """Case 29: a candidate from the end of the pool can be the one result."""
    assert choose({0: 0.1, 1: 0.2, 2: 0.3, 3: 0.9}, 1).selected_ranks == (4,)


def test_scores_are_taken_on_their_own_scale(choose: Callable[..., Any]) -> None:
    """Case 25: small calibrated scores keep their order, against any recency; nothing squashes them to one half."""
    scores = {0: 0.0041, 1: 0.0007, 2: 0.0, 3: -0.5}
    assert choose(scores).selected_ranks == (1, 2, 3, 4)
    assert choose(scores).partial is None


def test_recency_does_not_decide_alone_over_small_scores(choose: Callable[..., Any], now: datetime) -> None:
    """Case 25: with recency reversed and weighted, the order is still the scores' where recency says little."""
    days = [{"occurred_at": now - timedelta(days=age)} for age in (3, 2, 1, 0)]
    scores = {0: 0.0041, 1: 0.0007, 2: 0.0, 3: -0.5}
    assert choose(scores, metadata=days, weights=("recency",)).selected_ranks == (1, 2, 3, 4)


def test_a_threshold_counts_before_the_weights(choose: Callable[..., Any]) -> None:
    """`min_score` is on the model's scale; what is dropped by it does not come back as unscored."""
    strong = [{"attributes": {"priority": "P0"}}, {}, {}, {}]
    decision = choose(
        {0: 0.2, 1: 0.5, 2: 0.9, 3: 0.49}, metadata=strong, min_score=0.5, score_range=(0.0, 1.0), weights=("priority",)
    )
    assert decision.selected_ranks == (3, 2)
    assert decision.partial is None


def test_nothing_over_the_threshold_is_an_outcome_of_its_own(choose: Callable[..., Any]) -> None:
    """The page is empty and says `none_relevant`: the operator asked for a threshold."""
    decision = choose(dict.fromkeys(range(4), 0.1), min_score=0.5, score_range=(0.0, 1.0))
    assert (decision.selected_ranks, decision.nothing_kept, decision.used_fallback) == ((), True, False)


@pytest.mark.parametrize(
    ("scores", "sent", "code"),
    [
        ([], 0, "blank"),
        ([0.4], 2, "unscored"),
        ([0.5, 0.5], 2, None),
        ([1e-20, 3e-20], 2, None),
        ([0.5, 0.5, 0.5], 3, "flat_scores"),
        ([0.0, 0.0, 0.0], 3, "flat_scores"),
        ([1e-20, 3e-20, 2e-20], 3, "tiny_scores"),
        ([1e-20, 3e-20, 0.2], 3, None),
    ],
)
def test_what_a_server_says_too_little_of(scores: list[float], sent: int, code: str | None) -> None:
    """Two texts may be equally good or far off; three or more alike are a sign of a wrong model or template."""
    assert shortcoming(scores, sent) == code


class _NoClient:
    name = "rerank-api.endpoint"


def _policy(**settings: Any) -> str:
    made = EndpointSettings(base_url="http://h", **settings)
    return EndpointReranker(_NoClient(), made).policy_id  # type: ignore[arg-type]


def test_the_policy_names_all_that_changes_a_selection() -> None:
    """Case 45: dialect, model, threshold, range, the rule for the unscored, weights, further options; no two alike."""
    assert _policy() == "memory.rerank.api.v1;dialect=standard"
    whole = _policy(
        dialect="cohere",
        model="rerank-v3.5",
        score_range=(0.0, 1.0),
        min_score=0.25,
        unscored="drop",
        weights=("vitality", "priority"),
    )
    assert whole == (
        "memory.rerank.api.v1;dialect=cohere;model=rerank-v3.5;range=0..1;min=0.25;unscored=drop;weights=priority+vitality"
    )
    many = [
        {},
        {"model": "a"},
        {"model": "b"},
        {"dialect": "jina"},
        {"unscored": "drop"},
        {"weights": ("recency",)},
        {"score_range": (0.0, 1.0)},
        {"score_range": (0.0, 1.0), "min_score": 0.5},
        {"options": {"a": 1}},
        {"options": {"a": 2}},
    ]
    assert len({_policy(**item) for item in many}) == len(many)
    assert _policy(options={"a": 1, "b": 2}) == _policy(options={"b": 2, "a": 1})


def test_what_changes_no_selection_is_not_in_the_policy() -> None:
    """Limits of a request, concurrency and deadlines leave the id alone."""
    assert _policy(max_documents=3, concurrency=1, deadline=1.0, timeout=1.0) == _policy()


@pytest.mark.anyio
async def test_the_selection_is_ranks_and_no_scores(
    pool: Callable[..., Any], endpoint: Callable[..., Any], scoring: Callable[..., Any]
) -> None:
    """Scores of different servers cannot be compared, so that none leaves the component."""
    with FaultServer(scoring({"a": 0.3, "b": 0.8})) as server:
        async with endpoint(server.url) as reranker:
            decision = await reranker.rerank("q", pool(["a", "b"]), 2)
    assert decision.selected_ranks == (2, 1)
    assert decision.verdicts == ()
    assert "0.8" not in repr(decision)


@pytest.mark.anyio
async def test_the_order_of_the_reply_does_not_count(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Every permutation of the results gives the same selection."""
    rows = [{"index": place, "relevance_score": score} for place, score in enumerate((0.2, 0.9, 0.5))]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        with FaultServer(Answer(json={"results": [rows[place] for place in order]})) as server:
            async with endpoint(server.url) as reranker:
                assert (await reranker.rerank("q", pool(["a", "b", "c"]), 3)).selected_ranks == (2, 3, 1)
