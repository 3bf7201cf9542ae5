"""How much of the pool fits into the prompt. Pure functions of text.

The estimate. An ASCII letter or space counts half a token, every other character as many tokens as it has UTF-8 bytes (a
digit or a bracket 1, an accented letter 2, a Chinese character 3, an emoji 4). No tokenizer in use splits a byte, so that
this is an upper bound for all that is not ASCII letters, and prose has far more than two letters to a token. Measured with
four tokenizers on English and Chinese prose (README), it is about twice the true count, and at no text below it. Only
strings of random letters, such as base64, and texts of nothing but line breaks have more tokens than this says.

The rule. Candidates are shown from rank 1 on, each whole, until the next one does not fit. Nothing is ever cut inside a
text: half a text may have lost the very words that make it evidence, and a judgement on it would look like one on the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from narrowgate_listwise.prompt import INSTRUCTIONS, SCHEMA, data_of

FRAME: Final = 256
"""Tokens granted to what generator and server put around it: rules of their own, roles, separators."""

_LIGHT: Final = re.compile("[A-Za-z ]+")


def tokens(text: str) -> int:
    """Return the estimate for `text`, rounded up."""
    return _rounded(_halves(text))


def fitting(query: str, entries: Sequence[Mapping[str, Any]], limit: int, max_tokens: int) -> int:
    """Return how many of the first `entries` can be shown within a budget, 0 .. len(entries).

    Args:
        query: the normalised query text.
        entries: what is to be shown of the candidates, in coarse order.
        limit: the most ranks wanted; the prompt names it.
        max_tokens: the budget for the whole prompt.
    """
    room = 2 * max_tokens - _fixed(query, limit)
    for count, entry in enumerate(entries):
        room -= _halves(compact(entry)) + (2 if count else 0)  # a comma between two
        if room < 0:
            return count
    return len(entries)


def prompt_tokens(data: Mapping[str, Any]) -> int:
    """Return the estimate for a whole prompt with `data` in it."""
    return _rounded(_halves(INSTRUCTIONS) + _halves(compact(SCHEMA)) + 2 * FRAME + _halves(compact(data)))


def compact(value: Mapping[str, Any]) -> str:
    """Return the JSON whose length counts: no white space, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fixed(query: str, limit: int) -> int:
    return 2 * FRAME + sum(map(_halves, (INSTRUCTIONS, compact(SCHEMA), compact(data_of(query, (), limit)))))


def _halves(text: str) -> int:
    """Return the estimate in half tokens, which add up exactly."""
    light = sum(map(len, _LIGHT.findall(text)))
    # Half of a surrogate pair must not fail here: the call that cannot send it says so.
    return 2 * len(text.encode(errors="surrogatepass")) - light


def _rounded(halves: int) -> int:
    return (halves + 1) // 2
