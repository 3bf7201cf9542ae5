"""Promotion: every criterion is held against the evidence by itself, and each alone is enough to refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.evaluation import CaseResult
from narrowgate.governance.evidence_files import Evaluation, Replayed, Rescored
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.promotion import Request, criteria, demoted, promoted
from narrowgate.governance.records import append_record, read_records, standing, why_not_enforcing
from narrowgate.values.assessment import Attempt, GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, PromotionCriteria

POLICY = attrs.evolve(
    BUILT_IN["memory.write.evidence_sufficiency.v1"],
    policy_id="team.write.v1",
    author="ana",
    origin="write.toml",
    promotion_criteria=PromotionCriteria(min_labelled=4, min_held_out=4, min_precision=0.9, max_reviews_per_day=5),
)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
YES, NO = DecisionOutcome.YES, DecisionOutcome.NO


def case(name: str, part: str, language: str, expected: DecisionOutcome, said: DecisionOutcome, **more: Any) -> CaseResult:
    """Return a case with the backend's answer."""
    values: dict[str, Any] = {
        "case_id": name,
        "part": part,
        "language": language,
        "severity": "low",
        "expected": expected,
        "digest": f"{part}:{name}",
        "right": POLICY.outcome_mapping[expected],
        "attempt": Attempt.BACKEND,
        "verdict": POLICY.outcome_mapping[said],
        "judged": True,
        "outcome": said,
        "backend_outcome": said,
        "latency_ms": 20.0,
        "calls": 1,
        "requests": 1,
    }
    return CaseResult(**{**values, **more})


def sound() -> tuple[CaseResult, ...]:
    """Return both parts, in both languages, with both answers, all right."""
    return tuple(
        case(f"{language}-{said}", part, language, said, said)
        for part in ("calibration", "held-out")
        for language in ("en", "zh")
        for said in (YES, NO)
    )


def evaluation(results: tuple[CaseResult, ...] | None = None, policy: DecisionPolicy = POLICY, **more: Any) -> Evaluation:
    """Return an evaluation."""
    values: dict[str, Any] = {
        **about(policy, "cases.json"),
        "bundle": "b.1",
        "bundle_digest": "b" * 64,
        "results": sound() if results is None else results,
    }
    return Evaluation(**{**values, **more})


def rescored(policy: DecisionPolicy = POLICY, **more: Any) -> Rescored:
    """Return rescored observations."""
    values: dict[str, Any] = {
        **about(policy, "shadow.json"),
        "as_it_stands": True,
        "observations": 1000,
        "classes": {"confirmed": 990, "changed": 0, "incomplete": 0, "authorisation_changed": 0, "missing": 10},
        "days": 10.0,
        "fallback_rate": 0.01,
        "fallbacks": {"timeout": 7, "cooldown": 3},
        "latency_p95": 40.0,
        "requests_per_decision": 0.9,
        "would_hold": 20,
        "reviews_per_day": 2.0,
        "false_actions": {},
    }
    return Rescored(**{**values, **more})


def about(policy: DecisionPolicy, name: str) -> dict[str, Any]:
    """Return what every kind of evidence has."""
    return {
        "name": name,
        "digest": "e" * 64,
        "policy_id": policy.policy_id,
        "version": policy.version,
        "fingerprint": fingerprint(policy),
        "made_at": NOW,
        "backends": ("local.evidence",),
        "models": (),
    }


def request(*evidence: Any, **more: Any) -> Request:
    """Return a promotion to enforcing that is sound, but for what is said otherwise."""
    values: dict[str, Any] = {
        "policy": POLICY,
        "to": GateMode.ENFORCING,
        "previous": GateMode.SHADOW,
        "evidence": evidence or (evaluation(), rescored()),
        "by": "ana",
        "approver": "bo",
        "backend": "local.evidence",
        "locked": True,
        "separation_of_duties": True,
    }
    return Request(**{**values, **more})


def unmet(*evidence: Any, **more: Any) -> dict[str, str]:
    """Return name -> what is missing, of the criteria that are not met."""
    return {item.name: str(item.missing) for item in criteria(request(*evidence, **more)) if not item.met}


