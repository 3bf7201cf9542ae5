"""What holds of analysis for every text."""

from __future__ import annotations

import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from hypothesis import example, given
from hypothesis import strategies as st

from narrowgate.recall.analysis import index_terms, query_terms, tokens

# Arbitrary Unicode hits word and n-gram characters rarely; mixed in are characters around which the rules turn.
_TURNING = "aZé9_-./\\:@+&'#=~,$\"\x00 \t\n\u3000中文のテ비밀กิम\u0301\u00ad\u200b\u2019\u037a\ufb03İßΐẚŉ\u0345Ⅷ½①ｱ\uff21"
_TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(_TURNING)), max_size=60)
_ASCII = st.text(st.characters(max_codepoint=127), max_size=60)
_HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=20)


@given(st.one_of(_TEXTS, _ASCII))
@example("\u037a")
@example("İ")
@example("'\u00ad'\u00ad")
def test_terms_keep_the_contract_with_the_index(text: str) -> None:
    """A term is not empty and holds no white space, no control character, no quote and no ASCII capital."""
    for term in index_terms(text):
        assert term
        assert '"' not in term
        assert not any(char.isspace() or unicodedata.category(char) == "Cc" or "A" <= char <= "Z" for char in term)
        assert term.split() == [term]


@given(st.one_of(_TEXTS, _ASCII))
def test_index_terms_are_the_terms_of_the_tokens(text: str) -> None:
    """The quick way and the way with places agree, repeats included."""
    assert Counter(index_terms(text)) == Counter(token.term for token in tokens(text))


@given(_TEXTS)
def test_normal_forms_do_not_matter(text: str) -> None:
    """NFC, NFD, NFKC and NFKD of a text have the same terms."""
    terms = index_terms(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert index_terms(unicodedata.normalize(form, text)) == terms


@given(_TEXTS)
def test_places_lie_in_the_composed_text(text: str) -> None:
    """0 <= start < end <= length of the NFKC form, starts never fall."""
    length = len(unicodedata.normalize("NFKC", text))
    found = tokens(text)
    assert all(0 <= token.start < token.end <= length for token in found)
    assert [token.start for token in found] == sorted(token.start for token in found)


@given(st.lists(st.one_of(_TEXTS, _ASCII), min_size=1, max_size=5), st.data())
def test_a_word_finds_the_text_that_holds_it(words: list[str], data: st.DataObject) -> None:
    """Every term of a query that is one word of a text is among the text's terms."""
    word = data.draw(st.sampled_from(words))
    assert set(query_terms(word)) <= set(index_terms("\n".join(words)))


@given(_HAN, st.data())
def test_a_stretch_of_a_run_finds_it(run: str, data: st.DataObject) -> None:
    """Case 3: any substring of a run without spaces finds the run."""
    start = data.draw(st.integers(0, len(run) - 1))
    stretch = run[start : data.draw(st.integers(start + 1, len(run)))]
    assert query_terms(stretch)
    assert set(query_terms(stretch)) <= set(index_terms(run))


@given(_TEXTS)
def test_query_terms_are_distinct_sorted_and_of_the_text(text: str) -> None:
    """A query looks up terms of its own, each once; it has none only when the text has none."""
    terms = query_terms(text)
    assert list(terms) == sorted(set(terms))
    assert set(terms) <= set(index_terms(text))
    assert bool(terms) == bool(index_terms(text))


def test_analysis_is_the_same_from_many_threads() -> None:
    """The stemmer keeps state; writers and searches of different threads do not disturb each other."""
    words = [
        f"{stem}{ending}" for stem in ("relat", "nation", "hop", "conflat") for ending in ("ional", "ing", "ed", "ization")
    ]
    texts = [" ".join(f"{word}{chr(97 + i)}{word}" for word in words) for i in range(26)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(index_terms, texts * 4))
    assert together == [index_terms(text) for text in texts] * 4
