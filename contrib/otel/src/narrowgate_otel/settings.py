"""What an operator can set; no heavy import here."""

from __future__ import annotations

import attrs
from attrs import validators as v


@attrs.frozen(kw_only=True)
class TelemetrySettings:
    """Settings of `otel.telemetry`.

    Attributes:
        spans: make a span of each observation.
        metrics: count observations, their time and what they cost.
        max_labels: the most different values that one label of a metric may have; any further one is `other`, >= 1.
    """

    spans: bool = attrs.field(default=True, validator=v.instance_of(bool))
    metrics: bool = attrs.field(default=True, validator=v.instance_of(bool))
    max_labels: int = attrs.field(default=50, validator=[v.instance_of(int), v.ge(1)])