def test_sound_evidence_meets_everything() -> None:
    """Each criterion says what was wanted and what was measured; none says that anything is missing."""
    shown = criteria(request())
    assert unmet() == {}
    assert all(item.missing is None and item.wanted and item.measured is not None for item in shown)
    names = [item.name for item in shown]
    assert len(names) == len(set(names)) == 16
    assert {name for name in names if name.startswith(("max", "min"))} == {
        field.name for field in attrs.fields(PromotionCriteria) if field.name != "languages"
    }


def test_each_labelled_criterion_refuses_by_itself() -> None:
    """Too few cases, one case in both parts, a language without cases to act on."""
    few = tuple(item for item in sound() if item.part == "held-out" or item.language == "en")
    assert list(unmet(evaluation(few), rescored())) == ["min_labelled"]
    few = tuple(item for item in sound() if item.part == "calibration" or item.case_id != "zh-no")
    assert set(unmet(evaluation(few), rescored())) == {"min_held_out", "languages"}
    shared = (*sound(), case("x", "held-out", "en", NO, NO, digest="calibration:en-no"))
    assert list(unmet(evaluation(shared), rescored())) == ["parts_apart"]
    twice = (evaluation(), evaluation(name="again.json"), rescored())
    less = attrs.evolve(POLICY, promotion_criteria=attrs.evolve(POLICY.promotion_criteria, min_held_out=5))
    assert unmet(*twice, policy=less).keys() == {"min_held_out"}, "one case in two files is one case"


def test_a_known_false_action_of_high_severity_refuses_wherever_it_is_known() -> None:
    """In the held-out part, in the calibration part, or among observations; unknown severity counts as high."""
    name = "max_high_severity_false_actions"
    for part in ("calibration", "held-out"):
        false = (*sound(), case("x", part, "en", YES, NO, severity="high"))
        assert name in unmet(evaluation(false), rescored())
    assert list(unmet(evaluation(), rescored(false_actions={"unknown": 1}))) == [name]
    assert list(unmet(evaluation(), rescored(false_actions={"high": 1}))) == [name]
    assert unmet(evaluation(), rescored(false_actions={"low": 3, "medium": 1})) == {}


def test_precision_holds_in_each_language() -> None:
    """Right in English alone is not right: the Chinese part may not hide behind it."""
    many = tuple(case(f"en-{number}", "held-out", "en", NO, NO) for number in range(40))
    false = (*sound(), *many, case("x", "held-out", "zh", YES, NO))
    assert unmet(evaluation(false), rescored())["min_precision"].startswith("too low: zh 0.500")
    silent = tuple(
        case(f"{language}-{number}", part, language, NO if number else YES, YES)
        for part in ("calibration", "held-out")
        for language in ("en", "zh")
        for number in (0, 1)
    )
    assert "acted on no held-out case" in unmet(evaluation(silent), rescored())["min_precision"]


def test_what_was_observed_is_held_to_its_bounds() -> None:
    """Fallbacks with their reasons, latency, requests, friction: each alone."""
    assert unmet(evaluation(), rescored(fallback_rate=0.2))["max_fallback_rate"] == "0.2 is too much (timeout 7, cooldown 3)"
    assert list(unmet(evaluation(), rescored(latency_p95=1000.5))) == ["max_added_latency_ms"]
    assert list(unmet(evaluation(), rescored(requests_per_decision=1.5))) == ["max_requests_per_decision"]
    assert list(unmet(evaluation(), rescored(reviews_per_day=5.5))) == ["max_reviews_per_day"]
    slow = tuple(attrs.evolve(item, latency_ms=2000.0) for item in sound())
    assert list(unmet(evaluation(slow), rescored())) == ["max_added_latency_ms"], "the worst of all files counts"


def test_enforcing_needs_observations_and_advisory_does_not() -> None:
    """What was never seen in shadow is not promoted; advisory changes no action."""
    observed = ["max_fallback_rate", "max_added_latency_ms", "max_requests_per_decision", "max_reviews_per_day"]
    assert list(unmet(evaluation())) == observed
    assert list(unmet(evaluation(), rescored(observations=0))) == observed
    assert unmet(evaluation(), to=GateMode.ADVISORY) == {}
    assert list(unmet(evaluation(), rescored(reviews_per_day=9.0), to=GateMode.ADVISORY)) == ["max_reviews_per_day"]


