"""What passes as a verdict, and what a failed call is charged with."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowgate.decisions
from narrowgate.decisions import (
    NO_USAGE,
    DecisionOutcome,
    DecisionResult,
    Usage,
    checked,
    checked_many,
    cost_of,
    total,
    unreported,
)
from narrowgate.errors import DecisionError

COST = Usage(1, 1, 5, 1)
GOOD = DecisionResult(DecisionOutcome.YES, "b.v1", COST, probability=0.5, score=-3.0)


def forged(**changes):
    """Return a result as a careless backend could make it, past the checks of the class."""
    result = attrs.evolve(GOOD)
    for name, value in changes.items():
        object.__setattr__(result, name, value)
    return result


def test_the_public_names_are_sorted():
    """`__all__` is what can be imported, in order."""
    names = narrowgate.decisions.__all__
    assert list(names) == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(narrowgate.decisions, name) for name in names)


@given(
    st.builds(
        DecisionResult,
        st.sampled_from(DecisionOutcome),
        st.just("b.v1"),
        probability=st.none() | st.floats(0, 1),
        score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        reason=st.none() | st.sampled_from(["refused", "no_terms", "number-differs", "a1"]),
    )
)
def test_every_result_that_can_be_built_is_a_verdict(result):
    """What the class itself lets through passes, and unchanged, where its reason is a code."""
    assert checked(result) is result


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"outcome": "yes"}, "outcome of type str"),
        ({"outcome": True}, "outcome of type bool"),
        ({"outcome": None}, "outcome of type NoneType"),
        ({"probability": 1.01}, "probability"),
        ({"probability": -0.01}, "probability"),
        ({"probability": float("nan")}, "probability"),
        ({"probability": "0.5"}, "probability"),
        ({"probability": True}, "probability"),
        ({"score": float("inf")}, "score"),
        ({"score": float("nan")}, "score"),
        ({"used_fallback": None}, "used_fallback"),
        ({"reason": "The memory says that Ana has left."}, "a reason that is no code"),
        ({"reason": "备份"}, "a reason that is no code"),
        ({"reason": ""}, "a reason that is no code"),
        ({"reason": 3}, "a reason that is no code"),
    ],
)
def test_a_forged_result_is_refused_with_its_cost(changes, names):
    """A value outside the port's promise is an error that names backend and field, and keeps the cost."""
    with pytest.raises(DecisionError, match=rf"'b\.v1'.*{names}") as caught:
        checked(forged(**changes))
    assert caught.value.usage == COST
    assert "Ana" not in str(caught.value)


@pytest.mark.parametrize("usage", [None, 3, Usage(-1), Usage(1, None), Usage(1, 1, "5"), Usage(1, 1, 0, -2)])
def test_a_usage_that_is_no_count_is_refused(usage):
    """What cannot be added up is no cost."""
    with pytest.raises(DecisionError, match="usage") as caught:
        checked(forged(usage=usage))
    assert caught.value.usage is None


@pytest.mark.parametrize("result", [None, "yes", True, object()])
def test_what_is_no_result_is_refused(result):
    """Only a `DecisionResult` is read as one."""
    with pytest.raises(DecisionError, match=type(result).__name__):
        checked(result)


def test_many_are_as_many_as_asked():
    """A list serves as well as a tuple; one too few, one too many or a single result do not."""
    assert checked_many([GOOD, GOOD], 2) == (GOOD, GOOD)
    for wrong in ((GOOD,), (GOOD,) * 3, GOOD, None, {0: GOOD, 1: GOOD}):
        with pytest.raises(DecisionError) as caught:
            checked_many(wrong, 2)
        assert caught.value.usage == Usage(2, 1, None, None)


def test_one_bad_result_spoils_the_batch_at_the_cost_of_all():
    """Each result's cost is known, so that the whole batch's is."""
    with pytest.raises(DecisionError, match="probability") as caught:
        checked_many((GOOD, forged(probability=7.0)), 2)
    assert caught.value.usage == Usage(2, 2, 10, 2)
    with pytest.raises(DecisionError, match="NoneType") as caught:
        checked_many((GOOD, None), 2)
    assert caught.value.usage == Usage(2, 1, None, None)


def test_a_failed_call_costs_what_it_says():
    """The usage that an error carries counts; an error that says nothing counts as one request of unknown size."""
    assert cost_of(DecisionError("x", COST), 3) == COST
    assert cost_of(DecisionError("x", NO_USAGE), 3) == NO_USAGE
    assert cost_of(DecisionError("x"), 3) == unreported(3) == Usage(3, 1, None, None)
    assert cost_of(ValueError("x"), 1) == Usage(1, 1, None, None)
    assert cost_of(DecisionError("x", 5), 1) == Usage(1, 1, None, None)


def test_the_total_of_nothing_is_no_usage():
    """Nothing asked, nothing spent."""
    assert total([]) == NO_USAGE
    assert total([COST, COST]) == Usage(2, 2, 10, 2)
