"""The keep/drop reranker: "does this text hold evidence that answers the query?", once for each distinct text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import anyio

from narrowgate.decisions import (
    RERANK_KIND,
    RERANK_QUESTION,
    DecisionOutcome,
    DecisionRequest,
    DecisionResult,
    name_of,
    spending,
)
from narrowgate.errors import RerankError
from narrowgate.seams.ports import DecisionBackend
from narrowgate.values.language import asked_in, language_of
from narrowgate.values.search import Candidate, RerankDecision, Verdict
from narrowgate_decision.asking import Asker
from narrowgate_decision.memory import Answers, Memory, pinned
from narrowgate_decision.scan import Scan
from narrowgate_decision.settings import KeepDropSettings

POLICY: Final = "memory.rerank.decision.v1"
"""The policy that describes what is asked."""

VERSION: Final = "2"
"""Its version. Another question, or another rule of selection, is another version."""

QUESTIONS: Final[Mapping[str, str]] = RERANK_QUESTION
"""Language -> what is asked of each candidate: the subject is the candidate's text, the one piece of evidence is the query.

It is asked in the query's language, told by its script, else in English: one question for the whole pool, whatever
languages its candidates are in.
"""

_DEFAULTS: Final = KeepDropSettings()


class KeepDrop:
    """A `Reranker` that keeps or drops each candidate on its own.

    It selects what a scan of the pool in coarse order selects that asks about one candidate after another and stops when
    `limit` are kept, and it asks exactly what that scan asks; but it asks together what the scan is certain to ask (see
    `narrowgate_decision.scan`). The selection is in coarse order and never padded.

    Args:
        backend: the bare backend. An outage must be an error here, so that the fail-open envelope has no place.
        settings: see `KeepDropSettings`.
    """

    def __init__(self, backend: DecisionBackend, settings: KeepDropSettings = _DEFAULTS) -> None:
        self._backend = backend
        self._settings = settings
        self._keep = frozenset(settings.keep)
        self._memory = Memory(settings.cache_size) if settings.cache_size else None

    @property
    def policy_id(self) -> str:
        """`POLICY`, its version, and every other than default setting that changes a selection:
        `...v1;version=2;keep=yes;nothing-kept=empty`.
        """
        parts = [POLICY, f"version={VERSION}"]
        if self._keep != frozenset(_DEFAULTS.keep):
            parts.append("keep=" + "+".join(outcome for outcome in DecisionOutcome if outcome in self._keep))
        if self._settings.on_nothing_kept != _DEFAULTS.on_nothing_kept:
            parts.append(f"nothing-kept={self._settings.on_nothing_kept}")
        return ";".join(parts)

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Return the ranks kept, in coarse order, with a verdict for every candidate that the scan reached.

        Args:
            query: the normalised query text.
            candidates: the coarse pool, at least one, with ranks 1, 2, ... in order.
            limit: 1 .. len(candidates).

        Raises:
            ValueError: bounds.
            RerankError: a call failed, an answer was no verdict, or the deadline passed. Its `usage` counts every call that
                was started, the failed and the cancelled ones too; its `code` is the cause's, or `deadline`.
        """
        if not candidates:
            raise ValueError("candidates must hold at least one")
        if not 1 <= limit <= len(candidates):
            raise ValueError(f"limit must lie in 1..{len(candidates)}, the number of candidates")
        if any(candidate.rank != place for place, candidate in enumerate(candidates, 1)):
            raise ValueError("candidates must come in coarse order, with ranks 1, 2, ...")
        scan = Scan([candidate.content.text for candidate in candidates], limit, self._keep)
        asker = Asker(self._backend, self._settings.max_concurrency)
        with spending(lambda: asker.usage), anyio.move_on_after(self._settings.deadline):
            return await self._scan(scan, asker, query)
        raise RerankError(
            f"decision backend {name_of(self._backend.policy_id)!r} did not judge enough candidates within the deadline of "
            f'{self._settings.deadline:g} s: raise `deadline` in [settings."decision.keep-drop"], or lower candidate_limit',
            asker.usage,
            "deadline",
        )

    async def _scan(self, scan: Scan, asker: Asker, query: str) -> RerankDecision:
        model = pinned(self._backend) if self._memory is not None else None
        question = asked_in(QUESTIONS, language_of(query))
        answers = self._answers(model, question, query)
        remembered: dict[str, DecisionResult] = {}
        if answers is not None:
            remembered = answers.known(scan.texts, self._backend.policy_id)
            scan.learn(remembered)
        while wave := scan.wave():
            requests = [DecisionRequest(RERANK_KIND, question, text, (query,)) for text in wave]
            verdicts = dict(zip(wave, await asker.ask(requests), strict=True))
            scan.learn(verdicts)
            # A backend whose model changed meanwhile does not say which of the two has answered.
            if answers is not None and pinned(self._backend) == model:
                answers.learn(verdicts)
        return self._decision(scan, asker, remembered)

    def _answers(self, model: str | None, question: str, query: str) -> Answers | None:
        if self._memory is None or model is None:
            return None
        return self._memory.about(POLICY, question, self._backend.policy_id, model, query=query)

    def _decision(self, scan: Scan, asker: Asker, remembered: Mapping[str, DecisionResult]) -> RerankDecision:
        fallback = not scan.kept and self._settings.on_nothing_kept == "coarse"
        return RerankDecision(
            selected_ranks=tuple(range(1, scan.limit + 1)) if fallback else tuple(scan.kept),
            usage=asker.usage,
            used_fallback=fallback,
            nothing_kept=not scan.kept,
            verdicts=tuple(self._verdict(scan, place, remembered) for place in range(1, scan.reached + 1)),
        )

    def _verdict(self, scan: Scan, place: int, remembered: Mapping[str, DecisionResult]) -> Verdict:
        text = scan.texts[place - 1]
        result = scan.known[text]
        return Verdict(
            rank=place,
            outcome=result.outcome,
            kept=result.outcome in self._keep,
            probability=result.probability,
            score=result.score,
            reason=result.reason,
            cached=text in remembered,
        )
