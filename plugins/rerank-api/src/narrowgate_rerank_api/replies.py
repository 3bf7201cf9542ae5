"""Reading an answer: a partial multiset of (index, score), or a named reason why it is none. No input or output.

The answers of the whole family are read by one rule, whatever was asked. The list is the body itself or lies at `results`,
`data`, `rankings` or `output.results`; a score is called `relevance_score`, `score` or `logit`. Texts that come back are not
looked at: an index is the only link between a score and a text. One flaw refuses the whole answer, since a server that
names a place which does not exist may have meant another by the places that do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

_PLACES: Final = ("results", "data", "rankings")
_SCORES: Final = ("relevance_score", "score", "logit")
_SLACK: Final = 1e-6
"""Servers that compute in half precision overshoot a range by that much."""

REASONS: Final[Mapping[str, str]] = {
    "error-object": "an error in the place of results",
    "no-list": "no list of results",
    "no-results": "an empty list of results for documents that were sent",
    "item-shape": "a result that is no object",
    "index-missing": "a result without an index",
    "index-type": "an index that is no integer",
    "index-range": "an index outside the documents that were sent",
    "index-repeated": "an index that occurs twice",
    "score-missing": "a result without a score",
    "score-null": "a score that is null, which is how some servers send NaN",
    "score-type": "a score that is no number",
    "score-size": "a score beyond the range of floats",
    "score-range": "a score outside the range that score_range declares",
}
"""Reason -> what an answer had. NaN and Infinity as words never get here: the client refuses them as no JSON."""

_CODES: Final = {"error-object": "provider-error", "score-size": "non-finite"}


class ReplyError(Exception):
    """An answer that is refused.

    Attributes:
        reason: a key of `REASONS`.
        code: the failure code it counts as (see `narrowgate_http.CURES`).
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"answered with {REASONS[reason]} ({reason})")
        self.reason, self.code = reason, _CODES.get(reason, "wrong-shape")


def scores_in(answer: Any, documents: int, score_range: tuple[float, float] | None = None) -> dict[int, float]:
    """Return the scores that an answer names: index -> score, finite. Documents that are not named are not in it.

    Args:
        answer: the decoded JSON.
        documents: how many documents were sent, >= 1.
        score_range: lowest and highest possible score; `None` when nothing was declared.

    Raises:
        ReplyError: anything in it is not what it must be.
    """
    found: dict[int, float] = {}
    for item in _results(answer):
        if not isinstance(item, Mapping):
            raise ReplyError("item-shape")
        index = _index(item, documents)
        if index in found:
            raise ReplyError("index-repeated")
        found[index] = _score(item, score_range)
    if not found:
        raise ReplyError("no-results")
    return found


def _results(answer: Any) -> Sequence[Any]:
    if isinstance(answer, list):
        return answer
    if not isinstance(answer, Mapping):
        raise ReplyError("no-list")
    if answer.get("error"):
        raise ReplyError("error-object")
    output = answer.get("output")
    nested = output.get("results") if isinstance(output, Mapping) else None
    for value in (*(answer.get(place) for place in _PLACES), nested):
        if isinstance(value, list):
            return value
    # Some say so without the word, as {"code": ..., "message": ..., "data": null}.
    raise ReplyError("error-object" if any(answer.get(word) for word in ("message", "detail", "code")) else "no-list")


def _index(item: Mapping[str, Any], documents: int) -> int:
    if "index" not in item:
        raise ReplyError("index-missing")
    index = item["index"]
    # `true` is an int to Python, and 1.0 and "1" are guesses.
    if type(index) is not int:
        raise ReplyError("index-type")
    if not 0 <= index < documents:
        raise ReplyError("index-range")
    return index


def _score(item: Mapping[str, Any], score_range: tuple[float, float] | None) -> float:
    name = next((name for name in _SCORES if name in item), None)
    if name is None:
        raise ReplyError("score-missing")
    value = item[name]
    if value is None:
        raise ReplyError("score-null")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReplyError("score-type")
    try:
        score = float(value)
    except OverflowError:
        raise ReplyError("score-size") from None
    if not math.isfinite(score):
        raise ReplyError("score-size")
    if score_range is not None and not score_range[0] - _SLACK <= score <= score_range[1] + _SLACK:
        raise ReplyError("score-range")
    return score


def tokens_in(answer: Any, headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the tokens read and written that an answer reports; `None` for what it does not say, or says wrongly.

    Looked for at `usage`, `meta.tokens`, `meta.usage`, `tokens`, the top of the body, and in Text-Embeddings-Inference's
    header `x-compute-tokens`. Where a total is given, what was not read was written.
    """
    if isinstance(answer, Mapping):
        meta = answer.get("meta")
        nested = (meta.get("tokens"), meta.get("usage")) if isinstance(meta, Mapping) else ()
        for table in (answer.get("usage"), *nested, answer.get("tokens"), answer):
            if isinstance(table, Mapping):
                found = _tokens(table)
                if found != (None, None):
                    return found
    header = headers.get("x-compute-tokens", "")
    # A cross-encoder, which is all that this server runs here, writes nothing.
    return (int(header), 0) if header.isascii() and header.isdigit() and len(header) < 16 else (None, None)


def _tokens(table: Mapping[str, Any]) -> tuple[int | None, int | None]:
    total = _count(table.get("total_tokens"))
    read = _first(table, "input_tokens", "prompt_tokens")
    written = _first(table, "output_tokens", "completion_tokens")
    if read is None and written is None and total is not None:
        return total, 0
    if written is None and read is not None and total is not None and total >= read:
        written = total - read
    return read, written


def _first(table: Mapping[str, Any], *names: str) -> int | None:
    return next((count for name in names if (count := _count(table.get(name))) is not None), None)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
