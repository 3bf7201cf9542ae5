"""In which language a question is asked: that of a text, told by its script alone, so that it is the same every time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_OTHER: Final = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
}
LANGUAGES: Final = ("en", "zh", *_OTHER)
"""The labels that `language_of` gives and a policy's question may have a text for."""

_LATIN: Final = re.compile(r"[A-Za-z]")


def language_of(text: str) -> str:
    """Return a label for the language of a text, by its script alone: `zh`, `ja`, `ko`, `th`, `en` (any Latin), `und`."""
    for name, script in _OTHER.items():
        if script.search(text):
            return name
    if _HAN.search(text):
        return "zh"
    return "en" if _LATIN.search(text) else "und"


def asked_in(question: Mapping[str, str], language: str) -> str:
    """Return the text of a question in a language, else in English.

    Args:
        question: language -> text; `en` is always there.
        language: a label of `language_of`.
    """
    return question.get(language) or question["en"]
