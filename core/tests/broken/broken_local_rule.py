"""Local rules that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import attrs
import pytest

from narrowgate.seams.gate_ports import ContentJudgement, RuleInput
from narrowgate.testing import Builder, LocalRuleConformance
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionRequest


class Sound:
    """Denies what is long. The others depart from it."""

    def judge(self, given: RuleInput) -> Any:
        """Deny what is long."""
        return ContentJudgement(GateVerdict.DENY, "too_long") if len(given.request.subject) > 40 else None


class Broken(LocalRuleConformance):
    """What is said of each of them."""

    reasons = frozenset({"too_long"})
    speaks = RuleInput(request=DecisionRequest("memory.write-gate", "?", "long" * 100), scope_id="notes")
    breaks: ClassVar[frozenset[str]] = frozenset()
    rule: ClassVar[Callable[[], Any]] = Sound

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the rule of this class."""
        return lambda: nullcontext(type(self).rule())


class TestSound(Broken):
    """Breaks nothing."""


class TestNoRule(Broken):
    """Has no method `judge`."""

    rule = object
    breaks = frozenset(name for name in vars(LocalRuleConformance) if name.startswith("test_"))


class Mute:
    """Never says anything."""

    def judge(self, given: RuleInput) -> Any:
        """Say nothing."""


class TestMute(Broken):
    """Silence does not conform."""

    rule = Mute
    breaks = frozenset({"test_says_something"})


@attrs.frozen
class Answer:
    """Neither of the two types of verdict."""

    reason: str


class Resembling(Sound):
    """Answers with something that looks like a judgement, and leaves open which kind."""

    def judge(self, given: RuleInput) -> Any:
        """Deny what is long, somehow."""
        return super().judge(given) and Answer("too_long")


class TestResembling(Broken):
    """A verdict is of one of the two types."""

    rule = Resembling
    breaks = frozenset({"test_verdict_tells_judgement_from_transport"})


class Talkative(Sound):
    """Puts content into its reason."""

    def judge(self, given: RuleInput) -> Any:
        """Deny, and repeat the text."""
        return super().judge(given) and ContentJudgement(GateVerdict.DENY, given.request.subject[:10])


class TestTalkative(Broken):
    """A reason is a code."""

    rule = Talkative
    breaks = frozenset({"test_reasons_are_the_declared_codes"})


class Counting(Sound):
    """Denies each text once only."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def judge(self, given: RuleInput) -> Any:
        """Deny what is long and new."""
        text = given.request.subject
        new = text not in self._seen
        self._seen.add(text)
        return super().judge(given) if new else None


class TestCounting(Broken):
    """A rule keeps nothing."""

    rule = Counting
    breaks = frozenset({"test_is_deterministic_and_keeps_nothing"})
