"""Verdicts that are remembered: in this process only, a bounded number of them, and only where one stays true.

A verdict is looked up by everything that it depends on: the policy and its question, the backend's policy (which has its
thresholds and its prompt), the exact model, and digests of query and candidate text. No text is kept.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from narrowgate.decisions import NO_USAGE, DecisionOutcome, DecisionResult
from narrowgate.seams.ports import DecisionBackend

_Key = tuple[str | bytes, ...]
_Told = tuple[DecisionOutcome, float | None, float | None, str | None]

_MOVING: Final = ("latest", "preview", "auto", "default")
"""Last words of model names that mean another model tomorrow; `latest` does in any place."""


def pinned(backend: DecisionBackend) -> str | None:
    """Return the one model that answers for `backend`, or `None` when it may be another tomorrow.

    That is its optional attribute `exact_model`, unless that names a moving alias (`jev-latest`, `vendor/model:latest`,
    `~vendor/model`): what a backend says of itself is looked at, not believed.
    """
    model = getattr(backend, "exact_model", None)
    if not isinstance(model, str) or not model.strip():
        return None
    words = re.split(r"[-_:/@ ]", model.strip().lower())
    moving = words[-1] in _MOVING or "latest" in words or model.lstrip().startswith("~")
    return None if moving else model


class Memory:
    """The last `size` verdicts, least recently used first.

    Args:
        size: how many are kept, >= 1.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._told: OrderedDict[_Key, _Told] = OrderedDict()

    def __len__(self) -> int:
        return len(self._told)

    def about(self, *depends: str, query: str) -> Answers:
        """Return what is remembered about one query.

        Args:
            depends: what else a verdict depends on, in a fixed order.
            query: the query.
        """
        return Answers(self, (*depends, _digest(query)))

    def recall(self, key: _Key) -> _Told | None:
        """Return what is known under `key`, now the most recently used."""
        told = self._told.get(key)
        if told is not None:
            self._told.move_to_end(key)
        return told

    def keep(self, key: _Key, told: _Told) -> None:
        """Remember, and forget what was used least recently when there are too many."""
        self._told[key] = told
        self._told.move_to_end(key)
        if len(self._told) > self._size:
            self._told.popitem(last=False)


class Answers:
    """The verdicts remembered about one query. Made by `Memory.about`."""

    def __init__(self, memory: Memory, begin: _Key) -> None:
        self._memory, self._begin = memory, begin

    def known(self, texts: Sequence[str], policy_id: str) -> dict[str, DecisionResult]:
        """Return the verdict on each of `texts` that is remembered; it costs nothing, and says so."""
        found = {}
        for text in dict.fromkeys(texts):
            told = self._memory.recall((*self._begin, _digest(text)))
            if told is not None:
                outcome, probability, score, reason = told
                found[text] = DecisionResult(outcome, policy_id, NO_USAGE, probability, score, reason)
        return found

    def learn(self, verdicts: Mapping[str, DecisionResult]) -> None:
        """Remember verdicts. Only of answers: a stand-in for an outage never comes here, since it fails the scan."""
        for text, result in verdicts.items():
            told = (result.outcome, result.probability, result.score, result.reason)
            self._memory.keep((*self._begin, _digest(text)), told)


def _digest(text: str) -> bytes:
    # Texts of the core are valid; half of a surrogate pair from elsewhere must not end a search here.
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
