"""English stems: irregular forms by table, the rest by Snowball's English stemmer."""

from __future__ import annotations

from functools import lru_cache

from narrowgate.recall._english import english_stem
from narrowgate.recall._irregular import IRREGULAR
from narrowgate.recall._stopwords import ENGLISH


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of a lower-case ASCII word; a stop word stays as it is."""
    return word if word in ENGLISH else english_stem(IRREGULAR.get(word, word))
