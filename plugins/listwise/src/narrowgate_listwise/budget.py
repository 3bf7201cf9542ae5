"""How much of the pool fits into the prompt. Pure functions of text.

The estimate. An ASCII letter or space counts half a token, every other character as many tokens as it has UTF-8 bytes (a
digit or a bracket 1, an accented letter 2, a Chinese character 3, an emoji 4). No tokenizer in use splits a byte, so that
this is an upper bound for all that is not ASCII letters, and prose has far more than two letters to a token. Measured with
five tokenizers (README): pools of English prose have 2.1 to 2.8 times fewer tokens than this says, pools of Chinese prose
2.9 to 4.2 times fewer, and no single text of either has more. Strings of random letters, such as base64, can have up to
1.4 times more, and so can texts of nothing but line breaks.

The rule. Candidates are shown from rank 1 on, each whole. One that would not fit even if it were the only one is passed
over, so that a single endless entry cannot keep every search that finds it from being judged; at the first other one that
does not fit, the list ends. Nothing is ever cut inside a text: half a text may have lost the very words that make it
evidence, and a judgement on it would look like one on the whole.
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
_BREAKS: Final = re.compile("[\x7f-\x9f\u2028\u2029]")
"""What JSON may hold as it stands, and a careful generator escapes, since some readers take it for the end of a line."""


def tokens(text: str) -> int:
    """Return the estimate for `text`, rounded up."""
    return _rounded(_halves(text))


def fitting(query: str, entries: Sequence[Mapping[str, Any]], limit: int, max_tokens: int) -> tuple[int, ...]:
    """Return the places (0, 1, ...) of the entries that can be shown within a budget, in order; see the rule above.

    Args:
        query: the normalised query text.
        entries: what is to be shown of the candidates, in coarse order.
        limit: the most ranks wanted; the prompt names it.
        max_tokens: the budget for the whole prompt.
    """
    alone = 2 * max_tokens - _fixed(query, limit)
    left = alone
    shown: list[int] = []
    for place, entry in enumerate(entries):
        size = _halves(compact(entry))
        if size > alone:
            continue
        left -= size + (2 if shown else 0)  # a comma between two
        if left < 0:
            break
        shown.append(place)
    return tuple(shown)


def prompt_tokens(data: Mapping[str, Any]) -> int:
    """Return the estimate for a whole prompt with `data` in it."""
    return _rounded(_halves(INSTRUCTIONS) + _halves(compact(SCHEMA)) + 2 * FRAME + _halves(compact(data)))


def compact(value: Mapping[str, Any]) -> str:
    """Return the JSON whose length counts: one line without white space, characters as they are wherever that is safe."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _fixed(query: str, limit: int) -> int:
    return 2 * FRAME + sum(map(_halves, (INSTRUCTIONS, compact(SCHEMA), compact(data_of(query, (), limit)))))


def _halves(text: str) -> int:
    """Return the estimate in half tokens, which add up exactly."""
    light = sum(map(len, _LIGHT.findall(text)))
    # Half of a surrogate pair must not fail here: the call that cannot send it says so.
    return 2 * len(text.encode(errors="surrogatepass")) - light


def _rounded(halves: int) -> int:
    return (halves + 1) // 2
