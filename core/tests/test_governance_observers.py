"""The fan-out: sinks apart from the domain and from each other, back-pressure, counts that add up, an end without loss."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import attrs
import pytest

from narrowgate.governance import observers as module
from narrowgate.governance.observers import BUFFER, GROUP, Observers, observers
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import PrivacyBoundary, Thresholds

pytestmark = pytest.mark.anyio

ASSESSMENT = DecisionAssessment(
    policy_id="p",
    policy_version="1",
    mode=GateMode.SHADOW,
    attempt=Attempt.NO_CALL,
    coverage=Coverage.UNADJUDICATED,
    verdict=GateVerdict.UNKNOWN,
    source=VerdictSource.NONE,
    reason="no_backend",
)


def observation(number: int = 0) -> DecisionObservation:
    """Return an observation that is told from others by its id."""
    return DecisionObservation(
        observation_id=f"{number:05}",
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
        operation_id="op",
        scope_id="team",
        consumer="memory_write_gate",
        fingerprint="0" * 64,
        assessment=ASSESSMENT,
        thresholds=Thresholds(),
        privacy_boundary=PrivacyBoundary.LOCAL_ONLY,
        privacy_outcome="no_call",
        final_action="memory_write_accept",
    )


@attrs.define
class Kept:
    """A sink that keeps ids, and can be told to wait or to fail."""

    ids: list[str] = attrs.field(factory=list)
    flushed: list[int] = attrs.field(factory=list)
    gate: anyio.Event | None = None
    broken: bool = False

    async def observe(self, observation: DecisionObservation) -> None:
        """Keep it."""
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise OSError("canary in a message")
        self.ids.append(observation.observation_id)

    async def flush(self) -> None:
        """Note how many are there."""
        if self.broken:
            raise RuntimeError("canary in a message")
        self.flushed.append(len(self.ids))


@attrs.define
class Batches:
    """A sink that takes batches, and notes their sizes."""

    sizes: list[int] = attrs.field(factory=list)
    gate: anyio.Event | None = None
    broken: bool = False

    async def observe(self, observation: DecisionObservation) -> None:
        """Never called: whoever takes batches gets batches."""
        raise AssertionError("observe_many was to be called")

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """Note the size."""
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise OSError
        self.sizes.append(len(observations))

    async def flush(self) -> None:
        """Do nothing."""


async def fill(fan_out: Observers, count: int) -> None:
    """Publish."""
    for number in range(count):
        await fan_out.publish(observation(number))


async def taken(fan_out: Observers, name: str, count: int) -> None:
    """Return when a sink has taken that many."""
    while fan_out.health()[f"sink.{name}.taken"] != count:
        await anyio.lowlevel.checkpoint()


async def test_every_sink_gets_every_observation_in_order() -> None:
    """Two sinks, one of each kind; both are flushed at the end, after the last observation."""
    one, many = Kept(), Batches()
    async with observers([("a.one", one), ("b.many", many)]) as fan_out:
        await fill(fan_out, 3000)
    assert one.ids == [f"{number:05}" for number in range(3000)]
    assert one.flushed == [3000]
    assert sum(many.sizes) == 3000
    assert max(many.sizes) <= GROUP
    assert len(many.sizes) < 3000, "what waits is taken together"
    assert fan_out.health() == {
        "sink.a.one.taken": 3000,
        "sink.a.one.failed": 0,
        "sink.a.one.lost": 0,
        "sink.b.many.taken": 3000,
        "sink.b.many.failed": 0,
        "sink.b.many.lost": 0,
    }


async def test_a_failing_sink_changes_nothing_for_others(caplog: pytest.LogCaptureFixture) -> None:
    """Its failures are counted, observation by observation; the log names the type once, and never the text."""
    sound, broken, batches = Kept(), Kept(broken=True), Batches(broken=True)
    with caplog.at_level(logging.WARNING):
        async with observers([("a.broken", broken), ("b.sound", sound), ("c.batches", batches)]) as fan_out:
            await fill(fan_out, 50)
    assert len(sound.ids) == 50
    health = fan_out.health()
    assert (health["sink.a.broken.taken"], health["sink.a.broken.failed"]) == (0, 50)
    assert health["sink.a.broken.flush_failed"] == 1
    assert health["sink.a.broken.last_failure"] == "RuntimeError"
    assert (health["sink.c.batches.taken"], health["sink.c.batches.failed"]) == (0, 50)
    assert sum("a.broken" in record.getMessage() for record in caplog.records) == 2
    assert "canary" not in caplog.text


async def test_a_sink_whose_native_code_panics_has_failed_and_ends_nothing() -> None:
    """What is no `Exception` and no interrupt either is a failure of the sink."""

    class PanicError(BaseException):
        pass

    class Panicking(Kept):
        async def observe(self, observation: DecisionObservation) -> None:
            raise PanicError

    sound = Kept()
    async with observers([("a.native", Panicking()), ("b.sound", sound)]) as fan_out:
        await fill(fan_out, 3)
        await fan_out.flush()
        assert fan_out.health()["sink.a.native.failed"] == 3
        assert fan_out.health()["sink.a.native.last_failure"] == "CrashedCallError"
    assert len(sound.ids) == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_a_sink_that_was_told_it_was_cancelled_ends_nothing_but_its_call() -> None:
    """An exporter whose own task was cancelled says so as if it were the worker, and no block may end of it."""

    @attrs.define
    class Stray(Kept):
        calls: int = 0

        async def observe(self, observation: DecisionObservation) -> None:
            self.calls += 1
            if self.calls == 2:
                task = asyncio.ensure_future(asyncio.sleep(0))
                task.cancel()
                await task
            await super().observe(observation)

        async def flush(self) -> None:
            raise asyncio.CancelledError

    stray, sound = Stray(), Kept()
    reached = False
    async with observers([("a.stray", stray), ("b.sound", sound)]) as fan_out:
        await fill(fan_out, 5)
        await anyio.wait_all_tasks_blocked()
        await fan_out.flush()
        reached = True
    assert reached
    assert (stray.ids, len(sound.ids)) == (["00000", "00002", "00003", "00004"], 5)
    health = fan_out.health()
    assert (health["sink.a.stray.taken"], health["sink.a.stray.failed"], health["sink.a.stray.flush_failed"]) == (4, 1, 2)
    assert health["sink.a.stray.last_failure"] == "StrayCancellationError"


async def test_a_full_sink_holds_its_callers_back_and_drops_nothing() -> None:
    """The caller that brings one too many waits until there is room, and every observation is there in the end."""
    gate = anyio.Event()
    slow = Kept(gate=gate)
    async with observers([("a.slow", slow)]) as fan_out:
        await fill(fan_out, BUFFER)
        await anyio.wait_all_tasks_blocked()  # the worker holds one now: one more has room, the next has not
        await fan_out.publish(observation(BUFFER))
        came_back = False

        async def one_more() -> None:
            nonlocal came_back
            await fan_out.publish(observation(BUFFER + 1))
            came_back = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one_more)
            await anyio.wait_all_tasks_blocked()
            assert not came_back
            gate.set()
    assert came_back
    assert slow.ids == [f"{number:05}" for number in range(BUFFER + 2)]
    assert fan_out.health()["sink.a.slow.lost"] == 0


async def test_a_hanging_sink_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for once; what comes after that is counted as lost for it alone, and the end does not hang either."""
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    monkeypatch.setattr(module, "CLOSING", 0.01)
    hanging, sound = Kept(gate=anyio.Event()), Kept()
    async with observers([("a.hanging", hanging), ("b.sound", sound)]) as fan_out:
        await fill(fan_out, 1)
        await anyio.wait_all_tasks_blocked()
        await fill(fan_out, BUFFER)
        await taken(fan_out, "b.sound", 1 + BUFFER)
        await fan_out.publish(observation(1))
        assert fan_out.health()["sink.a.hanging.lost"] == 1
        monkeypatch.setattr(module, "PATIENCE", 1e9)  # nobody waits for it a second time
        await fan_out.publish(observation(2))
        assert fan_out.health()["sink.a.hanging.lost"] == 2
        await taken(fan_out, "b.sound", 1 + BUFFER + 2)
    health = fan_out.health()
    assert health["sink.a.hanging.lost"] == 1 + BUFFER + 2
    assert (hanging.ids, health["sink.a.hanging.taken"]) == ([], 0)
    assert health["sink.b.sound.taken"] == len(sound.ids) == 1 + BUFFER + 2


