"""Fitting threshold and probabilities to a deployment's own labels; the ranking stays as it was fitted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate.errors import ConfigError, InputError

KIND: Final = "narrowgate.local.evidence.calibration"
FORMAT: Final = 1

MIN_EACH: Final = 5
"""Fewer labels of one kind than this say nothing about a probability."""

MIN_POSITIVES: Final = 15
MIN_NEGATIVES: Final = 15
"""The threshold moves with at least so many of each: with 3 positives among 100 pairs a new threshold is worse than the
shipped one (micro-F1 .24 against .35 on LoCoMo), with 37 it is much better (.64 against .33 on MemDaily)."""


@attrs.frozen
class Calibration:
    """What a deployment's labels say.

    Attributes:
        model: policy id of the scores it was made from; it fits no other.
        keep_at: a score of at least this is YES.
        moved: whether `keep_at` comes from the labels; else it is the threshold that was in use.
        slope: probability = 1 / (1 + exp(-(slope * score + offset))); > 0.
        offset: see `slope`.
        labels: how many there were.
        positives: how many of them were kept.
    """

    model: str
    keep_at: float
    moved: bool
    slope: float
    offset: float
    labels: int
    positives: int

    def probability(self, score: float) -> float:
        """Return the probability of yes, 0..1."""
        return _sigmoid(self.slope * score + self.offset)

    def to_json(self) -> dict[str, Any]:
        """Return the object to be written to a file."""
        return {"kind": KIND, "format": FORMAT, **attrs.asdict(self)}


def recalibrate(labels: Sequence[tuple[float, bool]], *, model: str, keep_at: float) -> Calibration:
    """Fit a two-parameter logistic (Platt 1999, with his smoothed targets) and, with enough labels, the threshold.

    The threshold is the one with the greatest expected F1 over the labelled scores under the fitted probabilities: steadier
    than the best F1 over the labels themselves.

    Args:
        labels: (score, whether it should be kept).
        model: policy id of the scores.
        keep_at: the threshold in use.

    Raises:
        InputError: `too-few-labels`; `labels-contradict` when low scores are kept more often than high ones.
    """
    positives = sum(1 for _, keep in labels if keep)
    negatives = len(labels) - positives
    if positives < MIN_EACH or negatives < MIN_EACH:
        raise InputError(
            "too-few-labels",
            f"{positives} labels to keep and {negatives} to drop: recalibration needs at least {MIN_EACH} of each,"
            f" and {MIN_POSITIVES} of each to move the threshold",
        )
    slope, offset = _platt(labels, positives, negatives)
    if slope <= 0.0:
        raise InputError(
            "labels-contradict",
            f"over these {len(labels)} labels a higher score is kept less often: look whether keep and drop are swapped",
        )
    moved = positives >= MIN_POSITIVES and negatives >= MIN_NEGATIVES
    if moved:
        keep_at = _best_threshold([score for score, _ in labels], slope, offset)
    return Calibration(model, keep_at, moved, slope, offset, len(labels), positives)


def _platt(labels: Iterable[tuple[float, bool]], positives: int, negatives: int) -> tuple[float, float]:
    """Return (slope, offset) by Newton's method with halved steps; the loss is convex in both."""
    high, low = (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0)
    points = [(score, high if keep else low) for score, keep in labels]
    slope, offset = 0.0, math.log((positives + 1.0) / (negatives + 1.0))
    loss = _loss(points, slope, offset)
    for _ in range(100):
        g_slope = g_offset = h_slope = h_mixed = h_offset = 0.0
        for score, target in points:
            p = _sigmoid(slope * score + offset)
            w = p * (1.0 - p) + 1e-12
            g_slope += (p - target) * score
            g_offset += p - target
            h_slope += w * score * score
            h_mixed += w * score
            h_offset += w
        h_slope += 1e-9
        determinant = h_slope * h_offset - h_mixed * h_mixed
        step_slope = (h_offset * g_slope - h_mixed * g_offset) / determinant
        step_offset = (h_slope * g_offset - h_mixed * g_slope) / determinant
        size = 1.0
        while size > 1e-6:
            tried = _loss(points, slope - size * step_slope, offset - size * step_offset)
            if tried <= loss:
                break
            size /= 2.0
        else:
            break
        slope, offset = slope - size * step_slope, offset - size * step_offset
        if loss - tried < 1e-12 * max(1.0, loss):
            break
        loss = tried
    return slope, offset


def _loss(points: Iterable[tuple[float, float]], slope: float, offset: float) -> float:
    total = 0.0
    for score, target in points:
        z = slope * score + offset
        total += max(z, 0.0) + math.log1p(math.exp(-abs(z))) - target * z
    return total


def _best_threshold(scores: Iterable[float], slope: float, offset: float) -> float:
    ordered = sorted(scores, reverse=True)
    likely = [_sigmoid(slope * score + offset) for score in ordered]
    expected = sum(likely)
    kept = 0.0
    best, place = -1.0, 0
    for count, p in enumerate(likely, 1):
        kept += p
        f1 = 2.0 * kept / (count + expected)
        if f1 > best:
            best, place = f1, count - 1
    below = ordered[place + 1] if place + 1 < len(ordered) else ordered[place]
    return (ordered[place] + below) / 2.0


def _sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0.0 else math.exp(z) / (1.0 + math.exp(z))


def read_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises:
        ConfigError: there is none, or it is not one.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"calibration file {path}: {error.strerror or type(error).__name__}") from error
    except ValueError as error:
        raise ConfigError(f"calibration file {path} is no JSON: write it again with --recalibrate") from error
    if not isinstance(data, Mapping) or data.get("kind") != KIND or data.get("format") != FORMAT:
        raise ConfigError(f"{path} is no calibration of local.evidence (format {FORMAT}): write it with --recalibrate")
    try:
        found = Calibration(
            model=str(data["model"]),
            keep_at=float(data["keep_at"]),
            moved=bool(data["moved"]),
            slope=float(data["slope"]),
            offset=float(data["offset"]),
            labels=int(data["labels"]),
            positives=int(data["positives"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"calibration file {path} is damaged: write it again with --recalibrate") from error
    if not all(map(math.isfinite, (found.keep_at, found.slope, found.offset))) or found.slope <= 0.0:
        raise ConfigError(f"calibration file {path} is damaged: write it again with --recalibrate")
    return found
