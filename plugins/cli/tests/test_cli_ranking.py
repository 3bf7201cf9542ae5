"""The figures of a ranked list against values worked out by hand, and what must hold for every list."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_cli.evaluation.ranking import METRICS, Ranking, folded, mean, ndcg, percentile, recall, reciprocal_rank

IDS = [f"d{number}" for number in range(40)]


def test_recall_is_the_share_of_relevant_documents_within_k() -> None:
    """Two of three relevant documents stand in the first ten places."""
    ranked = IDS[:20]
    assert recall(ranked, {"d0": 1, "d9": 1, "d10": 1}, 10) == pytest.approx(2 / 3)
    assert recall(ranked, {"d0": 1, "d9": 1, "d10": 1}, 30) == 1.0
    assert recall([], {"d0": 1}, 10) == 0.0


def test_documents_of_one_fact_are_one_result() -> None:
    """A fact stands where its first document stands, with its highest grade; other documents move up."""
    grades = {"d1": 2, "d2": 1, "d3": 2}
    facts = {"d1": "A", "d2": "A", "d3": "B", "d4": "A"}
    assert folded(["d4", "d2", "x", "d1", "d3"], grades, facts) == (["A", "x", "B"], {"A": 2, "B": 2})
    ten = ["d1", "d2", "d4", *(f"x{n}" for n in range(8)), "d3"]
    assert Ranking.of(ten, grades, facts).values["recall@10"] == 1.0
    assert Ranking.of(ten, grades).values["recall@10"] == pytest.approx(2 / 3)


def test_ndcg_uses_graded_gains() -> None:
    """Grades 2 and 1 gain 3 and 1; the discount of rank r is log2(r + 1)."""
    grades = {"d0": 1, "d1": 2}
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(["d1", "d0"], grades, 10) == pytest.approx(1.0)
    assert ndcg(["d0", "d1"], grades, 10) == pytest.approx((1 + 3 / math.log2(3)) / ideal)
    assert ndcg(["x", "d1"], grades, 10) == pytest.approx((3 / math.log2(3)) / ideal)


def test_ndcg_ideal_is_cut_at_k() -> None:
    """Twelve relevant documents: a list of ten of them is perfect at ten."""
    grades = dict.fromkeys(IDS[:12], 1)
    assert ndcg(IDS[:10], grades, 10) == pytest.approx(1.0)


def test_reciprocal_rank_is_that_of_the_first_relevant_document() -> None:
    """The first hit at rank three gives a third; none gives nought."""
    assert reciprocal_rank(["x", "y", "d0", "d1"], {"d0": 1, "d1": 1}) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x"], {"d0": 1}) == 0.0


def test_mean_weighs_every_query_alike() -> None:
    """The mean of a perfect and an empty list is a half for each figure; of no list there is none."""
    both = mean([Ranking.of(["d0"], {"d0": 1}), Ranking.of([], {"d0": 1})])
    assert both is not None
    assert both.values == dict.fromkeys(METRICS, 0.5)
    assert mean([]) is None


def test_percentile_is_a_measured_value() -> None:
    """Nearest rank: the median of four is the second, the 95th of twenty is the nineteenth."""
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 21)], 0.95) == 19.0
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.5) is None


lists = st.lists(st.sampled_from(IDS), unique=True, max_size=35)
graded = st.dictionaries(st.sampled_from(IDS), st.integers(1, 3), min_size=1, max_size=12)


@given(ranked=lists, grades=graded)
def test_every_figure_lies_between_nought_and_one(ranked: list[str], grades: dict[str, int]) -> None:
    """Whatever the list, no figure leaves 0..1, and more places never find less."""
    values = Ranking.of(ranked, grades).values
    assert list(values) == list(METRICS)
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in values.values())
    assert values["recall@10"] <= values["recall@30"]


@given(grades=graded)
def test_the_ideal_order_is_perfect(grades: dict[str, int]) -> None:
    """Relevant documents by falling grade give the highest value of nDCG and of the reciprocal rank."""
    ranked = sorted(grades, key=lambda doc: -grades[doc])
    assert ndcg(ranked, grades, 10) == pytest.approx(1.0)
    assert reciprocal_rank(ranked, grades) == 1.0


@given(ranked=lists, grades=graded)
def test_a_fact_for_each_document_changes_nothing(ranked: list[str], grades: dict[str, int]) -> None:
    """Naming every document a fact of its own changes nothing."""
    facts = {doc: f"fact of {doc}" for doc in IDS}
    assert Ranking.of(ranked, grades, facts) == Ranking.of(ranked, grades)
