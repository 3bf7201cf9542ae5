"""A gate as a state machine: modes, rules, answers, failures and cooldowns in any order, against a model of what may be."""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest
from gate_engine_parts import Ruled, Scripted, policy, question
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from trio.testing import MockClock

from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.consumers import CONSUMERS
from narrowgate.governance.gate import Gate
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import ContentJudgement, TransportRefusal
from narrowgate.values.assessment import Attempt, Coverage, GateMode, GateVerdict
from narrowgate.values.policy import PrivacyBoundary

ANSWERS: Final = ("yes", "no", "abstain", "raise", "garbage", "short", "nan", "sentence", "fallback", "hang")
ATTEMPTS: Final = {
    "yes": Attempt.BACKEND,
    "no": Attempt.BACKEND,
    "abstain": Attempt.BACKEND,
    "raise": Attempt.BACKEND_FALLBACK,
    "hang": Attempt.BACKEND_FALLBACK,
    "fallback": Attempt.BACKEND_FALLBACK,
    "garbage": Attempt.PARSE_FAILURE,
    "short": Attempt.PARSE_FAILURE,
    "nan": Attempt.PARSE_FAILURE,
    "sentence": Attempt.PARSE_FAILURE,
}
"""What a backend does -> the kind of attempt that it is."""

RULES: Final = (
    None,
    ContentJudgement(GateVerdict.ALLOW, "too_short"),
    ContentJudgement(GateVerdict.DENY, "out_of_scope"),
    ContentJudgement(GateVerdict.REVIEW, "too_long"),
    ContentJudgement(GateVerdict.UNKNOWN, "nonsense"),
    TransportRefusal("switched_off"),
    TransportRefusal("sensitive_not_sent", privacy=True),
    RuntimeError("broken"),
    "nonsense",
)
PASSED, FLAGGED, HELD = "memory_write_accept", "memory_write_flag", "memory_write_hold"
AFTER: Final = 2
COOL: Final = 30.0


def at_once(function: Any, *args: Any) -> Any:
    """Run an async function in a world where waiting takes no time: a timeout passes when nothing else happens."""
    return anyio.run(function, *args, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})


