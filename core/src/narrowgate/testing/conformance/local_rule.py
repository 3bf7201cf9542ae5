"""The contract of a local rule: pure, deterministic, coded, and clear about whether content was judged."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from hypothesis import strategies as st

from narrowgate.seams.gate_ports import ContentJudgement, LocalRule, RuleInput, TransportRefusal
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance, for_examples
from narrowgate.testing.conformance.texts import texts
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionRequest

CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""What a reason code looks like."""

REFERENCES: Final = st.lists(st.sampled_from(["a@1", "b@2", "c@3"]), max_size=2, unique=True).map(tuple)


def inputs() -> st.SearchStrategy[RuleInput]:
    """Draw what a gate could hand to a rule."""
    requests = st.builds(
        DecisionRequest,
        decision_kind=st.just("memory.write-gate"),
        question=texts(),
        subject=st.one_of(st.just(""), texts()),
        evidence=st.lists(texts(), max_size=3).map(tuple),
    )
    return st.builds(
        RuleInput,
        request=requests,
        scope_id=st.sampled_from(["notes", "团队", "other"]),
        allowed_scopes=st.none() | st.frozensets(st.sampled_from(["notes", "团队"])),
        evidence_refs=REFERENCES,
        unresolved_refs=REFERENCES,
        sensitive=st.none() | st.dictionaries(st.sampled_from(["email", "phone"]), st.integers(0, 3), max_size=2),
        leaves=st.booleans(),
        earlier=st.none() | st.sampled_from(GateVerdict),
        cooling=st.booleans(),
    )


class LocalRuleConformance(Conformance):
    """The rules for a `LocalRule`.

    Attributes:
        reasons: every reason code that the rule may give. Logs and metrics have them as labels: there is no other.
        speaks: an input on which the rule must say something; without one its silence would conform.
    """

    reasons: ClassVar[frozenset[str]]
    speaks: ClassVar[RuleInput]

    async def test_fulfils_the_protocol(self, build: Builder[LocalRule]) -> None:
        """What is built has the methods of `LocalRule`."""
        async with build() as rule:
            assert isinstance(rule, LocalRule)

    async def test_says_something(self, build: Builder[LocalRule]) -> None:
        """On the input `speaks` it gives a verdict."""
        async with build() as rule:
            assert rule.judge(self.speaks) is not None

    def test_verdict_tells_judgement_from_transport(self, build: Builder[LocalRule], anyio_backend: str) -> None:
        """Every verdict is a `ContentJudgement`, a `TransportRefusal`, or `None`: nothing that only resembles one."""

        async def rule(given: RuleInput) -> None:
            async with build() as subject:
                verdict = subject.judge(given)
                assert verdict is None or type(verdict) in (ContentJudgement, TransportRefusal), type(verdict)
                if isinstance(verdict, ContentJudgement):
                    assert isinstance(verdict.verdict, GateVerdict), "a judgement allows, denies or asks for review"

        self._on_inputs(rule, anyio_backend)

    def test_reasons_are_the_declared_codes(self, build: Builder[LocalRule], anyio_backend: str) -> None:
        """Every reason is one of `reasons` and has the form of a code, whatever the content says."""
        assert all(CODE.fullmatch(reason) for reason in self.reasons), "a reason is snake_case, at most 64 characters"

        async def rule(given: RuleInput) -> None:
            async with build() as subject:
                verdict = subject.judge(given)
                assert verdict is None or verdict.reason in self.reasons

        self._on_inputs(rule, anyio_backend)

    def test_is_deterministic_and_keeps_nothing(self, build: Builder[LocalRule], anyio_backend: str) -> None:
        """Equal input has an equal verdict, whatever was judged between, and from another instance too."""

        async def rule(given: RuleInput, between: list[RuleInput]) -> None:
            async with build() as subject, build() as another:
                first = subject.judge(given)
                for other in between:
                    subject.judge(other)
                assert subject.judge(given) == first
                assert another.judge(given) == first

        for_examples(anyio_backend, rule, given=self._inputs(), between=st.lists(inputs(), max_size=3))

    def _inputs(self) -> st.SearchStrategy[RuleInput]:
        return st.one_of(st.just(self.speaks), inputs())

    def _on_inputs(self, rule: Any, anyio_backend: str) -> None:
        for_examples(anyio_backend, rule, given=self._inputs())
