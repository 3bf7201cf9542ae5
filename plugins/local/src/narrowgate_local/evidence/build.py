"""From settings to the running evidence backend."""

from __future__ import annotations

from narrowgate.seams.ports import Embedder, StatisticsSource
from narrowgate_local.evidence.backend import EvidenceBackend
from narrowgate_local.evidence.limits import policy_id, thresholds
from narrowgate_local.evidence.model import shipped
from narrowgate_local.settings import EvidenceSettings


def make(
    settings: EvidenceSettings, *, statistics: StatisticsSource | None = None, embedder: Embedder | None = None
) -> EvidenceBackend:
    """Return the backend.

    Raises:
        ConfigError: the calibration file cannot be read, or belongs to other scores.
        InputError: `wrong-setting`: `drop_below` is above `keep_at`.
    """
    model = shipped()
    used = embedder if settings.use_embedder else None
    variant = model.variant_for(None if used is None else str(used.profile))
    limits = thresholds(settings, model, variant)
    return EvidenceBackend(
        model,
        policy_id=policy_id(model, variant, limits),
        thresholds=limits,
        statistics=statistics,
        embedder=used,
        text_cache=settings.text_cache,
    )
