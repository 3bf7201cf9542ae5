"""`observe.log`: one log record for each observation, with labels, counts and times; no reference and no text."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from narrowgate.values.columns import record_of
from narrowgate.values.observation import DecisionObservation
from narrowgate_observe.files import append, lines_of
from narrowgate_observe.settings import LogTarget

EVENT: Final = "decision.observation"
"""The event's name."""

LOGGER: Final = "narrowgate.observations"
"""The logger of `to = "logging"`."""

_LEFT_OUT: Final = frozenset({"subject_refs", "evidence_refs", "snippet", "redactions", "metadata"})


def event_of(observation: DecisionObservation) -> dict[str, Any]:
    """Return what is logged: the columns of an observation that are short, and counts in place of its references."""
    record = record_of(observation)
    said = {name: value for name, value in record.items() if name not in _LEFT_OUT and value is not None}
    counts = {
        "subjects": len(observation.subject_refs),
        "evidence": len(observation.evidence_refs),
        "redactions": sum(observation.redactions.values()),
    }
    return {"event": EVENT, **said, **counts}


class LogSink:
    """Writes observations to where logs go.

    Args:
        to: where.
        path: the file of `LogTarget.FILE`.
    """

    def __init__(self, to: LogTarget, path: Path | None = None) -> None:
        self._to = to
        self._path = None if path is None else path.absolute()  # the current folder may change

    async def observe(self, observation: DecisionObservation) -> None:
        """See `ObservationSink`."""
        event = event_of(observation)
        if self._to is LogTarget.LOGGING:
            _log(event)
        else:
            # A pipe that nobody reads, or a slow disk, must stop neither the event loop nor the application's end.
            await anyio.to_thread.run_sync(self._write, lines_of([event]), abandon_on_cancel=True)

    async def flush(self) -> None:
        """See `ObservationSink`."""
        if self._to is LogTarget.STDERR:
            await anyio.to_thread.run_sync(sys.stderr.flush, abandon_on_cancel=True)

    def _write(self, line: bytes) -> None:
        if self._path is not None:
            append(self._path, line)
        else:
            sys.stderr.write(line.decode())


def _log(event: Mapping[str, Any]) -> None:
    text = "%(event)s %(policy_id)s %(mode)s %(attempt)s %(verdict)s %(final_action)s"
    # One attribute holds everything: single ones would clash with those of a log record, such as `name`.
    logging.getLogger(LOGGER).info(text, event, extra={"event": EVENT, "observation": event})
