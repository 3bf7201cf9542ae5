"""What stored observations say of a policy: classes, verdicts, friction, known false actions, fallbacks; every threshold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from narrowgate.governance.demotion import ACTION
from narrowgate.governance.evidence_files import header
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.lockfile import Lock, locked_as
from narrowgate.values.assessment import Attempt, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy
from narrowgate_cli.rescoring.labels import Label
from narrowgate_cli.rescoring.scoring import AGAINST, NONE, WORDS, Answers, Sweep, acting_side
from narrowgate_cli.rescoring.stored import Stored, span

POINTS: Final = 200
"""The most points of a curve that are written; all of them are computed."""

REPEATED: Final = "already_adjudicated"
"""Reason of a verdict that repeats an earlier one: without that one's number it cannot be rescored."""

_FREE: Final = ("version", "thresholds", "outcome_mapping", "effect", "languages", "failure_policy")
"""Fields that say what is made of an answer, and nothing of what is asked: stored answers hold whatever they are."""

_VERDICTS: Final = (GateVerdict.ALLOW, GateVerdict.DENY, GateVerdict.REVIEW, GateVerdict.UNKNOWN)


def comparable(policy: DecisionPolicy, lock: Lock) -> frozenset[str]:
    """Return the fingerprints whose stored answers are answers to this policy's question.

    Its own, and those of its other versions in the lock that differ in thresholds, mapping and the like alone.
    """
    own = _asked(locked_as(policy).fields)
    others = {
        locked.fingerprint
        for (policy_id, _), locked in lock.items()
        if policy_id == policy.policy_id and locked.fields and _asked(locked.fields) == own
    }
    return frozenset({fingerprint(policy), *others})


def _asked(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name.partition(".")[0] not in _FREE}


@attrs.frozen
class Labelled:
    """One observation whose right verdict is known.

    Attributes:
        record: what is stored of it.
        label: what would have been right.
    """

    record: Mapping[str, Any]
    label: Label