async def test_a_sink_that_takes_again_is_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stalled is a state and no verdict."""
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    gate = anyio.Event()
    slow = Kept(gate=gate)
    async with observers([("a.slow", slow)]) as fan_out:
        await fill(fan_out, 1)
        await anyio.wait_all_tasks_blocked()
        await fill(fan_out, BUFFER + 1)
        assert fan_out.health()["sink.a.slow.lost"] == 1
        monkeypatch.setattr(module, "PATIENCE", 1e9)
        gate.set()
        await fan_out.flush()
        await fill(fan_out, BUFFER + 50)
    assert fan_out.health()["sink.a.slow.lost"] == 1
    assert len(slow.ids) == 1 + BUFFER + BUFFER + 50


async def test_what_was_accepted_is_taken_although_the_block_is_cancelled() -> None:
    """A cancelled application is an orderly end too: sinks get what was accepted, and the cancellation passes."""
    kept = Kept()
    with anyio.CancelScope() as scope:
        async with observers([("a.kept", kept)]) as fan_out:
            await fill(fan_out, 100)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert len(kept.ids) == 100
    assert kept.flushed == [100]


async def test_what_the_block_raises_comes_out_unchanged_and_sinks_are_flushed() -> None:
    """No exception group around an application's own error."""
    kept = Kept()

    async def application() -> None:
        async with observers([("a.kept", kept)]) as fan_out:
            await fill(fan_out, 10)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await application()
    assert kept.flushed == [10]


