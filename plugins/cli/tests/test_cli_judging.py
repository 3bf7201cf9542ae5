"""The figures of keep/drop verdicts against values worked out by hand, and what must hold for all verdicts."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from narrowgate_cli.evaluation.judging import (
    JudgedPair,
    JudgedQuery,
    auc,
    average_precision,
    calibration_error,
    judge,
    micro_f1,
    ordering,
)


def pair(label: str, outcome: str, probability: float | None = None, score: float | None = None) -> JudgedPair:
    """Make a pair as the keep/drop stage sees it by default: yes and abstain keep."""
    return JudgedPair(
        keep=label == "keep",
        yes=outcome == "yes",
        kept=outcome in ("yes", "abstain"),
        probability=probability,
        score=score,
        rank={"no": 0, "abstain": 1, "yes": 2}[outcome],
    )


def test_auc_counts_pairs_in_the_right_order() -> None:
    """Kept at .8 and .3, dropped at .5 and .1: three of the four comparisons are right."""
    assert auc([True, False, True, False], [0.8, 0.5, 0.3, 0.1]) == pytest.approx(3 / 4)


def test_auc_counts_ties_half() -> None:
    """One tie and one win of two comparisons make three quarters; all tied make a half."""
    assert auc([True, False, False], [0.5, 0.5, 0.1]) == pytest.approx(3 / 4)
    assert auc([True, False, True, False], [1.0] * 4) == pytest.approx(1 / 2)


def test_auc_needs_both_kinds() -> None:
    """Without kept or without dropped pairs there is nothing to compare."""
    assert auc([True, True], [0.1, 0.2]) is None
    assert auc([False], [0.1]) is None
    assert auc([], []) is None


def test_average_precision_by_hand() -> None:
    """Kept at ranks one and three of four: (1/1 + 2/3) / 2."""
    assert average_precision([True, False, True, False], [4, 3, 2, 1]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([False], [1]) is None


def test_average_precision_of_ties_is_the_base_rate() -> None:
    """All values alike: one threshold, whose precision is the share of kept pairs; the given order must not matter."""
    assert average_precision([True, False, False, False], [1.0] * 4) == pytest.approx(1 / 4)
    assert average_precision([False, False, False, True], [1.0] * 4) == pytest.approx(1 / 4)


def test_micro_f1_by_hand() -> None:
    """One right, one too many, one missed: 2 / (2 + 1 + 1)."""
    assert micro_f1([True, False, True, False], [True, True, False, False]) == pytest.approx(1 / 2)
    assert micro_f1([False], [False]) is None
    assert micro_f1([True], [False]) == 0.0


def test_calibration_error_by_hand() -> None:
    """Bin .2: mean .25 against 1 of 2 kept; bin .9: mean .95 against 2 of 2: (2 * .25 + 2 * .05) / 4."""
    assert calibration_error([True, False, True, True], [0.25, 0.25, 0.95, 0.95]) == pytest.approx(0.15)
    assert calibration_error([True], [1.0]) == 0.0
    assert calibration_error([], []) is None


def test_probabilities_order_before_scores() -> None:
    """Where all numbered pairs have a probability it orders; one with only a score makes the scores order all."""
    assert ordering([pair("keep", "yes", 0.9, -5.0), pair("drop", "no", 0.1, 5.0)]) == ([0.9, 0.1], 0)
    assert ordering([pair("keep", "yes", 0.9, -5.0), pair("drop", "no", None, 5.0)]) == ([-5.0, 5.0], 0)


def test_pairs_without_a_number_stand_below_all_others() -> None:
    """An abstention without a score is counted, and is one tie below the lowest score."""
    values, unscored = ordering([pair("keep", "abstain"), pair("drop", "no", score=-3.0), pair("drop", "abstain")])
    assert unscored == 2
    assert values[0] == values[2] < values[1]


def test_verdicts_alone_can_order() -> None:
    """A backend without any number is ordered by yes, abstain, no."""
    assert ordering([pair("keep", "yes"), pair("drop", "no"), pair("drop", "abstain")]) == ([2.0, 0.0, 1.0], 3)


def test_judge_puts_the_figures_together() -> None:
    """Empty answers are counted apart for unanswerable queries and for those with evidence, by yes and by the keep set."""
    queries = [
        JudgedQuery(answerable=False, pairs=(pair("drop", "no", score=0.0), pair("drop", "no", score=0.1))),
        JudgedQuery(answerable=False, pairs=(pair("drop", "abstain"), pair("drop", "no", score=0.2))),
        JudgedQuery(answerable=True, pairs=(pair("keep", "yes", score=0.9), pair("drop", "no", score=0.3))),
        JudgedQuery(answerable=None, pairs=(pair("drop", "no", score=0.0),)),
    ]
    figures = judge(queries)
    assert (figures.queries, figures.pairs, figures.positives, figures.unscored) == (4, 7, 1, 1)
    assert figures.auc == 1.0
    assert figures.average_precision == 1.0
    assert figures.micro_f1 == 1.0
    assert figures.micro_f1_kept == pytest.approx(2 / 3)
    assert figures.calibration_error is None
    assert figures.nothing_kept_unanswerable == 1.0
    assert figures.nothing_kept_unanswerable_by_stage == 0.5
    assert figures.nothing_kept_answerable == 0.0
    assert figures.nothing_kept_answerable_by_stage == 0.0


def test_judging_nothing_gives_no_figures() -> None:
    """Without queries every figure is undefined rather than nought."""
    figures = judge([])
    assert (figures.pairs, figures.auc, figures.micro_f1, figures.nothing_kept_answerable) == (0, None, None, None)


scored = st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=1, max_size=40)


@given(scored)
def test_figures_stay_between_nought_and_one(items: list[tuple[bool, int]]) -> None:
    """AUC, average precision and F1 lie in 0..1 whatever the labels and values."""
    labels, values = [label for label, _ in items], [float(value) for _, value in items]
    found = [auc(labels, values), average_precision(labels, values), micro_f1(labels, [value > 0 for value in values])]
    assert all(value is None or 0.0 <= value <= 1.0 + 1e-9 for value in found)


@given(scored)
def test_auc_is_symmetric(items: list[tuple[bool, int]]) -> None:
    """Turning the labels round turns the AUC round: they add up to one, ties included."""
    labels, values = [label for label, _ in items], [float(value) for _, value in items]
    assume(any(labels) and not all(labels))
    there, back = auc(labels, values), auc([not label for label in labels], values)
    assert there is not None
    assert back is not None
    assert there + back == pytest.approx(1.0)


@given(scored)
def test_auc_is_what_counting_all_comparisons_gives(items: list[tuple[bool, int]]) -> None:
    """The quick sum equals the definition over every kept and dropped pair."""
    kept = [value for label, value in items if label]
    dropped = [value for label, value in items if not label]
    assume(kept and dropped)
    wins = sum((high > low) + (high == low) / 2 for high in kept for low in dropped)
    found = auc([label for label, _ in items], [float(value) for _, value in items])
    assert found == pytest.approx(wins / (len(kept) * len(dropped)))


@given(scored, st.randoms(use_true_random=False))
def test_the_order_in_which_pairs_come_does_not_matter(items: list[tuple[bool, int]], random: object) -> None:
    """Ties are handled by value alone, so that a shuffle changes no figure."""
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for figure in (auc, average_precision):
        before = figure([label for label, _ in items], [float(value) for _, value in items])
        after = figure([label for label, _ in shuffled], [float(value) for _, value in shuffled])
        assert before == (None if after is None else pytest.approx(after))


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 1.0)), min_size=1, max_size=40))
def test_calibration_error_stays_between_nought_and_one(items: list[tuple[bool, float]]) -> None:
    """Every probability, the ends included, falls into a bin, and the error lies in 0..1."""
    error = calibration_error([label for label, _ in items], [probability for _, probability in items])
    assert error is not None
    assert 0.0 <= error <= 1.0
