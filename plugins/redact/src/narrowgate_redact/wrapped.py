"""Values with a line break inside: the words on both sides of a break as one, and who may be found in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from narrowgate_redact.hits import Detector, Hit
from narrowgate_redact.views import View, view_as_is

_BREAK: Final = re.compile(r"[ \t]*\\?\r?\n[ \t]{0,40}(?:[>|#*][ \t]{0,4}){0,3}")
_LONGEST: Final = 400
"""Characters of a word that are looked at on each side of a break."""

_SHORTEST: Final = 8
"""Characters that a word in two parts has at least."""

_MOST_PARTS: Final = 64
"""Lines of one word that count as one value."""

_NUMBERISH: Final = frozenset("0123456789 -()+")
_WORD: Final = re.compile(r"(?!.*(?:[bcdfghjklmnpqrstvwxz]{5}|[aeiou]{4}))(?:[a-z]+|[A-Z][a-z]*|[A-Z]+)[.,;:!?]*")
_DIGITS_ALONE: Final = re.compile(r"[\d \-.,]*")


def wrapped_hits(view: View, detectors: Iterable[Detector]) -> Iterator[Hit]:
    """Yield what detectors find across line breaks, in places of the view.

    Args:
        view: any view.
        detectors: those whose values may be broken.
    """
    if "\n" not in view.text:
        return
    chosen = tuple(detectors)
    for parts in _candidates(view.text):
        joined = "".join(view.text[start:end] for start, end in parts)
        joints = _joints(parts)
        for detector in chosen:
            for hit in detector(view_as_is(joined)):
                crossed = [joint for joint in joints if hit.start < joint < hit.end]
                if crossed and _is_one(joined, hit, crossed, detector):
                    yield Hit(_back(parts, hit.start, last=False), _back(parts, hit.end, last=True), hit.kind, hit.key)


def _candidates(text: str) -> Iterator[list[tuple[int, int]]]:
    """Yield lists of (start, end): the last word of a line, lines of one word, and the first word of the line after them."""
    run: list[tuple[int, int]] = []
    at = 0
    for match in _BREAK.finditer(text):
        tail = (_word_start(text, at, match.start()), match.start())
        head = (match.end(), _word_end(text, match.end()))
        at = match.end()
        if tail[0] == tail[1] or head[0] == head[1]:
            yield from _long(run)
            run = []
            continue
        alone = bool(run) and run[-1] == tail
        if not alone:
            yield from _long(run)
            run = [tail]
        run.append(head)
        if tail[1] - tail[0] + head[1] - head[0] >= _SHORTEST and not _column(text, tail, head):
            yield [tail, head]
        if len(run) == _MOST_PARTS:
            yield from _long(run)
            run = []
    yield from _long(run)


def _long(run: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    if len(run) > 2:
        yield run


def _word_start(text: str, least: int, end: int) -> int:
    start = end
    stop = max(least, end - _LONGEST)
    numbers = True
    while start > stop:
        character = text[start - 1]
        if character in " \t\n" and not (
            numbers and character == " " and start - 1 > stop and text[start - 2] in _NUMBERISH
        ):
            break
        numbers = numbers and character in _NUMBERISH
        start -= 1
    return start


def _word_end(text: str, start: int) -> int:
    end = start
    stop = min(len(text), start + _LONGEST)
    numbers = True
    while end < stop:
        character = text[end]
        if character in " \t\n" and not (numbers and character == " " and end + 1 < stop and text[end + 1] in _NUMBERISH):
            break
        numbers = numbers and character in _NUMBERISH
        end += 1
    return end


def _column(text: str, tail: tuple[int, int], head: tuple[int, int]) -> bool:
    """Return whether both lines hold nothing but numbers: then they are a column, and not one number."""
    line = text[text.rfind("\n", 0, tail[1]) + 1 : tail[1]] if tail[1] - tail[0] < _LONGEST else text[tail[0] : tail[1]]
    stop = text.find("\n", head[0], head[0] + _LONGEST)
    rest = text[head[0] : stop if stop >= 0 else head[0] + _LONGEST]
    return bool(_DIGITS_ALONE.fullmatch(line) and _DIGITS_ALONE.fullmatch(rest))


def _joints(parts: list[tuple[int, int]]) -> list[int]:
    found, at = [], 0
    for start, end in parts[:-1]:
        at += end - start
        found.append(at)
    return found


def _is_one(joined: str, hit: Hit, crossed: list[int], detector: Detector) -> bool:
    """Return whether a value goes on behind its line break, and is not whole before it with a word behind; or reverse."""
    first, last = joined[hit.start : crossed[0]], joined[crossed[-1] : hit.end]
    if _WORD.fullmatch(last) and _whole(first, detector):
        return False
    return not (_WORD.fullmatch(first) and _whole(last, detector))


def _whole(text: str, detector: Detector) -> bool:
    return any(hit.start == 0 and hit.end >= len(text) - 1 for hit in detector(view_as_is(text)))


def _back(parts: list[tuple[int, int]], place: int, *, last: bool) -> int:
    """Return the place of the view that a place of the joined word is."""
    at = 0
    for start, end in parts:
        size = end - start
        if place < at + size or (last and place == at + size):
            return start + place - at
        at += size
    return parts[-1][1]
