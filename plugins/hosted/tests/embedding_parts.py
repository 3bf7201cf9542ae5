"""What the tests of `hosted.embedder` share: an opened embedder, and a strict fake of each dialect."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from narrowgate.recall.analysis import index_terms
from narrowgate.seams import CheckContext, Component, Deps
from narrowgate_hosted.embedding.components import EMBEDDERS
from narrowgate_hosted.embedding.embedder import HostedEmbedder
from narrowgate_hosted.embedding.settings import EmbedderSettings
from narrowgate_http.testing import Answer, Recorded

(COMPONENT,) = EMBEDDERS
CONTEXT: Final = CheckContext({}, "a1")
DIMENSION: Final = 16
TEXTS: Final = ("The backup runs on disk two.", "李雷决定把日志保留期改为三十天。", "Rest days are paid.")


def settings_of(base_url: str = "http://127.0.0.1:9", **options: Any) -> EmbedderSettings:
    """Return settings; the model is `m` and makes vectors of `DIMENSION` numbers."""
    return EmbedderSettings(**{"base_url": base_url, "model": "m", "dimension": DIMENSION, **options})


def component() -> Component:
    """Return the component's descriptor."""
    return COMPONENT


@asynccontextmanager
async def opened(base_url: str, **options: Any) -> AsyncIterator[HostedEmbedder]:
    """Open an embedder as the host does."""
    async with COMPONENT.build(settings_of(base_url, **options), Deps({}, "a1")) as embedder:
        yield embedder


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return what the fakes make of a text, not of length 1: near texts share words."""
    total = [0.0] * dimension
    for term in index_terms(text) or (text,):
        seed = hashlib.sha256(term.encode()).digest() * (dimension // 32 + 1)
        total = [number + byte - 127.5 for number, byte in zip(total, seed, strict=False)]
    return total


def unit_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return `vector_of` made of length 1."""
    numbers = vector_of(text, dimension)
    norm = math.hypot(*numbers)
    return [number / norm for number in numbers]


def in_base64(numbers: Sequence[float]) -> str:
    """Return numbers as base64 of little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


@attrs.frozen(kw_only=True)
class Rules:
    """How strict a fake is.

    Attributes:
        path: the only route that it has.
        required: fields without which a request is refused.
        optional: all other fields that it knows; a further one is refused.
        texts: the field with the texts.
        answer: texts, request and vectors -> the answer.
        headers: headers of the answer.
    """

    path: str
    required: frozenset[str]
    optional: frozenset[str] = frozenset()
    texts: str = "input"
    answer: Callable[[list[str], dict[str, Any], list[list[float]]], Any]
    headers: Callable[[int], dict[str, str]] = lambda tokens: {}


def words(texts: Sequence[str]) -> int:
    """Return how many tokens the fakes say that texts have."""
    return sum(len(text.split()) for text in texts)


def _openai(texts: list[str], asked: dict[str, Any], vectors: list[list[float]]) -> Any:
    encoded = "base64" in (asked.get("encoding_format"), asked.get("embedding_type"))
    data = [
        {"object": "embedding", "index": index, "embedding": in_base64(vector) if encoded else vector}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": words(texts), "total_tokens": words(texts)}
    if "output_dtype" in asked or "input_type" in asked:
        del usage["prompt_tokens"]  # Voyage says the total alone
    return {"object": "list", "model": asked["model"], "data": data, "usage": usage}


def _ollama(texts: list[str], asked: dict[str, Any], vectors: list[list[float]]) -> Any:
    return {"model": asked["model"], "embeddings": vectors, "total_duration": 1, "prompt_eval_count": words(texts)}


def _cohere(texts: list[str], _asked: dict[str, Any], vectors: list[list[float]]) -> Any:
    meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": words(texts)}}
    return {"id": "e-1", "embeddings": {"float": vectors}, "texts": texts, "meta": meta}


FAKES: Final[dict[str, Rules]] = {
    "openai": Rules(
        path="/v1/embeddings",
        required=frozenset({"model", "input"}),
        optional=frozenset({"encoding_format", "dimensions", "user"}),
        answer=_openai,
    ),
    "voyage": Rules(
        path="/v1/embeddings",
        required=frozenset({"model", "input"}),
        optional=frozenset({"input_type", "truncation", "output_dimension", "output_dtype", "encoding_format"}),
        answer=_openai,
    ),
    "jina": Rules(
        path="/v1/embeddings",
        required=frozenset({"model", "input"}),
        optional=frozenset({"task", "dimensions", "normalized", "embedding_type", "truncate", "late_chunking"}),
        answer=_openai,
    ),
    "mistral": Rules(
        path="/v1/embeddings",
        required=frozenset({"model", "input"}),
        optional=frozenset({"encoding_format", "output_dimension", "output_dtype", "metadata"}),
        answer=_openai,
    ),
    "ollama": Rules(
        path="/api/embed",
        required=frozenset({"model", "input"}),
        optional=frozenset({"truncate", "dimensions", "keep_alive", "options"}),
        answer=_ollama,
    ),
    "tei": Rules(
        path="/embed",
        required=frozenset({"inputs"}),
        optional=frozenset({"normalize", "truncate", "truncation_direction", "prompt_name", "dimensions"}),
        texts="inputs",
        answer=lambda _texts, _asked, vectors: vectors,
        headers=lambda tokens: {"x-compute-tokens": str(tokens)},
    ),
    "cohere": Rules(
        path="/v2/embed",
        required=frozenset({"model", "texts", "input_type", "embedding_types"}),
        optional=frozenset({"truncate", "output_dimension", "max_tokens", "priority"}),
        texts="texts",
        answer=_cohere,
    ),
}
"""Dialect -> its fake, after the documentation of the services."""


def fake(dialect: str = "openai") -> Callable[[Recorded], Answer]:
    """Return the script of a server that speaks one dialect: unknown routes and fields are refused, as strict servers do."""
    rules = FAKES[dialect]

    def answer(request: Recorded) -> Answer:
        asked = request.json
        if request.method != "POST" or request.path != rules.path:
            return Answer(status=404, json={"error": {"message": "no such route"}})
        unknown = set(asked) - rules.required - rules.optional
        texts = asked.get(rules.texts)
        if unknown or not rules.required <= set(asked) or not isinstance(texts, list) or not all(texts):
            return Answer(status=422, json={"detail": [{"loc": ["body", *sorted(unknown)], "msg": "refused"}]})
        dimension = next((asked[key] for key in ("dimensions", "output_dimension") if key in asked), DIMENSION)
        vectors = [vector_of(text, dimension) for text in texts]
        return Answer(json=rules.answer(texts, asked, vectors), headers=rules.headers(words(texts)))

    return answer


def texts_in(request: Recorded) -> list[str]:
    """Return the texts of a request, in whatever field they are."""
    asked = request.json
    return next(list(asked[key]) for key in ("input", "inputs", "texts") if key in asked)


def listed(vectors: Sequence[Any], *, indices: Sequence[Any] | None = None, **more: Any) -> bytes:
    """Return an answer of the dialect `openai` with any vectors and indices."""
    places = range(len(vectors)) if indices is None else indices
    data = [{"index": place, "embedding": vector} for place, vector in zip(places, vectors, strict=True)]
    return json.dumps({"object": "list", "data": data, "model": "m", **more}).encode()
