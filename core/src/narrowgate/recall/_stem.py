"""English stems: irregular forms by table, the rest by Snowball's English stemmer (docs/adr/0007-stemmer.md)."""

from __future__ import annotations

from threading import Lock
from typing import Final

import Stemmer  # type: ignore[import-not-found]

from narrowgate.recall._irregular import IRREGULAR
from narrowgate.recall._stopwords import ENGLISH

SNOWBALL: Final = ".".join(Stemmer.version().split(".")[:2])
"""Release (major.minor) of the stemmer. Its English rules change between minor releases, and with them the terms."""

# Without a cache of its own: analysis keeps what comes again, and a stem takes half a microsecond.
_english: Final = Stemmer.Stemmer("english", 0)
_lock: Final = Lock()


def stem(word: str) -> str:
    """Return the stem of a lower-case ASCII word; a stop word stays as it is."""
    if word in ENGLISH:
        return word
    with _lock:  # the stemmer keeps the word that it works on in itself
        return str(_english.stemWord(IRREGULAR.get(word, word)))
