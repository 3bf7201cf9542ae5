"""Thresholds: yes at or above, no at or below, an abstention between; a side that is not set takes the backend's word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import Thresholds

YES, NO, ABSTAIN = DecisionOutcome.YES, DecisionOutcome.NO, DecisionOutcome.ABSTAIN
NUMBERS = st.floats(-10, 10)
SAID = st.sampled_from(DecisionOutcome)


@pytest.mark.parametrize(
    ("yes_at", "no_at", "said", "number", "counts_as"),
    [
        (0.7, 0.2, NO, 0.7, YES),
        (0.7, 0.2, YES, 0.2, NO),
        (0.7, 0.2, YES, 0.69, ABSTAIN),
        (0.7, 0.2, NO, 0.21, ABSTAIN),
        (0.7, None, YES, 0.6, ABSTAIN),
        (0.7, None, NO, 0.4, NO),
        (0.7, None, NO, 0.8, YES),
        (None, 0.2, YES, 0.6, YES),
        (None, 0.2, NO, 0.4, ABSTAIN),
        (None, 0.2, NO, 0.1, NO),
        (None, None, NO, 0.9, NO),
        (0.7, 0.2, YES, None, YES),
        (0.7, 0.2, ABSTAIN, 0.9, ABSTAIN),
    ],
)
def test_what_an_answer_counts_as(
    yes_at: float | None, no_at: float | None, said: DecisionOutcome, number: float | None, counts_as: DecisionOutcome
) -> None:
    """Both borders belong to what they border; a gate that must be sure of a no alone sets `no_at` alone."""
    assert Thresholds(yes_at=yes_at, no_at=no_at).outcome(said, number) is counts_as


@given(SAID, st.none() | NUMBERS)
def test_without_thresholds_the_backend_decides(said: DecisionOutcome, number: float | None) -> None:
    """And without a number, whatever the thresholds."""
    assert Thresholds().outcome(said, number) is said
    assert Thresholds(yes_at=0.6, no_at=0.4).outcome(said, None) is said


@given(NUMBERS)
def test_an_abstention_stays_one(number: float) -> None:
    """No threshold makes a judgement of it."""
    assert Thresholds(yes_at=-11, no_at=-12).outcome(ABSTAIN, number) is ABSTAIN


@given(SAID.filter(lambda said: said is not ABSTAIN), NUMBERS, NUMBERS, NUMBERS)
def test_a_stricter_threshold_makes_no_judgement(said: DecisionOutcome, number: float, low: float, high: float) -> None:
    """Raising `yes_at` only takes a yes away, lowering `no_at` only a no: neither makes one."""
    low, high = min(low, high), max(low, high)
    loose = Thresholds(yes_at=low).outcome(said, number)
    strict = Thresholds(yes_at=high).outcome(said, number)
    assert strict is loose or (loose is YES and strict in (ABSTAIN, NO))
    assert strict is not YES or loose is YES
    loose, strict = Thresholds(no_at=high).outcome(said, number), Thresholds(no_at=low).outcome(said, number)
    assert strict is not NO or loose is NO
