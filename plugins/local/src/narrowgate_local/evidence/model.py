"""The fitted numbers: read from `data/evidence.json`, which says where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import attrs

from narrowgate_local.evidence import features

PLAIN: Final = "plain"
"""The variant without an embedder."""


@attrs.frozen
class Coefficient:
    """One feature's part: `coefficient * clip((value - mean) / sd, -clip, clip)`."""

    mean: float
    sd: float
    coefficient: float


@attrs.frozen
class Variant:
    """One set of coefficients.

    Attributes:
        name: `plain`, or the id of the embedding model whose cosine it uses.
        profile: the embedding profile (`id/version/dimension`) it was fitted with; `None` for `plain`.
        fitted: by feature.
        hand: coefficients set by hand, of features that are not standardised.
        intercept: the mean of the training sets' own intercepts.
        clip: how many standard deviations a feature may count.
        keep_at: a score of at least this is YES.
        drop_below: a score less than this is NO; between the two the model cannot tell. At most `keep_at`.
    """

    name: str
    profile: str | None
    fitted: Mapping[str, Coefficient]
    hand: Mapping[str, float]
    intercept: float
    clip: float
    keep_at: float
    drop_below: float

    def score(self, values: Mapping[str, float]) -> float:
        """Return the score of a pair: higher is more likely evidence. Not a probability: base rates differ."""
        total = self.intercept
        for name, part in self.fitted.items():
            deviation = (values[name] - part.mean) / part.sd
            total += part.coefficient * min(self.clip, max(-self.clip, deviation))
        return total + sum(coefficient * values[name] for name, coefficient in self.hand.items())


@attrs.frozen
class EvidenceModel:
    """All variants.

    Attributes:
        version: of the fit; part of the policy id.
        variants: by name.
    """

    version: str
    variants: Mapping[str, Variant]

    def variant_for(self, profile: str | None) -> Variant:
        """Return the variant for an embedding profile: `plain` for none, and for one that nothing was fitted with."""
        for variant in self.variants.values():
            if variant.profile is not None and variant.profile == profile:
                return variant
        return self.variants[PLAIN]


def parse(data: Mapping[str, Any]) -> EvidenceModel:
    """Read a model as `scripts/fit_evidence.py` writes it.

    Raises:
        ValueError: its features are not those of the code.
    """
    variants = {}
    for name, raw in data["variants"].items():
        fitted = {feature: Coefficient(**numbers) for feature, numbers in raw["features"].items()}
        wanted = features.FITTED if raw["profile"] is None else (*features.FITTED, features.EMBEDDING)
        if tuple(fitted) != wanted or tuple(data["hand"]) != features.HAND:
            raise ValueError(f"evidence model, variant {name}: its features are not those of the code: fit it again")
        variants[name] = Variant(
            name,
            raw["profile"],
            fitted,
            data["hand"],
            raw["intercept"],
            data["clip"],
            raw["keep_at"],
            raw["drop_below"],
        )
    return EvidenceModel(data["version"], variants)


@cache
def shipped() -> EvidenceModel:
    """Return the model in this package."""
    return parse(json.loads((files("narrowgate_local") / "data" / "evidence.json").read_text(encoding="utf-8")))


def scoring_id(version: str, variant: str) -> str:
    """Return the id of the scores: what a calibration belongs to, and the stem of the policy id."""
    return f"local.evidence.v{version}+{variant}"
