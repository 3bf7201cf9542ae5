"""Sending a pool: bounded concurrency, one deadline, and a cost that is right whatever happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from narrowgate.decisions import Usage, total, unreported
from narrowgate.errors import RerankError
from narrowgate_http import HttpClient, HttpError, Reply
from narrowgate_http.together import each
from narrowgate_rerank_api.dialects import Dialect
from narrowgate_rerank_api.pools import batches
from narrowgate_rerank_api.replies import ReplyError, scores_in, tokens_in
from narrowgate_rerank_api.settings import ScoringSettings


class Sending:
    """Scores the texts of one search and keeps the account.

    Args:
        client: the component's client.
        url: the resolved URL.
        dialect: how the server is asked.
        settings: the component's settings.
        options: an operator's own fields of the request.
    """

    def __init__(
        self, client: HttpClient, url: str, dialect: Dialect, settings: ScoringSettings, options: Mapping[str, Any]
    ) -> None:
        self._client, self._url, self._dialect, self._settings, self._options = client, url, dialect, settings, options
        self._costs: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """What was asked so far, one call for each document; a request under way or cancelled has unknown tokens."""
        return total(self._costs)

    async def scores(self, query: str, texts: Sequence[str]) -> dict[int, float]:
        """Return place in `texts` -> score, for the texts that the answers name.

        When a request fails, no further one is started, and those under way are cancelled and waited for.

        Args:
            query: the query's text.
            texts: distinct, not blank, at least one.

        Raises:
            RerankError: the first failure; carries `usage` and the failure's code.
        """
        settings, dialect = self._settings, self._dialect
        most = settings.max_documents or dialect.max_documents
        longest = settings.max_request_bytes or dialect.max_bytes
        parts = list(batches(texts, lambda part: self._body(query, part), most, longest))
        if len(parts) > 1 and not settings.pointwise:
            raise RerankError(
                f"{len(texts)} documents need {len(parts)} requests, whose scores cannot be compared (pointwise = false): "
                "lower candidate_limit under [search], or raise max_documents or max_request_bytes",
                self.usage,
                "over-limit",
            )
        end = monotonic() + settings.deadline

        async def ask(part: tuple[int, Sequence[str]]) -> dict[int, float]:
            start, documents = part
            scores = await self._ask(query, documents, end)
            return {start + place: score for place, score in scores.items()}

        try:
            answers = await each(parts, ask, settings.concurrency)
        except HttpError as first:
            # The role names the component in front of the message.
            raise RerankError(str(first).removeprefix(f"{self._client.name}: "), self.usage, first.code) from first
        return {place: score for scores in answers for place, score in scores.items()}

    def _body(self, query: str, texts: Sequence[str]) -> dict[str, Any]:
        return self._dialect.body(self._settings.model, query, texts, self._options)

    async def _ask(self, query: str, texts: Sequence[str], end: float) -> dict[int, float]:
        entry = len(self._costs)
        # Entered before the request and corrected after it, so that a cancelled one stays in the account.
        self._costs.append(unreported(len(texts)))
        body = self._body(query, texts)
        try:
            reply = await self._client.post(self._url, body, contents=(query, *texts), within=end - monotonic())
        except HttpError as failure:
            self._costs[entry] = failure.usage(len(texts))
            raise
        self._costs[entry] = _cost(reply, len(texts))
        try:
            return scores_in(reply.json, len(texts), self._settings.score_range)
        except ReplyError as flaw:
            said = reply.json if flaw.reason == "error-object" else None
            raise self._client.refused(flaw.code, self._url, str(flaw), said, (query, *texts)) from None


def _cost(reply: Reply, documents: int) -> Usage:
    read, written = (None, None) if reply.tokens_unknown else tokens_in(reply.json, reply.headers)
    return Usage(documents, reply.requests, read, written)
