"""Observes a second stage that judges candidate by candidate. It describes: no search waits for it or depends on it.

The stage asks its backend itself and fails closed; a policy of the consumer `memory_rerank` says what it asks, so that each
verdict is observed as an attempt of that policy, with what became of the candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from time import perf_counter, process_time
from typing import Any, Final

import anyio
import attrs

from narrowgate.decisions import NO_USAGE, DecisionOutcome, DecisionResult, Usage, code_of, unreported
from narrowgate.decisions.answers import is_code, is_usage
from narrowgate.errors import RecallError
from narrowgate.governance.asking import NamedBackend
from narrowgate.governance.gate import PARSE_CODES, Gate, Judged
from narrowgate.governance.observers import Observers
from narrowgate.governance.privacy import LOCAL_CALL
from narrowgate.governance.questions import Question
from narrowgate.governance.recording import observation_of
from narrowgate.governance.shadow import Shadow
from narrowgate.seams.component import Locality
from narrowgate.seams.ports import Reranker
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateVerdict, VerdictSource
from narrowgate.values.identity import new_entry_ids
from narrowgate.values.search import Candidate, RerankDecision, RerankTrace, SearchPage, Verdict

SELECT: Final = "memory_rerank_select"
"""It was kept, and is on the page."""

DROP: Final = "memory_rerank_drop"
"""It was not kept, and is not on the page."""

COARSE: Final = "memory_rerank_coarse"
"""The stage kept nothing, or failed, and the role was told to show the coarse order in that case: it is on the page all the
same."""

FAIL: Final = "memory_rerank_fail"
"""The stage failed, and the search with it."""

INTERRUPTED: Final = "memory_rerank_interrupted"
"""Whoever searched left while the stage was being asked."""

AT_ONCE: Final = 8
"""Verdicts that are observed without a rest: whoever searches next is not to wait for a whole page of them."""

NOT_PROJECTED: Final = "not_projected"
"""What the boundary did where the backend is on another machine: the stage sends candidates as they are, past any policy."""


@attrs.define
class _Asked:
    """One search: what the stage was shown.

    Attributes:
        pool: the candidates; `None` while the stage was not asked.
        policy_id: the stage's.
        started: when it was.
        usage: what a stage that raised said it cost.
    """

    pool: tuple[Candidate, ...] | None = None
    policy_id: str | None = None
    started: float = 0.0
    usage: Usage | None = None


_ASKED: Final[ContextVar[_Asked | None]] = ContextVar("narrowgate_rerank_watch", default=None)


class WatchedReranker:
    """A `Reranker` that notes what its delegate was shown, and changes nothing else."""

    def __init__(self, delegate: Reranker) -> None:
        self._delegate = delegate

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._delegate, name)

    @property
    def policy_id(self) -> str:
        """The delegate's."""
        return self._delegate.policy_id

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Return what the delegate returns."""
        asked = _ASKED.get()
        if asked is not None:
            asked.pool, asked.policy_id, asked.started = tuple(candidates), self.policy_id, perf_counter()
        try:
            return await self._delegate.rerank(query, candidates, limit)
        except Exception as error:
            carried = getattr(error, "usage", None)
            if asked is not None and is_usage(carried):
                asked.usage = carried
            raise


def policy_of(reranker: object) -> object:
    """Return the policy that a reranker says it has; `None` for one that cannot say."""
    try:
        return getattr(reranker, "policy_id", None)
    except Exception:  # noqa: BLE001 - third-party code: the second stage itself tells of it, when it is asked
        return None


class RerankWatch:
    """Observes what a second stage did.

    Args:
        gate: of the policy that describes it. It asks nobody: it is here for what an observation says of a policy.
        named: whom the stage asks; `None` where that is not known.
        observers: take the observations.
        shadow: publishes them off the caller's path.
        snippets: see `observation_of`.
    """

    def __init__(
        self, gate: Gate, named: NamedBackend | None, observers: Observers, shadow: Shadow, *, snippets: bool = False
    ) -> None:
        self.gate: Gate = gate
        self._named = named
        self._observers, self._shadow, self._snippets = observers, shadow, snippets

    def describes(self, policy_id: object) -> bool:
        """Return whether a reranker of this policy is what the policy describes: its id, before any settings of it."""
        return isinstance(policy_id, str) and policy_id.partition(";")[0] == self.gate.policy.policy_id

    @contextmanager
    def search(self) -> Iterator[Callable[[SearchPage], None]]:
        """Watch one search; call what is yielded with its page."""
        asked = _Asked()
        token = _ASKED.set(asked)
        try:
            yield partial(self._settled, asked)
        except BaseException as error:
            if asked.pool is not None and self.describes(asked.policy_id):
                self._failed(asked, asked.pool, error)
            raise
        finally:
            _ASKED.reset(token)

    def _settled(self, asked: _Asked, page: SearchPage) -> None:
        trace = page.trace.rerank
        if trace is not None and asked.pool is not None and self.describes(trace.policy_id):
            # All else happens beside the search: a verdict that makes no sense must not end it.
            self._shadow.offer_note(partial(self._observe_page, trace))

    def _failed(self, asked: _Asked, pool: tuple[Candidate, ...], error: BaseException) -> None:
        took = (perf_counter() - asked.started) * 1000
        if isinstance(error, RecallError):
            usage = asked.usage or error.usage or NO_USAGE
            note = partial(self._observe_unjudged, pool, code_of(error) or "error", usage, took, FAIL)
        elif isinstance(error, anyio.get_cancelled_exc_class()):
            note = partial(self._observe_unjudged, pool, "interrupted", unreported(1), took, INTERRUPTED)
        else:
            return
        self._shadow.offer_note(note)

    async def _observe_page(self, trace: RerankTrace) -> None:
        decision = trace.decision
        if decision is None:
            code = trace.reason or "error"
            await self._observe_unjudged(trace.candidates, code, trace.usage, trace.latency_ms, COARSE)
            return
        operation, usage = new_entry_ids(1)[0], trace.usage
        by_rank = {candidate.rank: candidate for candidate in trace.candidates}
        began = process_time()
        for number, verdict in enumerate(decision.verdicts, 1):
            if verdict.rank not in by_rank:
                continue
            # What the whole stage cost stands once: with the first verdict that was paid for.
            cost, usage = (NO_USAGE, usage) if verdict.cached else (usage, NO_USAGE)
            judged = self._judged(operation, by_rank[verdict.rank], verdict, cost, trace.latency_ms)
            await self._observe(judged, _action(verdict, decision))
            if not number % AT_ONCE:
                await self._shadow.rest(began)
                began = process_time()

    async def _observe_unjudged(
        self, pool: Sequence[Candidate], code: str, usage: Usage, latency_ms: float, action: str
    ) -> None:
        await self._observe(self._unjudged(pool, code, usage, latency_ms), action)

    async def _observe(self, judged: Judged, action: str) -> None:
        await self._observers.publish(observation_of(self.gate, judged, action, snippets=self._snippets))

    def _judged(self, operation: str, candidate: Candidate, verdict: Verdict, usage: Usage, latency_ms: float) -> Judged:
        policy = self.gate.policy
        result = DecisionResult(verdict.outcome, "", NO_USAGE, verdict.probability, verdict.score)
        outcome, confidence = self.gate.outcome_of(result)
        decided = outcome is not DecisionOutcome.ABSTAIN
        reason = verdict.reason if is_code(verdict.reason) else "abstain"
        assessment = DecisionAssessment(
            policy_id=policy.policy_id,
            policy_version=policy.version,
            mode=policy.mode,
            attempt=Attempt.BACKEND,
            coverage=Coverage.ADJUDICATED if decided else Coverage.UNADJUDICATED,
            verdict=policy.outcome_mapping[outcome] if decided else GateVerdict.UNKNOWN,
            source=VerdictSource.DECISION_MODEL,
            reason="decision_model_verdict" if decided else reason,
            outcome=outcome,
            probability=verdict.probability,
            score=verdict.score,
            confidence=confidence,
            usage=usage,
            latency_ms=latency_ms,
        )
        question = _question(operation, (candidate,), {"rank": candidate.rank, "cached": int(verdict.cached)})
        return self._by_backend(Judged(question=question, assessment=assessment, privacy_outcome=self._boundary()), verdict)

    def _unjudged(self, pool: Sequence[Candidate], code: str, usage: Usage, latency_ms: float) -> Judged:
        policy = self.gate.policy
        assessment = DecisionAssessment(
            policy_id=policy.policy_id,
            policy_version=policy.version,
            mode=policy.mode,
            attempt=Attempt.PARSE_FAILURE if code in PARSE_CODES else Attempt.BACKEND_FALLBACK,
            coverage=Coverage.UNADJUDICATED,
            verdict=GateVerdict.UNKNOWN,
            source=VerdictSource.NONE,
            reason="decision_model_fallback",
            used_fallback=True,
            usage=usage,
            latency_ms=latency_ms,
        )
        question = _question(new_entry_ids(1)[0], pool, {"candidates": len(pool)})
        judged = Judged(question=question, assessment=assessment, privacy_outcome=self._boundary(), fallback_reason=code)
        return self._by_backend(judged, None)

    def _boundary(self) -> str:
        hosted = self._named is not None and self._named.locality is Locality.HOSTED
        return NOT_PROJECTED if hosted else LOCAL_CALL

    def _by_backend(self, judged: Judged, verdict: Verdict | None) -> Judged:
        named = self._named
        return attrs.evolve(
            judged,
            provider_id=None if named is None else named.name,
            backend_model_id=None if named is None else named.says("exact_model"),
            model_policy_id=None if named is None else named.says("policy_id"),
            backend_outcome=None if verdict is None else verdict.outcome,
        )


def _action(verdict: Verdict, decision: RerankDecision) -> str:
    if verdict.rank not in decision.selected_ranks:
        return DROP
    return SELECT if verdict.kept else COARSE


def _question(operation: str, candidates: Sequence[Candidate], counts: Mapping[str, int]) -> Question:
    return Question(
        operation_id=operation,
        scope_id=candidates[0].ref.memory,
        subject=candidates[0].content.text if len(candidates) == 1 else "",
        subject_refs=tuple(str(candidate.ref) for candidate in candidates),
        metadata=counts,
    )
