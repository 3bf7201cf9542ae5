"""How detectors see a text: full-width as ASCII, nothing invisible, escapes decoded, with the way back to every place.

Folding comes before matching. What a detector finds in a view is cut out of the original text, invisible characters
included, so that no later step that drops them can put a value together again.
"""

from __future__ import annotations

import codecs
import html
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import attrs

HOLE: Final = "\ufffc"
"""Stands in a view for a placeholder that is there already: no detector's pattern holds it, so nothing reaches over one."""

PLACEHOLDER: Final = re.compile(r"\[([A-Z][A-Z0-9_]{0,30})-([1-9][0-9]{0,5})\]")
"""A placeholder. A longer number is none: it might be a value in disguise."""

_OTHER: Final = b"\x80"
"""The byte that stands for any character outside of ASCII: no letter, digit or space to any pattern over bytes."""

_DASHES: Final = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63\uff0d\u30fc", "-")
_SPACES: Final = dict.fromkeys("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n")
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Default-ignorable characters, and a blank pattern of Braille, that have not the category `Cf`."""

_ESCAPE: Final = re.compile(
    r"(?:%[0-9A-Fa-f]{2})"
    r"|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[nrt/\"']"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos|commat|colon|period|num|nbsp);"
)
_CONTROL: Final = {"n": "\n", "r": "\n", "t": " "}


def _bytes_for(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _OTHER * (error.end - error.start), error.end


codecs.register_error("narrowgate-redact", _bytes_for)


@attrs.frozen
class View:
    """A text as detectors see it.

    Attributes:
        text: the characters.
        start: place -> where it begins in the original.
        end: place -> where it ends in the original.
    """

    text: str
    start: Sequence[int] = attrs.field(eq=False)
    end: Sequence[int] = attrs.field(eq=False)

    @cached_property
    def raw(self) -> bytes:
        """The text in bytes, one for each character; outside of ASCII all are alike."""
        return self.text.encode("ascii", "narrowgate-redact")

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where a place of the view lies in the original text."""
        return self.start[start], self.end[end - 1]

    def escapes(self) -> tuple[list[int], list[int]]:
        """Return where escapes of URLs, JSON and HTML begin, and where they end."""
        spans = [match.span() for match in _ESCAPE.finditer(self.text)]
        return [start for start, _ in spans], [end for _, end in spans]


def view_as_is(text: str) -> View:
    """Return the view of a text that is one already: every place is itself."""
    return View(text, range(len(text)), range(1, len(text) + 1))


def views_of(text: str) -> Iterator[View]:
    """Yield the plain view of a text, and a decoded one where it holds escapes of URLs, JSON or HTML."""
    plain = _folded(_pieces(text))
    yield plain
    if _ESCAPE.search(plain.text):
        yield _decoded(plain)


def _pieces(text: str) -> Iterable[tuple[str, int, int]]:
    """Yield (characters, start, end): stretches of the text with holes for placeholders."""
    at = 0
    for match in PLACEHOLDER.finditer(text):
        yield text[at : match.start()], at, match.start()
        yield HOLE, match.start(), match.end()
        at = match.end()
    yield text[at:], at, len(text)


def _folded(pieces: Iterable[tuple[str, int, int]]) -> View:
    found: list[str] = []
    starts, ends = array("l"), array("l")
    for characters, start, end in pieces:
        if characters == HOLE and end - start > 1:
            found.append(HOLE)
            starts.append(start)
            ends.append(end)
        elif characters.isascii():
            found.append(characters)
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            for place, character in enumerate(characters, start):
                for folded in _fold(character):
                    found.append(folded)
                    starts.append(place)
                    ends.append(place + 1)
    return View("".join(found), starts, ends)


def _fold(character: str) -> str:
    """Return what a character counts as: nothing, itself, or the ASCII that it is a form of."""
    if character.isascii():
        return _SPACES.get(character, character)
    known = _CACHE.get(character)
    if known is None:
        known = _computed(character)
        if len(_CACHE) < 65_536:
            _CACHE[character] = known
    return known


_CACHE: Final[dict[str, str]] = {}


def _computed(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    if category in ("Cf", "Mn", "Me") or character in _INVISIBLE or 0xE0000 <= ord(character) <= 0xE0FFF:
        return ""
    if character in _DASHES:
        return "-"
    if character in _SPACES:
        return "\n"
    if category == "Zs":
        return " "
    if category == "Nd":
        return str(unicodedata.digit(character))
    wide = unicodedata.normalize("NFKC", character)
    if wide.isascii() and len(wide) <= 4:
        return wide
    return character


def _decoded(plain: View) -> View:
    found: list[str] = []
    starts, ends = array("l"), array("l")
    at = 0
    for match in _ESCAPE.finditer(plain.text):
        meant = _meant(match.group())
        if meant is None:
            continue
        found.append(plain.text[at : match.start()])
        starts.extend(plain.start[at : match.start()])
        ends.extend(plain.end[at : match.start()])
        for character in meant:
            found.append(character)
            starts.append(plain.start[match.start()])
            ends.append(plain.end[match.end() - 1])
        at = match.end()
    found.append(plain.text[at:])
    starts.extend(plain.start[at:])
    ends.extend(plain.end[at:])
    return View("".join(found), starts, ends)


def _meant(escape: str) -> str | None:
    """Return what an escape stands for, folded; `None` where it is no character of its own."""
    if escape[0] == "%":
        code = int(escape[1:], 16)
        return chr(code) if 0x20 <= code < 0x7F else ("\n" if code in (0x0A, 0x0D) else None)
    if escape[0] == "&":
        return "".join(_fold(character) for character in html.unescape(escape))
    if escape[1] in "ux":
        code = int(escape[2:], 16)
        return ("\n" if code in (0x0A, 0x0D) else _fold(chr(code))) if code >= 0x09 else None
    return _CONTROL.get(escape[1], escape[1])