def test_without_labelled_cases_nothing_is_promoted() -> None:
    """Observations say how much would be done, not whether it would be right."""
    assert set(unmet(rescored())) == {
        "min_labelled",
        "min_held_out",
        "languages",
        "max_high_severity_false_actions",
        "min_precision",
    }


def test_evidence_is_about_exactly_this_policy_and_backend() -> None:
    """Another version, other thresholds, another backend or model, and results that do not follow from their answers."""
    other = attrs.evolve(POLICY, version="2")
    assert "cases.json: of another policy" in unmet(evaluation(policy=other), rescored())["evidence"]
    assert "rescored under other thresholds" in unmet(evaluation(), rescored(as_it_stands=False))["evidence"]
    assert list(unmet(evaluation(backends=("hosted.far",)), rescored())) == ["backend"]
    assert list(unmet(evaluation(models=("a",)), rescored(models=("b",)))) == ["backend"]
    assert list(unmet(backend="hosted.far")) == ["backend"]
    turned = tuple(
        attrs.evolve(item, verdict=GateVerdict.ALLOW, outcome=YES) if item.case_id == "zh-no" else item for item in sound()
    )
    assert "not what the policy makes" in unmet(evaluation(turned), rescored())["evidence"]
    nicer = (*sound(), attrs.evolve(case("x", "held-out", "en", YES, NO, severity="high"), right=GateVerdict.DENY))
    assert "not what the policy makes" in unmet(evaluation(nicer), rescored())["evidence"]


def test_lock_effect_and_rollback_are_needed() -> None:
    """What may change unseen, may do nothing, or has nowhere to go back to is not promoted."""
    assert list(unmet(locked=False)) == ["locked"]
    bare = attrs.evolve(POLICY, effect=None)
    assert "effect" in unmet(evaluation(policy=bare), rescored(bare), policy=bare)
    assert list(unmet(previous=GateMode.DISABLED)) == ["rollback"]
    assert list(unmet(evaluation(), previous=GateMode.ADVISORY, to=GateMode.ADVISORY)) == ["rollback"]


@pytest.mark.parametrize("approver", ["ana", "Ana", " ＡＮＡ ", ""])
def test_author_and_approver_differ_where_duties_are_separated(approver: str) -> None:
    """Another spelling of the author is the author."""
    assert list(unmet(approver=approver)) == ["approval"]
    assert list(unmet(approver=approver, separation_of_duties=False)) == ([] if approver else ["approval"])
    nameless = attrs.evolve(POLICY, author=None)
    assert "approval" in unmet(evaluation(policy=nameless), rescored(nameless), policy=nameless)


def test_the_record_says_who_when_what_and_on_which_evidence(tmp_path: Path) -> None:
    """It lets exactly this policy enforce; a demotion after it does not; a criterion unmet makes no record."""
    replay = Replayed(**about(POLICY, "replay.json"), classes={"confirmed": 5, "changed": 1})
    asked = request(evaluation(), rescored(), replay)
    record = promoted(asked, criteria(asked), "two quiet weeks")
    assert (record.author, record.promoted_by, record.approver) == ("ana", "ana", "bo")
    assert record.evidence == dict.fromkeys(("cases.json", "shadow.json", "replay.json"), "e" * 64)
    assert record.measured["min_precision"] == 1.0
    assert record.measured["replay.json:changed"] == 1.0
    append_record(tmp_path, record)
    records = read_records(tmp_path, POLICY.policy_id)
    assert records == (record,)
    assert why_not_enforcing(records, POLICY, separation_of_duties=True) is None
    append_record(tmp_path, demoted(POLICY, record, GateMode.SHADOW, "bo", "a false hold"))
    append_record(tmp_path, demoted(POLICY, record, GateMode.SHADOW, "rule", automatic=True, measured={"rate": 0.5}))
    records = read_records(tmp_path, POLICY.policy_id)
    assert [item.automatic for item in records] == [False, False, True]
    found = standing(records, POLICY)
    assert found is not None
    assert (found.mode, found.previous, found.measured) == (GateMode.SHADOW, GateMode.ENFORCING, {"rate": 0.5})
    assert why_not_enforcing(records, POLICY, separation_of_duties=True) is not None
    with pytest.raises(ValueError, match="not met"):
        promoted(asked, criteria(request(locked=False)))
    assert record.decided_at - datetime.now(UTC) < timedelta(0)
