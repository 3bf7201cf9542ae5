"""Numbers with a check: resident ids of China, bank cards, IBANs, and social security numbers of the United States."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from stdnum import iban, luhn
from stdnum.exceptions import ValidationError
from stdnum.iso7064 import mod_11_2
from stdnum.us import ssn

from narrowgate_redact import cues
from narrowgate_redact.hits import Hit, alone, compiled
from narrowgate_redact.settings import Kind
from narrowgate_redact.views import View

# ---------------------------------------------------------------- China

LONG_ID: Final = rb"[1-9][0-9]{5}[ -]?(?:18|19|20)[0-9]{2}[ -]?[01][0-9][ -]?[0-3][0-9][ -]?[0-9]{3}[ -]?[0-9Xx]"
SHORT_ID: Final = rb"[1-9][0-9]{5}[0-9]{2}[01][0-9][0-3][0-9][0-9]{3}"
_LONG_ID: Final = compiled(LONG_ID)
_SHORT_ID: Final = compiled(SHORT_ID)
_PROVINCES: Final = frozenset(
    f"{number}"
    for block in ((11, 15), (21, 23), (31, 37), (41, 46), (50, 54), (61, 65), (71, 71), (81, 83), (91, 91))
    for number in range(block[0], block[1] + 1)
)
_SEPARATORS: Final = re.compile(r"[ \-]")


def resident_ids(view: View) -> Iterator[Hit]:
    """Find resident ids of China: 18 characters whose check is right (or that are named as one), or 15 of a real date."""
    for match in _LONG_ID.finditer(view.raw):
        start, end = match.span()
        if alone(view.raw, start, end, glued=True):
            value = _SEPARATORS.sub("", view.text[start:end]).upper()
            real = value[:2] in _PROVINCES and _is_date(value[6:10], value[10:12], value[12:14])
            if real and (mod_11_2.is_valid(value) or cues.IDENTITY.before(view.text, start)):
                yield Hit(start, end, Kind.CN_ID, value)
    for match in _SHORT_ID.finditer(view.raw):
        start, end = match.span()
        if alone(view.raw, start, end):
            value = view.text[start:end]
            if value[:2] in _PROVINCES and _is_date("19" + value[6:8], value[8:10], value[10:12]):
                yield Hit(start, end, Kind.CN_ID, value)


def _is_date(year: str, month: str, day: str) -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------- bank cards

DIGIT_RUN: Final = rb"[0-9]+(?:[ -][0-9]+)*"
_DIGIT_RUN: Final = compiled(DIGIT_RUN)
_GROUPED: Final = frozenset(
    {
        (4, 4, 4, 4),
        (4, 4, 4, 4, 1),
        (4, 4, 4, 4, 2),
        (4, 4, 4, 4, 3),
        (4, 6, 5),
        (4, 6, 4),
        (6, 13),
        (4, 4, 5),
        (6, 10),
        (8, 8),
    }
)
_MOST_GROUPS: Final = 5


def bank_cards(view: View) -> Iterator[Hit]:
    """Find card numbers whose check digit is right: of a known issuer, or named as a card."""
    for match in _DIGIT_RUN.finditer(view.raw):
        if match.end() - match.start() < 12:
            continue
        groups = list(_groups(view.raw, match.start(), match.end()))
        place = 0
        while place < len(groups):
            taken = _card_at(view, groups, place)
            if taken is None:
                place += 1
                continue
            start, end = groups[place][0], groups[place + taken - 1][1]
            yield Hit(start, end, Kind.BANK_CARD, _SEPARATORS.sub("", view.text[start:end]))
            place += taken


def _groups(raw: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    begun = start
    for place in range(start, end):
        if raw[place] in b" -":
            yield begun, place
            begun = place + 1
    yield begun, end


def _card_at(view: View, groups: list[tuple[int, int]], place: int) -> int | None:
    """Return how many groups from `place` on are a card number."""
    for taken in range(min(_MOST_GROUPS, len(groups) - place), 0, -1):
        part = groups[place : place + taken]
        shape = tuple(end - start for start, end in part)
        if not 12 <= sum(shape) <= 19 or (taken > 1 and shape not in _GROUPED):
            continue
        start, end = part[0][0], part[-1][1]
        if not alone(view.raw, start, end, glued=True):
            continue
        number = "".join(view.text[one:other] for one, other in part)
        if luhn.is_valid(number) and len(set(number)) > 1 and (_issued(number) or cues.CARD.before(view.text, start)):
            return taken
    return None


def _issued(number: str) -> bool:
    """Return whether length and first digits are those of an issuer."""
    size, first, two, three, four = len(number), number[0], int(number[:2]), int(number[:3]), int(number[:4])
    return (
        (first == "4" and size in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and size == 16)
        or (two in (34, 37) and size == 15)
        or ((300 <= three <= 305 or two in (36, 38, 39)) and size == 14)
        or (3528 <= four <= 3589 and size >= 16)
        or (four in (1800, 2131) and size == 15)
        or ((four == 6011 or two == 65 or 644 <= three <= 649 or two == 62 or two == 81) and size >= 16)
        or (two in (50, 56, 57, 58, 60, 63, 67, 68, 69, 90, 94, 95, 96, 97, 98) and size in (16, 18, 19))
    )


# ---------------------------------------------------------------- IBAN and SSN

IBAN: Final = rb"(?i)[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{2,4}){3,8}(?:[ -]?[A-Z0-9]{1,3})?"
SSN: Final = rb"[0-9]{3}([- ])[0-9]{2}[- ][0-9]{4}"
_IBAN: Final = compiled(IBAN)
_SSN: Final = compiled(SSN)


def ibans(view: View) -> Iterator[Hit]:
    """Find international bank account numbers whose check and length are right for their country."""
    for match in _IBAN.finditer(view.raw):
        start, end = match.span()
        before = view.raw[start - 1 : start]
        if before.isalnum():
            continue
        while end - start >= 15:
            value = _SEPARATORS.sub("", view.text[start:end]).upper()
            after = view.raw[end : end + 1]
            if not after.isalnum() and _is_iban(value):
                yield Hit(start, end, Kind.IBAN, value)
                break
            end = max(view.raw.rfind(b" ", start, end), view.raw.rfind(b"-", start, end), start)


def _is_iban(value: str) -> bool:
    try:
        iban.validate(value, check_country=False)
    except ValidationError:
        return False
    return True


def social_security_numbers(view: View) -> Iterator[Hit]:
    """Find social security numbers of the United States, written with hyphens or named as one."""
    for match in _SSN.finditer(view.raw):
        start, end = match.span()
        value = _SEPARATORS.sub("-", view.text[start:end])
        if alone(view.raw, start, end) and (
            cues.SOCIAL.before(view.text, start) or (match.group(1) == b"-" and ssn.is_valid(value))
        ):
            yield Hit(start, end, Kind.SSN, value)
