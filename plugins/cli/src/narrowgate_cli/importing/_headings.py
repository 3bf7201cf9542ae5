"""Headings as context: the path of titles above an entry, and the date and time that they tell.

Dates are read at the beginning or at the end of a heading, with or without a weekday: `2026-03-01`, `2026/3/1`, `2026.3.1`,
`2026年3月1日`, `March 3, 2026`, `3 Mar 2026`. Only dates with a year count: to guess it would put entries years off.
A time of day stands at the beginning of a heading or behind its date: `14:30`, `9:05 am`, `2 pm`, `14时30分`, `下午3点半`;
of `14:30-15:00` the first counts. A part of the day alone (`下午`) is no time. A full `2026-03-01T14:30+09:00` keeps its
offset. Full-width digits and punctuation are read like ASCII ones.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final

import attrs

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR: Final = r"(?P<year>[12]\d{3})"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}(?P<sep>[-/._])(?P<month>\d{{1,2}})(?P=sep)(?P<day>\d{{1,2}})(?!\d)",
        rf"(?<!\d){_YEAR}\s*年\s*(?P<month>\d{{1,2}})\s*月\s*(?P<day>\d{{1,2}})\s*[日号號]",
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}(?!\d)",
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}(?!\d)",
    )
)
_COMPACT: Final = re.compile(rf"{_YEAR}(?P<month>\d{{2}})(?P<day>\d{{2}})(?!\d)")
_WEEKDAY: Final = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)\b\.?"
    r"|(?:星期|周|週|礼拜|禮拜)[一二三四五六日天]"
)
_FILLER: Final = re.compile(rf"(?:{_WEEKDAY}|[\s,;:.()\[\]{{}}/|·•、。—–-])*", re.IGNORECASE)
_CLOCK: Final = re.compile(
    r"(?P<iso>T)?(?P<part>凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上)?\s*"
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?!\d)(?::(?P<second>\d{2})(?!\d)(?:\.\d+)?)?"
    r"|\s*[点點时時](?:(?P<half>半)|(?P<minutes>\d{1,2}(?=分)|[0-5]\d(?!\d))|(?(part)|(?=[钟鐘整\s,.:;()、。—–-]|$))))"
    r"\s*(?P<suffix>[ap]\.?m\b\.?)?"
    r"|(?P<bare>\d{1,2})\s*(?P<bare_suffix>[ap]\.?m\b\.?))"
    r"(?P<offset>Z\b|[+-]\d{2}:?\d{2}(?!\d))?",
    re.IGNORECASE,
)
_LATE: Final = frozenset(("下午", "傍晚", "晚上"))
_SECTION_POINTS: Final = 200


@attrs.frozen
class When:
    """What one heading tells.

    Attributes:
        day: its date, or `None`.
        clock: its time of day, with an offset where one was written, or `None`.
    """

    day: date | None = None
    clock: time | None = None

    def at(self, zone: tzinfo) -> datetime | None:
        """Return the moment, at midnight where no time is known; `None` without a date."""
        if self.day is None:
            return None
        clock = self.clock or time()
        return datetime.combine(self.day, clock, tzinfo=clock.tzinfo or zone)


def read_when(title: str) -> When:
    """Return the date and the time of day that a heading tells."""
    text = unicodedata.normalize("NFKC", title).strip()
    for pattern in _DATES:
        for match in pattern.finditer(text):
            day = _day(match)
            if day is None:
                continue
            lead = _FILLER.match(text)
            if lead is not None and lead.end() >= match.start():
                return When(day, _clock(text, match.end()))
            head = _clock(text, 0)
            tail = _FILLER.match(text, match.end())
            after = _clock(text, match.end())
            if (tail is not None and tail.end() == len(text)) or after is not None:
                return When(day, after or head)
    return When(None, _clock(text, 0))


def read_file_date(stem: str) -> date | None:
    """Return the date at the beginning of a file's name, as `2026-03-01`, `2026_03_01` or `20260301`."""
    match = _DATES[0].match(stem) or _COMPACT.match(stem)
    return _day(match) if match else None


def _day(match: re.Match[str]) -> date | None:
    month = match["month"]
    try:
        number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
        return date(int(match["year"]), number, int(match["day"]))
    except ValueError:
        return None


def _clock(text: str, start: int) -> time | None:
    filler = _FILLER.match(text, start)
    begin = start if text[start : start + 1] in ("T", "t") else (filler.end() if filler else start)
    match = _CLOCK.match(text, begin)
    if match is None:
        return None
    hour = int(match["hour"] or match["bare"])
    suffix = (match["suffix"] or match["bare_suffix"] or "").lower()
    if suffix and not 1 <= hour <= 12:
        return None
    if suffix:
        hour = hour % 12 + (12 if suffix[0] == "p" else 0)
    elif match["part"] in _LATE and 1 <= hour < 12:
        hour += 12
    elif match["part"] == "凌晨" and hour == 12:
        hour = 0
    minute = 30 if match["half"] else int(match["minute"] or match["minutes"] or 0)
    try:
        return time(hour, minute, int(match["second"] or 0), tzinfo=_offset(match))
    except ValueError:
        return None


def _offset(match: re.Match[str]) -> tzinfo | None:
    written = match["offset"]
    if written is None or (written.startswith("-") and not match["iso"]):  # 14:30-15:00 is a span of time
        return None
    return parse_offset(written)


def parse_offset(text: str) -> tzinfo:
    """Return the zone of `Z`, `+08:00` or `-0330`.

    Raises:
        ValueError: it is none.
    """
    if text in ("Z", "z", "UTC"):
        return UTC
    match = re.fullmatch(r"([+-])(\d{2}):?(\d{2})", text)
    if match is None or int(match[2]) > 14 or int(match[3]) > 59:
        raise ValueError("no offset")
    delta = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-delta if match[1] == "-" else delta)


class Headings:
    """The headings above the place that is being read.

    Args:
        base: what is known before the first heading: from the front matter or the file's name.
        zone: the zone of times that name none.
    """

    def __init__(self, base: When, zone: tzinfo) -> None:
        self._base, self._zone = base, zone
        self._stack: list[tuple[int, str, When]] = []

    def enter(self, level: int, title: str) -> None:
        """Go below a heading of `level` 1..6; those of the same and lower rank end."""
        while self._stack and self._stack[-1][0] >= level:
            self._stack.pop()
        self._stack.append((level, title, read_when(title)))

    @property
    def titles(self) -> list[str]:
        """The titles from the top."""
        return [title for _, title, _ in self._stack]

    @property
    def section(self) -> str:
        """The titles joined with ` / `, at most 200 characters: of longer ones the end, which says most."""
        joined = " / ".join(filter(None, self.titles))
        return joined if len(joined) <= _SECTION_POINTS else "…" + joined[1 - _SECTION_POINTS :]

    @property
    def occurred_at(self) -> datetime | None:
        """The moment that the headings tell: the innermost date, with the innermost time at or below it."""
        when = self._base
        for _, _, told in self._stack:
            if told.day is not None:
                when = told
            elif told.clock is not None:
                when = attrs.evolve(when, clock=told.clock)
        return when.at(self._zone)
