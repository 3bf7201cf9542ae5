"""Normalisation of texts: one form, stable, within limits, without control characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from narrowgate.errors import TextError
from narrowgate.values.text import MAX_REASON_POINTS, MAX_TEXT_BYTES, normalise_reason, normalise_text

ANY_TEXT = st.text() | st.text(alphabet="a é\u0301\u1100\u1161\u00a0\u3000\ufeff\r\n\t\x00\x1f\x85\u2028\ud800中文")


@given(ANY_TEXT)
@example("\ufeff\ufeffa")
@example("\ufeff \ufeff\r\na")
def test_what_passes_is_in_one_form(raw):
    """The result is NFC, bare of outer white space and carriage returns, within the limit, and stays as it is."""
    try:
        text = normalise_text(raw)
    except TextError:
        return
    assert unicodedata.is_normalized("NFC", text)
    assert text
    assert text == text.strip()
    assert "\r" not in text
    assert not text.startswith("\ufeff")
    assert len(text.encode()) <= MAX_TEXT_BYTES
    assert all(char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cs"} for char in text)
    assert normalise_text(text) == text


@given(st.text(), st.sampled_from(["", " ", "\n\t ", "\u3000", "\ufeff", " \ufeff "]))
def test_canonically_equal_texts_become_one(raw, margin):
    """Composed or decomposed, with or without a margin, with any line ends: one text."""
    try:
        expected = normalise_text(raw)
    except TextError:
        return
    decomposed = unicodedata.normalize("NFD", raw)
    assert normalise_text(decomposed) == expected
    assert normalise_text(margin + expected.replace("\n", "\r\n") + margin.replace("\ufeff", "")) == expected


@pytest.mark.parametrize("raw", ["", " ", "\n\r\t", "\ufeff", "\u3000", " \ufeff\n"])
def test_blank_is_refused(raw):
    """White space alone is no text."""
    with pytest.raises(TextError) as caught:
        normalise_text(raw)
    assert caught.value.code == "text-empty"


@pytest.mark.parametrize("raw", [None, b"bytes", 7, ["text"]])
def test_what_is_no_string_is_refused_by_type(raw):
    """The type is named, never the value."""
    with pytest.raises(TextError, match=type(raw).__name__) as caught:
        normalise_text(raw)
    assert caught.value.code == "text-type"


@given(st.characters(categories=["Cc"]).filter(lambda char: char not in "\n\t\r"), st.sampled_from(["", "中"]))
def test_control_characters_inside_are_refused(control, more):
    """NUL and its like are refused with code point and position, so that the writer finds them."""
    with pytest.raises(TextError, match=rf"U\+{ord(control):04X} at position 2") as caught:
        normalise_text(f"ab{control}{more}c")
    assert caught.value.code == "text-control"


@given(st.characters(categories=["Cs"]))
def test_half_a_surrogate_pair_is_refused(half):
    """A lone surrogate cannot be stored as UTF-8."""
    with pytest.raises(TextError, match="position 1") as caught:
        normalise_text(f"a{half}b")
    assert caught.value.code == "text-surrogate"


@pytest.mark.parametrize(("char", "size"), [("a", 1), ("é", 2), ("中", 3), ("😀", 4)])
def test_the_limit_is_in_bytes_after_normalisation(char, size):
    """Exactly 8,192 bytes pass, one more does not; white space around does not count, the error names both numbers."""
    most = MAX_TEXT_BYTES // size
    fits = char * most + "a" * (MAX_TEXT_BYTES - most * size)
    assert normalise_text(f"  {fits}\n") == fits
    with pytest.raises(TextError, match=f"{MAX_TEXT_BYTES + 1} bytes.*{MAX_TEXT_BYTES}") as caught:
        normalise_text(fits + "a")
    assert caught.value.code == "text-too-long"


def test_composition_can_bring_a_text_under_the_limit():
    """What counts is the stored form: decomposed letters that compose to fit are not refused."""
    assert normalise_text("e\u0301" * 4000) == "é" * 4000


@given(st.none() | st.text(max_size=40))
def test_a_reason_is_optional(raw):
    """A blank reason is none, another is normalised as a text is."""
    try:
        reason = normalise_reason(raw)
    except TextError:
        return
    assert reason is None or reason == normalise_text(raw)
    assert (reason is None) == (raw is None or not raw.strip())


def test_a_reason_is_at_most_512_code_points():
    """The limit of a reason is in characters."""
    assert normalise_reason("中" * MAX_REASON_POINTS) == "中" * MAX_REASON_POINTS
    with pytest.raises(TextError, match="513") as caught:
        normalise_reason("中" * (MAX_REASON_POINTS + 1))
    assert caught.value.code == "reason-too-long"
