"""Points in time: one rule, compared by instant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.errors import InputError
from narrowgate.values.times import instant_micros, parse_instant

TOKYO = timezone(timedelta(hours=9))
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=OFFSETS)  # noqa: DTZ001 - bounds have no zone


@pytest.mark.parametrize(
    ("zone", "equal"),
    [
        (UTC, ["2026-03-01T10:00", "2026-03-01T10:00Z", "2026-03-01T19:00+09:00", "2026-03-01 10:00:00.000"]),
        (TOKYO, ["2026-03-01T10:00", "2026-03-01T01:00Z", "2026-03-01T10:00+09:00", "2026-02-28T20:00-05:00"]),
        (UTC, ["2026-03-01", "2026-03-01T00:00", "2026-03-01T09:00+09:00"]),
        (TOKYO, ["2026-03-01", "2026-02-28T15:00Z"]),
    ],
)
def test_equal_instants_are_equal(zone, equal):
    """Case 65: naive, aware and date-only values compare without raising, and equal instants give equal numbers."""
    assert len({instant_micros(parse_instant(value, zone=zone)) for value in equal}) == 1


@given(MOMENTS, OFFSETS)
def test_the_offset_changes_nothing_but_the_display(moment, other):
    """Case 65: an instant keeps its number under every offset, and its written offset survives."""
    elsewhere = moment.astimezone(other)
    assert instant_micros(parse_instant(elsewhere)) == instant_micros(parse_instant(moment))
    read = parse_instant(elsewhere.isoformat(), zone=TOKYO)
    assert read == moment
    assert read.utcoffset() == elsewhere.utcoffset()


@given(MOMENTS, MOMENTS)
def test_the_order_is_that_of_time(one, other):
    """Numbers are in the order of the instants, one for each microsecond."""
    assert (instant_micros(one) < instant_micros(other)) == (one < other)
    assert timedelta(microseconds=instant_micros(one) - instant_micros(other)) == one - other


@given(st.dates(date(1900, 1, 1), date(2200, 1, 1)), OFFSETS)
def test_a_date_is_its_midnight_in_the_named_zone(day, zone):
    """As a date, as text and as a naive datetime: the same instant."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    assert parse_instant(day, zone=zone) == midnight
    assert parse_instant(day.isoformat(), zone=zone) == midnight
    assert parse_instant(midnight.replace(tzinfo=None), zone=zone) == midnight


def test_the_epoch_is_zero():
    """Numbers count from 1970 in UTC, before it they are negative."""
    assert instant_micros(parse_instant("1970-01-01")) == 0
    assert instant_micros(parse_instant("1969-12-31T23:59:59.999999Z")) == -1


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "2026", "2026-3-1", "20260301", "2026-02-30", "2026-03-01T25:00", "2026-03-01T", "10:00", 7, None],
)
def test_what_is_no_time_is_refused(value):
    """The error names the field; a day that does not exist is refused too."""
    with pytest.raises(InputError, match="occurred_at") as caught:
        parse_instant(value, what="occurred_at")
    assert caught.value.code == "time-format"


@given(st.text())
def test_no_text_raises_anything_else(text):
    """Garbage is refused as garbage, whatever it is."""
    try:
        assert parse_instant(text).tzinfo is not None
    except InputError:
        return


@pytest.mark.parametrize("value", ["0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"])
def test_an_instant_that_cannot_be_shown_in_utc_is_refused(value):
    """An instant outside the years 1 to 9999 in UTC could be stored and never be read back."""
    with pytest.raises(InputError) as caught:
        instant_micros(parse_instant(value))
    assert caught.value.code == "time-range"


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_edges_themselves_are_numbers(moment):
    """The first and the last instant in UTC are within the range."""
    micros = instant_micros(parse_instant(moment))
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros) == moment