class Rescoring:
    """Stored observations under one policy.

    Args:
        policy: with the thresholds and the mapping that are tried.
        stored: all observations of its id.
        prints: see `comparable`.
        labelled: those whose right verdict is known.
    """

    def __init__(
        self, policy: DecisionPolicy, stored: Stored, prints: Collection[str], labelled: Sequence[Labelled] = ()
    ) -> None:
        self.policy, self.stored = policy, stored.where(~stored.equals("final_action", ACTION))
        self._same = self.stored.equals("fingerprint", *prints)
        self._answers = Answers.of(self.stored)
        backend = self.stored.equals("attempt", Attempt.BACKEND.value) & self._same
        self._judging = backend & (self._answers.said != NONE)
        self._wordless = backend & (self._answers.said == NONE)
        rules = self.stored.equals("attempt", Attempt.LOCAL_RULE.value) & self._same
        repeated = self.stored.equals("reason", REPEATED)
        self._ruled, self._repeated = rules & ~repeated, rules & repeated
        self._labelled = [item for item in labelled if item.record["fingerprint"] in prints]
        self.first, self.last, self.days = span(self.stored)

    def figures(self) -> dict[str, Any]:
        """Return everything that holds under the policy's thresholds and mapping."""
        rows, same = self.stored.rows, int(self._same.sum())
        before, after = self._verdicts()
        known = self._judging | self._ruled
        changed = known & (before != after)
        failed = self._same & ~(self._judging | self._wordless | self._ruled | self._repeated)
        counts = {
            "confirmed": int((known & ~changed).sum()),
            "changed": int(changed.sum()),
            "incomplete": int((~self._same | self._wordless | self._repeated).sum()),
            "authorisation_changed": 0,  # rescoring resolves no reference
            "missing": int(failed.sum()),
        }
        why = self._fallbacks(failed)
        verdicts = {item.value: int((after[known] == place).sum()) for place, item in enumerate(_VERDICTS)}
        friction = self._friction(verdicts)
        false, missed = self._mistakes()
        latency = self.stored.real("latency_ms")
        latency = latency if same == rows else latency[self._same]
        requests = self.stored.real("requests")[self._same]
        return {
            "observations": rows,
            "first": None if self.first is None else self.first.isoformat(),
            "last": None if self.last is None else self.last.isoformat(),
            "days": self.days,
            "classes": counts,
            "coverage": (counts["confirmed"] + counts["changed"]) / rows if rows else None,
            "reasons": {
                "incomplete": _some(
                    another_version=int((~self._same).sum()),
                    no_answer_stored=int(self._wordless.sum()),
                    already_adjudicated=int(self._repeated.sum()),
                ),
                "missing": why,
            },
            "changes": self._changes(before, after, changed),
            "verdicts": verdicts,
            **friction,
            "false_actions": false,
            "missed": missed,
            "labelled": len(self._labelled),
            "fallbacks": why,
            "fallback_rate": int(failed.sum()) / same if same else 0.0,
            "latency_p50": _rank(latency, 0.5),
            "latency_p95": _rank(latency, 0.95),
            "requests_per_decision": float(np.maximum(requests, 0).mean()) if same else None,
            "modes": self.stored.counted("mode"),
        }

    def evidence(self, figures: Mapping[str, Any], *, as_it_stands: bool) -> dict[str, Any]:
        """Return the figures as an evidence file."""
        backends = self.stored.counted("provider_id", self._same)
        models = self.stored.counted("backend_model_id", self._same)
        return {
            **header("rescore", self.policy, list(backends), list(models)),
            "as_it_stands": as_it_stands,
            **figures,
        }

    def _verdicts(self) -> tuple[Any, Any]:
        """Return codes of `_VERDICTS` for every row: then, and under the policy. Only known rows mean anything."""
        column = self.stored.coded("verdict")
        places = {item.value: place for place, item in enumerate(_VERDICTS)}
        before = np.array([*(places[value] for value in column.values), places["unknown"]], np.int8)[column.codes]
        mapping = self.policy.outcome_mapping
        said = (GateVerdict.UNKNOWN, mapping[DecisionOutcome.YES], mapping[DecisionOutcome.NO], GateVerdict.UNKNOWN)
        table = np.array([_VERDICTS.index(item) for item in said], np.int8)
        outcomes = self._answers.outcomes(self.policy.thresholds)
        return before, np.where(self._judging, table[outcomes], before)

    def _changes(self, before: Any, after: Any, changed: Any) -> dict[str, int]:
        size = len(_VERDICTS)
        counts = np.bincount(before[changed].astype(int) * size + after[changed], minlength=size * size)
        return {
            f"{_VERDICTS[place // size].value}>{_VERDICTS[place % size].value}": int(number)
            for place, number in enumerate(counts)
            if number
        }

    def _fallbacks(self, failed: Any) -> dict[str, int]:
        """Return reason -> rows that were not judged: why something failed or was refused, else why nobody was asked."""
        found = self.stored.counted("fallback_reason", failed)
        unasked = failed & (self.stored.coded("fallback_reason").codes < 0)
        for reason, number in self.stored.counted("reason", unasked).items():
            found[reason] = found.get(reason, 0) + number
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def _friction(self, verdicts: Mapping[str, int]) -> dict[str, Any]:
        held = verdicts["deny"] if self.policy.effect is not None else 0
        reviews = verdicts["deny"] + verdicts["review"]
        return {
            "would_hold": held,
            "would_hold_per_day": held / self.days,
            "reviews": reviews,
            "reviews_per_day": reviews / self.days,
        }

    def _mistakes(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return severity -> known false actions, and severity -> known cases that should have been acted on."""
        false: dict[str, int] = {}
        missed: dict[str, int] = {}
        for item in self._labelled:
            verdict, right = self._verdict_of(item.record), item.label.right
            if verdict is None or (verdict in AGAINST) == (right in AGAINST):
                continue
            of = false if verdict in AGAINST else missed
            of[item.label.severity] = of.get(item.label.severity, 0) + 1
        return dict(sorted(false.items())), dict(sorted(missed.items()))

    def _verdict_of(self, record: Mapping[str, Any]) -> GateVerdict | None:
        if record["attempt"] == Attempt.LOCAL_RULE and record["reason"] != REPEATED:
            return GateVerdict(record["verdict"])
        if record["attempt"] != Attempt.BACKEND or record["backend_outcome"] is None:
            return None
        number = record["probability"] if record["probability"] is not None else record["score"]
        outcome = self.policy.thresholds.outcome(DecisionOutcome(record["backend_outcome"]), number)
        return GateVerdict.UNKNOWN if outcome is DecisionOutcome.ABSTAIN else self.policy.outcome_mapping[outcome]

    def sweep(self) -> dict[str, Any] | None:
        """Return what each threshold of the acting side leads to; `None` where no answer acts.

        Every threshold at which anything changes is computed; of many, `POINTS` evenly spread ones are returned.
        """
        side = acting_side(self.policy.outcome_mapping)
        if side is None:
            return None
        thresholds = self.policy.thresholds
        other = thresholds.yes_at if side is DecisionOutcome.NO else thresholds.no_at
        whole = Sweep(self._answers.where(self._judging), side, other)
        values, acting = whole.thresholds()
        number = len(values)
        shown = np.unique(np.linspace(0, number - 1, min(number, POINTS)).astype(int))
        values, acting = values[shown], acting[shown]
        opposite = whole.opposite(values)
        fixed = self._by_rules()
        mine, theirs = self.policy.outcome_mapping[side], self.policy.outcome_mapping[_opposite(side)]
        false = self._labelled_sweep(side, other, GateVerdict.ALLOW)
        right = self._labelled_sweep(side, other, GateVerdict.DENY, GateVerdict.REVIEW)
        points = []
        for place in range(len(shown)):
            at = float(values[place])
            verdicts = dict(fixed)
            verdicts[mine.value] += int(acting[place])
            verdicts[theirs.value] += int(opposite[place])
            points.append(
                {
                    "at": at,
                    **self._friction(verdicts),
                    "undecided": whole.decided - int(acting[place]) - int(opposite[place]),
                    "known_false": false(at),
                    "known_right": right(at),
                }
            )
        return {
            "threshold": "no_at" if side is DecisionOutcome.NO else "yes_at",
            "other": other,
            "in_force": thresholds.no_at if side is DecisionOutcome.NO else thresholds.yes_at,
            "thresholds": number,
            "points": points,
        }

    def _by_rules(self) -> dict[str, int]:
        """Return verdict -> rows that a local rule judged, which no threshold changes."""
        counted = self.stored.counted("verdict", self._ruled)
        return {item.value: counted.get(item.value, 0) for item in _VERDICTS}

    def _labelled_sweep(self, side: DecisionOutcome, other: float | None, *rights: GateVerdict) -> Any:
        """Return a function threshold -> how many of the observations with these labels would be acted on."""
        fixed, said, numbers = 0, [], []
        for item in self._labelled:
            if item.label.right not in rights:
                continue
            record = item.record
            if record["attempt"] == Attempt.BACKEND and record["backend_outcome"] is not None:
                said.append(WORDS.index(DecisionOutcome(record["backend_outcome"])))
                number = record["probability"] if record["probability"] is not None else record["score"]
                numbers.append(np.nan if number is None else number)
            else:
                fixed += self._verdict_of(record) in AGAINST
        found = Sweep(Answers(np.array(said, np.int8), np.array(numbers, np.float64)), side, other)
        theirs = self.policy.outcome_mapping[_opposite(side)] in AGAINST
        return lambda at: fixed + int(found.acting(at)) + (int(found.opposite(at)) if theirs else 0)


def _opposite(side: DecisionOutcome) -> DecisionOutcome:
    return DecisionOutcome.YES if side is DecisionOutcome.NO else DecisionOutcome.NO


def _some(**counts: int) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def _rank(values: Any, share: float) -> float | None:
    """Return the smallest value that so many do not exceed."""
    if not len(values):
        return None
    place = max(0, int(np.ceil(share * len(values))) - 1)
    return float(np.partition(values, place)[place])
