"""Which failures are worth another attempt, and how long to wait for it."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

BACKOFF = (0.5, 5.0)
"""First and longest wait in seconds where the server names none; doubled each time, with a quarter of jitter."""

_RETRIED: Final = frozenset({"unreachable", "dns", "timeout", "cut", "rate-limited", "overloaded", "server-error"})


def code_of(status: int) -> str:
    """Return the failure code of an HTTP status that is no success."""
    known = {401: "unauthorised", 402: "payment", 403: "forbidden", 404: "not-found", 405: "not-found", 408: "timeout"}
    known |= {413: "too-large", 429: "rate-limited", 498: "unauthorised", 501: "unsupported"}
    known |= {503: "overloaded", 524: "timeout", 529: "overloaded"}
    if status in known:
        return known[status]
    if 300 <= status < 400:
        return "redirect"
    return "server-error" if status >= 500 else "bad-request"


def may_retry(code: str, headers: Mapping[str, str]) -> bool:
    """Return whether a failure may be another one's turn; a server's `x-should-retry` decides where it is sent."""
    said = headers.get("x-should-retry", "").lower()
    if said in ("true", "false") and code not in ("redirect", "payment", "unauthorised"):
        return said == "true"
    return code in _RETRIED


def wait_before(attempt: int, headers: Mapping[str, str]) -> float:
    """Return the seconds to wait after attempt number `attempt` (1, 2, ...) failed.

    `retry-after-ms` comes before `retry-after`, which is a number of seconds or an HTTP date; what cannot be read, or is
    negative, does not count.
    """
    for name, read in (("retry-after-ms", _milliseconds), ("retry-after", _seconds)):
        seconds = read(headers.get(name, ""))
        if seconds is not None:
            return seconds
    first, longest = BACKOFF
    return min(first * 2.0 ** min(attempt - 1, 16), longest) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret


def _milliseconds(text: str) -> float | None:
    seconds = _number(text)
    return None if seconds is None else seconds / 1000


def _seconds(text: str) -> float | None:
    number = _number(text)
    if number is not None or not text.strip():
        return number
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
