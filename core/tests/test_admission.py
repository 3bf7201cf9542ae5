"""Admission: the strict preset is the spec to the letter, the open one asks for a match."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.recall.admission import STRICT_COSINE, admit_lexical, needs_text, required_matches, vector_bar
from narrowgate.recall.analysis import analyse_query, index_terms


def strict(query: str, text: str) -> bool:
    """Tell whether `strict` admits a text."""
    return admit_lexical("strict", analyse_query(query), set(index_terms(text)))


@pytest.mark.parametrize(
    ("terms", "needed"),
    [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (8, 2), (9, 3), (12, 3), (13, 4), (16, 4), (17, 5), (100, 25)],
)
def test_required_matches_are_those_of_the_spec(terms: int, needed: int) -> None:
    """Spec 1.3: one of up to two, then a quarter rounded up, at least two."""
    assert required_matches(terms) == needed


@given(st.integers(3, 10_000))
def test_required_matches_follow_the_formula(terms: int) -> None:
    """max(2, ceil(n / 4)) for three terms and more."""
    assert required_matches(terms) == max(2, math.ceil(terms / 4))


def test_strict_counts_distinct_shared_terms() -> None:
    """A word that a text repeats is one match."""
    assert strict("nightly backup disk", "the backup of the disk")
    assert not strict("nightly backup disk", "backup, backup and backup")
    assert strict("nightly backup", "backup")


def test_open_admits_any_match_and_needs_no_text() -> None:
    """Case 5: a natural question keeps the row that shares a word or two with it."""
    query = analyse_query("what makes our nightly backup so slow on Fridays")
    assert admit_lexical("open", query)
    assert not needs_text("open")
    assert needs_text("strict")


@pytest.mark.parametrize("preset", ["open", "strict"])
def test_a_query_without_terms_admits_nothing(preset: str) -> None:
    """Case 1: a query of punctuation has no lexical result."""
    query = analyse_query('"*"')
    assert query.terms == ()
    assert not admit_lexical("open" if preset == "open" else "strict", query, {"a"})


def test_vector_bar_is_the_models_own_or_the_specs() -> None:
    """0.3 where a model names none; 0 is a bar as well."""
    assert STRICT_COSINE == 0.3
    assert vector_bar() == 0.3
    assert vector_bar(0.1) == 0.1
    assert vector_bar(0.0) == 0.0
