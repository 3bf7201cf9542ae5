"""`observe.jsonl`: one line for each observation, in files that are rotated by size and by age."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from narrowgate.values.columns import record_of
from narrowgate.values.observation import DecisionObservation
from narrowgate_observe.files import append, lines_of
from narrowgate_observe.settings import JsonlSettings

_LONGEST_LINE: Final = 1 << 20


def _now() -> datetime:
    return datetime.now(UTC)


class JsonlSink:
    """Adds lines to a file; a `BatchSink`. What was taken is on the disk.

    Several processes may write to one path: each write is whole lines, and whoever finds the file too large or too old
    rotates it.

    Args:
        settings: where, and when to rotate.
        clock: the time by which files grow old.
    """

    def __init__(self, settings: JsonlSettings, clock: Callable[[], datetime] = _now) -> None:
        self._settings, self._clock = settings, clock
        self._turn = anyio.Lock()

    async def observe(self, observation: DecisionObservation) -> None:
        """See `ObservationSink`."""
        await self.observe_many((observation,))

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """See `BatchSink`.

        Raises:
            OSError: not all of it could be written.
        """
        async with self._turn:
            await anyio.to_thread.run_sync(self._write, tuple(observations))

    async def flush(self) -> None:
        """See `ObservationSink`. Nothing to do: what was taken is durable already."""

    def _write(self, observations: Sequence[DecisionObservation]) -> None:
        path, snippets = self._settings.path, self._settings.snippets
        lines = lines_of(record_of(item, snippet=snippets) for item in observations)
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._is_due(path, len(lines)):
            rotate(path, self._settings.keep, self._clock())
        append(path, lines, sync=True)

    def _is_due(self, path: Path, coming: int) -> bool:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return False
        if not size:
            return False
        began = _began(path)
        old = began is not None and self._clock() - began >= timedelta(hours=self._settings.max_hours)
        return old or size + coming > self._settings.max_bytes


def _began(path: Path) -> datetime | None:
    """Return when the first observation of a file was made; `None` where its first line is none."""
    with path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    try:
        return datetime.fromisoformat(json.loads(line)["created_at"])
    except (ValueError, KeyError, TypeError):
        return None


def rotate(path: Path, keep: int, now: datetime) -> None:
    """Put a file aside under a name that says when, and remove the oldest of those that were put aside."""
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    with suppress(FileNotFoundError):  # another process was first
        os.rename(path, path.with_name(f"{path.stem}.{stamp}-{secrets.token_hex(3)}{path.suffix}"))  # noqa: PTH104 - no overwriting on Windows
    for old in rotated(path)[: -keep or None]:
        old.unlink(missing_ok=True)


def rotated(path: Path) -> list[Path]:
    """Return the files that were put aside, the oldest first."""

    def age(part: Path) -> tuple[str, int]:
        try:
            written = part.stat().st_mtime_ns
        except FileNotFoundError:  # another process removed it
            written = 0
        return part.name.rpartition("-")[0], written  # of two in one tick of the clock, the one written to first

    return sorted(path.parent.glob(f"{path.stem}.[0-9]*T[0-9]*Z-*{path.suffix}"), key=age)
