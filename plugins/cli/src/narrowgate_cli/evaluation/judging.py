"""How good keep/drop verdicts are: AUC, average precision, micro-F1, calibration error, empty answers. Pure.

A pair is one query with one candidate; `labels` says for each pair whether the candidate is to be kept, `values` what the
backend made of it, higher meaning more likely kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import attrs

BINS: Final = 10
"""Number of equally wide bins of the calibration error."""


@attrs.frozen
class JudgedPair:
    """One candidate with its label and the verdict on it.

    Attributes:
        keep: the label.
        yes: the backend said yes.
        kept: the verdict is one that the second stage keeps.
        probability: the backend's probability of yes, 0..1, where it has one.
        score: its uncalibrated score, where it has one.
        rank: how far the verdict itself speaks for keeping: 0 for no, 1 for abstain, 2 for yes.
    """

    keep: bool
    yes: bool
    kept: bool
    probability: float | None
    score: float | None
    rank: int


@attrs.frozen
class JudgedQuery:
    """All candidates of one query.

    Attributes:
        answerable: `True` and `False` as the labels have it; `None` for an answerable question whose evidence is not among
            the candidates: it says nothing about empty answers.
        pairs: at least one.
    """

    answerable: bool | None
    pairs: tuple[JudgedPair, ...]


def ordering(pairs: Sequence[JudgedPair]) -> tuple[list[float], int]:
    """Return a number for each pair to order by, and how many pairs had none of their own.

    The probability where every numbered pair has one, else the score. A pair without a number (an abstention, mostly) goes
    below all others, as one tie: nothing was found that speaks for it. When no pair has a number the verdict itself orders.
    """
    numbers = [pair.probability for pair in pairs]
    if all(number is None for number in numbers) or any(
        pair.probability is None and pair.score is not None for pair in pairs
    ):
        numbers = [pair.score for pair in pairs]
    known = [number for number in numbers if number is not None]
    if not known:
        return [float(pair.rank) for pair in pairs], len(pairs)
    low = min(known) - 1.0
    return [low if number is None else number for number in numbers], len(pairs) - len(known)


def _ties(labels: Sequence[bool], values: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Yield (kept, dropped) counts for each distinct value, highest first."""
    ordered = sorted(zip(values, labels, strict=True), key=lambda pair: -pair[0])
    for _, group in groupby(ordered, key=lambda pair: pair[0]):
        members = [label for _, label in group]
        yield sum(members), len(members) - sum(members)


def auc(labels: Sequence[bool], values: Sequence[float]) -> float | None:
    """Return the chance that a random kept pair stands above a random dropped one, ties counting half, 0..1.

    `None` when there are no kept or no dropped pairs.
    """
    kept, dropped = sum(labels), len(labels) - sum(labels)
    if not kept or not dropped:
        return None
    wins, below = 0.0, dropped
    for positive, negative in _ties(labels, values):
        below -= negative
        wins += positive * (below + negative / 2)
    return wins / (kept * dropped)


def average_precision(labels: Sequence[bool], values: Sequence[float]) -> float | None:
    """Return the sum over distinct values of precision times the recall gained there, 0..1; `None` without kept pairs."""
    total = sum(labels)
    if not total:
        return None
    seen, found, area = 0, 0, 0.0
    for positive, negative in _ties(labels, values):
        seen += positive + negative
        found += positive
        area += positive / total * (found / seen)
    return area


def micro_f1(labels: Sequence[bool], predicted: Sequence[bool]) -> float | None:
    """Return F1 over all pairs together, 0..1: 2 TP / (2 TP + FP + FN); `None` where nothing is or was to be kept."""
    right = sum(label and guess for label, guess in zip(labels, predicted, strict=True))
    total = sum(labels) + sum(predicted)
    return 2 * right / total if total else None


def calibration_error(labels: Sequence[bool], probabilities: Sequence[float]) -> float | None:
    """Return the expected calibration error, 0..1; `None` of no pairs.

    Equally wide bins of the probability; in each the distance between its mean and the share kept, weighted by the number
    of pairs in it (Naeini et al. 2015).
    """
    if not labels:
        return None
    bins: list[list[tuple[bool, float]]] = [[] for _ in range(BINS)]
    for label, probability in zip(labels, probabilities, strict=True):
        bins[min(int(probability * BINS), BINS - 1)].append((label, probability))
    gaps = (abs(math.fsum(p for _, p in members) - sum(label for label, _ in members)) for members in bins)
    return math.fsum(gaps) / len(labels)


def share(flags: Iterable[bool]) -> float | None:
    """Return the share of true ones, 0..1; `None` of none at all."""
    values = list(flags)
    return sum(values) / len(values) if values else None


@attrs.frozen
class Judgement:
    """The figures over a set of judged queries; `None` wherever a figure is not defined.

    Attributes:
        queries: how many.
        pairs: how many.
        positives: how many of the pairs are to be kept.
        unscored: how many pairs came without probability and score.
        auc: see `auc`; over all pairs together.
        average_precision: see `average_precision`.
        micro_f1: with yes as "keep": the backend at its own threshold.
        micro_f1_kept: with the second stage's set of keeping outcomes.
        calibration_error: over the pairs that have a probability; `None` without any.
        nothing_kept_unanswerable: share of the unanswerable queries without a yes.
        nothing_kept_answerable: share of the queries with evidence among the candidates without a yes.
        nothing_kept_unanswerable_by_stage: the same by the second stage's set of keeping outcomes.
        nothing_kept_answerable_by_stage: likewise.
    """

    queries: int
    pairs: int
    positives: int
    unscored: int
    auc: float | None
    average_precision: float | None
    micro_f1: float | None
    micro_f1_kept: float | None
    calibration_error: float | None
    nothing_kept_unanswerable: float | None
    nothing_kept_answerable: float | None
    nothing_kept_unanswerable_by_stage: float | None
    nothing_kept_answerable_by_stage: float | None


def judge(queries: Sequence[JudgedQuery]) -> Judgement:
    """Return all figures over `queries`."""
    pairs = [pair for query in queries for pair in query.pairs]
    labels = [pair.keep for pair in pairs]
    values, unscored = ordering(pairs)
    calibrated = [(pair.keep, pair.probability) for pair in pairs if pair.probability is not None]

    def empty(answerable: bool, *, by_stage: bool) -> float | None:
        return share(
            not any(pair.kept if by_stage else pair.yes for pair in query.pairs)
            for query in queries
            if query.answerable is answerable
        )

    return Judgement(
        queries=len(queries),
        pairs=len(pairs),
        positives=sum(labels),
        unscored=unscored,
        auc=auc(labels, values),
        average_precision=average_precision(labels, values),
        micro_f1=micro_f1(labels, [pair.yes for pair in pairs]),
        micro_f1_kept=micro_f1(labels, [pair.kept for pair in pairs]),
        calibration_error=calibration_error([keep for keep, _ in calibrated], [p for _, p in calibrated]),
        nothing_kept_unanswerable=empty(answerable=False, by_stage=False),
        nothing_kept_answerable=empty(answerable=True, by_stage=False),
        nothing_kept_unanswerable_by_stage=empty(answerable=False, by_stage=True),
        nothing_kept_answerable_by_stage=empty(answerable=True, by_stage=True),
    )
