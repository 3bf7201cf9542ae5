"""Against a server that others wrote: dev-double, which speaks Cohere's rerank, scoring by shared words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import narrowgate
from narrowgate_http.testing import free_port, program
from narrowgate_rerank_api.checks import probe

TEXTS: Final = ["A recipe for bread.", "The http client retries after a timeout.", "Timeout settings."]
QUERY: Final = "retry timeout of the http client"


@pytest.fixture(scope="module")
def dev_double() -> Iterator[str]:
    """Run the server's own command."""
    port = free_port()
    with program("dev-double", "serve", "--engine", "mock", "--host", "127.0.0.1", "--port", str(port)):
        yield f"http://127.0.0.1:{port}"


@pytest.mark.anyio
@pytest.mark.parametrize("dialect", ["standard", "cohere", "cohere-v1"])
async def test_the_better_text_comes_first(
    dialect: str, dev_double: str, pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """Both of its routes, `/v1/rerank` and `/v2/rerank`; its account of tokens is taken over."""
    async with endpoint(dev_double, dialect=dialect, model="r") as reranker:
        decision = await reranker.rerank(QUERY, pool(TEXTS), 2)
    assert decision.selected_ranks == (2, 3)
    assert decision.partial is None
    assert (decision.usage.calls, decision.usage.requests) == (3, 1)
    assert decision.usage.input_tokens
    assert decision.usage.output_tokens is not None


@pytest.mark.anyio
async def test_its_scores_are_comparable_across_requests(
    dev_double: str, pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """A pool in three requests is selected from as in one."""
    async with endpoint(dev_double, max_documents=1) as reranker:
        decision = await reranker.rerank(QUERY, pool(TEXTS), 3)
    assert decision.selected_ranks == (2, 3, 1)
    assert (decision.usage.calls, decision.usage.requests) == (3, 3)


@pytest.mark.anyio
async def test_the_probe_finds_nothing_wrong(dev_double: str, endpoint: Callable[..., Any]) -> None:
    """It scores the relevant text above the other."""
    async with endpoint(dev_double) as reranker:
        assert await probe(reranker) == []


@pytest.mark.anyio
async def test_a_search_by_a_configuration(dev_double: str, tmp_path: Path) -> None:
    """The whole way: a store on disk, the words of the question, the server's order on the page."""
    overrides = {
        "use": {"reranker": "rerank-api.endpoint", "embedder": "none", "channels": ["sqlite.lexical"]},
        "settings": {"sqlite.store": {"path": str(tmp_path / "a.db")}, "rerank-api.endpoint": {"base_url": dev_double}},
    }
    async with narrowgate.open(overrides=overrides) as gate:
        await gate.remember("notes", [f"{text} Settings of a recipe." for text in TEXTS])
        page = await gate.search(QUERY, memory="notes", limit=1)
        assert await gate.probe() == ()
    assert page.status == "applied"
    assert page.hits[0].content.text.startswith("The http client")
    assert page.trace.rerank is not None
    assert page.trace.rerank.policy_id == "memory.rerank.api.v1;dialect=standard"
