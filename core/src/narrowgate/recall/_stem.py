"""English stems: irregular forms by table, the rest by Snowball's English stemmer."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.metadata import version
from threading import Lock
from typing import Any, Final

from narrowgate.recall._irregular import IRREGULAR
from narrowgate.recall._stopwords import ENGLISH

SNOWBALL: Final = ".".join(version("snowballstemmer").split(".")[:2])
"""Release (major.minor) of the stemmer. Its English rules change between minor releases, and with them the terms."""

_lock: Final = Lock()


@cache
def _stemmer() -> Any:
    # Loaded at the first word (it costs tens of milliseconds), and named directly: the package's factory would hand out
    # PyStemmer where that is installed, which may follow other rules.
    from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

    return EnglishStemmer()


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of a lower-case ASCII word; a stop word stays as it is.

    The cache matters: the stemmer is pure Python and takes tens of microseconds a word.
    """
    if word in ENGLISH:
        return word
    with _lock:  # the stemmer keeps the word that it works on in itself
        return str(_stemmer().stemWord(IRREGULAR.get(word, word)))
