"""The demonstration: a journal of a small team over four months, in English and Chinese, and six questions about it.

Written for narrowgate: the people, the partners and the product are invented.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Literal

import attrs

__all__ = ["Question", "journal_paths", "questions"]


@attrs.frozen
class Question:
    """A question that a member of the team might ask.

    Attributes:
        id: a short name, unique.
        lang: the language of the question and of its answer, `en` or `zh`.
        text: the question.
        answer: a part of the one entry that answers it.
        shows: what makes it hard, in English.
    """

    id: str
    lang: Literal["en", "zh"]
    text: str
    answer: str
    shows: str


def journal_paths() -> list[Path]:
    """Return the journal's Markdown files, the oldest month first."""
    folder = Path(str(files(__name__)))
    return sorted(folder.glob("*.md"))


def questions() -> tuple[Question, ...]:
    """Return the six questions, the English ones first."""
    records = json.loads(files(__name__).joinpath("questions.json").read_text("utf-8"))
    return tuple(Question(**record) for record in records)
