"""Cutting a text that is too long for one entry."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_cli.importing._splitting import split_text


@given(st.text(st.sampled_from("ab. ,，。”\n\té字😀\u0301")), st.integers(8, 40))
def test_every_part_fits_and_only_white_space_goes(text: str, limit: int) -> None:
    """Parts are within the limit, none is blank, and together they hold every other character in order."""
    parts = list(split_text(text, limit))
    assert all(part.strip() and len(part.encode()) <= limit for part in parts)
    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two.\n\nthree, four. five\nsix seven eight", "one two.\n\nthree, four. five"),
        ("one two three four. five, six seven eight nine", "one two three four."),
        ("one two. three four five six seven eight nine", "one two. three four five six"),
        ("one two three four, five six seven eight nine", "one two three four,"),
        ("one two three four five six seven eight nine", "one two three four five six"),
        ("他说：“今天不去。”明天再看情况吧", "他说：“今天不去。”"),
        ("a" * 29 + "e\u0301\u0301" + "b" * 20, "a" * 29),
    ],
)
def test_the_best_border_is_taken(text: str, first: str) -> None:
    """Paragraph and line before sentence, clause and word; a letter keeps the accents behind it."""
    assert next(iter(split_text(text, 31))) == first


def test_who_needs_no_markdown_does_not_load_a_parser() -> None:
    """The package is imported by commands that only export: the Markdown parser is loaded with the first Markdown file."""
    code = "import sys, narrowgate_cli.importing, narrowgate_cli.journal; print('markdown_it' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
