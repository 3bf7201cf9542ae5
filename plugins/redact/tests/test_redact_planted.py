"""Nothing of a planted value is left, in any writing, in English and Chinese; and a second pass changes nothing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redact_parts import (
    NUMBERS,
    TOKENS,
    VALUES,
    after,
    broken,
    full_width,
    in_json,
    in_url,
    invisible,
    remains,
    surrounding,
)

from narrowgate_redact.sanitiser import RedactSanitiser

SANITISER = RedactSanitiser()

kinds = pytest.mark.parametrize("form", VALUES)
ROUNDS = 60


def redacted(*texts: str) -> tuple[str, ...]:
    """Return texts without what must go; each is its own redaction, and so are all of them together."""
    first = tuple(item.text for item in SANITISER.redact(texts))
    again = SANITISER.redact(first)
    assert tuple(item.text for item in again) == first
    assert all(item.found == {} for item in again)
    return first


def planted(form: str, seed: int) -> tuple[Random, str, str, str]:
    """Return a source of chance, a value of a form, and what stands before and behind it."""
    random = Random(f"{form} {seed}")
    return random, VALUES[form](random), surrounding(random), after(random)


@kinds
def test_nothing_is_left_of_a_planted_value(form: str) -> None:
    """In a sentence, beside Han characters without a space."""
    for seed in range(ROUNDS):
        _, value, before, behind = planted(form, seed)
        (left,) = redacted(before + value + behind)
        assert remains(value, left) == [], (value, left)
        assert left.startswith(before[:-2]), "what stands before it stays"


@kinds
def test_full_width_writing_hides_nothing(form: str) -> None:
    """Full-width letters, digits and signs are read as what they are."""
    for seed in range(ROUNDS):
        _, value, before, behind = planted(form, seed)
        (left,) = redacted(before + full_width(value) + behind)
        assert remains(value, left) == [], (value, left)


@kinds
def test_invisible_characters_hide_nothing(form: str) -> None:
    """Zero-width characters, soft hyphens and marks of direction go with the value, so that nobody can join it again."""
    for seed in range(ROUNDS):
        random, value, before, behind = planted(form, seed)
        (left,) = redacted(before + invisible(value, random) + behind)
        assert remains(value, left) == [], (value, left)


@pytest.mark.parametrize("form", [*NUMBERS, *TOKENS])
def test_a_line_break_inside_hides_nothing(form: str) -> None:
    """A value that was wrapped is found as a whole."""
    for seed in range(ROUNDS):
        random, value, before, behind = planted(form, seed)
        text = before + broken(value, random) + behind
        (left,) = redacted(text)
        assert remains(value, left) == [], (text, left)


@kinds
def test_json_hides_nothing_and_stays_json(form: str) -> None:
    """As part of a JSON string, escapes and all: what is redacted is still JSON of the same shape."""
    import json

    for seed in range(ROUNDS):
        _, value, before, behind = planted(form, seed)
        (left,) = redacted(in_json(before + value + behind))
        assert remains(value, left) == [], (value, left)
        assert list(json.loads(left)) == ["note"]


@pytest.mark.parametrize("form", [form for form in VALUES if form not in ("private_key", "connection", "secret-jwt")])
def test_a_url_hides_nothing(form: str) -> None:
    """As a parameter of a URL, percent-encoded; the rest of the URL stays."""
    for seed in range(ROUNDS):
        _, value, _, behind = planted(form, seed)
        (left,) = redacted(in_url(value) + behind)
        assert remains(value, left) == [], (value, left)
        assert left.startswith("https://h.test/find?")


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(VALUES)), st.integers(0, 10**6), st.text(max_size=8)), min_size=1, max_size=6)
)
def test_a_redacted_text_is_its_own_redaction(parts: list[tuple[str, int, str]]) -> None:
    """Whatever values stand close to whatever else."""
    text = "".join(VALUES[form](Random(seed)) + between for form, seed, between in parts)
    redacted(text)


@settings(max_examples=300)
@given(st.text(alphabet=st.sampled_from(list("aZ09 .-:=@/+%()[]{}\"'\n,;_\\中码密是电话１。\u200b")), max_size=120))
def test_hostile_texts_have_a_fixed_point(text: str) -> None:
    """Also texts that are made of nothing but the signs that detectors look at."""
    redacted(text)


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_any_text_can_be_redacted(text: str) -> None:
    """Lone surrogates, controls, anything: nothing is raised."""
    redacted(text, text + "\ud800")
