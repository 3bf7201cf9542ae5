"""What the tests of the endpoint reranker share: both event loops, a coarse pool, a reranker at a server's address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import settings

from narrowgate.values.entry import EntryContent
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind
from narrowgate_http import http_client
from narrowgate_http.testing import Answer, Recorded
from narrowgate_rerank_api import EndpointReranker, EndpointSettings

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")

NOW: Final = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(params=["asyncio", "trio"], scope="session")
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)


@pytest.fixture(scope="session")
def now() -> datetime:
    """Return the present as the rerankers of these tests see it."""
    return NOW


@pytest.fixture(scope="session")
def pool() -> Callable[..., list[Candidate]]:
    """Return a function that makes a coarse pool of texts, with the metadata of each where it is given."""

    def make(texts: Sequence[str], metadata: Sequence[Mapping[str, Any]] = ()) -> list[Candidate]:
        rows = list(metadata) or [{}] * len(texts)
        return [
            Candidate(
                rank=rank,
                ref=EntryRef("m", 1, f"e{rank}", 1),
                content=EntryContent(text, "note", None, None, row.get("occurred_at"), row.get("attributes", {}), "0" * 64),
                score=1 / (60 + rank),
                matched_by=(ChannelKind.LEXICAL,),
            )
            for rank, (text, row) in enumerate(zip(texts, rows, strict=True), 1)
        ]

    return make


@pytest.fixture(scope="session")
def endpoint() -> Callable[..., AbstractAsyncContextManager[EndpointReranker]]:
    """Return a function that opens a reranker: `endpoint(base_url, model="m", ...)`."""

    @asynccontextmanager
    async def make(base_url: str, **options: Any) -> AsyncIterator[EndpointReranker]:
        made = EndpointSettings(base_url=base_url, **options)
        async with http_client("rerank-api.endpoint", made) as client:
            yield EndpointReranker(client, made, now=lambda: NOW)

    return make


@pytest.fixture(scope="session")
def scoring() -> Callable[[Mapping[str, float]], Callable[[Recorded], Answer]]:
    """Return a function that makes a server's script: text -> its score; a text without one is not named.

    The answer is in the standard form, and its results in no order.
    """

    def make(scores: Mapping[str, float]) -> Callable[[Recorded], Answer]:
        def script(request: Recorded) -> Answer:
            documents = request.json["documents"]
            named = [(index, text) for index, text in enumerate(documents) if text in scores]
            results = [
                {"index": index, "relevance_score": scores[text]} for index, text in sorted(named, key=lambda x: x[1])
            ]
            return Answer(json={"results": results, "usage": {"total_tokens": 10 * len(documents)}})

        return script

    return make
