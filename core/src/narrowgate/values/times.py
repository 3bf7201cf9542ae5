"""One rule for points in time.

A time with an offset means that instant. A time without one, and a bare date (its midnight), are read in the zone that
the caller names, UTC where none is named. Comparison is by instant; the offset that was written is kept for display.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from narrowgate.errors import InputError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ].+)?")


def parse_instant(value: str | date | datetime, *, zone: tzinfo = UTC, what: str = "time") -> datetime:
    """Return `value` as a datetime with an offset.

    Args:
        value: an ISO 8601 string (`2026-03-01`, `2026-03-01T10:00`, `...Z`, `...+09:00`), a date, or a datetime.
        zone: the zone of values that name none.
        what: how an error names it.

    Raises:
        InputError: `time-format`.
    """
    if isinstance(value, str):
        text = value.strip()
        if not _ISO.fullmatch(text):
            raise InputError("time-format", f"{what} is not an ISO 8601 date or time (like 2026-03-01T10:00+01:00)")
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise InputError("time-format", f"{what} is not a date or time that exists") from None
    elif isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - the zone is set below
    else:
        raise InputError("time-format", f"{what} must be a string, date or datetime, not {type(value).__name__}")
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def instant_micros(moment: datetime) -> int:
    """Return microseconds since 1970-01-01T00:00Z: equal instants give equal numbers.

    Raises:
        InputError: `time-range` when the instant lies outside the years 1 to 9999 in UTC.
    """
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    if not _FIRST <= micros <= _LAST:
        raise InputError("time-range", "the time lies outside the years 1 to 9999 in UTC")
    return micros
