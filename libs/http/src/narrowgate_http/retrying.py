"""Which failures are worth another attempt, and how long to wait for it."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

BACKOFF = (0.5, 5.0)
"""First and longest wait in seconds where the server names none; doubled each time, with a quarter of jitter."""

_RETRIED: Final = frozenset({"unreachable", "dns", "timeout", "cut", "rate-limited", "overloaded", "server-error"})

_NOT_ON_REQUEST: Final = frozenset({"unauthorised", "payment", "forbidden", "quota", "redirect"})
"""What another attempt cannot help, whatever the server says."""


def code_of(status: int) -> str:
    """Return the failure code of an HTTP status that is no success."""
    known = {401: "unauthorised", 402: "payment", 403: "forbidden", 404: "not-found", 405: "not-found", 407: "proxy"}
    known |= {408: "timeout", 413: "too-large", 429: "rate-limited", 498: "unauthorised", 501: "unsupported"}
    known |= {503: "overloaded", 524: "timeout", 529: "overloaded"}
    if status in known:
        return known[status]
    if 300 <= status < 400:
        return "redirect"
    return "server-error" if status >= 500 else "bad-request"


def may_retry(code: str, status: int | None, headers: Mapping[str, str]) -> bool:
    """Return whether another attempt may help. A server's `x-should-retry` decides about its own errors.

    Args:
        code: the failure's code.
        status: the answer's status, or `None` when there was none.
        headers: the answer's headers, names in lower case.
    """
    said = headers.get("x-should-retry", "").strip().lower()
    if said == "false":
        return False
    if said == "true" and status is not None and status >= 400:
        return code not in _NOT_ON_REQUEST
    return code in _RETRIED


def usual_wait(attempt: int) -> float:
    """Return the seconds to wait after attempt number `attempt` (1, 2, ...) where the server names no time."""
    first, longest = BACKOFF
    return min(first * 2.0 ** min(attempt - 1, 16), longest) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, or `None`.

    `retry-after-ms` comes before `retry-after`, which is a number of seconds or an HTTP date. A date is held against the
    server's own clock where it sends its `date`. What cannot be read, or is negative, does not count; a date that is past
    means no wait.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after", "")
    seconds = _number(asked)
    if seconds is not None:
        return seconds
    until = _moment(asked)
    if until is None:
        return None
    now = _moment(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _moment(text: str) -> float | None:
    """Return an HTTP date as seconds since 1970."""
    if not text.strip():
        return None
    try:
        moment = parsedate_to_datetime(text)
        return _utc(moment).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _utc(moment: datetime) -> datetime:
    # HTTP dates are in UTC; one of the old forms does not say so.
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
