"""Rescoring is exact: at every threshold it says what a gate would, row by row, and makes no judgement of what was none."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rescoring_parts import POLICY, answer, observed, ruled, stored

from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.gate import Gate
from narrowgate.governance.lockfile import locked_as
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.columns import record_of
from narrowgate.values.decision import DecisionOutcome, DecisionResult
from narrowgate.values.policy import DecisionPolicy, Thresholds
from narrowgate_cli.rescoring.labels import Label
from narrowgate_cli.rescoring.report import Labelled, Rescoring, comparable
from narrowgate_cli.rescoring.scoring import AGAINST, Answers, Sweep, acting_side

NUMBERS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000001, 0.75, 0.9, 1.0])


@st.composite
def answers(draw: st.DrawFn) -> DecisionResult:
    """Draw an answer: with a probability, with a score alone, with neither, or an abstention with or without numbers."""
    return answer(
        draw(st.sampled_from(["yes", "no", "abstain"])),
        draw(st.none() | NUMBERS),
        draw(st.none() | NUMBERS.map(lambda number: number * 8 - 4)),
    )


@st.composite
def thresholds(draw: st.DrawFn) -> Thresholds:
    """Draw thresholds that can be: either, both or none set, far ones too."""
    yes_at, no_at = draw(st.none() | NUMBERS), draw(st.none() | NUMBERS)
    if yes_at is not None and no_at is not None and no_at >= yes_at:
        yes_at = None
    return Thresholds(yes_at=yes_at, no_at=no_at)


MAPPINGS = st.sampled_from(
    [("allow", "deny"), ("deny", "allow"), ("review", "allow"), ("allow", "review"), ("deny", "review"), ("review", "deny")]
)


def policies() -> st.SearchStrategy[DecisionPolicy]:
    """Draw policies with any thresholds and mappings."""
    return st.builds(
        lambda said, means: attrs.evolve(
            POLICY,
            thresholds=said,
            outcome_mapping={DecisionOutcome.YES: GateVerdict(means[0]), DecisionOutcome.NO: GateVerdict(means[1])},
        ),
        thresholds(),
        MAPPINGS,
    )


def verdict(policy: DecisionPolicy, result: DecisionResult) -> GateVerdict:
    """Return what a gate makes of an answer: the naive way, one by one."""
    outcome, _ = Gate(policy).outcome_of(result)
    return GateVerdict.UNKNOWN if outcome is DecisionOutcome.ABSTAIN else policy.outcome_mapping[outcome]


def rescored(policy: DecisionPolicy, results: list[Any], **more: Any) -> Rescoring:
    """Return what stored observations, made under `POLICY`, say of another policy with the same question."""
    made = [observed(number, result) for number, result in enumerate(results)]
    return Rescoring(policy, stored(made), {fingerprint(POLICY)}, **more)


@given(st.lists(answers(), max_size=30), policies())
def test_verdicts_are_those_of_a_gate_row_by_row(results: list[DecisionResult], policy: DecisionPolicy) -> None:
    """Under any thresholds and mapping, each verdict is counted as a gate would give it."""
    figures = rescored(policy, results).figures()
    naive = [verdict(policy, result) for result in results]
    assert figures["verdicts"] == {item.value: naive.count(item) for item in GateVerdict}
    before = [verdict(POLICY, result) for result in results]
    changed = sum(one is not other for one, other in zip(before, naive, strict=True))
    assert figures["classes"]["changed"] == changed
    assert figures["classes"]["confirmed"] == len(results) - changed
    assert sum(figures["changes"].values()) == changed


@given(st.lists(answers(), max_size=30), policies())
def test_every_threshold_at_once_is_each_threshold_by_itself(results: list[DecisionResult], policy: DecisionPolicy) -> None:
    """At every threshold there is, and between two, the sweep counts what a gate with exactly that threshold would."""
    side = acting_side(policy.outcome_mapping)
    assert side is not None
    name, other = ("no_at", policy.thresholds.yes_at) if side is DecisionOutcome.NO else ("yes_at", policy.thresholds.no_at)
    sweep = Sweep(Answers.of(stored([observed(number, item) for number, item in enumerate(results)])), side, other)
    values, acting = sweep.thresholds()
    numbers = {item.probability if item.probability is not None else item.score for item in results}
    assert set(values) <= numbers
    for at in sorted({*map(float, values), 0.3, -10.0, 10.0}):
        try:
            tried = attrs.evolve(policy, thresholds=attrs.evolve(policy.thresholds, **{name: at}))
        except ValueError:
            assert at not in values
            continue
        outcomes = [Gate(tried).outcome_of(result)[0] for result in results]
        assert int(sweep.acting(at)) == outcomes.count(side)
        opposite = DecisionOutcome.YES if side is DecisionOutcome.NO else DecisionOutcome.NO
        assert int(sweep.opposite(at)) == outcomes.count(opposite)
    assert [int(number) for number in acting] == [int(sweep.acting(at)) for at in values]
    assert list(values) == sorted(set(values))


@given(st.lists(answers(), min_size=1, max_size=20), policies(), st.lists(st.sampled_from(["allow", "deny"]), min_size=20))
def test_known_false_actions_follow_the_threshold(
    results: list[DecisionResult], policy: DecisionPolicy, rights: list[str]
) -> None:
    """What is known to be right is compared with what each threshold would do."""
    made = [observed(number, result) for number, result in enumerate(results)]
    labels = [Label(GateVerdict(right), "low") for right in rights[: len(made)]]
    labelled = [Labelled(record_of(item), label) for item, label in zip(made, labels, strict=True)]
    done = Rescoring(policy, stored(made), {fingerprint(POLICY)}, labelled)
    pairs = [
        (verdict(policy, result) in AGAINST, label.right in AGAINST) for result, label in zip(results, labels, strict=True)
    ]
    figures = done.figures()
    assert sum(figures["false_actions"].values()) == pairs.count((True, False))
    assert sum(figures["missed"].values()) == pairs.count((False, True))
    curve = done.sweep()
    assert curve is not None
    for point in curve["points"]:
        tried = attrs.evolve(policy, thresholds=attrs.evolve(policy.thresholds, **{curve["threshold"]: point["at"]}))
        naive = [verdict(tried, result) for result in results]
        acted = [item in AGAINST for item in naive]
        assert point["known_false"] == sum(
            one and label.right not in AGAINST for one, label in zip(acted, labels, strict=True)
        )
        assert point["known_right"] == sum(one and label.right in AGAINST for one, label in zip(acted, labels, strict=True))
        assert point["reviews"] == sum(acted)
        assert point["would_hold"] == naive.count(GateVerdict.DENY)


def test_an_abstention_is_never_turned_into_a_judgement() -> None:
    """Whatever number comes with it: a backend that declines has its reasons."""
    done = rescored(attrs.evolve(POLICY, thresholds=Thresholds(no_at=0.9)), [answer("abstain", 0.01), answer("no", 0.01)])
    assert done.figures()["verdicts"] == {"allow": 0, "deny": 1, "review": 0, "unknown": 1}
    curve = done.sweep()
    assert curve is not None
    assert [point["would_hold"] for point in curve["points"]] == [1]


def test_what_was_not_judged_is_missing_and_speaks_by_its_reason() -> None:
    """Failures and unasked questions are counted by reason and are no verdicts."""
    done = rescored(POLICY, [answer("yes", 0.9), "timeout", "timeout", "cooldown"])
    figures = done.figures()
    assert figures["classes"] == {
        "confirmed": 1,
        "changed": 0,
        "incomplete": 0,
        "authorisation_changed": 0,
        "missing": 3,
    }
    assert figures["fallbacks"] == {"timeout": 2, "cooldown": 1}
    assert (figures["fallback_rate"], figures["coverage"]) == (0.75, 0.25)


def test_a_verdict_of_a_rule_stands_and_a_repeated_one_is_incomplete() -> None:
    """No threshold moves a rule; a verdict that repeats a judgement would move with it, and its number is not stored."""
    made = [ruled(0, "deny", "needs_evidence"), ruled(1, "deny", "already_adjudicated"), observed(2, answer("no", 0.2))]
    tried = attrs.evolve(POLICY, thresholds=Thresholds(no_at=0.1))
    done = Rescoring(tried, stored(made), {fingerprint(POLICY)})
    figures = done.figures()
    assert (figures["would_hold"], figures["classes"]["confirmed"], figures["classes"]["changed"]) == (1, 1, 1)
    assert figures["reasons"]["incomplete"] == {"already_adjudicated": 1}
    curve = done.sweep()
    assert curve is not None
    assert [(point["at"], point["would_hold"]) for point in curve["points"]] == [(0.2, 2)]


def test_answers_to_another_question_are_incomplete() -> None:
    """An observation of a version whose question differs says nothing about this one; of other thresholds, it does."""
    reworded = attrs.evolve(POLICY, version="0", question={"en": "Is it so?"})
    looser = attrs.evolve(POLICY, version="2", thresholds=Thresholds(no_at=0.05))
    lock = {(item.policy_id, item.version): locked_as(item) for item in (reworded, POLICY, looser)}
    prints = comparable(looser, lock)
    assert prints == {fingerprint(POLICY), fingerprint(looser)}
    made = [observed(0, answer("no", 0.01)), observed(1, answer("no", 0.01), reworded), observed(2, answer("no", 0.3))]
    figures = Rescoring(looser, stored(made), prints).figures()
    assert figures["classes"]["incomplete"] == 1
    assert figures["reasons"]["incomplete"] == {"another_version": 1}
    assert figures["verdicts"] == {"allow": 0, "deny": 1, "review": 0, "unknown": 1}


def test_friction_is_counted_by_the_day() -> None:
    """Nine observations, six hours apart, are two days; less than a day counts as one."""
    figures = rescored(POLICY, [answer("no", 0.1)] * 9).figures()
    assert (figures["days"], figures["would_hold"], figures["reviews_per_day"]) == (2.0, 9, 4.5)
    figures = rescored(POLICY, [answer("no", 0.1)] * 3).figures()
    assert (figures["days"], figures["reviews_per_day"]) == (1.0, 3.0)


def test_nothing_stored_is_no_result() -> None:
    """Without observations there are no shares, and nothing divides by zero."""
    done = rescored(POLICY, [])
    figures = done.figures()
    assert (figures["observations"], figures["coverage"], figures["requests_per_decision"]) == (0, None, None)
    curve = done.sweep()
    assert curve is not None
    assert curve["points"] == []


def test_a_question_that_raises_nothing_has_no_threshold_to_choose() -> None:
    """Where both answers let pass there is nothing to sweep."""
    mapping = dict.fromkeys((DecisionOutcome.YES, DecisionOutcome.NO), GateVerdict.ALLOW)
    assert rescored(attrs.evolve(POLICY, outcome_mapping=mapping), [answer("yes", 0.9)]).sweep() is None


def test_of_a_long_curve_evenly_spread_points_are_shown() -> None:
    """All thresholds are computed; the first and the last are among those that are shown."""
    done = rescored(POLICY, [answer("no", number / 1000) for number in range(1000)])
    curve = done.sweep()
    assert curve is not None
    assert (curve["thresholds"], len(curve["points"])) == (1000, 200)
    assert (curve["points"][0]["at"], curve["points"][-1]["at"]) == (0.0, 0.999)
    assert (curve["points"][0]["would_hold"], curve["points"][-1]["would_hold"]) == (1, 1000)


@pytest.mark.parametrize("number", [np.nan])
def test_a_word_without_a_number_is_its_own_answer(number: float) -> None:
    """No threshold reaches it."""
    sweep = Sweep(Answers(np.array([2, 1], np.int8), np.array([number, number])), DecisionOutcome.NO, None)
    assert (int(sweep.acting(0.0)), int(sweep.opposite(0.0)), len(sweep.thresholds()[0])) == (1, 1, 0)
