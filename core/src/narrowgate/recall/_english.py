"""Snowball's English stemmer, release 3.1, on whole strings.

The rules are those of english.sbl (snowballstem.org, BSD licence), step by step under the names it gives them. The Python
that Snowball generates walks a word letter by letter and takes tens of microseconds; this takes about two, and its rules
stay as they are, whatever release of a stemmer is installed. A test holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

RELEASE: Final = "3.1"
"""The release of Snowball whose rules these are."""

_VOWELS: Final = frozenset("aeiouy")
_VOWEL: Final = re.compile("[aeiouy]")
_CONSONANT_Y: Final = re.compile("(^|[aeiouy])y")  # written `Y` while a word is worked on, and no vowel
_REGION: Final = re.compile("[^aeiouy]*[aeiouy]+[^aeiouy]")
_R1_PREFIX: Final = re.compile("arsen|commun|emerg|gener|inter|later|organ|past|univers")
_SHORT: Final = re.compile("[^aeiouy][aeiouy][^aeiouywxY]$|^[aeiouy][^aeiouy]$|past$")

_WHOLE: Final = {
    **{word: word for word in ("andes", "atlas", "bias", "cosmos", "howe", "news", "sky")},
    "skis": "ski",
    "skies": "sky",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
}
_KEEP_EED: Final = frozenset({"succ", "proc", "exc"})
_KEEP_ING: Final = frozenset({"even", "cann", "inn", "earr", "herr", "out"})
_DOUBLES: Final = frozenset({"bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"})
_ADD_E: Final = frozenset({"at", "bl", "iz"})
_BEFORE_LI: Final = frozenset("cdeghkmnrt")

_Table = dict[str, list[tuple[str, str]]]


def _table(lines: str) -> _Table:
    """Return suffixes with what replaces them by their last two letters, longest first: only the longest ever counts."""
    pairs: Iterable[tuple[str, str]] = (
        (suffix, made.strip("-")) for made, *suffixes in map(str.split, lines.split(";")) for suffix in suffixes
    )
    table: _Table = {}
    for suffix, made in sorted(pairs, key=lambda pair: -len(pair[0])):
        table.setdefault(suffix[-2:], []).append((suffix, made))
    return table


_STEP_2: Final = _table(
    """
    tion tional; ence enci; ance anci; able abli; ent entli; ize izer ization; ate ational ation ator; al alism aliti alli;
    ful fulness fulli; ous ousli ousness; ive iveness iviti; ble biliti bli; og ogi ogist; less lessli; - li
    """
)
_STEP_3: Final = _table("tion tional; ate ational; al alize; ic icate iciti ical; - ful ness ative")
_STEP_4: Final = _table("- al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion")


def english_stem(word: str) -> str:
    """Return the stem of a word.

    Args:
        word: letters a to z alone.
    """
    if len(word) < 3:
        return word
    whole = _WHOLE.get(word)
    if whole is not None:
        return whole
    if "y" in word:
        word = _CONSONANT_Y.sub(r"\1Y", word)
    first = _R1_PREFIX.match(word) or _REGION.match(word)
    r1 = first.end() if first is not None else len(word)
    second = _REGION.match(word, r1)
    r2 = second.end() if second is not None else len(word)
    word = _step_1b(_step_1a(word), r1)
    if word[-1] in "yY" and len(word) > 2 and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    word = _step_5(_step_4(_step_3(_step_2(word, r1), r1, r2), r2), r1, r2)
    return word.replace("Y", "y")


def _step_1a(word: str) -> str:
    if word[-1] == "s":
        if word.endswith("sses"):
            return word[:-2]
        if word[-2] in "su":
            return word
        if not word.endswith("ies"):
            return word[:-1] if _VOWEL.search(word, 0, len(word) - 2) else word
    elif not word.endswith("ied"):
        return word
    return word[:-2] if len(word) > 4 else word[:-1]


def _step_1b(word: str, r1: int) -> str:
    whole = word.removesuffix("ly")
    if whole.endswith("eed"):
        base = whole[:-3]
        return base + "ee" if len(base) >= r1 and base not in _KEEP_EED else word
    if whole.endswith("ed"):
        base = whole[:-2]
    elif whole.endswith("ing"):
        base = whole[:-3]
        if whole == word:
            if len(base) == 2 and base[1] == "y" and base[0] not in _VOWELS:
                return base[0] + "ie"
            if base in _KEEP_ING:
                return word
    else:
        return word
    if not _VOWEL.search(base):
        return word
    end = base[-2:]
    if end in _ADD_E:
        return base + "e"
    if end in _DOUBLES:
        return base if len(base) == 3 and base[0] in "aeo" else base[:-1]
    return base + "e" if len(base) == r1 and _SHORT.search(base) else base


def _step_2(word: str, r1: int) -> str:
    for suffix, made in _STEP_2.get(word[-2:], ()):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if len(base) < r1 or (suffix == "ogi" and base[-1:] != "l") or (suffix == "li" and base[-1:] not in _BEFORE_LI):
                return word
            return base + made
    return word


def _step_3(word: str, r1: int, r2: int) -> str:
    for suffix, made in _STEP_3.get(word[-2:], ()):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base + made if len(base) >= (r2 if suffix == "ative" else r1) else word
    return word


def _step_4(word: str, r2: int) -> str:
    for suffix, _ in _STEP_4.get(word[-2:], ()):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base if len(base) >= r2 and (suffix != "ion" or base[-1:] in ("s", "t")) else word
    return word


def _step_5(word: str, r1: int, r2: int) -> str:
    place = len(word) - 1
    if word[-1] == "e":
        return word[:-1] if place >= r2 or (place >= r1 and not _SHORT.search(word[:-1])) else word
    return word[:-1] if word[-2:] == "ll" and place >= r2 else word
