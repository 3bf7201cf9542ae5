"""Filters: every documented form is read, everything else is refused by name."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.errors import FilterError
from narrowgate.values.filters import FIELDS, Filter, parse_filter, parse_filters
from narrowgate.values.times import instant_micros, parse_instant

MARCH = instant_micros(parse_instant("2026-03-01"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind=decision", Filter("kind", "eq", "decision")),
        ("source^=journal/", Filter("source", "prefix", "journal/")),
        ("author = Ana María ", Filter("author", "eq", "Ana María")),
        ("occurred_at>=2026-03-01", Filter("occurred_at", "ge", MARCH)),
        ("occurred_at<2026-03-01T00:00Z", Filter("occurred_at", "lt", MARCH)),
        ("occurred_at=2026-03-01T09:00+09:00", Filter("occurred_at", "eq", MARCH)),
        ("project=atlas", Filter("attributes.project", "eq", "atlas")),
        ("attributes.project^=at", Filter("attributes.project", "prefix", "at")),
        ("attributes.size<3", Filter("attributes.size", "lt", 3.0)),
        ("size>=-2.5e3", Filter("attributes.size", "ge", -2500.0)),
        ("attributes.kind=x", Filter("attributes.kind", "eq", "x")),
        ("source=https://h/a?b=c&d>=e", Filter("source", "eq", "https://h/a?b=c&d>=e")),
        ("项目=阿特拉斯", Filter("attributes.项目", "eq", "阿特拉斯")),
        ("note=", Filter("attributes.note", "eq", "")),
        ("note=two\nlines", Filter("attributes.note", "eq", "two\nlines")),
    ],
)
def test_documented_forms(text, expected):
    """Field, operator and value, with white space around the operator; a value may hold operators itself."""
    assert parse_filter(text) == expected


def test_times_without_a_zone_are_read_in_the_named_one():
    """Case 65: a date means its midnight where the caller is."""
    tokyo = timezone(timedelta(hours=9))
    assert parse_filter("occurred_at>=2026-03-01", zone=tokyo).value == MARCH - 9 * 3600 * 10**6


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "filter-format"),
        ("kind", "filter-format"),
        ("=decision", "filter-format"),
        ("two words=x", "filter-format"),
        ("kind!decision", "filter-format"),
        ("occurred_at>=soon", "filter-format"),
        ("occurred_at=2026-02-30", "filter-format"),
        ("occurred_at^=2026", "filter-operator"),
        ("kind<3", "filter-operator"),
        ("source>=a", "filter-operator"),
        ("author<b", "filter-operator"),
        ("kind!=note", "filter-operator"),
        ("project~=atlas", "filter-operator"),
        ("kind==note", "filter-operator"),
        ("size<=3", "filter-operator"),
        ("size>3", "filter-format"),
        ("size<big", "filter-operator"),
        ("attributes.size>=", "filter-operator"),
    ],
)
def test_what_cannot_be_understood_is_refused(text, code):
    """No filter is guessed: the error says which rule it broke."""
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert caught.value.code == code


@given(st.text() | st.from_regex(r"\A[a-z_.]{0,12}(=|\^=|>=|<|>|<=)[ -~]{0,12}\Z"))
def test_no_text_raises_anything_else(text):
    """Garbage gives a FilterError; what passes is a filter on a known field or on an attribute."""
    try:
        found = parse_filter(text)
    except FilterError:
        return
    assert found.field in FIELDS or found.field.startswith("attributes.")
    assert found.op in {"eq", "prefix", "ge", "lt"}


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
def test_a_bound_is_a_finite_number(number):
    """NaN and infinity are refused everywhere: as a bound they would match nothing or everything without a word."""
    with pytest.raises(FilterError):
        parse_filter(f"attributes.size<{number}")


@pytest.mark.parametrize("text", ["attributes.=x", "attributes.<3"])
def test_an_attribute_has_a_name(text):
    """`attributes.` alone names nothing."""
    with pytest.raises(FilterError):
        parse_filter(text)


def test_several_keep_their_order():
    """One filter for each text, and the first that cannot be understood refuses all."""
    assert [found.field for found in parse_filters(["kind=a", "x=1"])] == ["kind", "attributes.x"]
    with pytest.raises(FilterError):
        parse_filters(["kind=a", "kind"])
