"""The English stemmer against the one that Snowball generates: equal for every word."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

from narrowgate.recall._english import english_stem
from narrowgate.recall._irregular import IRREGULAR


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


STARTS: Final = _words(
    "arsen commun emerg gener inter later organ past univers succ proc exc even cann inn earr herr out y yy d ly sk "
    "hop plann add egg bl siz quick abil nation relat hope say cry"
)
ENDS: Final = _words(
    "s sses ss us ies ied ed eed ing edly eedly ingly y e l ll tional enci anci abli entli izer ization ational ation ator "
    "alism aliti alli fulness ousli ousness iveness iviti biliti bli ogi ogist fulli lessli li alize icate iciti ical ful "
    "ness ative al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion sion tion lessly fully"
)
WHOLE: Final = _words("andes atlas bias cosmos early gently howe idly news only singly skies skis sky ugly")

_letters: Final = st.text("abcdefghijklmnopqrstuvwxyz", min_size=0, max_size=7)


@pytest.fixture(scope="module")
def snowball() -> Any:
    """Return the generated stemmer; it keeps the word that it works on, and has no other state."""
    return EnglishStemmer()


def test_every_rule_is_snowballs(snowball: Any) -> None:
    """Words made of the rules' own parts, and all short words of the letters that rules ask for, have Snowball's stems."""
    words = {*WHOLE, *STARTS, *ENDS, *IRREGULAR, *IRREGULAR.values()}
    words |= {start + end for start in STARTS for end in ENDS}
    words |= {start + first + second for start in STARTS[::3] for first in ENDS for second in ENDS[:15]}
    words |= {"".join(letters) for size in range(1, 5) for letters in product("aydesg", repeat=size)}
    different = {word for word in words if english_stem(word) != snowball.stemWord(word)}
    assert different == set()


@given(_letters, st.sampled_from(["", *ENDS]), st.sampled_from(["", *ENDS]))
@example("s", "", "")
@example("yying", "", "")
def test_any_word_has_snowballs_stem(start: str, first: str, second: str) -> None:
    """Any letters before any two suffixes have Snowball's stem."""
    word = start + first + second
    if word:
        assert english_stem(word) == EnglishStemmer().stemWord(word)
