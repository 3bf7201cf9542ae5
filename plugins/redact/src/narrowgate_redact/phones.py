"""Phone numbers: those of China by form, others by what libphonenumber knows, by form or by a word before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import phonenumbers

from narrowgate_redact import cues
from narrowgate_redact.hits import Hit, alone, compiled
from narrowgate_redact.settings import Kind
from narrowgate_redact.views import View

CN_MOBILE: Final = (
    rb"(?:(?:\+|00)?[ ]?86\)?[ -]{0,2})?"
    rb"(?:1[3-9][0-9](?:[ .-]?[0-9]{4}[ .-]?[0-9]{4}|-[0-9]{3}-[0-9]{5}|[ ][0-9]{3}[ ][0-9]{5}))"
)
CN_LANDLINE: Final = (
    rb"(?:(?:\+|00)86[ -]{0,2})?(?:\(0[1-9][0-9]{1,2}\)[ -]{0,2}|0[1-9][0-9]{1,2}[ -]{1,2})"
    rb"[2-8][0-9]{2,3}[ -]?[0-9]{4}(?:-[0-9]{1,6})?"
)
CN_SERVICE: Final = rb"[48]00[ -](?:[0-9]{3}[ -][0-9]{4}|[0-9]{4}[ -]?[0-9]{3}|[0-9]{7})"
RUN: Final = rb"[+(]{0,2}[0-9](?:[ ().\-/]{0,3}[0-9])+(?:[ ]?(?:x|X|ext\.?|Ext\.?)[ ]?[0-9]{1,6})?"

_CN_MOBILE: Final = compiled(CN_MOBILE)
_CN_LANDLINE: Final = compiled(CN_LANDLINE)
_CN_SERVICE: Final = compiled(CN_SERVICE)
_RUN: Final = compiled(RUN)

_DATE: Final = re.compile(
    r"(?:19|20)\d\d[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:[0-2]?\d|3[01])(?:\D|$)"
    r"|(?:[0-2]?\d|3[01])[-./](?:[0-2]?\d|3[01])[-./](?:19|20)?\d\d(?:\D|$)"
    r"|(?:19|20)\d\d ?[-–/] ?(?:19|20)\d\d(?:\D|$)"
)
_NORTH_AMERICAN: Final = re.compile(
    r"(?:(?:\+|00)?1[ .\-]{0,2})?"
    r"(?:\(\d{3}\)[ .\-]?\d{3}[ .\-]\d{4}|\d{3}-\d{3}-\d{4}|\d{3}\.\d{3}\.\d{4}|\d{3} \d{3} \d{4})"
)
_THOUSANDS: Final = re.compile(r"\+?\d{1,3}(?:[ .,]\d{3})+")
_EXTENSION: Final = re.compile(r"[ ]?(?:x|ext\.?)[ ]?\d{1,6}$", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_LONGEST: Final = 15
"""Digits of the longest number that there is (ITU-T E.164)."""


class Phones:
    """The detector.

    Args:
        regions: countries whose national numbers are recognised without a word before them.
    """

    def __init__(self, regions: Sequence[str]) -> None:
        self._regions = tuple(regions)

    def __call__(self, view: View) -> Iterator[Hit]:
        """Find phone numbers."""
        yield from cn_numbers(view)
        known: dict[str, bool] = {}
        for match in _RUN.finditer(view.raw):
            start, end = match.span()
            start += view.raw[start:end].startswith(b"((")  # the first one is the sentence's
            found = self._found(view, start, end, known)
            if found is not None:
                yield Hit(start, found, Kind.PHONE, _key(view.text[start:found]))

    def _found(self, view: View, start: int, end: int, known: dict[str, bool]) -> int | None:
        """Return where a number that begins at `start` ends; `None` when there is none."""
        for stop in _stops(view.text, start, end):
            text = view.text[start:stop]
            digits = len(_DIGIT.findall(_EXTENSION.sub("", text)))
            if not 7 <= digits <= _LONGEST or not alone(view.raw, start, stop) or _DATE.match(text):
                continue
            if cues.PUBLICATION.before(view.text, start):
                continue
            if text not in known:
                known[text] = self._known(text)
            if known[text] or self._told(view, start, text, digits):
                return stop
        return None

    def _known(self, text: str) -> bool:
        """Return whether the numbering plans hold this number, as it is written."""
        plain = _EXTENSION.sub("", text)
        if text.startswith(("+", "(+")):
            return _valid(plain, None)
        if _NORTH_AMERICAN.fullmatch(plain):
            # With a hyphen or brackets nothing else is written so; with dots or spaces it must be a number that exists.
            return "(" in plain or "-" in plain or plain != text or _valid(plain, "US")
        groups = len(re.findall(r"\d+", plain))
        mixed = "." in plain and " " in plain  # decimals beside each other
        if plain.startswith(("0", "(0")) and not plain.startswith("00") and groups >= 3 and not mixed:
            return any(_valid(plain, region) for region in self._regions)
        return False

    def _told(self, view: View, start: int, text: str, digits: int) -> bool:
        """Return whether form or words say that it is a number, though no numbering plan has it."""
        plain = _EXTENSION.sub("", text)
        grouped = len(re.findall(r"\d+", plain)) >= 2
        international = text.startswith("+")
        if international and not _THOUSANDS.fullmatch(plain) and ("(" in plain or "-" in plain or plain != text):
            return digits >= 8
        if cues.PHONE.before(view.text, start):
            return True
        return grouped and not _THOUSANDS.fullmatch(plain) and cues.PHONE_WEAK.before(view.text, start)


def cn_numbers(view: View) -> Iterator[Hit]:
    """Find numbers of China that are told by their form alone."""
    for pattern in (_CN_MOBILE, _CN_LANDLINE, _CN_SERVICE):
        for match in pattern.finditer(view.raw):
            start, end = match.span()
            if alone(view.raw, start, end) or (
                alone(view.raw, start, end, glued=True) and cues.PHONE.before(view.text, start)
            ):
                yield Hit(start, end, Kind.PHONE, _key(view.text[start:end]))


def _stops(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the end of a run of digits, then those of a few shorter ones: another number may follow after a space."""
    yield end
    place = end
    for _ in range(4):
        place = max(text.rfind(" ", start, place), text.rfind("/", start, place))
        if place <= start:
            return
        stop = place
        while stop > start and not text[stop - 1].isdigit():
            stop -= 1
        yield stop


def _valid(text: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text.replace("(0)", ""), region))
    except phonenumbers.NumberParseException:
        return False


def _key(text: str) -> str:
    """Return what makes two ways of writing a number equal."""
    digits = "".join(_DIGIT.findall(text.replace("(0)", "")))
    digits = digits.removeprefix("00")
    return digits[2:] if len(digits) == 13 and digits.startswith("861") else digits
