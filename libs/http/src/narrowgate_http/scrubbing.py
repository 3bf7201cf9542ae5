"""The words of a provider's message without the content that it may repeat."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

_SHOWN: Final = 200
"""The longest part of a provider's message, in characters, that is repeated."""

_FRAGMENT: Final = 4
"""The shortest beginning or end of a word, in characters, that is taken for a piece of it: servers cut what they repeat."""

_LONGEST: Final = 40
"""The longest run of characters that is shown: longer ones are keys, hashes, and content in some encoding."""

_PLAIN: Final = frozenset(
    """
    a an and are as at be been body by can cannot could does error exceed exceeded exceeds expected failed
    field for found from has have in input invalid is it key limit long message missing model must no not of on or
    output please rate request required server should string text than the this to token tokens too try type
    unknown up value was when with you your
    """.split()  # noqa: SIM905 - a list of words to read
)
"""Words that say nothing about anybody's memory, so that a provider's sentence stays readable."""

_RUN: Final = re.compile(r"[^\s!-/:-@\[-^`{-~]+")
"""Letters, digits, underscores, and everything outside ASCII: combining marks belong to the letters before them."""

_WORD: Final = re.compile(r"\w+")
_ESCAPED: Final = re.compile(r"\\|%[0-9A-Fa-f]{2}|&#")
"""Where text in an encoding may begin, in which words would not be found: JSON, URL, HTML."""

_MASKED: Final = re.compile(r"\S*\*{2,}\S*")
"""A key of which a provider shows the ends."""


def scrubbed(message: str, contents: Iterable[str]) -> str:
    """Return a provider's message fit to be shown: one line, cut, and without any word of what was sent.

    Servers repeat parts of a request in their errors. Each word of `contents` (and each secret) in the message, whole
    or cut off, is replaced by an ellipsis, plain words of error messages left aside; in scripts without spaces every pair
    of characters counts as a word. What follows an escape is cut off, and so is each run of more than 40 characters.
    """
    line = _ESCAPED.split(_cleaned(message), maxsplit=1)[0][: 4 * _SHOWN]
    known = {part for text in contents for run in _RUN.findall(_cleaned(text)) for part in _known(run)} - _PLAIN

    def keep(found: re.Match[str]) -> str:
        run = found[0]
        return "…" if len(run) > _LONGEST or not known.isdisjoint(_parts(run)) else run

    clean = re.sub(r"…(\W{0,3}…)+", "…", _RUN.sub(keep, _MASKED.sub("…", line)))
    # Once more after the cut: what is left of a word may be another one.
    return clean if len(clean) <= _SHOWN else _RUN.sub(keep, clean[: _SHOWN - 1]) + "…"


def _cleaned(text: str) -> str:
    """Return text on one line, in one form, without what cannot be seen."""
    line = " ".join(unicodedata.normalize("NFKC", text).split())
    return unicodedata.normalize("NFKC", "".join(character for character in line if character.isprintable()))


def _known(run: str) -> Iterator[str]:
    """Yield what a run of the content is recognised by: its parts, and the beginnings and ends of its words."""
    for part in _parts(run):
        yield part
        if part.isascii() and part not in _PLAIN:
            # Longer ones are never shown: without the bound, one long line would take the square of its length.
            for length in range(_FRAGMENT, min(len(part), _LONGEST + 1)):
                yield part[:length]
                yield part[-length:]


def _parts(run: str) -> set[str]:
    """Return the words of a run, their pieces between underscores, and of words outside ASCII their character pairs."""
    folded = unicodedata.normalize("NFKC", run.casefold())
    parts = {folded}
    for word in _WORD.findall(folded):
        parts.add(word)
        parts.update(piece for piece in word.split("_") if len(piece) > 2)
        if not word.isascii():
            parts.update(word[place : place + 2] for place in range(len(word) - 1))
    return parts
