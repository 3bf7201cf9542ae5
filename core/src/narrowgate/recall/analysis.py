"""From text to index terms, alike for what is stored and what is asked (docs/adr/0002-analysis.md has the measurements).

A term holds no white space, no control character and no double quote; it may hold any other ASCII punctuation and any
character beyond ASCII. Terms joined by single spaces are what a lexical index stores.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import add
from typing import Final, Literal, NamedTuple

from narrowgate.recall._scripts import MARK_CLASS, NGRAM_CLASS, compose, fold
from narrowgate.recall._stem import SNOWBALL, stem
from narrowgate.recall._stopwords import ENGLISH, HAN_FUNCTION
from narrowgate.values.search import AnalysedQuery
from narrowgate.values.text import normalise_text

ANALYSER_VERSION: Final = f"a1+snowball{SNOWBALL}"
"""Stored with every index; anything that changes a term changes it, and so does another release of the stemmer."""

Kind = Literal["word", "identifier", "number", "unigram", "bigram"]


class Token(NamedTuple):
    """One index term and where it comes from.

    Attributes:
        term: the index term.
        kind: what it is.
        start: where it begins, a code-point offset into the NFKC form of the text.
        end: where it ends.
    """

    term: str
    kind: Kind
    start: int
    end: int


_PIECE: Final = re.compile(rf"[{NGRAM_CLASS}]+|[^\s{NGRAM_CLASS}]+")
_NGRAM: Final = re.compile(rf"[{NGRAM_CLASS}]")
_W: Final = rf"[\w{MARK_CLASS}]"
_COMPOUND: Final = re.compile(rf"[.#@$]?{_W}+(?:[-./\\:@+&'#=~,]{{1,2}}{_W}+)*(?:\+\+|\#)?")
_SEGMENTS: Final = (re.compile(r"[^:@&#=~,]+"), re.compile(r"[^/\\:@&#=~,]+"))  # "src/app.py:14": the path, then its steps
_WORD: Final = re.compile(rf"(?:(?!_){_W})+")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CLITIC: Final = re.compile(r"'(?:s|ll|re|ve|d|m)$", re.IGNORECASE)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL: Final = re.compile(r"\d+[.,]\d+")
_VERSION: Final = re.compile(r"[vV]\d+\.")

_LONGEST_CACHED: Final = 48


def _word(raw: str, start: int, end: int) -> Token:
    word = fold(raw)
    if word.isdecimal():
        return Token(word, "number", start, end)
    return Token(stem(word) if word.isascii() and word.isalpha() else word, "word", start, end)


def _parts(text: str, offset: int) -> list[Token]:
    found = []
    for match in _WORD.finditer(text):
        raw, start = match.group(), offset + match.start()
        found.append(_word(raw, start, offset + match.end()))
        if raw.isascii() and not (raw.islower() or raw.isupper() or raw[1:].islower()):
            humps = list(_CAMEL.finditer(raw))
            if len(humps) > 1:
                found += [_word(hump.group(), start + hump.start(), start + hump.end()) for hump in humps]
    return found


def _identifiers(raw: str, offset: int) -> list[Token]:
    """Return the wholes in a compound: itself, itself without its mark or `v`, and what stands between its separators."""
    end = offset + len(raw)
    found = [Token(fold(raw), "number" if _DECIMAL.fullmatch(raw) else "identifier", offset, end)]
    if (raw[0] in ".#@$" and _WORD.fullmatch(raw, 1) is None) or _VERSION.match(raw):
        found.append(Token(fold(raw[1:]), "identifier", offset + 1, end))
    seen = {raw}
    for pattern in _SEGMENTS:
        for match in pattern.finditer(raw):
            segment = match.group().strip("-./\\+'")
            if segment not in seen and _WORD.search(segment) and not _WORD.fullmatch(segment):
                seen.add(segment)
                start = offset + raw.index(segment, match.start())
                found.append(Token(fold(segment), "identifier", start, start + len(segment)))
    return found


def _compound(raw: str, offset: int) -> list[Token]:
    raw = _CLITIC.sub("", raw)
    if _THOUSANDS.fullmatch(raw):
        return [Token(raw.replace(",", ""), "number", offset, offset + len(raw))]
    if "'" in raw:  # "don't" and "dont", "O'Brien" and "OBrien" are one
        joined = raw.replace("'", "")
        whole = [_word(joined, offset, offset + len(raw))] if _WORD.fullmatch(joined) else []
        return whole if whole and whole[0].term in ENGLISH else whole + _parts(raw, offset)
    parts = _parts(raw, offset)
    if not parts or _WORD.fullmatch(raw):
        return parts
    return _identifiers(raw, offset) + parts


def _chunk_tokens(chunk: str) -> tuple[Token, ...]:
    found: list[Token] = []
    for match in _COMPOUND.finditer(chunk):
        tokens = [token for token in _compound(match.group(), match.start()) if token.term]
        tokens.sort(key=lambda token: (token.start, -token.end))
        found += tokens
    return tuple(found)


def _chunk_terms(chunk: str) -> tuple[str, ...]:
    lower = chunk.lower()
    if chunk.isascii() and chunk.isalpha() and chunk[1:] == lower[1:]:
        return (stem(lower),)  # a plain word, as most are: what `_chunk_tokens` would find by a longer way
    return tuple([token.term for token in _chunk_tokens(chunk)])


# Two caches, since indexing wants terms alone and must not pay for places; both hold short chunks only.
_cached_chunk_tokens: Final = lru_cache(maxsize=8_192)(_chunk_tokens)
_cached_chunk_terms: Final = lru_cache(maxsize=32_768)(_chunk_terms)


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text in text order; a whole stands before its parts.

    Args:
        text: any string; need not be normalised.
    """
    found: list[Token] = []
    for match in _PIECE.finditer(compose(text)):
        piece, start = match.group(), match.start()
        if _NGRAM.match(piece):
            for place, char in enumerate(piece, start):
                found.append(Token(char, "unigram", place, place + 1))
                if place - start + 1 < len(piece):
                    found.append(Token(piece[place - start : place - start + 2], "bigram", place, place + 2))
        else:
            local = _cached_chunk_tokens(piece) if len(piece) <= _LONGEST_CACHED else _chunk_tokens(piece)
            found += [Token(term, kind, start + first, start + last) for term, kind, first, last in local]
    return found


def index_terms(text: str) -> list[str]:
    """Return the terms under which a text is indexed, with repeats: those of `tokens`, in no stated order."""
    terms: list[str] = []
    if text.isascii():
        for piece in text.split():
            terms += _cached_chunk_terms(piece) if len(piece) <= _LONGEST_CACHED else _chunk_terms(piece)
        return terms
    for piece in _PIECE.findall(compose(text)):
        if _NGRAM.match(piece):
            terms += piece
            terms += map(add, piece, piece[1:])
        elif len(piece) <= _LONGEST_CACHED:
            terms += _cached_chunk_terms(piece)
        else:
            terms += _chunk_terms(piece)
    return terms


def query_terms(text: str) -> tuple[str, ...]:
    """Return the distinct terms that a query looks up, sorted, stop words left out.

    A query that holds nothing but stop words keeps them, so that it still finds what holds them.
    """
    terms = frozenset(index_terms(text))
    return tuple(sorted(terms - ENGLISH - HAN_FUNCTION or terms))


def analyse_query(text: str) -> AnalysedQuery:
    """Normalise and analyse a query.

    Raises:
        TextError: the text is no valid query (see `normalise_text`).
    """
    normalised = normalise_text(text, what="query")
    return AnalysedQuery(normalised, query_terms(normalised), ANALYSER_VERSION)
