"""Spans and metrics, as the SDK of OpenTelemetry sees them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import PrivacyBoundary, Thresholds
from narrowgate_otel.settings import TelemetrySettings
from narrowgate_otel.telemetry import METRIC_LABELS, Telemetry

pytestmark = pytest.mark.anyio

JUDGED = DecisionAssessment(
    policy_id="team.write.v1",
    policy_version="1",
    mode=GateMode.SHADOW,
    attempt=Attempt.BACKEND,
    coverage=Coverage.ADJUDICATED,
    verdict=GateVerdict.ALLOW,
    source=VerdictSource.DECISION_MODEL,
    reason="decision_model_verdict",
    outcome=DecisionOutcome.YES,
    probability=0.75,
    usage=Usage(1, 1, 100, None),
    latency_ms=250.0,
)
FAILED = DecisionAssessment(
    policy_id="team.write.v1",
    policy_version="1",
    mode=GateMode.SHADOW,
    attempt=Attempt.BACKEND_FALLBACK,
    coverage=Coverage.UNADJUDICATED,
    verdict=GateVerdict.UNKNOWN,
    source=VerdictSource.NONE,
    reason="decision_model_fallback",
    used_fallback=True,
)


def observation(assessment: DecisionAssessment = JUDGED, **changes: Any) -> DecisionObservation:
    """Return an observation with everything in it, a snippet too."""
    made = DecisionObservation(
        observation_id="01OBSERVATION",
        created_at=datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC),
        operation_id="01OPERATION",
        scope_id="团队",
        consumer="memory_write_gate",
        fingerprint="ab" * 32,
        assessment=assessment,
        thresholds=Thresholds(yes_at=0.5),
        subject_refs=("team@3/01SUBJECT/1",),
        evidence_refs=("https://wiki.example/01EVIDENCE",),
        privacy_boundary=PrivacyBoundary.LOCAL_ONLY,
        privacy_outcome="local_model_called",
        provider_id="local.evidence",
        final_action="memory_write_accept",
        fallback_reason="timeout" if assessment.used_fallback else None,
        language="zh",
        snippet="the canary sings 金丝雀在唱歌",
    )
    return attrs.evolve(made, **changes)


class Seen:
    """A sink on providers that keep everything in memory."""

    def __init__(self, **settings: Any) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.sink = Telemetry(TelemetrySettings(**settings), tracers, meters)

    def spans(self) -> tuple[Any, ...]:
        """Return the finished spans."""
        return self._spans.get_finished_spans()

    def metrics(self) -> dict[str, list[Any]]:
        """Return name -> data points."""
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        found = [item for part in data.resource_metrics for scope in part.scope_metrics for item in scope.metrics]
        return {item.name: list(item.data.data_points) for item in found}


async def test_a_span_for_each_observation() -> None:
    """From its begin to its end, a root of its own, with labels, numbers and ids."""
    seen = Seen()
    await seen.sink.observe(observation())
    await seen.sink.flush()
    (span,) = seen.spans()
    assert span.name == "narrowgate.decision"
    assert span.parent is None
    end = 1_772_359_200_123_456_000
    assert (span.start_time, span.end_time) == (end - 250_000_000, end)
    said = span.attributes
    assert (said["narrowgate.policy_id"], said["narrowgate.verdict"]) == ("team.write.v1", "allow")
    assert (said["narrowgate.probability"], said["narrowgate.yes_at"]) == (0.75, 0.5)
    assert (said["narrowgate.operation_id"], said["narrowgate.scope_id"]) == ("01OPERATION", "团队")
    assert (said["narrowgate.subjects"], said["narrowgate.evidence"]) == (1, 1)
    assert "narrowgate.fallback_reason" not in said
    assert span.status.is_unset


async def test_a_fallback_is_an_error_of_its_span() -> None:
    """With the closed reason, so that it is found in the tools that look for errors."""
    seen = Seen()
    await seen.sink.observe(observation(FAILED))
    (span,) = seen.spans()
    assert not span.status.is_ok
    assert span.status.description == "timeout"


async def test_counts_times_and_costs() -> None:
    """Two attempts with labels of their own; a token count that nobody knows is not counted as zero."""
    seen = Seen()
    for _ in range(2):
        await seen.sink.observe(observation())
    await seen.sink.observe(observation(FAILED))
    found = seen.metrics()
    counts = {point.attributes["attempt"]: point.value for point in found["narrowgate.decisions"]}
    assert counts == {"backend": 2, "backend_fallback": 1}
    times = {point.attributes["attempt"]: point.sum for point in found["narrowgate.decision.duration"]}
    assert times["backend"] == pytest.approx(0.5)
    tokens = {
        (point.attributes["attempt"], point.attributes["direction"]): point.value
        for point in found["narrowgate.decision.tokens"]
    }
    assert tokens[("backend", "input")] == 200
    assert ("backend", "output") not in tokens


async def test_labels_of_metrics_are_few_and_bounded() -> None:
    """No id among them, and no more values than that: what a backend makes up does not fill a metrics store."""
    seen = Seen(max_labels=3)
    for number in range(20):
        await seen.sink.observe(observation(FAILED, fallback_reason=f"reason-{number}", operation_id=f"op-{number}"))
    for points in seen.metrics().values():
        for point in points:
            assert set(point.attributes) <= {*METRIC_LABELS, "direction"}
    reasons = {point.attributes["fallback_reason"] for point in seen.metrics()["narrowgate.decisions"]}
    assert reasons == {"reason-0", "reason-1", "reason-2", "other"}


async def test_neither_content_nor_references_get_out() -> None:
    """The snippet of the observation is no business of telemetry, and of references there are counts."""
    seen = Seen()
    await seen.sink.observe(observation())
    everything = repr([span.to_json() for span in seen.spans()]) + repr(seen.metrics())
    for canary in ("canary", "金丝雀", "01SUBJECT", "01EVIDENCE"):
        assert canary not in everything
    assert "01O" not in repr(seen.metrics())


async def test_each_half_can_be_switched_off() -> None:
    """Spans without metrics, metrics without spans."""
    seen = Seen(spans=False)
    await seen.sink.observe(observation())
    assert (seen.spans(), len(seen.metrics()["narrowgate.decisions"])) == ((), 1)
    seen = Seen(metrics=False)
    await seen.sink.observe(observation())
    assert (len(seen.spans()), seen.metrics()) == (1, {})


async def test_without_providers_nothing_happens() -> None:
    """The API without an SDK takes everything and does nothing."""
    sink = Telemetry(TelemetrySettings())
    await sink.observe(observation())
    await sink.flush()


def test_importing_sets_nothing_up() -> None:
    """Neither providers nor the SDK: those are the application's business."""
    program = (
        "import sys, narrowgate_otel.telemetry\n"
        "from opentelemetry import trace\n"
        "assert type(trace.get_tracer_provider()).__name__ == 'ProxyTracerProvider'\n"
        "assert not any(name.startswith('opentelemetry.sdk') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
