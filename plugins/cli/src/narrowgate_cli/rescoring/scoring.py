"""The arithmetic: every threshold at once by sorting, exactly as a gate would decide row by row (`Thresholds.outcome`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import Thresholds
from narrowgate_cli.rescoring.stored import Stored

ABSTAIN: Final = 0
YES: Final = 1
NO: Final = 2
NONE: Final = 3
"""Codes of a backend's word; NONE where there is no word."""

WORDS: Final = (DecisionOutcome.ABSTAIN, DecisionOutcome.YES, DecisionOutcome.NO)
"""Code -> outcome."""

AGAINST: Final = (GateVerdict.DENY, GateVerdict.REVIEW)


@attrs.frozen
class Answers:
    """What backends said.

    Attributes:
        said: int8, their own word: ABSTAIN, YES, NO or NONE.
        number: float64, the probability, else the score, else NaN.
    """

    said: Any
    number: Any

    @classmethod
    def of(cls, stored: Stored) -> Answers:
        """Return the answers of stored observations."""
        column = stored.coded("backend_outcome")
        table = np.full(len(column.values) + 1, NONE, dtype=np.int8)
        for place, value in enumerate(column.values):
            table[place] = WORDS.index(DecisionOutcome(value))
        probability = stored.real("probability")
        lacking = np.isnan(probability)
        number = np.where(lacking, stored.real("score"), probability) if lacking.any() else probability
        return cls(table[column.codes], number)

    def where(self, mask: Any) -> Answers:
        """Return those of a mask."""
        return Answers(self.said[mask], self.number[mask])

    def outcomes(self, thresholds: Thresholds) -> Any:
        """Return for each the code of what it counts as; see `Thresholds.outcome`."""
        found = self.said.copy()
        judged = ((self.said == YES) | (self.said == NO)) & ~np.isnan(self.number)
        yes = judged & (self.number >= thresholds.yes_at) if thresholds.yes_at is not None else np.zeros_like(judged)
        no = judged & ~yes & (self.number <= thresholds.no_at) if thresholds.no_at is not None else np.zeros_like(judged)
        between = judged & ~yes & ~no
        if thresholds.yes_at is not None:
            found[between & (self.said == YES)] = ABSTAIN
        if thresholds.no_at is not None:
            found[between & (self.said == NO)] = ABSTAIN
        found[yes], found[no] = YES, NO
        return found


def acting_side(mapping: Mapping[DecisionOutcome, GateVerdict]) -> DecisionOutcome | None:
    """Return the answer whose threshold is worth moving: the one that denies, else the one that asks for review."""
    for verdict in AGAINST:
        for outcome in (DecisionOutcome.NO, DecisionOutcome.YES):
            if mapping[outcome] is verdict:
                return outcome
    return None


class Sweep:
    """How many answers are on the acting side, on the other side, and neither, at any threshold of the acting side.

    One sort of the numbers; where the other side has no threshold of its own, its own words are sorted too.

    Args:
        answers: the answers.
        side: `NO`, whose threshold is `no_at`, or `YES`, whose threshold is `yes_at`.
        other: the threshold of the other side; `None` where that takes the backend's own word.
    """

    def __init__(self, answers: Answers, side: DecisionOutcome, other: float | None) -> None:
        self.side, self.other = side, other
        own, opposite = (NO, YES) if side is DecisionOutcome.NO else (YES, NO)
        said, number = answers.said, answers.number
        bare = np.isnan(number)
        mine, theirs = said == own, said == opposite
        plain = bool(bare.any())
        self._bare_mine = int((mine & bare).sum()) if plain else 0
        self._bare_theirs = int((theirs & bare).sum()) if plain else 0
        if plain:
            mine, theirs = mine & ~bare, theirs & ~bare
        self._theirs = np.sort(number[theirs]) if other is None else None
        if self._theirs is None:
            self.ordered = np.sort(number[mine | theirs])
        else:
            # Two sorted runs: the stable sort merges them, instead of sorting half of the numbers twice.
            self.ordered = np.sort(np.concatenate([np.sort(number[mine]), self._theirs]), kind="stable")

    @property
    def decided(self) -> int:
        """How many answers a threshold may decide: all but the backend's own abstentions."""
        return len(self.ordered) + self._bare_mine + self._bare_theirs

    def acting(self, thresholds: Any) -> Any:
        """Return how many answers are on the acting side at each threshold."""
        if self.side is DecisionOutcome.NO:
            return np.searchsorted(self.ordered, thresholds, "right") + self._bare_mine
        return len(self.ordered) - np.searchsorted(self.ordered, thresholds, "left") + self._bare_mine

    def opposite(self, thresholds: Any) -> Any:
        """Return how many are on the other side at each threshold."""
        if self._theirs is not None:
            if self.side is DecisionOutcome.NO:
                left = len(self._theirs) - np.searchsorted(self._theirs, thresholds, "right")
            else:
                left = np.searchsorted(self._theirs, thresholds, "left")
            return left + self._bare_theirs
        bound = np.float64(np.nan if self.other is None else self.other)
        if self.side is DecisionOutcome.NO:
            fixed = len(self.ordered) - int(np.searchsorted(self.ordered, bound, "left"))
        else:
            fixed = int(np.searchsorted(self.ordered, bound, "right"))
        return np.full(np.shape(thresholds), fixed + self._bare_theirs)

    def thresholds(self) -> tuple[Any, Any]:
        """Return every threshold at which anything changes, rising, and how many act at each: all there is to choose."""
        if not len(self.ordered):
            return self.ordered, np.empty(0, dtype=np.int64)
        ends = np.flatnonzero(np.append(self.ordered[1:] != self.ordered[:-1], True))
        values = self.ordered[ends]
        upto = ends + 1  # how many numbers are not above each
        counts = upto if self.side is DecisionOutcome.NO else len(self.ordered) - np.append(0, upto[:-1])
        if self.other is not None:
            allowed = values < self.other if self.side is DecisionOutcome.NO else values > self.other
            values, counts = values[allowed], counts[allowed]
        return values, counts + self._bare_mine
