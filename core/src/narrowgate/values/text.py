"""What a text must be before anything is done with it (spec 1.1, 1.2)."""

from __future__ import annotations

import unicodedata
from typing import Final

from narrowgate.errors import TextError

MAX_TEXT_BYTES: Final = 8192
"""The largest entry or query, in UTF-8 bytes after normalisation."""

MAX_REASON_POINTS: Final = 512
"""The longest change reason, in code points."""

MAX_REF_BYTES: Final = 512
"""The longest reference of evidence, in UTF-8 bytes."""

_ALLOWED_CONTROLS: Final = frozenset("\n\t")


def normalise_text(raw: object, *, what: str = "text", max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return `raw` in NFC, with `\\n` line ends and no white space around it.

    Args:
        raw: the text as it came.
        what: how an error names it (never its content).
        max_bytes: the limit in UTF-8 bytes after normalisation.

    Raises:
        TextError: `text-type` (no string), `text-surrogate` (no valid Unicode), `text-control` (NUL or another control
            character; line feed, carriage return and tab may stand), `text-empty`, `text-too-long`.
    """
    if not isinstance(raw, str):
        raise TextError("text-type", f"{what} must be a string, not {type(raw).__name__}")
    text = raw if raw.isascii() else unicodedata.normalize("NFC", raw)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.strip()
    while text.startswith("\ufeff"):
        text = text.lstrip("\ufeff").lstrip()
    if not text:
        raise TextError("text-empty", f"{what} is empty or only white space")
    if not text.isprintable():
        _refuse_controls(text, what)
    if len(text) * 4 > max_bytes:
        size = len(text.encode())
        if size > max_bytes:
            raise TextError("text-too-long", f"{what} has {size} bytes; the limit is {max_bytes}: split it")
    return text


def _refuse_controls(text: str, what: str) -> None:
    for position, char in enumerate(text):
        category = unicodedata.category(char)
        if category == "Cs":
            raise TextError("text-surrogate", f"{what} has half a surrogate pair at position {position}: not valid Unicode")
        if category == "Cc" and char not in _ALLOWED_CONTROLS:
            raise TextError("text-control", f"{what} has the control character U+{ord(char):04X} at position {position}")


def normalise_line(raw: object, *, what: str, max_bytes: int) -> str:
    """Return `raw` as `normalise_text` does, where it is one line: the name of something.

    Raises:
        TextError: as `normalise_text`; a line feed or a tab is `text-control`.
    """
    text = normalise_text(raw, what=what, max_bytes=max_bytes)
    if "\n" in text or "\t" in text:
        raise TextError("text-control", f"{what} must be one line without tabs")
    return text


def normalise_reason(raw: str | None) -> str | None:
    """Return a change reason in NFC without white space around it; blank gives `None`.

    Raises:
        TextError: longer than `MAX_REASON_POINTS`, or with control characters.
    """
    if raw is None or not raw.strip():
        return None
    text = normalise_text(raw, what="reason")
    if len(text) > MAX_REASON_POINTS:
        raise TextError("reason-too-long", f"reason has {len(text)} characters; the limit is {MAX_REASON_POINTS}")
    return text
