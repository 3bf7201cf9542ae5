"""The gate: one engine for every consumer. Local rules, cooldown, privacy, backend, mapping; then the mode's effect."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, perf_counter
from typing import Final

import attrs

from narrowgate.decisions import NO_USAGE, DecisionOutcome, DecisionRequest, DecisionResult, FailOpen, checked_many
from narrowgate.decisions.answers import INVALID_ANSWER
from narrowgate.governance.consumers import CONSUMERS, Consumer
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.privacy import Projection, project
from narrowgate.governance.questions import Question
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import ContentJudgement, LocalRule, RuleInput, Sanitiser, TransportRefusal
from narrowgate.seams.ports import DecisionBackend
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.policy import DecisionPolicy, FailurePolicy, PrivacyBoundary

REMEMBERED: Final = 10_000
"""Judgements that a gate remembers by content, for the rule that does not ask twice."""

PARSE_CODES: Final = frozenset(
    {INVALID_ANSWER, "empty-body", "not-json", "non-finite", "wrong-shape"}
    | {"cut-answer", "cut-prompt", "no-answer", "prose", "wrong-ids", "wrong-schema"}
)
"""Failure codes that mean: the backend answered, and the answer is no verdict. What breaks the contract of the port, what an
HTTP client cannot read as JSON of the right shape, and what a language model wrote in place of an answer."""


@attrs.frozen
class NamedBackend:
    """A decision backend as composition knows it: full name, where content goes, the object."""

    name: str
    locality: Locality
    backend: DecisionBackend


@attrs.frozen(kw_only=True)
class GateSettings:
    """How a gate treats its backend; the section `[policies]` has the values.

    Attributes:
        timeout: seconds for one call of an advisory role.
        cooldown_after: failures in a row after which the backend is left alone, >= 1.
        cooldown: for how many seconds.
    """

    timeout: float = 10.0
    cooldown_after: int = 3
    cooldown: float = 30.0


@attrs.frozen(kw_only=True)
class Judged:
    """An assessment with what the observation needs beside it.

    Attributes:
        question: what was put to the gate.
        assessment: what came of it.
        privacy_outcome: what the boundary did.
        redactions: detector -> places replaced.
        provider_id: the backend's component, when it was called.
        backend_model_id: the exact model that answered, where the backend can name it.
        model_policy_id: the backend's own id, when it was called.
        backend_outcome: what the backend itself said, before thresholds; `None` when it said nothing.
        fallback_reason: why a failure or refusal stands in for a judgement.
    """

    question: Question
    assessment: DecisionAssessment
    privacy_outcome: str
    redactions: dict[str, int] = attrs.field(factory=dict)
    provider_id: str | None = None
    backend_model_id: str | None = None
    model_policy_id: str | None = None
    backend_outcome: DecisionOutcome | None = None
    fallback_reason: str | None = None


class Gate:
    """Asks one policy's question. It assesses and never acts: the consumer acts, and says what it did.

    Args:
        policy: not `disabled`: a disabled policy builds no gate.
        backend: who answers; `None` leaves everything unadjudicated that no rule judges.
        rules: name and rule, in the policy's order.
        sanitiser: the deployment's redaction.
        settings: see `GateSettings`.
        clock: seconds, rising; for the cooldown.

    Raises:
        ValueError: the policy is disabled.
    """

    def __init__(
        self,
        policy: DecisionPolicy,
        *,
        backend: NamedBackend | None = None,
        rules: Sequence[tuple[str, LocalRule]] = (),
        sanitiser: Sanitiser | None = None,
        settings: GateSettings | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if policy.mode is GateMode.DISABLED:
            raise ValueError(f"policy {policy.policy_id!r} is disabled: a disabled policy has no gate")
        self.policy, self.fingerprint = policy, fingerprint(policy)
        self.consumer: Consumer = CONSUMERS[policy.consumer]
        self._named, self._rules, self._sanitiser = backend, tuple(rules), sanitiser
        self._settings, self._clock = settings or GateSettings(), clock
        self._earlier: OrderedDict[str, GateVerdict] = OrderedDict()
        self._failures, self._cool_until = 0, float("-inf")

    @property
    def cooling(self) -> bool:
        """Whether the backend is being left alone after failures."""
        return self._clock() < self._cool_until

    async def assess(self, question: Question) -> Judged:
        """Return the assessment of one question; see `assess_many`."""
        return (await self.assess_many((question,)))[0]

    async def assess_many(self, questions: Sequence[Question]) -> tuple[Judged, ...]:
        """Return one assessment for each question, in order, each on its own: none holds or frees another.

        Raises:
            RecallError: the backend failed, for a policy that fails closed only. A policy that fails open never raises; a
                cancellation always passes.
        """
        started = perf_counter()
        found: dict[int, Judged] = {}
        asking: list[tuple[int, Projection]] = []
        for place, question in enumerate(questions):
            ruled = self._by_rules(question, started)
            if ruled is not None:
                found[place] = ruled
                continue
            projection = self._projected(question)
            if isinstance(projection, Judged):
                found[place] = projection
            else:
                asking.append((place, projection))
        found.update(await self._ask([(questions[place], place, item) for place, item in asking], started))
        for judged in found.values():
            self._remember(judged)
        return tuple(found[place] for place in range(len(questions)))

    def action(self, judged: Judged) -> str:
        """Return the action that the policy's mode lets an assessment have; the consumer says what really happened."""
        mode, verdict = self.policy.mode, judged.assessment.verdict
        against = verdict in (GateVerdict.DENY, GateVerdict.REVIEW)
        if mode is GateMode.SHADOW or not against:
            return self.consumer.passed
        denied = verdict is GateVerdict.DENY and judged.assessment.coverage is Coverage.ADJUDICATED
        if mode is GateMode.ENFORCING and denied and self.policy.effect is not None:
            return self.consumer.effects[self.policy.effect]
        return self.consumer.flagged or self.consumer.passed

    def _by_rules(self, question: Question, started: float) -> Judged | None:
        if question.prejudged is not None:
            return self._ruled(question, question.prejudged, started)
        leaves = self._named is not None and self._named.locality is Locality.HOSTED
        sensitive = None
        if self._sanitiser is not None and self._rules:
            sensitive = _summed(item.found for item in self._sanitiser.redact((question.subject, *question.evidence)))
        given = RuleInput(
            request=DecisionRequest(
                self.policy.decision_kind, question.text_of(self.policy), question.subject, question.evidence
            ),
            scope_id=question.scope_id,
            allowed_scopes=question.allowed_scopes,
            evidence_refs=question.evidence_refs,
            unresolved_refs=question.unresolved_refs,
            sensitive=sensitive,
            leaves=leaves,
            earlier=self._earlier.get(question.content_hash(self.fingerprint)),
            cooling=self.cooling,
        )
        for _name, rule in self._rules:
            said = rule.judge(given)
            if said is None:
                continue
            if isinstance(said, TransportRefusal):
                attempt = Attempt.PRIVACY_FALLBACK if said.privacy else Attempt.NO_CALL
                return self._open(question, attempt, said.reason, "not_sent" if said.privacy else "no_call", started)
            return self._ruled(question, said, started)
        return None

    def _ruled(self, question: Question, said: ContentJudgement, started: float) -> Judged:
        assessment = DecisionAssessment(
            policy_id=self.policy.policy_id,
            policy_version=self.policy.version,
            mode=self.policy.mode,
            attempt=Attempt.LOCAL_RULE,
            coverage=Coverage.ADJUDICATED,
            verdict=said.verdict,
            source=VerdictSource.LOCAL_RULE,
            reason=said.reason,
            latency_ms=_since(started),
        )
        return Judged(question=question, assessment=assessment, privacy_outcome="local_rule")

    def not_asked(self, question: Question, reason: str) -> Judged:
        """Return the assessment that nobody was asked, and why."""
        return self._open(question, Attempt.NO_CALL, reason, "no_call", perf_counter())

    def _projected(self, question: Question) -> Projection | Judged:
        now = perf_counter()
        if self._named is None:
            refused = self.policy.privacy_boundary is PrivacyBoundary.NO_EXTERNAL_CALL
            outcome = "no_external_call" if refused else "no_call"
            return self._open(question, Attempt.NO_CALL, "no_backend", outcome, now)
        if self.cooling:
            return self._open(question, Attempt.NO_CALL, "cooldown", "no_call", now)
        projection = project(self.policy, question, self._named.locality, self._sanitiser)
        if projection.request is None:
            judged = self._open(question, Attempt.PRIVACY_FALLBACK, "privacy_boundary", projection.outcome, now)
            return attrs.evolve(judged, redactions=dict(projection.redactions))
        return projection

    async def _ask(self, asking: Sequence[tuple[Question, int, Projection]], started: float) -> list[tuple[int, Judged]]:
        if not asking or self._named is None:
            return []
        bare = self._named.backend
        fails_open = self.policy.failure_policy is FailurePolicy.FAIL_OPEN
        backend: DecisionBackend = FailOpen(bare, self._settings.timeout) if fails_open else bare
        found: list[tuple[int, Judged]] = []
        size = max(1, bare.batch_limit)
        for start in range(0, len(asking), size):
            part = asking[start : start + size]
            if start and self.cooling:
                # The backend failed on the way: the rest is not sent after it, and is not taken for judged either.
                found += [
                    (place, self._open(question, Attempt.NO_CALL, "cooldown", "no_call", started))
                    for question, place, _ in part
                ]
                continue
            requests = [item.request for _, _, item in part if item.request is not None]
            if size > 1:
                results = checked_many(await backend.evaluate_many(requests), len(requests))
            else:
                results = checked_many((await backend.evaluate(requests[0]),), 1)
            self._note([result.used_fallback for result in results])
            for (question, place, item), result in zip(part, results, strict=True):
                found.append((place, self._mapped(question, item, result, started)))
        return found

    def _note(self, failed: Sequence[bool]) -> None:
        self._failures = self._failures + 1 if all(failed) else 0
        if self._failures >= self._settings.cooldown_after:
            self._cool_until, self._failures = self._clock() + self._settings.cooldown, 0

    def _mapped(self, question: Question, item: Projection, result: DecisionResult, started: float) -> Judged:
        policy = self.policy
        if result.used_fallback:
            code = result.reason or "backend_failed"
            attempt = Attempt.PARSE_FAILURE if code in PARSE_CODES else Attempt.BACKEND_FALLBACK
            judged = self._open(question, attempt, "decision_model_fallback", "local_model_fallback", started)
            assessment = attrs.evolve(judged.assessment, usage=result.usage)
            return attrs.evolve(self._by_backend(judged, item, result), assessment=assessment, fallback_reason=code)
        outcome, confidence = self.outcome_of(result)
        decided = outcome is not DecisionOutcome.ABSTAIN
        assessment = DecisionAssessment(
            policy_id=policy.policy_id,
            policy_version=policy.version,
            mode=policy.mode,
            attempt=Attempt.BACKEND,
            coverage=Coverage.ADJUDICATED if decided else Coverage.UNADJUDICATED,
            verdict=policy.outcome_mapping[outcome] if decided else GateVerdict.UNKNOWN,
            source=VerdictSource.DECISION_MODEL,
            reason="decision_model_verdict" if decided else (result.reason or "abstain"),
            outcome=outcome,
            probability=result.probability,
            score=result.score,
            confidence=confidence,
            usage=result.usage,
            latency_ms=_since(started),
        )
        judged = Judged(
            question=question, assessment=assessment, privacy_outcome=item.outcome, backend_outcome=result.outcome
        )
        return self._by_backend(judged, item, result)

    def _by_backend(self, judged: Judged, item: Projection, result: DecisionResult) -> Judged:
        provider = self._named.name if self._named is not None else None
        model = getattr(self._named.backend, "exact_model", None) if self._named is not None else None
        return attrs.evolve(
            judged,
            redactions=dict(item.redactions),
            provider_id=provider,
            backend_model_id=model,
            model_policy_id=result.policy_id,
        )

    def outcome_of(self, result: DecisionResult) -> tuple[DecisionOutcome, float | None]:
        """Return yes, no or abstain under the policy's thresholds, and the confidence in it where there is a probability.

        See `Thresholds.outcome`; a backend without a probability is held to them by its score.
        """
        number = result.probability if result.probability is not None else result.score
        outcome = self.policy.thresholds.outcome(result.outcome, number)
        if result.probability is None or outcome is DecisionOutcome.ABSTAIN:
            return outcome, None
        return outcome, result.probability if outcome is DecisionOutcome.YES else 1.0 - result.probability

    def _open(self, question: Question, attempt: Attempt, reason: str, privacy: str, started: float) -> Judged:
        """Return an assessment that says: not judged, and why."""
        fallback = attempt not in (Attempt.NO_CALL,)
        assessment = DecisionAssessment(
            policy_id=self.policy.policy_id,
            policy_version=self.policy.version,
            mode=self.policy.mode,
            attempt=attempt,
            coverage=Coverage.UNADJUDICATED,
            verdict=GateVerdict.UNKNOWN,
            source=VerdictSource.NONE,
            reason=reason,
            used_fallback=fallback,
            usage=NO_USAGE,
            latency_ms=_since(started),
        )
        return Judged(
            question=question, assessment=assessment, privacy_outcome=privacy, fallback_reason=reason if fallback else None
        )

    def _remember(self, judged: Judged) -> None:
        if judged.assessment.attempt is Attempt.BACKEND and judged.assessment.coverage is Coverage.ADJUDICATED:
            key = judged.question.content_hash(self.fingerprint)
            self._earlier[key] = judged.assessment.verdict
            self._earlier.move_to_end(key)
            while len(self._earlier) > REMEMBERED:
                self._earlier.popitem(last=False)


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for item in counts:
        for detector, number in item.items():
            total[detector] = total.get(detector, 0) + number
    return total


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000
