"""`otel.telemetry`: a span and some counts for each observation, through the OpenTelemetry API. Never content.

It speaks to whatever providers the application has set up, and sets up none: without any, the API does nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import anyio.to_thread
from opentelemetry import metrics, trace
from opentelemetry.util.types import AttributeValue

from narrowgate.values.columns import LABELS, record_of
from narrowgate.values.observation import DecisionObservation
from narrowgate_otel.settings import TelemetrySettings

NAME: Final = "narrowgate"
SPAN: Final = "narrowgate.decision"

OTHER: Final = "other"
"""Stands for all values of a label beyond the most that it may have."""

METRIC_LABELS: Final = (
    "consumer",
    "policy_id",
    "policy_version",
    "mode",
    "attempt",
    "coverage",
    "verdict",
    "final_action",
    "fallback_reason",
    "privacy_outcome",
    "provider_id",
    "language",
)
"""Labels of the counter: each has few values, and never an id of a memory, an operation or an observation."""

_TIME_LABELS: Final = ("consumer", "policy_id", "mode", "attempt", "provider_id")
_SPAN_COLUMNS: Final = (
    *LABELS,
    "observation_id",
    "operation_id",
    "scope_id",
    "probability",
    "score",
    "confidence",
    "yes_at",
    "no_at",
    "used_fallback",
    "calls",
    "requests",
    "input_tokens",
    "output_tokens",
)


class Bounded:
    """Lets through so many different values of each label.

    Args:
        most: the most values of one label.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: dict[str, set[str]] = {}

    def __call__(self, name: str, value: str) -> str:
        """Return the value, or `other` where the label has had too many."""
        seen = self._seen.setdefault(name, set())
        if value not in seen:
            if len(seen) >= self._most:
                return OTHER
            seen.add(value)
        return value


class Telemetry:
    """Hands observations to the application's tracer and meter.

    Args:
        settings: what to make.
        tracer_provider, meter_provider: `None` for the application's global ones.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._settings = settings
        self._providers = [tracer_provider or trace.get_tracer_provider(), meter_provider or metrics.get_meter_provider()]
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self._attempts = meter.create_counter("narrowgate.decisions", "{attempt}", "Attempts of gates to decide.")
        self._time = meter.create_histogram("narrowgate.decision.duration", "s", "Wall time of an attempt.")
        self._requests = meter.create_counter("narrowgate.decision.requests", "{request}", "Round trips to backends.")
        self._tokens = meter.create_counter("narrowgate.decision.tokens", "{token}", "Tokens that backends counted.")
        self._bounded = Bounded(settings.max_labels)

    async def observe(self, observation: DecisionObservation) -> None:
        """See `ObservationSink`."""
        record = record_of(observation)
        if self._settings.spans:
            self._span(observation, record)
        if self._settings.metrics:
            self._count(record)

    async def flush(self) -> None:
        """See `ObservationSink`: flush providers that can be flushed, which those of the SDK can."""
        for provider in self._providers:
            force_flush = getattr(provider, "force_flush", None)
            if force_flush is not None:
                await anyio.to_thread.run_sync(force_flush, abandon_on_cancel=True)  # an exporter may hang

    def _span(self, observation: DecisionObservation, record: dict[str, Any]) -> None:
        said = {f"narrowgate.{name}": record[name] for name in _SPAN_COLUMNS if record[name] is not None}
        said |= {
            "narrowgate.subjects": len(observation.subject_refs),
            "narrowgate.evidence": len(observation.evidence_refs),
            "narrowgate.redactions": sum(observation.redactions.values()),
        }
        end = int(observation.created_at.timestamp() * 1_000_000) * 1000
        begin = end - timedelta(milliseconds=observation.assessment.latency_ms) // timedelta(microseconds=1) * 1000
        # The attempt is over, in another task perhaps: a root span of its own, joined to others by the operation's id.
        span = self._tracer.start_span(SPAN, context=trace.set_span_in_context(trace.INVALID_SPAN), start_time=begin)
        span.set_attributes(said)
        if observation.assessment.used_fallback:
            span.set_status(trace.Status(trace.StatusCode.ERROR, observation.fallback_reason))
        span.end(end)

    def _count(self, record: dict[str, Any]) -> None:
        labels: dict[str, AttributeValue] = {
            name: self._bounded(name, record[name]) for name in METRIC_LABELS if record[name] is not None
        }
        few: dict[str, AttributeValue] = {name: labels[name] for name in _TIME_LABELS if name in labels}
        self._attempts.add(1, labels)
        self._time.record(record["latency_ms"] / 1000, few)
        self._requests.add(record["requests"], few)
        for direction in ("input", "output"):
            if record[f"{direction}_tokens"] is not None:
                self._tokens.add(record[f"{direction}_tokens"], {**few, "direction": direction})
