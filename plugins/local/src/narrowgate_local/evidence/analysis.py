"""What the evidence model sees of a query and of a text: terms of the core's analyser with a thin layer on top."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Final

import attrs

from narrowgate.recall.analysis import Token, index_terms, tokens
from narrowgate_local.evidence import _lexicon_en as en
from narrowgate_local.evidence import _lexicon_zh as zh

UNIGRAM_WEIGHT: Final = 0.35
"""A single character of a script without spaces says about a third of what a word or a pair of characters says."""

CHARACTER_LENGTH: Final = 0.6
"""Such a character counts as so many words of length."""

CONTEXT_WEIGHT: Final = 0.1
"""A term that a query holds only outside its questions counts as so much of one."""

PREFIX_LETTERS: Final = 4

_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_KNOWN: Final = re.compile("[A-Za-z\u00c0-\u024f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_SPEAKER: Final = re.compile(
    r"\s*(?P<name>[A-Z\u00c0-\u00de][\w.'-]{0,24}(?: [A-Z\u00c0-\u00de][\w.'-]{0,24}){0,2}|[\u4e00-\u9fff·]{1,6})"
    r"\s*[:：]\s*(?=\S)"
)
_NO_SPEAKER: Final = frozenset(
    ("note", "todo", "fixme", "update", "summary", "warning", "error", "example", "re", "fwd", "http", "https")
)


_SENTENCE: Final = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+(?:[.!?\u3002\uff01\uff1f]+[\"'\u201d\u300d)]*|\n|$)|[.!?]")
_CLOSING: Final = " \"'\u201d\u300d)\n"


class Ask(StrEnum):
    """What a question wants to know, where its form tells."""

    WHEN = "when"
    WHO = "who"
    WHERE = "where"
    HOW_MANY = "how_many"
    WHY = "why"


_ASK_EN: Final = (
    (Ask.WHEN, en.WHEN),
    (Ask.HOW_MANY, en.HOW_MANY),
    (Ask.WHERE, en.WHERE),
    (Ask.WHO, en.WHO),
    (Ask.WHY, en.WHY),
)
_ASK_ZH: Final = (
    (Ask.WHEN, zh.WHEN),
    (Ask.WHERE, zh.WHERE),
    (Ask.WHY, zh.WHY),
    (Ask.WHO, zh.WHO),
    (Ask.HOW_MANY, zh.HOW_MANY),
)
_ANSWERS_EN: Final = (
    (Ask.WHEN, en.DATE),
    (Ask.WHERE, en.PLACE),
    (Ask.HOW_MANY, en.NUMBER),
    (Ask.WHY, en.REASON),
)
_ANSWERS_ZH: Final = (
    (Ask.WHEN, zh.DATE),
    (Ask.WHO, zh.PERSON),
    (Ask.WHERE, zh.PLACE),
    (Ask.HOW_MANY, zh.NUMBER),
    (Ask.WHY, zh.REASON),
)


def _with_stems(words: frozenset[str]) -> frozenset[str]:
    return words | {term for word in words for term in index_terms(word)}


_STOP: Final = _with_stems(en.FUNCTION)
_STOP_ASKING: Final = _STOP | _with_stems(en.ASKING)


@attrs.frozen
class Terms:
    """The content terms of a text.

    Attributes:
        weight: term -> 1, or `UNIGRAM_WEIGHT` for a single character of a script without spaces; in order of first use.
        names: those of the terms that are written like a proper name.
        numbers: those that are numbers.
        length: about how many words the text has.
    """

    weight: Mapping[str, float]
    names: frozenset[str]
    numbers: frozenset[str]
    length: float


@attrs.frozen
class QueryView:
    """A query as the features see it.

    Attributes:
        terms: its content terms, without phrases of asking.
        ask: what it wants to know.
        legible: it is written in scripts that the model knows.
    """

    terms: Terms
    ask: Ask | None
    legible: bool


@attrs.frozen
class TextView:
    """A candidate as the features see it.

    Attributes:
        terms: its content terms, without those of a speaker's name in front.
        prefixes: the first four letters of its longer words.
        speaker: terms of a `Name:` in front; empty without one.
        answers: what kinds of question its form could answer.
        question: it is a question itself.
        first_person: its writer speaks of himself.
        legible: it is written in scripts that the model knows.
    """

    terms: Terms
    prefixes: frozenset[str]
    speaker: frozenset[str]
    answers: frozenset[Ask]
    question: bool
    first_person: bool
    legible: bool


class _Collector:
    """Gathers the content terms of one text, token by token."""

    def __init__(self, text: str, stop: frozenset[str]) -> None:
        self._text = text
        self._stop = stop
        self._run: list[str] = []
        self._run_end = -1
        self._covered = -1  # end of the last identifier: its parts count as terms, not as length
        self.weight: dict[str, float] = {}
        self.names: set[str] = set()
        self.numbers: set[str] = set()
        self.length = 0.0

    def take(self, token: Token) -> None:
        if token.kind == "bigram":
            return  # made from runs of content characters, so that no pair crosses a function character
        if token.kind == "unigram":
            self._character(token)
        else:
            self._word(token)

    def _character(self, token: Token) -> None:
        self.length += CHARACTER_LENGTH
        content = token.term not in zh.FUNCTION
        if not content or token.start != self._run_end:
            self.end_run()
        if content:
            self._run.append(token.term)
            self._run_end = token.end

    def _word(self, token: Token) -> None:
        self.end_run()
        if token.end > self._covered:
            self.length += 1.0
            self._covered = token.end
        if token.term in self._stop:
            return
        self.weight.setdefault(token.term, 1.0)
        if token.kind == "number":
            self.numbers.add(token.term)
        elif self._text[token.start].isupper():
            self.names.add(token.term)

    def end_run(self) -> None:
        for char in self._run:
            self.weight.setdefault(char, UNIGRAM_WEIGHT)
        for left, right in pairwise(self._run):
            self.weight.setdefault(left + right, 1.0)
        self._run = []


def _content(text: str, stop: frozenset[str]) -> Terms:
    found = _Collector(text, stop)
    for token in tokens(text):
        found.take(token)
    found.end_run()
    return Terms(found.weight, frozenset(found.names), frozenset(found.numbers), found.length)


def compose(text: str) -> str:
    """Return `text` in NFKC: the form in which the analyser's offsets count."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def view_query(query: str) -> QueryView:
    """Analyse a query. Phrases of asking are cut; a query of nothing else has no terms."""
    text = compose(query)
    han = _HAN.search(text) is not None
    ask = next((ask for ask, form in (_ASK_ZH if han else _ASK_EN) if form.search(text)), None)
    asked, context = _sentences(text)
    terms = _content(_cut(asked, han=han), _STOP_ASKING)
    if context:
        terms = _with_context(terms, _content(_cut(context, han=han), _STOP_ASKING))
    return QueryView(terms, ask, legible(text))


