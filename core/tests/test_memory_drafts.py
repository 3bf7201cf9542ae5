"""From drafts to contents: limits, normalisation, digests."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.memory.drafts import content_of, prepare
from narrowgate.values.entry import EntryDraft, Put, Refused

_texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda text: bool(text.strip("\ufeff \u3000").strip())
)


@given(_texts)
def test_equal_after_nfc_is_equal_content(text: str) -> None:
    """The digest is of the normalised text: composed and decomposed forms are one content."""
    first = prepare(unicodedata.normalize("NFD", text))
    second = prepare(unicodedata.normalize("NFC", text))
    assert first == second


def test_a_digest_covers_every_field() -> None:
    """Changing any field changes the digest; the order of attributes does not."""
    base = EntryDraft("text", "fact", "src", "ana", "2026-03-01", {"a": 1, "b": "x"})
    variants = [
        EntryDraft("other", "fact", "src", "ana", "2026-03-01", {"a": 1, "b": "x"}),
        EntryDraft("text", "note", "src", "ana", "2026-03-01", {"a": 1, "b": "x"}),
        EntryDraft("text", "fact", "src2", "ana", "2026-03-01", {"a": 1, "b": "x"}),
        EntryDraft("text", "fact", "src", "bo", "2026-03-01", {"a": 1, "b": "x"}),
        EntryDraft("text", "fact", "src", "ana", "2026-03-02", {"a": 1, "b": "x"}),
        EntryDraft("text", "fact", "src", "ana", "2026-03-01", {"a": "1", "b": "x"}),
        EntryDraft("text", "fact", "src", "ana", "2026-03-01", {"a": True, "b": "x"}),
        EntryDraft("text", "fact", "src", "ana", "2026-03-01", {}),
        EntryDraft("text", "fact", None, None, None, {}),
    ]
    digests = {content_of(draft).digest for draft in [base, *variants]}
    assert len(digests) == 1 + len(variants)
    swapped = EntryDraft("text", "fact", "src", "ana", "2026-03-01", {"b": "x", "a": 1})
    assert content_of(swapped) == content_of(base)


def test_a_digest_is_stable() -> None:
    """Stored digests must stay comparable: this value may only change together with the digest's domain prefix."""
    content = content_of(EntryDraft("茶は熱い", "fact", "s", "ana", datetime(2026, 3, 1, tzinfo=UTC), {"n": 1.5}))
    assert content.digest == "976b5ba13a4cd7e7a45695a29ab72a135a3ef607a9f86a59e32c802eabc2af24"


@pytest.mark.parametrize(
    ("draft", "code"),
    [
        ("", "text-empty"),
        (" \n\t", "text-empty"),
        ("a\0b", "text-control"),
        ("a\x1bb", "text-control"),
        ("\ud800", "text-surrogate"),
        ("x" * 8193, "text-too-long"),
        ("茶" * 2731, "text-too-long"),
        (3, "draft-type"),
        (EntryDraft("x", kind=""), "text-empty"),
        (EntryDraft("x", source="two\nlines"), "text-control"),
        (EntryDraft("x", author="a" * 129), "text-too-long"),
        (EntryDraft("x", occurred_at="yesterday"), "time-format"),
        (EntryDraft("x", occurred_at="2026-02-30"), "time-format"),
        (EntryDraft("x", occurred_at="0001-01-01T00:00+09:00"), "time-range"),
        (EntryDraft("x", attributes={str(n): n for n in range(33)}), "attributes-many"),
        (EntryDraft("x", attributes={"a=b": 1}), "attributes-name"),
        (EntryDraft("x", attributes={"a": float("nan")}), "attributes-value"),
        (EntryDraft("x", attributes={"a": 2**63}), "attributes-value"),
        (EntryDraft("x", attributes={"a": ["list"]}), "attributes-value"),  # type: ignore[dict-item]
        (EntryDraft("x", attributes={"é": 1, "e\u0301": 2}), "attributes-name"),
        (EntryDraft("x", reason="r" * 513), "reason-too-long"),
        (EntryDraft("x", entry="a/b"), "id-format"),
        (EntryDraft("x", expected_version=1), "expected-version"),
    ],
)
def test_a_broken_rule_is_named_without_the_content(draft: Any, code: str) -> None:
    """Each limit has its own code; the message does not repeat what was refused."""
    refused = prepare(draft)
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert "xxx" not in refused.message
    assert "茶" not in refused.message


def test_the_largest_text_passes() -> None:
    """8,192 bytes in UTF-8, not characters."""
    assert isinstance(prepare("x" * 8192), Put)
    assert isinstance(prepare("茶" * 2730), Put)


@given(st.text())
def test_any_text_is_stored_or_refused(text: str) -> None:
    """No input raises; what is stored is NFC without white space around it."""
    result = prepare(text)
    if isinstance(result, Put):
        stored = result.content.text
        assert stored == unicodedata.normalize("NFC", stored).strip()
        assert prepare(stored) == result
