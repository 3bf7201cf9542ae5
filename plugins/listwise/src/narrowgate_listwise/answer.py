"""What a model's answer becomes: strict in its form, patient with its ranks."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import attrs


class InvalidAnswerError(ValueError):
    """An answer that is not of the schema; the message names the flaw and repeats nothing of the answer."""


@attrs.frozen
class Selection:
    """The usable part of an answer.

    Attributes:
        ranks: distinct ranks of candidates that were shown, in the model's order, at most the limit.
        discarded: how many ranks were passed over as repeated or out of range before the limit was reached.
    """

    ranks: tuple[int, ...]
    discarded: int


def ranks_of(value: Any) -> list[int]:
    """Return the integers of an answer, as they came.

    A number is taken for a rank only where it is one: `true`, `2.0` and `"2"` are slips of a model or server that did not
    keep to the schema, and guessing what was meant would invent a selection.

    Raises:
        InvalidAnswerError: no object with the one key `selected_ranks`, or that is no list of integers.
    """
    if not isinstance(value, dict) or value.keys() != {"selected_ranks"}:
        raise InvalidAnswerError("it is no object with the one key selected_ranks")
    ranks = value["selected_ranks"]
    if not isinstance(ranks, list):
        raise InvalidAnswerError("its selected_ranks is no list")
    if any(type(rank) is not int for rank in ranks):
        raise InvalidAnswerError("its selected_ranks holds something else than integers")
    return ranks


def normalised(ranks: Iterable[int], shown: Container[int], limit: int) -> Selection:
    """Return the first `limit` ranks that name something, each once.

    Args:
        ranks: the model's integers.
        shown: the ranks of the candidates it was shown; any other names nothing, whatever the pool holds in that place.
        limit: the most ranks wanted, >= 1. What follows once they are found is neither used nor counted.
    """
    kept: dict[int, None] = {}
    discarded = 0
    for rank in ranks:
        if len(kept) == limit:
            break
        if rank in shown and rank not in kept:
            kept[rank] = None
        else:
            discarded += 1
    return Selection(tuple(kept), discarded)
