"""The rerank role: asks the reranker, resolves its ranks, and fails as the role was told to."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic, perf_counter
from typing import Final

import attrs

from narrowgate.errors import RerankError
from narrowgate.recall.ranks import as_hit, resolve_ranks
from narrowgate.recall.settings import RerankSettings
from narrowgate.seams.ports import Reranker
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate.values.search import Candidate, Hit, RerankDecision, RerankStatus, RerankTrace

WARN_SECONDS: Final = 60.0
"""A failing second stage is warned of once per cause in this time."""

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
    """

    def __init__(self, named: NamedReranker, settings: RerankSettings) -> None:
        self._named = named
        self._settings = settings
        self._warned: dict[str, float] = {}

    async def judge(self, query: str, candidates: Sequence[Candidate], limit: int) -> Judged:
        """Let the reranker choose among at least one candidate.

        Raises:
            RerankError: the stage failed and the role does not go on without it; carries the usage so far.
        """
        reranker, name = self._named.reranker, self._named.name
        pool = tuple(candidates)
        bound = min(limit, len(pool))
        started = perf_counter()
        try:
            decision = _checked(await reranker.rerank(query, pool, bound))
            hits = resolve_ranks(decision, pool, bound)
        except Exception as error:
            failure = _as_rerank_error(error, name)
            if self._settings.on_failure == "raise":
                raise failure from error
            self._warn(failure, error)
            trace = RerankTrace(
                name, reranker.policy_id, "failed", str(failure), pool, None, failure.usage or NO_USAGE, _since(started)
            )
            return Judged(tuple(as_hit(item) for item in pool[:bound]), trace)
        status, reason = _outcome(decision)
        trace = RerankTrace(
            name,
            reranker.policy_id,
            status,
            reason,
            pool,
            decision,
            decision.usage,
            _since(started),
        )
        return Judged(hits, trace)

    def _warn(self, failure: RerankError, cause: Exception) -> None:
        now = monotonic()
        key = failure.code or type(cause).__name__
        if now - self._warned.get(key, float("-inf")) >= WARN_SECONDS:
            self._warned[key] = now
            _log.warning(
                "%s; coarse order returned, as [rerank] on_failure says",
                failure,
                extra={"event": "recall.rerank_failed", "component": self._named.name, "cause": key},
            )


def _checked(answer: object) -> RerankDecision:
    if not isinstance(answer, RerankDecision):
        raise RerankError(f"a reranker must answer with a RerankDecision, not {type(answer).__name__}")
    if not isinstance(answer.usage, Usage):
        raise RerankError(f"the usage of a RerankDecision must be a Usage, not {type(answer.usage).__name__}")
    return answer


def _outcome(decision: RerankDecision) -> tuple[RerankStatus, str | None]:
    if decision.nothing_kept:
        return "none_relevant", "nothing was kept"
    if decision.partial is not None:
        return "partial", decision.partial
    return "applied", None


def _as_rerank_error(error: Exception, name: str) -> RerankError:
    """Name the culprit. A foreign exception's own text stays out: it may hold memory text or a secret."""
    if isinstance(error, RerankError):
        return RerankError(f"{name}: {error}", error.usage, error.code)
    return RerankError(f"{name} failed ({type(error).__name__})", getattr(error, "usage", None))


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000
