"""Where the outcomes change, from settings, calibration file and what is shipped. Reads files, imports nothing heavy."""

from __future__ import annotations

from hashlib import sha256

import attrs

from narrowgate.errors import ConfigError, InputError
from narrowgate.values.decision import DecisionOutcome
from narrowgate_local.evidence.calibration import Calibration, read_calibration
from narrowgate_local.evidence.model import EvidenceModel, Variant, scoring_id
from narrowgate_local.settings import EvidenceSettings


@attrs.frozen
class Thresholds:
    """Where the outcomes change.

    Attributes:
        keep_at: a score of at least this is YES.
        drop_below: a score below this is NO; between the two the answer is ABSTAIN. At most `keep_at`.
        calibration: gives probabilities; `None` for none.
    """

    keep_at: float
    drop_below: float
    calibration: Calibration | None = None

    def outcome(self, score: float) -> DecisionOutcome:
        """Return the outcome of a score."""
        if score >= self.keep_at:
            return DecisionOutcome.YES
        return DecisionOutcome.NO if score < self.drop_below else DecisionOutcome.ABSTAIN


def thresholds(settings: EvidenceSettings, model: EvidenceModel, variant: Variant) -> Thresholds:
    """Return where the outcomes change: settings before calibration before what is shipped.

    Raises:
        ConfigError: the calibration file cannot be read, or belongs to other scores.
        InputError: `wrong-setting`: `drop_below` is above `keep_at`.
    """
    calibration: Calibration | None = None
    keep_at = variant.keep_at
    if settings.calibration is not None:
        calibration = read_calibration(settings.calibration)
        wanted = scoring_id(model.version, variant.name)
        if calibration.model != wanted:
            raise ConfigError(
                f"calibration file {settings.calibration} belongs to {calibration.model}, but the scores here are"
                f" {wanted}: write it again with --recalibrate"
            )
        keep_at = calibration.keep_at
    if settings.keep_at is not None:
        keep_at = settings.keep_at
    drop_below = min(keep_at, variant.drop_below) if settings.drop_below is None else settings.drop_below
    if drop_below > keep_at:
        raise InputError("wrong-setting", f"local.evidence: drop_below {drop_below} is above keep_at {keep_at}: lower it")
    return Thresholds(keep_at, drop_below, calibration)


def policy_id(model: EvidenceModel, variant: Variant, limits: Thresholds) -> str:
    """Return `local.evidence.v<version>+<variant>`, with `#<digest>` when the thresholds are not the shipped ones."""
    base = scoring_id(model.version, variant.name)
    if limits == Thresholds(variant.keep_at, variant.drop_below):
        return base
    return f"{base}#{sha256(repr(limits).encode()).hexdigest()[:8]}"
