"""What the plugin offers of this: descriptors alone; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from narrowgate.seams import CheckContext, Component, Deps, Problem, Seam
from narrowgate_hosted.embedding.dialects import WIRES
from narrowgate_hosted.embedding.profiles import NAME, profile_of
from narrowgate_hosted.embedding.settings import EmbedderSettings
from narrowgate_http import check_http, locality, shown

if TYPE_CHECKING:
    from narrowgate_hosted.embedding.embedder import HostedEmbedder

_KEYS: Final[Mapping[str, str]] = {
    "api.openai.com": "OPENAI_API_KEY",
    "api.voyageai.com": "VOYAGE_API_KEY",
    "api.jina.ai": "JINA_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.cohere.com": "CO_API_KEY",
}
"""Hosts that answer nobody without a credential -> the variable that usually holds it."""


@asynccontextmanager
async def _build(settings: EmbedderSettings, deps: Deps) -> AsyncIterator[HostedEmbedder]:
    from narrowgate_hosted.embedding.embedder import build

    async with build(settings, deps) as embedder:
        yield embedder


async def _probe(embedder: HostedEmbedder) -> Iterable[Problem]:
    from narrowgate_hosted.embedding.probing import probe

    return await probe(embedder)


def _check(settings: EmbedderSettings, _context: CheckContext) -> Iterator[Problem]:
    hint = _KEYS.get(_host(settings), "")
    yield from check_http(settings, NAME, key=bool(hint), key_hint=hint)


def _facts(settings: EmbedderSettings, _context: CheckContext) -> Mapping[str, str]:
    try:
        url = shown(WIRES[settings.dialect].url(settings))
    except ValueError:
        return {}  # `_check` tells what is wrong with it
    return {"url": url, "profile": str(profile_of(settings))}


def _host(settings: EmbedderSettings) -> str:
    try:
        return (urlsplit(settings.base_url.strip()).hostname or "").lower()
    except ValueError:
        return ""


EMBEDDERS: Final[tuple[Component, ...]] = (
    Component(
        NAME,
        Seam.EMBEDDER,
        "Vectors from a server: /v1/embeddings and its variants, Ollama, Text Embeddings Inference, Cohere.",
        _build,
        EmbedderSettings,
        locality=locality,
        check=_check,
        profile=profile_of,
        facts=_facts,
        probe=_probe,
    ),
)
