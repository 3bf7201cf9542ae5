"""The fan-out of observations: sinks apart from the domain and from each other, nothing accepted lost on an orderly end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from narrowgate.governance.background import apart, workers
from narrowgate.seams.gate_ports import ObservationSink
from narrowgate.seams.observing import BatchSink
from narrowgate.values.observation import DecisionObservation

BUFFER: Final = 1024
"""Observations that may wait for one sink; whoever brings another waits until there is room."""

GROUP: Final = 512
"""The most observations that a `BatchSink` gets at once."""

PATIENCE: Final = 5.0
"""Seconds that a full sink may keep its callers waiting. What comes after that, until it takes something again, is lost for
this sink, and counted: a sink that hangs must not stop what is observed."""

CLOSING: Final = 10.0
"""Seconds that closing waits for sinks to take what was accepted."""

_log = logging.getLogger("narrowgate.governance")


@attrs.define
class SinkState:
    """How one sink fares. After closing, `taken + failed + lost` is what was published.

    Attributes:
        name: full name of its component.
        taken: observations that it took.
        failed: observations that it raised on.
        lost: observations that it never got: it was full for too long, or did not finish when closing.
        flush_failed: times that it could not make durable what it had taken.
        last_failure: type of the last exception; never its text.
        stalled: it was full for too long, and has taken nothing since.
    """

    name: str
    taken: int = 0
    failed: int = 0
    lost: int = 0
    flush_failed: int = 0
    last_failure: str | None = None
    stalled: bool = False


_Item = DecisionObservation | anyio.Event
"""An event asks for a flush; it is set when that is done."""


@attrs.frozen
class _Line:
    """One sink with the way to it. Its scope is shielded: what was accepted is taken even when the block is cancelled."""

    state: SinkState
    sink: ObservationSink
    send: MemoryObjectSendStream[_Item]
    receive: MemoryObjectReceiveStream[_Item]
    scope: anyio.CancelScope = attrs.field(factory=lambda: anyio.CancelScope(shield=True))


class Observers:
    """Hands each observation to every sink. Made by `observers`."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._lines = tuple(lines)

    async def publish(self, observation: DecisionObservation) -> None:
        """Hand over one observation; waits where a sink is full (see `PATIENCE`); never raises for a sink."""
        full = []
        for line in self._lines:
            try:
                line.send.send_nowait(observation)
            except anyio.WouldBlock:
                full.append(line)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                _lost(line.state, 1)
        waiting = [line for line in full if not line.state.stalled]
        for line in full:
            if line.state.stalled:
                _lost(line.state, 1)
        if not waiting:
            return
        left = set(range(len(waiting)))

        async def wait(place: int) -> None:
            try:
                await waiting[place].send.send(observation)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            left.discard(place)

        try:
            with anyio.move_on_after(PATIENCE) as scope:
                async with anyio.create_task_group() as tasks:
                    for place in range(len(waiting)):
                        tasks.start_soon(wait, place)
        finally:  # also when the caller is cancelled: it is the observation that is lost, not its place in the count
            for place in left:
                waiting[place].state.stalled = scope.cancelled_caught
                _lost(waiting[place].state, 1)

    def without(self, name: str) -> Observers:
        """Return a fan-out to the same sinks but one, for that one to publish through: it could not wait for itself."""
        return Observers([line for line in self._lines if line.state.name != name])

    async def flush(self) -> None:
        """Return when every sink has taken, and made durable, what was published before; raises nothing for a sink.

        It waits as long as that takes: bound it by a cancel scope.
        """
        asked = []
        for line in self._lines:
            done = anyio.Event()
            try:
                await line.send.send(done)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                continue
            asked.append(done)
        for done in asked:
            await done.wait()

    def health(self) -> Mapping[str, int | str]:
        """Return `sink.<name>.taken|failed|lost` of each sink; `flush_failed`, `last_failure` where there was a failure."""
        facts: dict[str, int | str] = {}
        for line in self._lines:
            state, key = line.state, f"sink.{line.state.name}"
            facts |= {f"{key}.taken": state.taken, f"{key}.failed": state.failed, f"{key}.lost": state.lost}
            if state.flush_failed:
                facts[f"{key}.flush_failed"] = state.flush_failed
            if state.last_failure is not None:
                facts[f"{key}.last_failure"] = state.last_failure
        return facts


