"""What detectors return, and the boundaries that numbers and words have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import re2  # type: ignore[import-untyped]

from narrowgate_redact.views import View


@attrs.frozen
class Hit:
    """A place that must go.

    Attributes:
        start: where it begins, in the view that it was found in.
        end: where it ends.
        kind: the detector.
        key: what makes two values equal.
    """

    start: int
    end: int
    kind: str
    key: str


Detector = Callable[[View], Iterator[Hit]]
"""Finds places in a view, in time linear in its length."""


def compiled(pattern: str | bytes, *, ignore_case: bool = False) -> Any:
    """Return a pattern of RE2, whose search takes time linear in the text whatever the text is.

    Raises:
        re2.error: it is no pattern of RE2: back references and looking around, for instance, are not.
    """
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    if isinstance(pattern, bytes):
        options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


DIGITS: Final = frozenset(b"0123456789")
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_POINT: Final = b".,"
_WALK: Final = 32


def alone(raw: bytes, start: int, end: int, *, glued: bool = False) -> bool:
    """Return whether a number stands for itself and is no part of a longer number, a decimal or an identifier.

    Args:
        raw: the view.
        start: where it begins.
        end: where it ends.
        glued: letters may touch it, as in `tel13912345678`, as long as no digit stands in them.
    """
    before = raw[start - 1] if start else 0x20
    after = raw[end] if end < len(raw) else 0x20
    if before in DIGITS or after in DIGITS:
        return False
    if before in b"." and start > 1 and raw[start - 2] in DIGITS:
        return False
    if after in b"." and end + 1 < len(raw) and raw[end + 1] in DIGITS:
        return False
    if not glued:
        return before not in _LETTERS and after not in _LETTERS
    return _words_only(raw, start - 1, -1) and _words_only(raw, end, 1)


def _words_only(raw: bytes, place: int, step: int) -> bool:
    for _ in range(_WALK):
        if not 0 <= place < len(raw) or (raw[place] not in _LETTERS and raw[place] not in DIGITS):
            return True
        if raw[place] in DIGITS or raw[place] in b"_":
            return False
        place += step
    return False
