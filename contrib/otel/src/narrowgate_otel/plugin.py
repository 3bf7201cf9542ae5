"""What this distribution offers; nothing heavy is imported before something is built."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from narrowgate.seams import Component, Deps, Plugin, Seam, hookimpl
from narrowgate_otel.settings import TelemetrySettings

PLUGIN = Plugin("otel", (1, 1))


@asynccontextmanager
async def _telemetry(settings: TelemetrySettings, _deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_otel.telemetry import Telemetry

    yield Telemetry(settings)


@hookimpl
def narrowgate_observation_sinks() -> list[Component]:
    """Offer the sink."""
    return [
        Component(
            "otel.telemetry",
            Seam.OBSERVATION_SINK,
            "Observations as spans and metrics of the application's OpenTelemetry providers.",
            _telemetry,
            settings=TelemetrySettings,
        )
    ]
