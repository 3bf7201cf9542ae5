"""What this distribution offers; nothing heavy is imported before something is built."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from narrowgate.seams import CheckContext, Component, Deps, Plugin, Problem, Seam, hookimpl
from narrowgate_observe.settings import JsonlSettings, LogSettings

PLUGIN = Plugin("observe", (1, 1))


@asynccontextmanager
async def _log(settings: LogSettings, _deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_observe.log import LogSink

    yield LogSink(settings.to, settings.path)


@asynccontextmanager
async def _jsonl(settings: JsonlSettings, _deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_observe.jsonl import JsonlSink

    yield JsonlSink(settings)


def _check_log(settings: LogSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_observe.checks import log_problems

    return log_problems(settings, context)


def _check_jsonl(settings: JsonlSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_observe.checks import jsonl_problems

    return jsonl_problems(settings, context)


@hookimpl
def narrowgate_observation_sinks() -> list[Component]:
    """Offer the sinks."""
    return [
        Component(
            "observe.log",
            Seam.OBSERVATION_SINK,
            "Observations as log records, without references and texts.",
            _log,
            settings=LogSettings,
            check=_check_log,
        ),
        Component(
            "observe.jsonl",
            Seam.OBSERVATION_SINK,
            "Observations as JSON lines, in files rotated by size and age.",
            _jsonl,
            settings=JsonlSettings,
            check=_check_jsonl,
        ),
    ]
