"""The fan-out of observations: sinks apart from the domain and from each other, nothing accepted lost on an orderly end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from narrowgate.governance.background import workers
from narrowgate.seams.gate_ports import ObservationSink
from narrowgate.values.observation import DecisionObservation

BUFFER: Final = 1024
"""Observations that may wait for one sink; whoever brings another waits until there is room."""

PATIENCE: Final = 5.0
"""Seconds that a full sink may keep its caller waiting; after that the observation counts as lost for this sink."""

CLOSING: Final = 10.0
"""Seconds that closing waits for sinks to take what was accepted."""

_log = logging.getLogger("narrowgate.governance")


@attrs.define
class SinkState:
    """How one sink fares.

    Attributes:
        name: full name of its component.
        taken: observations that it took.
        failed: observations that it raised on.
        lost: observations that it never got: it was full for too long, or did not finish when closing.
        last_failure: type of the last exception; never its text.
    """

    name: str
    taken: int = 0
    failed: int = 0
    lost: int = 0
    last_failure: str | None = None


class Observers:
    """Hands each observation to every sink. Made by `observers`."""

    def __init__(self, states: Sequence[SinkState], streams: Sequence[MemoryObjectSendStream[DecisionObservation]]) -> None:
        self._states, self._streams = tuple(states), tuple(streams)

    async def publish(self, observation: DecisionObservation) -> None:
        """Hand over one observation; waits where a sink is full, at most `PATIENCE` in all; never raises for a sink."""
        full: list[int] = []
        for place, stream in enumerate(self._streams):
            try:
                stream.send_nowait(observation)
            except anyio.WouldBlock:
                full.append(place)
        if not full:
            return
        waiting = set(full)

        async def wait(place: int) -> None:
            await self._streams[place].send(observation)
            waiting.discard(place)

        with anyio.move_on_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for place in full:
                    tasks.start_soon(wait, place)
        for place in waiting:
            self._states[place].lost += 1

    def health(self) -> Mapping[str, int]:
        """Return `sink.<name>.taken|failed|lost` for each sink."""
        return {
            f"sink.{state.name}.{field}": getattr(state, field)
            for state in self._states
            for field in ("taken", "failed", "lost")
        }


@asynccontextmanager
async def observers(sinks: Sequence[tuple[str, ObservationSink]]) -> AsyncIterator[Observers]:
    """Run one worker for each sink; at the end every accepted observation is taken, or counted as lost.

    Args:
        sinks: full name and object of each.
    """
    states = [SinkState(name) for name, _ in sinks]
    sends: list[MemoryObjectSendStream[DecisionObservation]] = []

    def close() -> None:
        for send in sends:
            send.close()

    # The workers end by themselves when their streams are empty; a sink that hangs does not hold the end up.
    async with workers(close, CLOSING) as tasks:
        for state, (_, sink) in zip(states, sinks, strict=True):
            send, receive = anyio.create_memory_object_stream[DecisionObservation](BUFFER)
            sends.append(send)
            tasks.start_soon(_work, state, sink, receive)
        yield Observers(states, sends)


async def _work(state: SinkState, sink: ObservationSink, stream: MemoryObjectReceiveStream[DecisionObservation]) -> None:
    async with stream:
        async for observation in stream:
            try:
                await sink.observe(observation)
                state.taken += 1
            except Exception as error:  # noqa: BLE001 - a sink's failure is its own: it changes no verdict and no other sink
                _failed(state, error)
        try:
            await sink.flush()
        except Exception as error:  # noqa: BLE001 - as above
            _failed(state, error)


def _failed(state: SinkState, error: Exception) -> None:
    state.failed += 1
    name = type(error).__name__
    if state.last_failure != name:
        _log.warning(
            "observation sink %s failed with %s",
            state.name,
            name,
            extra={"event": "observation.sink_failed", "sink": state.name},
        )
    state.last_failure = name
