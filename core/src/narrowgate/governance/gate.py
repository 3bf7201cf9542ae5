"""The gate: one engine for every consumer. Local rules, cooldown, privacy, backend, mapping; then the mode's effect."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import Final

import attrs

from narrowgate.decisions import NO_USAGE, DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.decisions.answers import INVALID_ANSWER
from narrowgate.governance.asking import Cooldown, GateSettings, NamedBackend, ask_closed, ask_open
from narrowgate.governance.consumers import CONSUMERS, Consumer
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.privacy import LOCAL_CALL, Projection, found_in, leaves, project, redacted
from narrowgate.governance.questions import Question
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import ContentJudgement, LocalRule, RuleInput, Sanitiser, TransportRefusal
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

SANITISER_FAILED: Final = "sanitiser_failed"
"""Reason of an assessment: redaction raised, or gave back something else than it was given. Nothing was sent."""

RULE_FAILED: Final = "rule_failed"
"""Reason of an assessment: a local rule raised, or said something that is no verdict. Nobody was asked."""

_log = logging.getLogger("narrowgate.governance")


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
        self.policy: DecisionPolicy = policy
        self.fingerprint: str = fingerprint(policy)
        self.consumer: Consumer = CONSUMERS[policy.consumer]
        self._named, self._rules, self._sanitiser = backend, tuple(rules), sanitiser
        self._settings = settings or GateSettings()
        self._cooldown = Cooldown(self._settings, clock)
        self._earlier: OrderedDict[str, GateVerdict] = OrderedDict()

    def demote(self, mode: GateMode) -> None:
        """Take power back while running: what is assessed from now on is assessed in `mode`.

        Raises:
            ValueError: the mode is `disabled` or `enforcing`: what is to be off is not built, and power is not given here.
        """
        if mode in (GateMode.DISABLED, GateMode.ENFORCING):
            raise ValueError(f"a running gate cannot be put into {mode}")
        self.policy = attrs.evolve(self.policy, mode=mode)

    @property
    def cooling(self) -> bool:
        """Whether the backend is being left alone after failures."""
        return self._cooldown.cooling

    async def assess(self, question: Question) -> Judged:
        """Return the assessment of one question; see `assess_many`."""
        return (await self.assess_many((question,)))[0]

    async def assess_many(self, questions: Sequence[Question]) -> tuple[Judged, ...]:
        """Return one assessment for each question, in order, each on its own: none holds or frees another.

        Raises:
            Exception: the backend, a rule or the sanitiser failed, for a policy that fails closed only. A policy that fails
                open never raises; a cancellation always passes.
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
        """Return the action that an assessment may have in the mode that it was made in; the consumer says what happened."""
        mode, verdict = judged.assessment.mode, judged.assessment.verdict
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
        if not self._rules:
            return None
        try:
            given = self._rule_input(question)
        except Exception as error:  # noqa: BLE001 - third-party code: what cannot be looked at is not sent either
            return self._broken(question, Attempt.PRIVACY_FALLBACK, SANITISER_FAILED, error, started)
        for _name, rule in self._rules:
            try:
                said = rule.judge(given)
                if isinstance(said, ContentJudgement):
                    return self._ruled(question, said, started)
                if isinstance(said, TransportRefusal):
                    attempt = Attempt.PRIVACY_FALLBACK if said.privacy else Attempt.NO_CALL
                    return self._open(question, attempt, said.reason, "not_sent" if said.privacy else "no_call", started)
                if said is not None:
                    raise TypeError("a local rule returns a ContentJudgement, a TransportRefusal or None")
            except Exception as error:  # noqa: BLE001 - as above: the rule may be the one that keeps content here
                return self._broken(question, Attempt.NO_CALL, RULE_FAILED, error, started)
        return None

    def _broken(self, question: Question, attempt: Attempt, reason: str, error: Exception, started: float) -> Judged:
        if self.policy.failure_policy is FailurePolicy.FAIL_CLOSED:
            raise error
        _log.warning(
            "policy %s: %s (%s); what it could not look at is not judged",
            self.policy.policy_id,
            reason,
            type(error).__name__,
            extra={"event": "gate.part_failed", "policy_id": self.policy.policy_id, "reason": reason},
        )
        return self._open(
            question, attempt, reason, "not_sent" if attempt is Attempt.PRIVACY_FALLBACK else "no_call", started
        )

    def _rule_input(self, question: Question) -> RuleInput:
        sensitive = None
        if self._sanitiser is not None:
            sensitive = found_in(redacted((question.subject, *question.evidence), self._sanitiser))
        return RuleInput(
            request=DecisionRequest(
                self.policy.decision_kind, question.text_of(self.policy), question.subject, question.evidence
            ),
            scope_id=question.scope_id,
            allowed_scopes=question.allowed_scopes,
            evidence_refs=question.evidence_refs,
            unresolved_refs=question.unresolved_refs,
            sensitive=sensitive,
            leaves=self._named is not None and leaves(self.policy.privacy_boundary, self._named.locality),
            earlier=self._earlier.get(question.content_hash(self.fingerprint)),
            cooling=self.cooling,
        )

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

    def not_asked(self, question: Question, reason: str, usage: Usage | None = None) -> Judged:
        """Return the assessment that nobody judged, and why.

        Args:
            question: what was not judged.
            reason: a closed code.
            usage: what calls cost that were cut off; `None` where nobody was asked.
        """
        if usage is None:
            return self._open(question, Attempt.NO_CALL, reason, "no_call", perf_counter())
        judged = self._open(question, Attempt.BACKEND_FALLBACK, reason, _failing(self._privacy_of_a_call()), perf_counter())
        provider = self._named.name if self._named is not None else None
        return attrs.evolve(judged, assessment=attrs.evolve(judged.assessment, usage=usage), provider_id=provider)

    def _privacy_of_a_call(self) -> str:
        local = self._named is None or self._named.locality is not Locality.HOSTED
        return LOCAL_CALL if local else f"{self.policy.privacy_boundary}_called"

    def _projected(self, question: Question) -> Projection | Judged:
        now = perf_counter()
        if self.policy.privacy_boundary is PrivacyBoundary.NO_EXTERNAL_CALL:
            return self._open(question, Attempt.PRIVACY_FALLBACK, "privacy_boundary", "no_external_call", now)
        if self._named is None:
            return self._open(question, Attempt.NO_CALL, "no_backend", "no_call", now)
        if self.cooling:
            return self._open(question, Attempt.NO_CALL, "cooldown", "no_call", now)
        try:
            projection = project(self.policy, question, self._named.locality, self._sanitiser)
        except Exception as error:  # noqa: BLE001 - third-party code: what it cannot redact is not sent
            return self._broken(question, Attempt.PRIVACY_FALLBACK, SANITISER_FAILED, error, now)
        if projection.request is None:
            judged = self._open(question, Attempt.PRIVACY_FALLBACK, "privacy_boundary", projection.outcome, now)
            return attrs.evolve(judged, redactions=dict(projection.redactions))
        return projection

    async def _ask(self, asking: Sequence[tuple[Question, int, Projection]], started: float) -> list[tuple[int, Judged]]:
        if not asking or self._named is None:
            return []
        backend = self._named.backend
        requests = [item.request for _, _, item in asking if item.request is not None]
        if self.policy.failure_policy is FailurePolicy.FAIL_OPEN:
            results = await ask_open(backend, requests, self._settings, self._cooldown)
        else:
            results = await ask_closed(backend, requests, self._cooldown)
        # The backend may have failed on the way: the rest is not sent after it, and is not taken for judged either.
        return [
            (
                place,
                self._open(question, Attempt.NO_CALL, "cooldown", "no_call", started)
                if result is None
                else self._mapped(question, item, result, started),
            )
            for (question, place, item), result in zip(asking, results, strict=True)
        ]

    def _mapped(self, question: Question, item: Projection, result: DecisionResult, started: float) -> Judged:
        policy = self.policy
        if result.used_fallback:
            code = result.reason or "backend_failed"
            attempt = Attempt.PARSE_FAILURE if code in PARSE_CODES else Attempt.BACKEND_FALLBACK
            judged = self._open(question, attempt, "decision_model_fallback", _failing(item.outcome), started)
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
        model = self._named.says("exact_model") if self._named is not None else None
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

    def cleaned(self, texts: Sequence[str]) -> tuple[str, ...] | None:
        """Return texts as the deployment's sanitiser leaves them, for a record; as they are where none is in use.

        Returns:
            `None` when the sanitiser fails: then they are in no record.
        """
        if self._sanitiser is None:
            return tuple(texts)
        try:
            return tuple(item.text for item in redacted(texts, self._sanitiser))
        except Exception:  # noqa: BLE001 - third-party code, and a record is no reason to fail
            return None

    def _remember(self, judged: Judged) -> None:
        if judged.assessment.attempt is Attempt.BACKEND and judged.assessment.coverage is Coverage.ADJUDICATED:
            key = judged.question.content_hash(self.fingerprint)
            self._earlier[key] = judged.assessment.verdict
            self._earlier.move_to_end(key)
            while len(self._earlier) > REMEMBERED:
                self._earlier.popitem(last=False)


def _failing(outcome: str) -> str:
    """Return what the boundary did where the call came to nothing: the content went where it would have gone."""
    return outcome.removesuffix("_called") + "_fallback"


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000
