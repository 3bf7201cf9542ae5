"""Names that stay: the source of an entry from a Markdown file.

    <file>#<headings>/<opening>          2026-03.md#2026-03-02/standup/offsite-moved-to-the

The opening is the first four words of the entry (`v1.4.2` is one, two Chinese or Japanese characters are one), for a table
row its first cell; the headings are those above it. An entry that has the same file, headings and opening as an earlier one
gets `~2`, `~3`, ... appended.

Why not its place in the file: one bullet put in at the top would give every entry below a new version. Why not a digest of
its text: an edited bullet would become a second entry, and the outdated one would go on being found. So an entry that is
edited after its opening words, ticked off, moved within its section or given neighbours stays the same entry (revised only
where its own content changed). One whose opening words or headings change is a new entry, and one that is deleted from the
file stays in the memory: no import forgets anything by itself. All sources of a file begin with `<file>#`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

_OPENING_WORDS: Final = 4
_SLUG_POINTS: Final = 48
_MAX_BYTES: Final = 1800  # below the limit of a source, with room for a counter and a part number
_SPACELESS: Final = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff"  # kana, Han
_WORDS: Final = re.compile(rf"(?:(?=\w)[{_SPACELESS}]){{1,2}}|[^\W_{_SPACELESS}]+(?:[.'’:/-][^\W_{_SPACELESS}]+)*")
_INNER: Final = re.compile(r"[.'’:/-]")


class Sources:
    """The sources of one file, each given out once.

    Args:
        name: the file's part of the source.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._given: Counter[str] = Counter()

    def name(self, headings: Sequence[str], text: str) -> str:
        """Return the source of the next entry that begins with `text` below `headings`."""
        opening = slug(text, words=_OPENING_WORDS) or f"x-{_digest(text)}"
        path = "/".join(filter(None, [*map(slug, headings), opening]))
        source = f"{self._name}#{path}"
        if len(source.encode()) > _MAX_BYTES:
            source = f"{_clip(source, _MAX_BYTES - 20)}-{_digest(source)}"
        self._given[source] += 1
        count = self._given[source]
        return source if count == 1 else f"{source}~{count}"


def slug(text: str, *, words: int | None = None) -> str:
    """Return the letters and digits of `text` in lower case with `-` between words, at most 48 characters.

    Args:
        text: any text.
        words: how many words to take; two characters of a script without spaces count as one.
    """
    folded = unicodedata.normalize("NFKC", text[: 64 * _SLUG_POINTS]).casefold()
    taken: list[str] = []
    end = -1
    for match in islice(_WORDS.finditer(folded), words):
        part = _INNER.sub("-", match[0])
        if match.start() == end:  # 3月1日 is one word to the reader
            taken[-1] += part
        else:
            taken.append(part)
        end = match.end()
    return unicodedata.normalize("NFC", "-".join(taken))[:_SLUG_POINTS].strip("-")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _clip(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
