"""The reranker over a `/rerank` endpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from narrowgate.decisions import spending
from narrowgate.values.search import Candidate, RerankDecision
from narrowgate_http import HttpClient, resolve
from narrowgate_rerank_api.pools import Pool
from narrowgate_rerank_api.selection import decide
from narrowgate_rerank_api.sending import Sending
from narrowgate_rerank_api.settings import AgentMemorySettings, EndpointSettings

POLICY: Final = "memory.rerank.api.v1"
"""The versioned policy. Another rule of reading, selecting or weighting is another version."""


def _present() -> datetime:
    return datetime.now(UTC)


class EndpointReranker:
    """A `Reranker` that lets a server score all candidates in one request, or in as few as its limits allow.

    Scores stay inside: what comes out is ranks of the coarse pool.

    Args:
        client: the component's client.
        settings: what it is asked for and how.
        now: the present, with an offset; entries are as old as it says.
    """

    def __init__(
        self,
        client: HttpClient,
        settings: EndpointSettings | AgentMemorySettings,
        now: Callable[[], datetime] = _present,
    ) -> None:
        self._client, self._settings, self._now = client, settings, now
        self._url = resolve(settings, settings.asked.version, settings.asked.operation)

    @property
    def policy_id(self) -> str:
        """`POLICY`, dialect, model, and every other setting that changes a selection where it is not the default.

        `memory.rerank.api.v1;dialect=cohere;model=rerank-v3.5;unscored=drop`; `options` are there as a digest.
        """
        settings = self._settings
        parts = [POLICY, f"dialect={settings.asked.name}", *([f"model={settings.model}"] if settings.model else [])]
        if settings.score_range is not None:
            parts.append("range={:g}..{:g}".format(*settings.score_range))
        if settings.min_score is not None:
            parts.append(f"min={settings.min_score:g}")
        if settings.unscored != "after":
            parts.append(f"unscored={settings.unscored}")
        if settings.weights:
            parts.append("weights=" + "+".join(sorted(settings.weights)))
        if settings.options:
            written = json.dumps(dict(settings.options), sort_keys=True).encode()
            parts.append(f"options={hashlib.sha256(written).hexdigest()[:12]}")
        return ";".join(parts)

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Return ranks by score, best first.

        Args:
            query: the normalised query text.
            candidates: the coarse pool, at least one, with ranks 1, 2, ... in order.
            limit: 1 .. len(candidates).

        Raises:
            ValueError: bounds.
            RerankError: a request failed, or an answer was refused. `usage` counts every request that was started, the
                failed and the cancelled ones too; `code` is one of `narrowgate_http.CURES`, or `over-limit`.
        """
        if not candidates:
            raise ValueError("candidates must hold at least one")
        if not 1 <= limit <= len(candidates):
            raise ValueError(f"limit must lie in 1..{len(candidates)}, the number of candidates")
        if any(candidate.rank != place for place, candidate in enumerate(candidates, 1)):
            raise ValueError("candidates must come in coarse order, with ranks 1, 2, ...")
        pool = Pool.of([candidate.content.text for candidate in candidates])
        sending = self._sending()
        with spending(lambda: sending.usage):
            scores = await sending.scores(query, pool.texts) if pool.texts else {}
        return decide(scores, pool, candidates, limit, self._settings, self._now(), sending.usage)

    async def scores(self, query: str, texts: Sequence[str]) -> dict[int, float]:
        """Return place -> score as the server gives it, for the texts that it names; for probing.

        Args:
            query: the query's text.
            texts: distinct, not blank, at least one.

        Raises:
            RerankError: see `rerank`.
        """
        return await self._sending().scores(query, texts)

    def _sending(self) -> Sending:
        return Sending(self._client, self._url, self._settings.asked, self._settings, self._settings.options)
