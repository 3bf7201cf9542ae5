"""What must be shown before a policy gains power (spec 3.8), held against evidence; and the records that say who let it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import attrs

from narrowgate.governance.bundles import CALIBRATION, HELD_OUT
from narrowgate.governance.evaluation import CaseResult, figures, follows
from narrowgate.governance.evidence_files import Evaluation, EvidenceFile, Replayed, Rescored
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import PromotionRecord, person_of
from narrowgate.values.assessment import GateMode
from narrowgate.values.policy import DecisionPolicy

FALLS_BACK_TO: Final = (GateMode.SHADOW, GateMode.ADVISORY)
"""Modes that a demotion may lead to from `enforcing`: the policy goes on being observed."""


@attrs.frozen(kw_only=True)
class Criterion:
    """One thing that must be shown.

    Attributes:
        name: its name; those of the policy's own criteria have their names.
        wanted: what must hold.
        measured: what the evidence shows; `None` where it shows nothing.
        met: whether it holds.
        missing: what is missing or wrong, and the cure; `None` where it holds.
    """

    name: str
    wanted: str
    measured: float | str | None
    met: bool
    missing: str | None = None


@attrs.frozen(kw_only=True)
class Request:
    """A promotion that is asked for.

    Attributes:
        policy: as it would run.
        to: `advisory` or `enforcing`.
        previous: the mode that it has, and would go back to.
        evidence: what was measured.
        by: who asks for it.
        approver: who signs.
        backend: full name of the backend that the configuration would ask; `None` where it asks none.
        locked: whether the lock holds exactly this content, or needs not.
        separation_of_duties: author and approver must differ.
    """

    policy: DecisionPolicy
    to: GateMode
    previous: GateMode
    evidence: tuple[EvidenceFile, ...]
    by: str
    approver: str
    backend: str | None
    locked: bool
    separation_of_duties: bool

    @property
    def author(self) -> str:
        """Who answers for the policy."""
        return self.policy.author or self.by


def criteria(request: Request) -> tuple[Criterion, ...]:
    """Return every criterion with what the evidence shows of it, met or not, in a fixed order.

    `advisory` changes no action: it needs the labelled cases, and may do without observations; where there are some, they
    are held to the same bounds.
    """
    own = fingerprint(request.policy)
    fitting = [item for item in request.evidence if item.fingerprint == own]
    evaluations = [item for item in fitting if isinstance(item, Evaluation)]
    rescored = [item for item in fitting if isinstance(item, Rescored)]
    return (
        _fits(request, fitting),
        _backend(request, fitting),
        *_standing(request),
        *_labelled(request, evaluations),
        _false_actions(request, evaluations, rescored),
        _precision(request, evaluations),
        *_observed(request, evaluations, rescored),
        *_signed(request),
    )


def _fits(request: Request, fitting: Sequence[EvidenceFile]) -> Criterion:
    policy = request.policy
    wanted = f"evidence of exactly version {policy.version}, fingerprint {fingerprint(policy)[:12]}"
    other = [item.name for item in request.evidence if item not in fitting]
    changed = [item.name for item in fitting if isinstance(item, Rescored) and not item.as_it_stands]
    wrong = [
        item.name
        for item in fitting
        if isinstance(item, Evaluation) and not all(follows(result, policy) for result in item.results)
    ]
    missing = None
    if wrong:
        missing = f"{', '.join(wrong)}: a result is not what the policy makes of the stored answer: evaluate again"
    elif other:
        missing = f"{', '.join(other)}: of another policy or version: measure this one"
    elif changed:
        missing = f"{', '.join(changed)}: rescored under other thresholds than the policy's: rescore without them"
    elif not fitting:
        missing = "no evidence was named: `narrowgate policy evaluate` and `rescore` make it"
    return Criterion(name="evidence", wanted=wanted, measured=f"{len(fitting)} files", met=missing is None, missing=missing)


def _backend(request: Request, fitting: Sequence[EvidenceFile]) -> Criterion:
    names = sorted({name for item in fitting for name in item.backends})
    models = sorted({name for item in fitting for name in item.models})
    wanted = f"all of {request.backend or 'local rules alone'}, the backend in use, and of one model"
    met = names in ([], [request.backend] if request.backend else []) and len(models) <= 1
    measured = ", ".join([*names, *models]) or "none"
    if request.backend is not None and not names:
        met = False
    missing = None if met else "the evidence is of another backend, or of several: measure the one in use"
    return Criterion(name="backend", wanted=wanted, measured=measured, met=met, missing=missing)


def _standing(request: Request) -> Iterable[Criterion]:
    policy = request.policy
    yield Criterion(
        name="locked",
        wanted="the lock holds exactly this content",
        measured="yes" if request.locked else "no",
        met=request.locked,
        missing=None if request.locked else "what is promoted must not change unseen: `narrowgate policy lock`",
    )
    if request.to is GateMode.ENFORCING:
        declared = policy.effect is not None
        yield Criterion(
            name="effect",
            wanted="the policy declares the one action that it may have",
            measured=policy.effect,
            met=declared,
            missing=None if declared else f"{policy.consumer} may have none, or the policy names none: advisory at most",
        )
    back = FALLS_BACK_TO if request.to is GateMode.ENFORCING else (GateMode.SHADOW, GateMode.DISABLED)
    met = request.previous in back
    yield Criterion(
        name="rollback",
        wanted=f"a mode to go back to: {' or '.join(back)}",
        measured=request.previous.value,
        met=met,
        missing=None if met else f"it is in {request.previous}: set one of these under [policies.modes] first",
    )


def _cases(evaluations: Sequence[Evaluation], part: str) -> list[CaseResult]:
    """Return the newest result of each different case of a part."""
    found: dict[str, CaseResult] = {}
    for item in sorted(evaluations, key=lambda item: item.made_at):
        found.update({result.digest: result for result in item.results if result.part == part})
    return list(found.values())


def _labelled(request: Request, evaluations: Sequence[Evaluation]) -> Iterable[Criterion]:
    needed = request.policy.promotion_criteria
    calibration, held_out = _cases(evaluations, CALIBRATION), _cases(evaluations, HELD_OUT)
    for name, least, cases, part in (
        ("min_labelled", needed.min_labelled, calibration, CALIBRATION),
        ("min_held_out", needed.min_held_out, held_out, HELD_OUT),
    ):
        met = len(cases) >= least
        cure = f"evaluate a bundle with {least - len(cases)} more cases in its part {part}"
        yield Criterion(name=name, wanted=f">= {least}", measured=len(cases), met=met, missing=None if met else cure)
    shared = {item.digest for item in calibration} & {item.digest for item in held_out}
    apart = not shared
    yield Criterion(
        name="parts_apart",
        wanted="no case in both parts",
        measured=len(shared),
        met=apart,
        missing=None if apart else f"{len(shared)} cases are in the calibration and in the held-out part: take them out",
    )
    wanted = sorted({*needed.languages, *request.policy.languages})
    covered = {
        name for name in wanted if len({item.should_act for item in held_out if item.language == name}) == len((True, False))
    }
    absent = [name for name in wanted if name not in covered]
    met = not absent or not needed.min_held_out
    yield Criterion(
        name="languages",
        wanted=f"held-out cases to act on and to let pass in {', '.join(wanted)}",
        measured=", ".join(sorted(covered)) or "none",
        met=met,
        missing=None if met else f"add held-out cases of both kinds in {', '.join(absent)}",
    )


def _false_actions(request: Request, evaluations: Sequence[Evaluation], rescored: Sequence[Rescored]) -> Criterion:
    """Count what is known, in either part and in what was observed: what is known is known."""
    most = request.policy.promotion_criteria.max_high_severity_false_actions
    labelled = {
        result.digest
        for item in evaluations
        for result in item.results
        if result.acts and not result.should_act and result.severity == "high"
    }
    observed = max(
        (item.false_actions.get("high", 0) + item.false_actions.get("unknown", 0) for item in rescored), default=0
    )
    found = len(labelled) + observed
    met = found <= most and bool(evaluations)
    missing = None
    if not evaluations:
        missing = "no labelled case was evaluated: `narrowgate policy evaluate`"
    elif not met:
        where = f"{len(labelled)} among labelled cases, {observed} among observations (severity not known counts as high)"
        missing = f"{where}: move the thresholds, or say in a labels file how severe they are"
    name = "max_high_severity_false_actions"
    return Criterion(name=name, wanted=f"<= {most}", measured=found, met=met, missing=missing)


def _precision(request: Request, evaluations: Sequence[Evaluation]) -> Criterion:
    """Hold the precision on held-out cases to its bound, as a whole and in each language in which anything was done."""
    least = request.policy.promotion_criteria.min_precision
    held_out = _cases(evaluations, HELD_OUT)
    languages = sorted({item.language for item in held_out})
    shown = {name: figures([item for item in held_out if item.language == name])["precision"] for name in languages}
    whole = figures(held_out)["precision"]
    low = [f"{name} {value:.3f}" for name, value in {"all": whole, **shown}.items() if value is not None and value < least]
    missing = None
    if whole is None:
        missing = "it acted on no held-out case, so that nothing is known of its actions: add cases, or move the thresholds"
    elif low:
        missing = f"too low: {', '.join(low)}: move the thresholds, or change the question or the backend"
    return Criterion(name="min_precision", wanted=f">= {least:g}", measured=whole, met=missing is None, missing=missing)


def _observed(request: Request, evaluations: Sequence[Evaluation], rescored: Sequence[Rescored]) -> Iterable[Criterion]:
    needed = request.policy.promotion_criteria
    results = [result for item in evaluations for result in item.results]
    shown = figures(results)
    seen = [item for item in rescored if item.observations]
    needs_seen = request.to is GateMode.ENFORCING
    failed = [sum(shown["fallbacks"].values()) / len(results)] if results else []
    rows: tuple[tuple[str, float, list[float], bool], ...] = (
        ("max_fallback_rate", needed.max_fallback_rate, [*failed, *(item.fallback_rate for item in seen)], needs_seen),
        (
            "max_added_latency_ms",
            needed.max_added_latency_ms,
            _numbers([shown["latency_ms"]["p95"], *(item.latency_p95 for item in seen)]),
            needs_seen,
        ),
        (
            "max_requests_per_decision",
            needed.max_requests_per_decision,
            _numbers([shown["requests_per_decision"], *(item.requests_per_decision for item in seen)]),
            needs_seen,
        ),
        ("max_reviews_per_day", needed.max_reviews_per_day, [item.reviews_per_day for item in seen], needs_seen),
    )
    reasons = _reasons(seen)
    for name, most, measured, observed in rows:
        worst = max(measured, default=None)
        missing = None
        if observed and not seen:
            missing = "nothing was observed: run it in shadow, then `narrowgate policy rescore ID --output FILE`"
        elif worst is not None and worst > most:
            missing = f"{worst:g} is too much" + (f" ({reasons})" if name == "max_fallback_rate" and reasons else "")
        yield Criterion(name=name, wanted=f"<= {most:g}", measured=worst, met=missing is None, missing=missing)


def _numbers(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _reasons(seen: Sequence[Rescored]) -> str:
    total: dict[str, int] = {}
    for item in seen:
        for reason, number in item.fallbacks.items():
            total[reason] = total.get(reason, 0) + number
    return ", ".join(f"{reason} {number}" for reason, number in sorted(total.items(), key=lambda pair: -pair[1]))


def _signed(request: Request) -> Iterable[Criterion]:
    author, approver = person_of(request.policy.author or ""), person_of(request.approver)
    apart = not request.separation_of_duties or (bool(author) and author != approver)
    yield Criterion(
        name="approval",
        wanted="an approver who is not the author" if request.separation_of_duties else "an approver",
        measured=request.approver,
        met=apart and bool(approver),
        missing=None
        if apart and approver
        else "separation_of_duties is on: name the author in the policy, and another person with --approved-by",
    )


def promoted(request: Request, shown: Sequence[Criterion], reason: str | None = None) -> PromotionRecord:
    """Return the record of a promotion whose criteria are all met.

    Raises:
        ValueError: one is not.
    """
    if not all(item.met for item in shown):
        raise ValueError("a criterion is not met")
    policy = request.policy
    reasons = [item for item in request.evidence if isinstance(item, Rescored | Replayed)]
    coverage = {f"{item.name}:{name}": float(number) for item in reasons for name, number in item.classes.items()}
    return PromotionRecord(
        policy_id=policy.policy_id,
        version=policy.version,
        fingerprint=fingerprint(policy),
        mode=request.to,
        previous=request.previous,
        effect=policy.effect,
        author=request.author,
        approver=request.approver,
        promoted_by=request.by,
        decided_at=datetime.now(UTC),
        evidence={item.name: item.digest for item in request.evidence},
        measured={item.name: item.measured for item in shown if item.measured is not None} | coverage,
        reason=reason,
    )


def demoted(
    policy: DecisionPolicy,
    standing: PromotionRecord,
    to: GateMode,
    by: str,
    reason: str | None = None,
    *,
    automatic: bool = False,
    measured: Mapping[str, float | str] | None = None,
) -> PromotionRecord:
    """Return the record that takes power back from a policy.

    Args:
        policy: the policy.
        standing: its newest record.
        to: the mode that it falls back to.
        by: who decided it; a rule, where `automatic`.
        reason: why.
        automatic: a rule decided it, so that the next start runs the policy in `to` instead of refusing `enforcing`.
        measured: what the rule saw.
    """
    return PromotionRecord(
        policy_id=policy.policy_id,
        version=policy.version,
        fingerprint=fingerprint(policy),
        mode=to,
        previous=standing.mode,
        effect=policy.effect,
        author=standing.author,
        approver=by,
        promoted_by=None,
        decided_at=datetime.now(UTC),
        evidence={},
        measured=dict(measured or {}),
        reason=reason,
        automatic=automatic,
    )
