"""The fingerprint: it changes with everything that can change an outcome, and with nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from policy_parts import FIELDS, policies

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.fingerprint import NOT_IN_IT, fingerprint, outcome_fields, plain
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, Thresholds


def test_every_field_is_tried() -> None:
    """A field that a policy gets in future is in the fingerprint by default, and in these tests."""
    names = {field.name for field in attrs.fields(DecisionPolicy)}
    assert set(FIELDS) == names
    assert names > NOT_IN_IT == {"mode", "promotion_criteria", "author", "origin"}


@pytest.mark.parametrize("name", sorted(FIELDS))
@settings(max_examples=25)
@given(data=st.data())
def test_a_field_changes_it_exactly_when_it_can_change_an_outcome(name: str, data: st.DataObject) -> None:
    """Whatever the policy and whatever the other value: mode, criteria, author and origin leave it, all others change it."""
    policy: DecisionPolicy = data.draw(policies)
    value: Any = data.draw(FIELDS[name])
    other = attrs.evolve(policy, **{name: value})
    assume(plain(getattr(other, name)) != plain(getattr(policy, name)))
    assert (fingerprint(other) == fingerprint(policy)) is (name in NOT_IN_IT)


@given(policies, policies)
def test_equal_fingerprints_are_equal_outcomes(one: DecisionPolicy, other: DecisionPolicy) -> None:
    """No two policies that differ anywhere else share one: nothing of a field slips into its neighbour."""
    assert (fingerprint(one) == fingerprint(other)) is (outcome_fields(one) == outcome_fields(other))


@given(policies)
def test_it_does_not_depend_on_the_order_of_a_table(policy: DecisionPolicy) -> None:
    """Languages and outcomes are looked up by name."""
    turned = {name: dict(reversed(list(getattr(policy, name).items()))) for name in ("question", "outcome_mapping")}
    assert fingerprint(attrs.evolve(policy, **turned)) == fingerprint(policy)


def test_the_order_of_rules_is_part_of_it() -> None:
    """The first rule that has something to say decides."""
    policy = attrs.evolve(next(iter(BUILT_IN.values())), local_rules=("a.one", "a.two"))
    assert fingerprint(policy) != fingerprint(attrs.evolve(policy, local_rules=("a.two", "a.one")))


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (0.0, -0.0)])
def test_numbers_that_are_equal_are_one_threshold(one: float, other: float) -> None:
    """How a number is written down decides nothing."""
    policy = next(iter(BUILT_IN.values()))
    first, second = (attrs.evolve(policy, thresholds=Thresholds(yes_at=value)) for value in (one, other))
    assert fingerprint(first) == fingerprint(second)


def test_it_is_the_same_for_ever() -> None:
    """Locks and promotion records hold it: this value may change with the label of the format alone."""
    policy = BUILT_IN["handoff.evidence.consult.v1"]
    assert fingerprint(policy) == "cf08dcc082b930caf8b195e86aa77664eacb93273f3219d93f9dd3bbe02ac7a1"


def test_a_policy_cannot_be_changed_in_place() -> None:
    """Its tables neither: what was fingerprinted is what runs."""
    policy = next(iter(BUILT_IN.values()))
    given = dict(policy.question)
    made = attrs.evolve(policy, question=given)
    given["en"] = "Is it Tuesday?"
    assert made.question == policy.question
    for table, key in ((made.question, "en"), (made.outcome_mapping, DecisionOutcome.YES)):
        with pytest.raises(TypeError):
            table[key] = "x"  # type: ignore[index]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.version = "2"  # type: ignore[misc]
