"""What becomes of a model's ranks, as functions without a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_listwise.answer import InvalidAnswerError, normalised, ranks_of

INTEGERS = st.lists(st.integers(-3, 12) | st.integers(), max_size=40)
SHOWN = st.sets(st.integers(1, 10), min_size=1)


def one_by_one(ranks: list[int], shown: set[int], limit: int) -> tuple[list[int], int]:
    """Return the rule of spec 1.7 written out: stop at the limit, count what is repeated or out of range until then."""
    kept: list[int] = []
    discarded = 0
    for rank in ranks:
        if len(kept) >= limit:
            return kept, discarded
        if rank in shown and rank not in kept:
            kept.append(rank)
        else:
            discarded += 1
    return kept, discarded


@given(INTEGERS, SHOWN, st.integers(1, 10))
def test_it_is_the_rule_written_out(ranks: list[int], shown: set[int], limit: int) -> None:
    """First occurrences in the model's order, the count of what was passed over, an end at the limit."""
    selection = normalised(ranks, shown, limit)
    assert (list(selection.ranks), selection.discarded) == one_by_one(ranks, shown, limit)


@given(INTEGERS, SHOWN, st.integers(1, 10))
def test_nothing_is_invented(ranks: list[int], shown: set[int], limit: int) -> None:
    """A subset of what the model said and of what it was shown: distinct, in the model's order, at most the limit."""
    selection = normalised(ranks, shown, limit)
    assert set(selection.ranks) <= set(ranks) & shown
    assert len(set(selection.ranks)) == len(selection.ranks) <= limit
    assert list(selection.ranks) == sorted(selection.ranks, key=ranks.index)
    assert selection.discarded + len(selection.ranks) <= len(ranks)


@given(INTEGERS, SHOWN, st.integers(1, 10), INTEGERS)
def test_what_follows_a_full_selection_neither_counts_nor_matters(
    ranks: list[int], shown: set[int], limit: int, more: list[int]
) -> None:
    """Once `limit` valid ranks are found, nothing behind them changes anything."""
    selection = normalised(ranks, shown, limit)
    if len(selection.ranks) == limit:
        assert normalised(ranks + more, shown, limit) == selection


@given(st.lists(st.integers(1, 10), min_size=1), SHOWN)
def test_every_rank_is_kept_or_counted_when_the_limit_is_not_reached(ranks: list[int], shown: set[int]) -> None:
    """Kept and discarded add up to what the model said."""
    selection = normalised(ranks, shown, 11)
    assert len(selection.ranks) + selection.discarded == len(ranks)


@pytest.mark.parametrize(
    ("ranks", "shown", "limit", "kept", "discarded"),
    [
        ([0, 2], {1, 2, 3}, 3, (2,), 1),
        ([-1, 3], {1, 2, 3}, 3, (3,), 1),
        ([2, 2, 1, 2], {1, 2, 3}, 3, (2, 1), 2),
        ([4, 99, 10**40], {1, 2, 3}, 3, (), 3),
        ([9, 1, 1, 2, 7, 7], {1, 2, 3}, 2, (1, 2), 2),
        ([3, 1, 2], {1, 2, 3}, 1, (3,), 0),
        ([1, 2, 3], {2, 4}, 3, (2,), 2),
    ],
)
def test_ranks_that_name_nothing_are_counted(
    ranks: list[int], shown: set[int], limit: int, kept: tuple[int, ...], discarded: int
) -> None:
    """Case 31: 0 and negative numbers are out of range and never places counted from the end."""
    selection = normalised(ranks, shown, limit)
    assert (selection.ranks, selection.discarded) == (kept, discarded)


def test_an_endless_list_costs_only_until_the_limit() -> None:
    """A runaway list of a million ranks is read up to the last one that is needed."""
    assert normalised([1, 2, *[5] * 1_000_000], range(1, 10), 2).discarded == 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [1, 2],
        "1, 2",
        {},
        {"ranks": [1]},
        {"selected_ranks": [1], "reason": "it is the best"},
        {"selected_ranks": None},
        {"selected_ranks": 1},
        {"selected_ranks": "1"},
        {"selected_ranks": {"1": 1}},
        {"selected_ranks": [True]},
        {"selected_ranks": [1, False]},
        {"selected_ranks": [1.0]},
        {"selected_ranks": [2.5]},
        {"selected_ranks": ["1"]},
        {"selected_ranks": ["٣"]},
        {"selected_ranks": [None]},
        {"selected_ranks": [[1]]},
        {"selected_ranks": [{"rank": 1}]},
    ],
    ids=repr,
)
def test_what_is_not_of_the_schema_is_no_answer(value: Any) -> None:
    """Case 35: no number is guessed out of something else, not even `1.0`, `true` or `"1"`."""
    with pytest.raises(InvalidAnswerError):
        ranks_of(value)


def test_an_empty_list_is_an_answer() -> None:
    """Case 33: it is of the schema, and means that no candidate helps."""
    assert ranks_of({"selected_ranks": []}) == []
