"""What this distribution contributes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from narrowgate.seams import Component, Deps, Plugin, Seam, hookimpl
from narrowgate_http import http_client, locality
from narrowgate_rerank_api import checks
from narrowgate_rerank_api.endpoint import EndpointReranker
from narrowgate_rerank_api.settings import AgentMemorySettings, EndpointSettings

if TYPE_CHECKING:
    from narrowgate.seams.ports import Reranker

PLUGIN: Final = Plugin("rerank-api", (1, 0))


@asynccontextmanager
async def _endpoint(settings: EndpointSettings, _deps: Deps) -> AsyncIterator[Reranker]:
    async with http_client(checks.ENDPOINT, settings) as client:
        yield EndpointReranker(client, settings)


@asynccontextmanager
async def _agent_memory(settings: AgentMemorySettings, _deps: Deps) -> AsyncIterator[Reranker]:
    async with http_client(checks.AGENT_MEMORY, settings) as client:
        yield EndpointReranker(client, settings)


@hookimpl
def narrowgate_rerankers() -> list[Component]:
    """Offer the rerankers."""
    return [
        Component(
            name=checks.ENDPOINT,
            seam=Seam.RERANKER,
            summary="Lets a /rerank endpoint score the candidates: Cohere, Jina, Voyage, vLLM, TEI, llama.cpp and others.",
            build=_endpoint,
            settings=EndpointSettings,
            locality=locality,
            check=checks.endpoint,
            facts=checks.facts,
            probe=checks.probe,
        ),
        Component(
            name=checks.AGENT_MEMORY,
            seam=Seam.RERANKER,
            summary="The external reranker of agent-memory, set up by the variables AGENT_MEMORY_RERANK_...",
            build=_agent_memory,
            settings=AgentMemorySettings,
            locality=locality,
            check=checks.agent_memory,
            facts=checks.facts,
            probe=checks.probe,
        ),
    ]