async def test_a_caller_that_is_cancelled_while_it_waits_is_counted() -> None:
    """The observation that it brought is lost for the full sink, and the counts say so."""
    gate = anyio.Event()
    slow = Kept(gate=gate)
    async with observers([("a.slow", slow)]) as fan_out:
        await fill(fan_out, 1)
        await anyio.wait_all_tasks_blocked()
        await fill(fan_out, BUFFER)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fan_out.publish, observation(BUFFER + 1))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        gate.set()
    health = fan_out.health()
    assert (health["sink.a.slow.taken"], health["sink.a.slow.lost"]) == (BUFFER + 1, 1)


async def test_flush_waits_for_what_was_published_before() -> None:
    """After it, every sink has taken all of it and was told to make it durable."""
    kept, batches = Kept(), Batches()
    async with observers([("a.kept", kept), ("b.batches", batches)]) as fan_out:
        await fill(fan_out, 700)
        await fan_out.flush()
        assert (len(kept.ids), kept.flushed, sum(batches.sizes)) == (700, [700], 700)
        await fill(fan_out, 1)
    assert kept.flushed == [700, 701]


async def test_flush_does_not_wait_for_ever_for_a_sink_that_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller of flush comes back when the end gives up on a hanging sink."""
    monkeypatch.setattr(module, "CLOSING", 0.01)
    async with anyio.create_task_group() as tasks, observers([("a.hanging", Kept(gate=anyio.Event()))]) as fan_out:
        await fill(fan_out, 1)
        tasks.start_soon(fan_out.flush)
        await anyio.wait_all_tasks_blocked()
    assert fan_out.health()["sink.a.hanging.lost"] == 1


async def test_publishing_after_the_end_is_counted_and_raises_nothing() -> None:
    """An application that is late harms nobody."""
    async with observers([("a.kept", Kept())]) as fan_out:
        pass
    await fan_out.publish(observation())
    await fan_out.flush()
    assert fan_out.health()["sink.a.kept.lost"] == 1


async def test_without_sinks_nothing_happens() -> None:
    """No sink, no cost, no complaint."""
    async with observers([]) as fan_out:
        await fan_out.publish(observation())
        await fan_out.flush()
    assert fan_out.health() == {}
