"""Texts that are too long for one entry, cut where it hurts least."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from narrowgate.values.text import MAX_TEXT_BYTES

_BORDERS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\n\s*\n",
        r"\n",
        r"(?<=[。！？；…])[”’」』）]*|(?<=[.!?;])\s+",
        r"(?<=[，、：])|(?<=,)\s+",
        r"\s+",
    )
)


def split_text(text: str, limit: int = MAX_TEXT_BYTES) -> Iterator[str]:
    """Yield the parts of `text`, each at most `limit` UTF-8 bytes: as few as going from the front gives.

    Cut is at the last border of the best kind that lies in the second half of what fits: paragraph, line, sentence, clause,
    word; else between two characters, never before a combining one. No character but white space at the cuts is lost.
    """
    text = text.strip()
    while len(text.encode()) > limit:
        fitting = len(text.encode()[:limit].decode(errors="ignore"))
        cut = _cut(text, fitting)
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _cut(text: str, fitting: int) -> int:
    for border in _BORDERS:
        last = max((match.end() for match in border.finditer(text, 0, fitting) if match.end() > fitting // 2), default=0)
        if last:
            return last
    cut = fitting
    while cut > 1 and unicodedata.combining(text[cut]):
        cut -= 1
    return cut if cut > 1 else fitting
