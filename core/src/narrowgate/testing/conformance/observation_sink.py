"""The contract of an observation sink: takes every record or says that it cannot, and keeps no content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import anyio
import pytest
from hypothesis import strategies as st

from narrowgate.seams.gate_ports import ObservationSink
from narrowgate.seams.observing import BatchSink
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance, for_examples
from narrowgate.testing.conformance.ending import everything_said
from narrowgate.testing.values import observation
from narrowgate.values.assessment import Attempt, Coverage, GateMode, GateVerdict, VerdictSource
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import Thresholds

CANARY = "canary-4711-金丝雀"
"""Stands in the one field that may hold text."""

Taken = Callable[[], Sequence[str]]
"""Returns the ids of the observations that the sink has kept so far, in order, read back from where it keeps them."""


def observations() -> st.SearchStrategy[DecisionObservation]:
    """Draw an observation as gates make them: judged, refused, failed, with few fields filled or all."""
    judged = st.fixed_dictionaries(
        {
            "verdict": st.sampled_from([GateVerdict.ALLOW, GateVerdict.DENY, GateVerdict.REVIEW]),
            "probability": st.none() | st.floats(0, 1),
            "mode": st.sampled_from([mode for mode in GateMode if mode is not GateMode.DISABLED]),
            "latency_ms": st.floats(0, 1e6),
            "usage": st.builds(Usage, st.integers(0, 5), st.integers(0, 5), st.none() | st.integers(0, 10**9)),
        }
    )
    failed = st.just(
        {
            "attempt": Attempt.BACKEND_FALLBACK,
            "coverage": Coverage.UNADJUDICATED,
            "verdict": GateVerdict.UNKNOWN,
            "source": VerdictSource.NONE,
            "used_fallback": True,
            "reason": "timeout",
            "outcome": None,
            "probability": None,
            "confidence": None,
            "backend_outcome": None,
            "fallback_reason": "timeout",
        }
    )
    common = st.fixed_dictionaries(
        {
            "number": st.integers(0, 10**6),
            "scope_id": st.sampled_from(["notes", "团队", "a" * 256]),
            "language": st.sampled_from(["en", "zh", "und"]),
            "subject_refs": st.sampled_from([(), ("notes@3/E1/1",), ("x" * 512,)]),
            "evidence_refs": st.sampled_from([(), ("会议纪要 2026-03",)]),
            "redactions": st.sampled_from([{}, {"email": 3}]),
            "thresholds": st.sampled_from([Thresholds(), Thresholds(yes_at=0.5, no_at=0.25)]),
            "backend_model_id": st.none() | st.just("jev-1.13.0"),
        }
    )
    return st.builds(lambda base, rest: observation(**{**base, **rest}), common, judged | failed)


class ObservationSinkConformance(Conformance):
    """The rules for an `ObservationSink`.

    The author also gives a fixture `taken`, which reads back what the sink has kept.

    Attributes:
        keeps_snippets: it was told to keep the texts that observations may carry; otherwise none may be found.
        can_fail: `False` for one that has nothing that could be out.
    """

    keeps_snippets: ClassVar[bool] = False
    can_fail: ClassVar[bool] = True

    @pytest.fixture
    def taken(self) -> Taken:
        """Return what reads back the ids of what was kept."""
        pytest.fail(f"{type(self).__name__} needs a fixture `taken`")

    @pytest.fixture
    def everything(self) -> Callable[[], str]:
        """Return what reads back, as one text, all that the sink has written anywhere."""
        pytest.fail(f"{type(self).__name__} needs a fixture `everything`")

    @pytest.fixture
    def failing(self) -> Builder[ObservationSink]:
        """Return what opens the component where it cannot keep anything: a full disk, a server that is down."""
        if not self.can_fail:
            pytest.skip("nothing of it can be out")
        pytest.fail(f"{type(self).__name__} needs a fixture `failing`, or `can_fail = False`")

    async def test_fulfils_the_protocol(self, build: Builder[ObservationSink]) -> None:
        """It has the members of `ObservationSink`, and may be flushed before it has taken anything."""
        async with build() as sink:
            assert isinstance(sink, ObservationSink)
            await sink.flush()

    async def test_what_is_flushed_is_kept_in_order(self, build: Builder[ObservationSink], taken: Taken) -> None:
        """After `flush`, and while it is still open, everything taken so far can be read back, in order."""
        async with build() as sink:
            for number in range(5):
                await sink.observe(observation(number))
            await sink.flush()
            assert list(taken()) == [observation(number).observation_id for number in range(5)]

    async def test_closing_keeps_what_was_taken(self, build: Builder[ObservationSink], taken: Taken) -> None:
        """What was taken and not flushed is kept when the sink is closed, and another instance goes on behind it."""
        async with build() as sink:
            await sink.observe(observation(1))
        async with build() as sink:
            await sink.observe(observation(2))
        assert list(taken()) == [observation(1).observation_id, observation(2).observation_id]

    def test_takes_whatever_gates_make(self, build: Builder[ObservationSink], anyio_backend: str) -> None:
        """Judged, refused or failed, with few fields or all, in any script: no observation is too much for it."""

        async def rule(one: DecisionObservation) -> None:
            async with build() as sink:
                await sink.observe(one)
                await sink.flush()

        for_examples(anyio_backend, rule, one=observations())

    async def test_a_batch_is_taken_whole(self, build: Builder[ObservationSink], taken: Taken) -> None:
        """`observe_many`, where it is offered, keeps all of a batch, in order, with no flush."""
        async with build() as sink:
            if not isinstance(sink, BatchSink):
                pytest.skip("takes one at a time")
            await sink.observe_many([observation(number) for number in range(40)])
            assert list(taken()) == [observation(number).observation_id for number in range(40)]

    async def test_several_at_once_are_all_kept(self, build: Builder[ObservationSink], taken: Taken) -> None:
        """Records that arrive at the same time are each kept once."""
        async with build() as sink:
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(sink.observe, observation(number))
            await sink.flush()
        assert sorted(taken()) == [observation(number).observation_id for number in range(10)]

    async def test_keeps_no_text(self, build: Builder[ObservationSink], everything: Callable[[], str]) -> None:
        """The text that an observation may carry is nowhere, unless the sink was told to keep it."""
        async with build() as sink:
            await sink.observe(observation(1, snippet=f"subject {CANARY}"))
            await sink.flush()
        assert observation(1).observation_id in everything(), "the fixture must read what was kept"
        assert (CANARY in everything()) is self.keeps_snippets

    async def test_a_cancelled_call_harms_no_later_one(self, build: Builder[ObservationSink], taken: Taken) -> None:
        """A caller that goes away leaves the sink as it was, or with the record: the next one is kept."""
        async with build() as sink:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await sink.observe(observation(1))
            await sink.observe(observation(2))
            await sink.flush()
            kept = list(taken())
        assert kept[-1:] == [observation(2).observation_id]
        assert set(kept) <= {observation(1).observation_id, observation(2).observation_id}

    async def test_what_cannot_be_kept_is_an_error(self, failing: Builder[ObservationSink]) -> None:
        """A record that is lost is never silent: `observe` or `flush` raises, and repeats no text."""
        async with failing() as sink:
            with pytest.raises(Exception) as caught:  # noqa: PT011 - any: the fan-out counts them all alike
                await self._take_and_flush(sink)
        assert CANARY not in everything_said(caught.value)

    @staticmethod
    async def _take_and_flush(sink: ObservationSink) -> None:
        await sink.observe(observation(1, snippet=CANARY, backend_outcome=DecisionOutcome.NO))
        await sink.flush()
