"""Which questions a one-by-one scan is certain to ask next. No input or output: this is the whole reasoning behind waves.

The scan goes down the coarse pool, asks about each text that it has not seen yet, and stops when `limit` candidates are
kept. It is certain to reach a place when, even if every open question before that place is answered by a keep, fewer than
`limit` candidates are kept there. Those answers are possible, so that no other place is certain: a wave of exactly these
questions is the largest that asks nothing in vain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from narrowgate.decisions import DecisionOutcome, DecisionResult


@attrs.define
class Scan:
    """How far a scan has come.

    Attributes:
        texts: the candidates' texts in coarse order.
        limit: candidates to keep, 1 .. len(texts).
        keep: the outcomes that keep.
        known: the verdict on each text asked about so far; a text that comes again is not asked again.
        reached: how many places the scan has passed; place i is `texts[i - 1]`.
        kept: the places kept so far, rising.
    """

    texts: Sequence[str]
    limit: int
    keep: frozenset[DecisionOutcome]
    known: dict[str, DecisionResult] = attrs.field(factory=dict)
    reached: int = 0
    kept: list[int] = attrs.field(factory=list)

    def wave(self) -> tuple[str, ...]:
        """Return the texts that are certain to be asked about next, distinct, in coarse order; none when it is over."""
        possible = len(self.kept)
        asked: dict[str, None] = {}
        for text in self.texts[self.reached :]:
            if possible == self.limit:
                break
            verdict = self.known.get(text)
            if verdict is None:
                asked[text] = None
            # A text known to be dropped takes no place, so the wave looks one further.
            possible += verdict is None or verdict.outcome in self.keep
        return tuple(asked)

    def learn(self, verdicts: Mapping[str, DecisionResult]) -> None:
        """Take the answers to a wave and go on as far as they lead."""
        self.known.update(verdicts)
        while len(self.kept) < self.limit and self.reached < len(self.texts):
            verdict = self.known.get(self.texts[self.reached])
            if verdict is None:
                return
            self.reached += 1
            if verdict.outcome in self.keep:
                self.kept.append(self.reached)
