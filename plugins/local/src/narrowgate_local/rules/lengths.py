"""The length of a text in letters, measured so that one pair of bounds fits every script."""

from __future__ import annotations

import unicodedata
from typing import Final

DENSE: Final = 3
"""Letters that a character of a script without spaces counts for.

Over 750 paragraphs and questions that XQuAD has in both languages, an English text has 3.0 times as many letters and digits
as its Chinese translation (median; 2.1 to 4.2 between the 5 % quantiles).
"""

_DENSE_RANGES: Final = (
    (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # hangul jamo
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x30FF),  # ideographic marks, kana
    (0x3130, 0x318F),  # hangul compatibility jamo
    (0x31F0, 0x31FF),  # kana extensions
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),  # hangul
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)


def length_of(text: str, enough: int) -> int:
    """Return the length of a text in letters, and no more than it takes to know that it exceeds `enough`.

    Args:
        text: any text; full-width letters count as letters, marks and punctuation as nothing.
        enough: where counting may stop, in letters.
    """
    total = 0
    for char in text:
        if char.isascii():
            total += char.isalnum()
        elif unicodedata.category(char)[0] in "LN":
            total += DENSE if _dense(ord(char)) else 1
        if total > enough:
            break
    return total


def _dense(point: int) -> bool:
    return any(first <= point <= last for first, last in _DENSE_RANGES)
