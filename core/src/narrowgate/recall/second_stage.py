"""The rerank role: asks the reranker, resolves its ranks, and fails as the role was told to."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import Final

import anyio
import attrs
from anyio.lowlevel import checkpoint_if_cancelled

from narrowgate.decisions.account import Account, account
from narrowgate.decisions.answers import INVALID_ANSWER, code_of, is_code, is_usage, unreported
from narrowgate.errors import DeadlineError, RecallError, RerankError
from narrowgate.recall.ranks import as_hit, resolve_ranks
from narrowgate.recall.settings import RerankSettings
from narrowgate.seams.ports import Reranker
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate.values.search import Candidate, Hit, RerankDecision, RerankStatus, RerankTrace

WARN_SECONDS: Final = 60.0
"""A failing second stage is warned of once per cause in this time."""

DEADLINE: Final = "deadline"
"""The code of a stage that ran out of time, its own or that of the search."""

NOTHING_KEPT: Final = "nothing-kept"
"""Why a stage found none relevant."""

NO_VALID_SELECTION: Final = "no-valid-selection"
"""Why coarse ranks stand in for those of a stage that answered (`RerankDecision.used_fallback`)."""

FAILED: Final = "error"
"""The reason code of a failure that has no code of its own: an exception of third-party code."""

NO_TERMS: Final = "no-terms"
"""Why a second stage was not asked: the query holds nothing to look up."""

NO_CANDIDATES: Final = "no-candidates"
"""Why a second stage was not asked: nothing was found."""

_log = logging.getLogger("narrowgate.recall")


@attrs.frozen
class NamedReranker:
    """A reranker and the full name of its component."""

    name: str
    reranker: Reranker


@attrs.frozen
class Judged:
    """What the second stage made of the pool."""

    hits: tuple[Hit, ...]
    trace: RerankTrace


class SecondStage:
    """The rerank role.

    It uses the reranker bare, never through the fail-open envelope. With `on_failure = "raise"` an error of the stage is
    an error of the search. With `"coarse"`, which an operator must ask for, the page holds coarse order and says
    `failed` and why; a warning is logged once per cause and minute.

    Cost. A stage that returns or raises says itself what it spent. Of one that is cut off by the search's deadline, or that
    fails without a word about it, the account has what the backends it was built with were asked (see
    `narrowgate.decisions.account`); one that asked only others, and says nothing, is charged as one request with unknown
    tokens: never as nothing.

    Args:
        named: the reranker.
        settings: the section `[rerank]`.
        clock: seconds that never go back, for the warnings.
    """

    def __init__(self, named: NamedReranker, settings: RerankSettings, clock: Callable[[], float] = monotonic) -> None:
        self._named = named
        self._settings = settings
        self._clock = clock
        self._warned: dict[str, float] = {}

    async def judge(
        self,
        query: str,
        candidates: Sequence[Candidate],
        limit: int,
        *,
        ends: float = math.inf,
        spent: Usage = NO_USAGE,
    ) -> Judged:
        """Let the reranker choose among at least one candidate.

        Args:
            query: the normalised query text.
            candidates: the coarse pool, rank 1 first.
            limit: the most hits wanted.
            ends: when the search is over, on the event loop's clock (`anyio.current_time`).
            spent: what the search has cost before; errors carry it too.

        Raises:
            RerankError: the stage failed and the role does not go on without it.
            DeadlineError: the search's time was over, likewise.
        """
        reranker, name = self._named.reranker, self._named.name
        pool = tuple(candidates)
        bound = min(limit, len(pool))
        started = perf_counter()
        failure: RecallError
        cause: Exception | None = None
        policy_id = "unknown"
        with account() as own, anyio.CancelScope(deadline=ends) as scope:
            try:
                # Before it is asked: one that cannot say what it is must not cost anything.
                policy_id = _policy_of(reranker)
                decision = _checked(await reranker.rerank(query, pool, bound))
                hits = resolve_ranks(decision, pool, bound)
            except Exception as error:  # noqa: BLE001 - third-party code: raised below, or on the page as the role says
                # Third-party code may turn a cancellation into an error of its own; the cancellation still counts.
                await checkpoint_if_cancelled()
                failure, cause = _failed(error, name, own), error
            else:
                return Judged(hits, self._trace(started, policy_id, pool, decision))
        if scope.cancelled_caught:
            text = f"{name} did not answer before the search's time was over ([search] deadline)"
            failure = DeadlineError(text, own.usage or unreported(1), DEADLINE)
        if self._settings.on_failure == "raise":
            failure.usage = spent + (failure.usage or NO_USAGE)
            raise failure from cause
        self._warn(failure, cause)
        return Judged(tuple(as_hit(item) for item in pool[:bound]), self._trace(started, policy_id, pool, failure))

    def _trace(
        self, started: float, policy_id: str, pool: tuple[Candidate, ...], outcome: RerankDecision | RecallError
    ) -> RerankTrace:
        status, reason = _status(outcome)
        return RerankTrace(
            component=self._named.name,
            policy_id=policy_id,
            status=status,
            reason=reason,
            candidates=pool,
            decision=outcome if isinstance(outcome, RerankDecision) else None,
            usage=outcome.usage or NO_USAGE,
            latency_ms=(perf_counter() - started) * 1000,
            detail=str(outcome) if isinstance(outcome, RecallError) else None,
        )

    def _warn(self, failure: RecallError, cause: Exception | None) -> None:
        now = self._clock()
        key = failure.code or type(cause).__name__
        if now - self._warned.get(key, -math.inf) >= WARN_SECONDS:
            # Without what is over, so that a plugin that invents codes does not fill the memory.
            self._warned = {known: at for known, at in self._warned.items() if now - at < WARN_SECONDS} | {key: now}
            _log.warning(
                "%s; coarse order returned, as [rerank] on_failure says",
                failure,
                extra={"event": "recall.rerank_failed", "component": self._named.name, "cause": key},
            )


def _policy_of(reranker: Reranker) -> str:
    try:
        policy_id: object = reranker.policy_id
    except Exception as error:
        text = f"its policy_id cannot be read ({type(error).__name__})"
        raise RerankError(text, NO_USAGE, INVALID_ANSWER) from error
    if not isinstance(policy_id, str) or not policy_id:
        raise RerankError(f"its policy_id must be a text, not {type(policy_id).__name__}", NO_USAGE, INVALID_ANSWER)
    return policy_id


def _checked(answer: object) -> RerankDecision:
    flaw = None
    if not isinstance(answer, RerankDecision):
        raise RerankError(f"a reranker must answer with a RerankDecision, not {type(answer).__name__}", code=INVALID_ANSWER)
    if not isinstance(answer.usage, Usage):
        flaw = f"the usage of a RerankDecision must be a Usage, not {type(answer.usage).__name__}"
    elif not is_usage(answer.usage):
        flaw = "the usage of a RerankDecision must hold counts"
    elif answer.partial is not None and not is_code(answer.partial):
        flaw = "the `partial` of a RerankDecision must be a code in lower case, e.g. unscored"
    if flaw is not None:
        raise RerankError(flaw, answer.usage if is_usage(answer.usage) else None, INVALID_ANSWER)
    return answer


def _status(outcome: RerankDecision | RecallError) -> tuple[RerankStatus, str | None]:
    if isinstance(outcome, RecallError):
        return "failed", outcome.code or FAILED
    if outcome.nothing_kept:
        return "none_relevant", outcome.partial or NOTHING_KEPT
    if outcome.partial is not None:
        return "partial", outcome.partial
    return "applied", NO_VALID_SELECTION if outcome.used_fallback else None


def _failed(error: Exception, name: str, own: Account) -> RerankError:
    """Name the culprit. A foreign exception's own text stays out: it may hold memory text or a secret."""
    carried = getattr(error, "usage", None)
    usage = carried if is_usage(carried) else own.usage or unreported(1)
    text = f"{name}: {error}" if isinstance(error, RecallError) else f"{name} failed ({type(error).__name__})"
    return RerankError(text, usage, code_of(error))
