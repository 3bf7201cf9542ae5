"""Which characters belong to scripts that are written without spaces, and how words of the other scripts are folded."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

NGRAM_CLASS: Final = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han, with the iteration mark and zero
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana, with the long-vowel mark
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # hangul
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ece\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u109d\ua9e0-\ua9ef\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17dc-\u17dd"  # Khmer
)
"""The inside of a regular-expression character class."""

MARK_CLASS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963\u0971-\u09fb\u0a01-\u0aef"
    "\u0b01-\u0b77\u0b82-\u0bf2\u0c00-\u0c7f\u0c81-\u0cf3\u0d00-\u0df3\u0f18-\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u135d-\u135f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
    "\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff"  # invisible: hyphenation points, joiners, selectors
)
"""Marks and joiners inside words, which `\\w` does not match; without them Indic words fall to pieces."""

_DROPPED: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]+"
)
_PLAIN: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"})
_FANCY: Final = re.compile("[\u2018\u2019\u02bc\u2010\u2011]")


def compose(text: str) -> str:
    """Return `text` in NFKC (half and full width become one) with typographic apostrophes and hyphens made plain."""
    text = unicodedata.normalize("NFKC", text)
    return text.translate(_PLAIN) if _FANCY.search(text) else text


def fold(word: str) -> str:
    """Return a word without case, diacritics, vowel points and invisible characters; folding twice changes nothing."""
    if word.isascii():
        return word.lower()
    while True:
        loose = unicodedata.normalize("NFKD", word.casefold())
        folded = unicodedata.normalize("NFKC", _DROPPED.sub("", loose))
        if folded == word:
            return folded
        word = folded
