"""`observe.jsonl`: one line for each observation, in files that are rotated by size and by age."""

from __future__ import annotations

import json
import os
import re
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
_STAMP: Final = "%Y%m%dT%H%M%S%fZ"


def _now() -> datetime:
    return datetime.now(UTC)


class JsonlSink:
    """Adds lines to a file; a `BatchSink`. What was taken is on the disk.

    Several processes may write to one path: each write is whole lines, and whoever finds the file too large or too old
    rotates it, once, while the others wait.

    Args:
        settings: where, and when to rotate.
        clock: the time by which files grow old.
    """

    def __init__(self, settings: JsonlSettings, clock: Callable[[], datetime] = _now) -> None:
        self._settings, self._clock = settings, clock
        self._path = settings.path.absolute()  # the current folder may change
        self._turn = anyio.Lock()

    async def observe(self, observation: DecisionObservation) -> None:
        """See `ObservationSink`."""
        await self.observe_many((observation,))

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """See `BatchSink`.

        Raises:
            OSError: nothing of it was kept.
        """
        async with self._turn:
            # Abandoned when closing has no more time: a disk that hangs does not keep the application from ending.
            await anyio.to_thread.run_sync(self._write, tuple(observations), abandon_on_cancel=True)

    async def flush(self) -> None:
        """See `ObservationSink`. Nothing to do: what was taken is durable already."""

    def _write(self, observations: Sequence[DecisionObservation]) -> None:
        path, keep = self._path, self._settings.keep
        lines = lines_of(record_of(item, snippet=self._settings.snippets) for item in observations)
        path.parent.mkdir(parents=True, exist_ok=True)
        append(
            path,
            lines,
            sync=True,
            due=lambda handle: self._is_due(handle, len(lines)),
            aside=lambda: rotate(path, keep, self._clock()),
        )

    def _is_due(self, handle: int, coming: int) -> bool:
        size = os.fstat(handle).st_size
        if not size:
            return False
        began = _began(handle)
        old = began is not None and self._clock() - began >= timedelta(hours=self._settings.max_hours)
        return old or size + coming > self._settings.max_bytes


def _began(handle: int) -> datetime | None:
    """Return when the first observation of a file was made; `None` where its first line is none."""
    os.lseek(handle, 0, os.SEEK_SET)
    with open(handle, "rb", closefd=False) as file:
        line = file.readline(_LONGEST_LINE)
    try:
        began = datetime.fromisoformat(json.loads(line)["created_at"])
    except (ValueError, KeyError, TypeError):
        return None
    return began if began.tzinfo is not None else None


def rotate(path: Path, keep: int, now: datetime) -> None:
    """Put a file aside under a name that says when, and remove the oldest of those that were put aside.

    Where the clock was put back, the name says a microsecond later than the last one: the oldest are those that were put
    aside first.
    """
    stamp = now.astimezone(UTC).strftime(_STAMP)
    last = rotated(path)[-1:]
    if last and (before := last[0].name[len(path.stem) + 1 :].partition("-")[0]) >= stamp:
        stamp = (datetime.strptime(before, _STAMP).replace(tzinfo=UTC) + timedelta(microseconds=1)).strftime(_STAMP)
    with suppress(FileNotFoundError):  # somebody removed it
        os.rename(path, path.with_name(f"{path.stem}.{stamp}-{secrets.token_hex(3)}{path.suffix}"))  # noqa: PTH104 - no overwriting on Windows
    for old in rotated(path)[: -keep or None]:
        old.unlink(missing_ok=True)


def rotated(path: Path) -> list[Path]:
    """Return the files that were put aside, the oldest first."""
    name = re.compile(rf"{re.escape(path.stem)}\.\d{{8}}T\d{{12}}Z-[0-9a-f]{{6}}{re.escape(path.suffix)}")

    def age(part: Path) -> tuple[str, int]:
        try:
            written = part.stat().st_mtime_ns
        except FileNotFoundError:  # another process removed it
            written = 0
        return part.name.rpartition("-")[0], written  # of two in one tick of the clock, the one written to first

    return sorted((part for part in path.parent.iterdir() if name.fullmatch(part.name)), key=age)