@asynccontextmanager
async def observers(sinks: Sequence[tuple[str, ObservationSink]]) -> AsyncIterator[Observers]:
    """Run one worker for each sink; at the end every accepted observation is taken, or counted as lost.

    That holds for a cancelled block as well: the cancellation passes when the sinks are done, after `CLOSING` seconds at
    most.

    Args:
        sinks: full name and object of each.
    """
    lines = [_Line(SinkState(name), sink, *anyio.create_memory_object_stream[_Item](BUFFER)) for name, sink in sinks]

    def close() -> None:
        # The workers end by themselves when their streams are empty; a sink that hangs does not hold the end up.
        for line in lines:
            line.send.close()
            line.scope.deadline = anyio.current_time() + CLOSING

    async with workers(close, CLOSING + 1) as tasks:
        for line in lines:
            tasks.start_soon(_work, line)
        yield Observers(lines)


async def _work(line: _Line) -> None:
    group: list[DecisionObservation] = []
    asked: anyio.Event | None = None
    with line.receive:
        try:
            with line.scope:
                async for item in line.receive:
                    asked = _gather(item, line, group)
                    await _hand_over(line, group)
                    if asked is not None:
                        await _flush(line)
                        asked.set()
                await _flush(line)
        finally:
            if asked is not None:
                asked.set()
            # Only a sink that hangs leaves something: what it was handed and never confirmed, and what waits behind that.
            _lost(line.state, len(group) + _drain(line.receive))


def _gather(first: _Item, line: _Line, group: list[DecisionObservation]) -> anyio.Event | None:
    """Fill `group` with what waits, as far as the sink takes it at once; return the flush that was asked for behind it."""
    most = GROUP if isinstance(line.sink, BatchSink) else 1
    item = first
    while True:
        if isinstance(item, anyio.Event):
            return item
        group.append(item)
        if len(group) == most:
            return None
        try:
            item = line.receive.receive_nowait()
        except (anyio.WouldBlock, anyio.EndOfStream):
            return None


async def _hand_over(line: _Line, group: list[DecisionObservation]) -> None:
    if not group:
        return
    state, sink = line.state, line.sink
    try:
        if isinstance(sink, BatchSink):
            await apart(partial(sink.observe_many, tuple(group)))
        else:
            await apart(partial(sink.observe, group[0]))
        state.taken += len(group)
    except Exception as error:  # noqa: BLE001 - a sink's failure is its own: it changes no verdict and no other sink
        state.failed += len(group)
        _failed(state, error)
    state.stalled = False
    group.clear()


async def _flush(line: _Line) -> None:
    try:
        await apart(line.sink.flush)
    except Exception as error:  # noqa: BLE001 - as above
        line.state.flush_failed += 1
        _failed(line.state, error)


def _drain(stream: MemoryObjectReceiveStream[_Item]) -> int:
    count = 0
    while True:
        try:
            item = stream.receive_nowait()
        except (anyio.WouldBlock, anyio.EndOfStream):
            return count
        if isinstance(item, anyio.Event):
            item.set()
        else:
            count += 1


def _failed(state: SinkState, error: Exception) -> None:
    name = type(error).__name__
    if state.last_failure != name:
        _log.warning(
            "observation sink %s failed with %s",
            state.name,
            name,
            extra={"event": "observation.sink_failed", "sink": state.name},
        )
    state.last_failure = name


def _lost(state: SinkState, count: int) -> None:
    if not count:
        return
    if not state.lost:
        _log.warning(
            "observation sink %s is too slow or hangs: observations are lost for it, and counted",
            state.name,
            extra={"event": "observation.lost", "sink": state.name},
        )
    state.lost += count