def _cut(text: str, *, han: bool) -> str:
    return zh.ASKING.sub("\n", text) if han else en.TYPE_WORD.sub(" ", text)


def _sentences(text: str) -> tuple[str, str]:
    """Return (the sentences that ask, the statements around them); all of a text without a question asks."""
    parts = _SENTENCE.findall(text)
    asking = [part for part in parts if part.rstrip(_CLOSING).endswith(("?", "？"))]
    if not asking or len(asking) == len(parts):
        return text, ""
    return "\n".join(asking), "\n".join(part for part in parts if part not in asking)


def _with_context(terms: Terms, context: Terms) -> Terms:
    weight = dict(terms.weight)
    for term, value in context.weight.items():
        weight.setdefault(term, CONTEXT_WEIGHT * value)
    return attrs.evolve(terms, weight=weight, length=terms.length + context.length)


def view_text(raw: str) -> TextView:
    """Analyse a candidate. A speaker's `Name:` in front is taken off and kept apart from what is said."""
    text = compose(raw)
    speaker: frozenset[str] = frozenset()
    match = _SPEAKER.match(text)
    if match and match["name"].casefold() not in _NO_SPEAKER:
        speaker = frozenset(index_terms(match["name"]))
        text = text[match.end() :]
    terms = _content(text, _STOP)
    han = _HAN.search(text) is not None
    return TextView(
        terms,
        frozenset(prefix for prefix in map(word_prefix, terms.weight) if prefix is not None),
        speaker,
        frozenset(_answers(text, terms, han=han)),
        question=bool(zh.QUESTION_END.search(text)) if han else text.rstrip(" \n\"')").endswith("?"),
        first_person=bool((zh if han else en).FIRST_PERSON.search(text)),
        legible=legible(text),
    )


def word_prefix(term: str) -> str | None:
    """Return the letters by which a word is like another; `None` for short words and other scripts."""
    return term[:PREFIX_LETTERS] if len(term) > PREFIX_LETTERS and term.isascii() else None


def _answers(text: str, terms: Terms, *, han: bool) -> Iterable[Ask]:
    for ask, form in _ANSWERS_ZH if han else _ANSWERS_EN:
        if form.search(text):
            yield ask
    if not han and terms.names:
        yield Ask.WHO


def legible(text: str) -> bool:
    """Tell whether at least half of the letters of `text` are of scripts that the model knows: Latin and Han."""
    return text.isascii() or len(_KNOWN.findall(text)) * 2 >= len(_LETTER.findall(text))
