"""Weights: the formula of agent-memory on scores in 0..1, and an order that is right on any scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.values.decision import NO_USAGE
from narrowgate.values.entry import EntryContent
from narrowgate_rerank_api import EndpointSettings
from narrowgate_rerank_api.pools import Pool
from narrowgate_rerank_api.selection import decide
from narrowgate_rerank_api.weighting import factor, relevances

ALL = ("priority", "vitality", "recency")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def entry(occurred_at: datetime | None = None, **attributes: Any) -> EntryContent:
    """Return an entry with this metadata."""
    return EntryContent("t", "note", None, None, occurred_at, attributes, "0" * 64)


@pytest.mark.parametrize(
    ("content", "weights", "expected"),
    [
        (entry(priority="P0"), ("priority",), 4),
        (entry(priority="p1"), ("priority",), 3),
        (entry(priority=2), ("priority",), 2),
        (entry(priority=3.0), ("priority",), 1),
        (entry(vitality=0.5), ("vitality",), 0.5),
        (entry(vitality=0.02), ("vitality",), 0.1),
        (entry(NOW - timedelta(days=10)), ("recency",), 0.5),
        (entry(NOW - timedelta(days=5000)), ("recency",), 0.1),
        (entry(NOW + timedelta(days=3)), ("recency",), 1),
        (entry(NOW.astimezone(timezone(timedelta(hours=9)))), ("recency",), 1),
        (entry(NOW - timedelta(days=10), priority="P1", vitality=0.4), ALL, 3 * 0.4 * 0.5),
        (entry(NOW - timedelta(days=10), priority="P1", vitality=0.4), (), 1),
    ],
)
def test_the_factors(content: EntryContent, weights: Any, expected: float) -> None:
    """Spec 6.5: {4, 3, 2, 1} by priority, max(0.1, vitality), max(0.1, 1 / (1 + 0.1 days)); only what is named counts."""
    assert factor(content, weights, NOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (entry(), 0.1),
        (entry(NOW), 1),
        (entry(NOW, priority="urgent", vitality=7), 1),
        (entry(NOW, priority=True, vitality=True), 1),
        (entry(NOW, priority=None, vitality="0.5"), 1),
        (entry(NOW, priority=-1, vitality=-0.1), 1),
        (entry(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))), 0.1),
        (entry(datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12)))), 1),
    ],
)
def test_metadata_that_is_missing_or_odd_is_no_reason_to_prefer(content: EntryContent, expected: float) -> None:
    """Never an error, and never more than an entry that says something could get; no time overflows."""
    assert factor(content, ALL, NOW) == pytest.approx(expected)


def test_the_formula_of_agent_memory_on_scores_between_0_and_1(pool: Callable[..., Any]) -> None:
    """Spec 8: relevance x priority x vitality x recency, the product and nothing else."""
    rows = [
        {"attributes": {"priority": "P3", "vitality": 1.0}, "occurred_at": NOW},
        {"attributes": {"priority": "P0", "vitality": 0.5}, "occurred_at": NOW - timedelta(days=10)},
        {"attributes": {"priority": "P1", "vitality": 0.9}, "occurred_at": NOW - timedelta(days=30)},
    ]
    scores = {0: 0.9, 1: 0.8, 2: 0.7}
    products = [0.9 * 1 * 1.0 * 1.0, 0.8 * 4 * 0.5 * 0.5, 0.7 * 3 * 0.9 * 0.25]
    assert relevances(list(scores.values()), (0.0, 1.0)) == list(scores.values())
    settings = EndpointSettings(base_url="http://h", score_range=(0.0, 1.0), weights=ALL)
    texts = ["a", "b", "c"]
    decision = decide(scores, Pool.of(texts), pool(texts, rows), 3, settings, NOW, NO_USAGE)
    assert decision.selected_ranks == tuple(rank + 1 for rank in sorted(range(3), key=lambda place: -products[place]))


@pytest.mark.parametrize(
    ("scores", "score_range", "expected"),
    [
        ([-5.0, 0.0, 2.5, 5.0], (-5.0, 5.0), [0, 0.5, 0.75, 1]),
        ([1.0000004, -0.0000004], (0.0, 1.0), [1, 0]),
        ([3.0, -1.0, 3.0, 0.0], None, [1, 0.25, 1, 0.5]),
        ([-8.0], None, [1]),
    ],
    ids=["range", "rounding", "places", "alone"],
)
def test_the_relevance_that_is_weighted(
    scores: list[float], score_range: tuple[float, float] | None, expected: list[float]
) -> None:
    """The place in the declared range, or one less the share of better scores."""
    assert relevances(scores, score_range) == pytest.approx(expected)


def test_the_product_decides_where_no_range_is_declared(pool: Callable[..., Any]) -> None:
    """Places 1, 3/4, 1/2, 1/4 times vitality; of equal products the better score comes first."""
    rows = [{"attributes": {"vitality": vitality}} for vitality in (0.5, 0.6, 1.0, 1.0)]
    settings = EndpointSettings(base_url="http://h", weights=("vitality",))
    texts = ["a", "b", "c", "d"]
    scores = {0: 4.0, 1: -1.0, 2: -2.0, 3: -9.0}
    assert decide(scores, Pool.of(texts), pool(texts, rows), 4, settings, NOW, NO_USAGE).selected_ranks == (1, 3, 2, 4)


def test_priority_helps_an_entry_whose_score_is_negative(pool: Callable[..., Any]) -> None:
    """Multiplied onto a logit, a greater factor would make it worse: of two equal ones the more important comes first."""
    rows = [{"attributes": {"priority": "P3"}}, {"attributes": {"priority": "P0"}}]
    settings = EndpointSettings(base_url="http://h", weights=("priority",))
    decision = decide({0: -2.0, 1: -2.0}, Pool.of(["a", "b"]), pool(["a", "b"], rows), 2, settings, NOW, NO_USAGE)
    assert decision.selected_ranks == (2, 1)


SCORES = st.lists(st.floats(-30, 30) | st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=8)
RANGES = st.sampled_from([None, (-30.0, 30.0), (-31.5, 77.0)])
METADATA = st.fixed_dictionaries(
    {
        "attributes": st.fixed_dictionaries(
            {"priority": st.sampled_from(["P0", "P1", "P2", "P3"]), "vitality": st.floats(0, 1)}
        ),
        "occurred_at": st.integers(0, 400).map(lambda days: NOW - timedelta(days=days)),
    }
)


@given(SCORES, RANGES)
def test_relevance_rises_with_the_score(scores: list[float], score_range: tuple[float, float] | None) -> None:
    """Within 0..1; better is never less, equal is equal."""
    found = relevances(scores, score_range)
    assert all(0 <= value <= 1 for value in found)
    for one, first in zip(scores, found, strict=True):
        for other, second in zip(scores, found, strict=True):
            assert first == second if one == other else one < other or first >= second


def ranks(
    pool: Callable[..., Any],
    scores: Sequence[float],
    rows: Sequence[Mapping[str, Any]],
    score_range: tuple[float, float] | None,
) -> tuple[int, ...]:
    """Return the selection over texts with these scores and metadata, all weights on."""
    texts = [f"t{place}" for place in range(len(scores))]
    settings = EndpointSettings(base_url="http://h", weights=ALL, score_range=score_range)
    found = decide(
        dict(enumerate(scores)), Pool.of(texts), pool(texts, rows), len(texts), settings, NOW, NO_USAGE
    ).selected_ranks
    assert sorted(found) == list(range(1, len(scores) + 1))
    return found


@given(st.data(), SCORES, RANGES)
def test_a_better_score_never_makes_an_entry_worse(
    pool: Callable[..., Any], data: st.DataObject, scores: list[float], score_range: tuple[float, float] | None
) -> None:
    """Whatever the metadata, and also where scores are negative."""
    rows = data.draw(st.lists(METADATA, min_size=len(scores), max_size=len(scores)))
    chosen = data.draw(st.integers(0, len(scores) - 1))
    better = data.draw(st.floats(scores[chosen], 30))
    before = ranks(pool, scores, rows, score_range).index(chosen + 1)
    raised = [better if place == chosen else score for place, score in enumerate(scores)]
    assert ranks(pool, raised, rows, score_range).index(chosen + 1) <= before


@given(st.data(), SCORES, RANGES)
def test_a_greater_factor_never_makes_an_entry_worse(
    pool: Callable[..., Any], data: st.DataObject, scores: list[float], score_range: tuple[float, float] | None
) -> None:
    """P0, alive and of today is at least as good as what it was before."""
    rows = data.draw(st.lists(METADATA, min_size=len(scores), max_size=len(scores)))
    chosen = data.draw(st.integers(0, len(scores) - 1))
    best = {"attributes": {"priority": "P0", "vitality": 1.0}, "occurred_at": NOW}
    before = ranks(pool, scores, rows, score_range).index(chosen + 1)
    raised = [best if place == chosen else row for place, row in enumerate(rows)]
    assert ranks(pool, scores, raised, score_range).index(chosen + 1) <= before


@given(SCORES, METADATA, RANGES)
def test_equal_metadata_leaves_the_order_of_the_scores(
    pool: Callable[..., Any], scores: list[float], row: Mapping[str, Any], score_range: tuple[float, float] | None
) -> None:
    """Weights only ever tell entries apart by what the entries say."""
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    assert ranks(pool, scores, [row] * len(scores), score_range) == tuple(place + 1 for place in expected)
