"""From text to index terms, alike for what is stored and what is asked (docs/adr/0002-analysis.md has the measurements).

A term holds no white space, no control character and no double quote; it may hold any other ASCII punctuation and any
character beyond ASCII. Terms joined by single spaces are what a lexical index stores.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import snowballstemmer  # type: ignore[import-untyped]

from narrowgate.recall._irregular import IRREGULAR
from narrowgate.recall._scripts import MARK_CLASS, NGRAM_CLASS, compose, fold
from narrowgate.recall._stopwords import ENGLISH, HAN_FUNCTION
from narrowgate.values.search import AnalysedQuery
from narrowgate.values.text import normalise_text

ANALYSER_VERSION: Final = "a1"
"""Stored with every index; anything that changes a term changes it."""

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
_SEGMENT: Final = re.compile(r"[^/\\:@&#=~,]+")
_WORD: Final = re.compile(rf"(?:(?!_){_W})+")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CLITIC: Final = re.compile(r"(?:'(?:s|ll|re|ve|d|m)|(?<=s)')$", re.IGNORECASE)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")

_LONGEST_CACHED: Final = 48
_stemmer: Final[Any] = snowballstemmer.stemmer("english")


@lru_cache(maxsize=32_768)
def _stem(word: str) -> str:
    return word if word in ENGLISH else str(_stemmer.stemWord(IRREGULAR.get(word, word)))


def _word(word: str) -> tuple[str, Kind]:
    folded = fold(word)
    if folded.isdecimal():
        return folded, "number"
    return (_stem(folded) if folded.isascii() and folded.isalpha() else folded), "word"


def _parts(text: str, offset: int) -> list[Token]:
    found = []
    for match in _WORD.finditer(text):
        raw, start = match.group(), offset + match.start()
        term, kind = _word(raw)
        if term:
            found.append(Token(term, kind, start, offset + match.end()))
        if not (raw.islower() or raw.isupper() or raw[1:].islower()):
            humps = list(_CAMEL.finditer(raw))
            if len(humps) > 1:
                found += [Token(*_word(hump.group()), start + hump.start(), start + hump.end()) for hump in humps]
    return found


def _compound(raw: str, offset: int) -> list[Token]:
    raw = _CLITIC.sub("", raw)
    end = offset + len(raw)
    if _THOUSANDS.fullmatch(raw):
        return [Token(raw.replace(",", ""), "number", offset, end)]
    if "'" in raw:  # "don't" and "dont", "O'Brien" and "OBrien" are one
        joined = raw.replace("'", "")
        found = [] if _WORD.fullmatch(joined) is None else [Token(*_word(joined), offset, end)]
        if found and found[0].term in ENGLISH:
            return found
        return found + _parts(raw, offset)
    parts = _parts(raw, offset)
    whole = fold(raw)
    if (len(parts) == 1 and parts[0].term == whole) or _WORD.fullmatch(raw) is not None or not parts:
        return parts
    found = [Token(whole, "number" if re.fullmatch(r"\d+[.,]\d+", raw) else "identifier", offset, end)]
    if raw[0] in ".#@$" and len(parts) > 1:
        found.append(Token(fold(raw[1:]), "identifier", offset + 1, end))
    segments = list(_SEGMENT.finditer(raw))
    if len(segments) > 1:
        for segment in segments:
            text = segment.group()
            if _WORD.fullmatch(text) is None and _WORD.search(text):
                found.append(Token(fold(text), "identifier", offset + segment.start(), offset + segment.end()))
    if re.match(r"[vV]\d+\.", raw):
        found.append(Token(fold(raw[1:]), "identifier", offset + 1, end))
    return found + parts


def _chunk_tokens(chunk: str) -> list[Token]:
    found: list[Token] = []
    for match in _COMPOUND.finditer(chunk):
        found += _compound(match.group(), match.start())
    return found


def _chunk_terms(chunk: str) -> tuple[str, ...]:
    return tuple([token.term for token in _chunk_tokens(chunk)])


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
            found += [Token(term, kind, start + a, start + b) for term, kind, a, b in _chunk_tokens(piece)]
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
            terms += map("".join, pairwise(piece))
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
