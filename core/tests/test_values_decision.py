"""Usage adds up honestly, and a result keeps to its ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.values.decision import NO_USAGE, DecisionOutcome, DecisionResult, Usage

COUNTS = st.integers(0, 10**6)
USAGES = st.builds(Usage, COUNTS, COUNTS, st.none() | COUNTS, st.none() | COUNTS)


@given(USAGES, USAGES, USAGES)
def test_addition_is_that_of_numbers(one, two, three):
    """Grouping and order make no difference, and `NO_USAGE` adds nothing."""
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + NO_USAGE == one


@given(USAGES, USAGES)
def test_an_unknown_part_makes_the_sum_unknown(one, two):
    """A sum of tokens is never smaller than the truth: it is exact or unknown."""
    both = one + two
    assert (both.calls, both.requests) == (one.calls + two.calls, one.requests + two.requests)
    assert (both.input_tokens is None) == (one.input_tokens is None or two.input_tokens is None)
    assert (both.output_tokens is None) == (one.output_tokens is None or two.output_tokens is None)
    if both.input_tokens is not None:
        assert both.input_tokens == one.input_tokens + two.input_tokens


@pytest.mark.parametrize("value", [-0.001, 1.001, float("nan"), float("inf")])
def test_a_probability_lies_in_0_to_1(value):
    """A number outside is no probability."""
    with pytest.raises(ValueError, match="probability"):
        DecisionResult(DecisionOutcome.YES, "b.v1", probability=value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_score_is_finite(value):
    """Any scale will do, but it is made of numbers."""
    with pytest.raises(ValueError, match="score"):
        DecisionResult(DecisionOutcome.YES, "b.v1", score=value)


@given(st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False))
def test_what_lies_inside_is_kept(probability, score):
    """Probability and score are handed on exactly."""
    result = DecisionResult(DecisionOutcome.NO, "b.v1", probability=probability, score=score)
    assert (result.probability, result.score) == (probability, score)