class GateMachine(RuleBasedStateMachine):
    """Puts questions to one gate while its surroundings change.

    The model knows three things: what the rule says, what the backend does, and for how long the backend is left alone.
    """

    @initialize(
        mode=st.sampled_from([GateMode.SHADOW, GateMode.ADVISORY, GateMode.ENFORCING]),
        boundary=st.sampled_from([PrivacyBoundary.LOCAL_ONLY] * 4 + [PrivacyBoundary.NO_EXTERNAL_CALL]),
        place=st.sampled_from([Locality.IN_PROCESS] * 4 + [Locality.HOSTED, None]),
        mapping=st.permutations([GateVerdict.ALLOW, GateVerdict.DENY, GateVerdict.REVIEW]),
        batch=st.sampled_from([1, 3, 0, "many"]),
        concurrency=st.sampled_from([1, 2, None]),
    )
    def build(self, mode: GateMode, boundary: Any, place: Any, mapping: Any, batch: Any, concurrency: Any) -> None:
        """Build the gate."""
        yes, no = list(policy().outcome_mapping)
        self.policy = policy(mode=mode, privacy_boundary=boundary, outcome_mapping={yes: mapping[0], no: mapping[1]})
        self.backend, self.ruled = Scripted(batch_limit=batch, concurrency=concurrency), Ruled()
        self.now, self.until, self.failures = 0.0, float("-inf"), 0
        self.place = place
        self.gate = Gate(
            self.policy,
            backend=None if place is None else NamedBackend("x.backend", place, self.backend),
            rules=[("x.rule", self.ruled)],
            settings=GateSettings(timeout=10.0, cooldown_after=AFTER, cooldown=COOL),
            clock=lambda: self.now,
        )

    @rule(does=st.sampled_from(ANSWERS))
    def backend_does(self, does: str) -> None:
        """Let the backend do something else from now on."""
        self.backend.does = does

    @rule(says=st.sampled_from(RULES))
    def rule_says(self, says: Any) -> None:
        """Let the local rule say something else from now on."""
        self.ruled.says = says

    @rule(seconds=st.sampled_from([1.0, COOL]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    @rule()
    def demote(self) -> None:
        """Take power back while it runs."""
        self.gate.demote(GateMode.SHADOW)

    @rule(does=st.sampled_from(ANSWERS), number=st.integers(0, 999))
    def ask_of(self, does: str, number: int) -> None:
        """Put one question that no rule answers, so that failures in a row and others between come up often."""
        self.backend.does, self.ruled.says = does, None
        self.ask(number)

    @rule(number=st.integers(0, 999))
    def ask(self, number: int) -> None:
        """Put one question, and hold what comes of it against the model."""
        before = len(self.backend.asked)
        judged = at_once(self.gate.assess, question(f"Note {number}."))
        said, action = judged.assessment, self.gate.action(judged)
        called = len(self.backend.asked) - before
        attempt = self._expected()
        assert said.attempt is attempt
        assert called == (attempt in (Attempt.BACKEND, Attempt.BACKEND_FALLBACK, Attempt.PARSE_FAILURE))
        if called:
            self._count(failed=attempt is not Attempt.BACKEND)
        expected = self._verdict(attempt)
        assert said.verdict is expected
        assert (said.coverage is Coverage.ADJUDICATED) is (expected is not GateVerdict.UNKNOWN)
        # No way to adjudicated and allowed without a judgement.
        if said.coverage is Coverage.ADJUDICATED and said.verdict is GateVerdict.ALLOW:
            by_rule = isinstance(self.ruled.says, ContentJudgement)
            assert by_rule or (called and self.backend.does in ("yes", "no"))
        assert said.mode is self.gate.policy.mode
        assert action == self._action(said.mode, expected)

    def _expected(self) -> Attempt:
        says = self.ruled.says
        if isinstance(says, ContentJudgement) and says.verdict is not GateVerdict.UNKNOWN:
            return Attempt.LOCAL_RULE
        if isinstance(says, TransportRefusal):
            return Attempt.PRIVACY_FALLBACK if says.privacy else Attempt.NO_CALL
        if says is not None:
            return Attempt.NO_CALL
        if self.policy.privacy_boundary is PrivacyBoundary.NO_EXTERNAL_CALL:
            return Attempt.PRIVACY_FALLBACK
        if self.place is None or self.now < self.until:
            return Attempt.NO_CALL
        if self.place is Locality.HOSTED:
            return Attempt.PRIVACY_FALLBACK
        return ATTEMPTS[str(self.backend.does)]

    def _verdict(self, attempt: Attempt) -> GateVerdict:
        if attempt is Attempt.LOCAL_RULE:
            assert isinstance(self.ruled.says, ContentJudgement)
            return self.ruled.says.verdict
        if attempt is Attempt.BACKEND and self.backend.does != "abstain":
            return {str(key): value for key, value in self.policy.outcome_mapping.items()}[str(self.backend.does)]
        return GateVerdict.UNKNOWN

    def _count(self, *, failed: bool) -> None:
        self.failures = self.failures + 1 if failed else 0
        if self.failures == AFTER:
            self.until, self.failures = self.now + COOL, 0

    def _action(self, mode: GateMode, verdict: GateVerdict) -> str:
        if mode is GateMode.SHADOW or verdict in (GateVerdict.ALLOW, GateVerdict.UNKNOWN):
            return PASSED
        return HELD if mode is GateMode.ENFORCING and verdict is GateVerdict.DENY else FLAGGED

    @invariant()
    def cooling_is_told(self) -> None:
        """The gate and the model agree on whether the backend is left alone."""
        assert self.gate.cooling is (self.now < self.until)


GateMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, derandomize=True, deadline=None)
test_any_order_of_events = GateMachine.TestCase
"""Each step of each run is held against the model."""


def test_a_disabled_policy_has_no_gate() -> None:
    """There is nothing that could be asked by mistake."""
    with pytest.raises(ValueError, match="disabled"):
        Gate(policy(mode=GateMode.DISABLED))


@pytest.mark.parametrize("consumer", [name for name, item in CONSUMERS.items() if not item.effects])
def test_who_may_not_act_never_does(consumer: str) -> None:
    """Also a policy that was let through with a mode that its consumer has no effect for does no more than propose."""
    made = policy(consumer=consumer, effect=None, mode=GateMode.ENFORCING)
    gate = Gate(made, backend=NamedBackend("x.backend", Locality.IN_PROCESS, Scripted("no")))
    judged = anyio.run(gate.assess, question())
    assert judged.assessment.verdict is GateVerdict.DENY
    assert gate.action(judged) == CONSUMERS[consumer].flagged
