"""The wire formats: what is sent, where the vectors stand in the answer, and what the answer says that it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from narrowgate_hosted.embedding.settings import Dialect, EmbedderSettings
from narrowgate_http import HttpSettings, Reply, resolve


class ShapeError(ValueError):
    """An answer without the vectors that were asked for. The message has no content."""


@attrs.frozen(kw_only=True)
class Wire:
    """One dialect.

    Attributes:
        version: the version in its route, or nothing.
        operation: the rest of its route.
        texts: the field with the texts.
        model: the field with the model, or `None` where the server has only one.
        dimension: the field that asks for a shorter vector.
        query: fields that mark queries.
        document: fields that mark all other texts.
        options: the other fields, by the settings.
        vectors: answer and number of texts -> what stands for each vector, in the order of the texts. Raises `ShapeError`.
        tokens: where the answer says how many tokens it read, from the outside in.
        counted_in: the header that says so instead.
    """

    version: str
    operation: str
    texts: str = "input"
    model: str | None = "model"
    dimension: str = "dimensions"
    query: Mapping[str, str] = attrs.field(factory=dict)
    document: Mapping[str, str] = attrs.field(factory=dict)
    options: Callable[[EmbedderSettings], Mapping[str, Any]]
    vectors: Callable[[Any, int], Sequence[Any]]
    tokens: Sequence[tuple[str, ...]] = ()
    counted_in: str | None = None

    def url(self, settings: HttpSettings) -> str:
        """Return the URL that is called.

        Raises:
            ValueError: `base_url` is no absolute http or https URL.
        """
        return resolve(settings, self.version, self.operation)

    def marks(self, settings: EmbedderSettings, *, query: bool) -> dict[str, str]:
        """Return the fields that tell a server whether it embeds queries: the dialect's own under those of the settings."""
        own, given = (self.query, settings.query_fields) if query else (self.document, settings.document_fields)
        return {name: value for name, value in {**own, **given}.items() if value}

    def body(self, settings: EmbedderSettings, texts: Sequence[str], *, query: bool) -> dict[str, Any]:
        """Return a request.

        Args:
            settings: the settings.
            texts: with their prefix, at least one.
            query: whether they are queries.
        """
        body: dict[str, Any] = {self.texts: list(texts), **self.options(settings), **self.marks(settings, query=query)}
        if self.model is not None:
            body[self.model] = settings.model
        if settings.send_dimension:
            body[self.dimension] = settings.dimension
        return body

    def cost(self, reply: Reply) -> int | None:
        """Return how many tokens the server says that it read; `None` where it says nothing, or nothing that is a count."""
        if self.counted_in is not None:
            text = reply.headers.get(self.counted_in, "")
            return int(text) if text.isascii() and text.isdigit() else None
        for path in self.tokens:
            found = reply.json
            for key in path:
                found = found.get(key) if isinstance(found, Mapping) else None
            if isinstance(found, int | float) and not isinstance(found, bool) and found >= 0 and found == int(found):
                return int(found)
        return None


def _indexed(answer: Any, count: int) -> Sequence[Any]:
    """Read `{"data": [{"index", "embedding"}]}`, in whatever order the items come."""
    items = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(items, list):
        raise ShapeError("sent no list `data`")
    found: dict[int, Any] = {}
    for item in items:
        index = item.get("index") if isinstance(item, Mapping) else None
        if type(index) is not int or "embedding" not in item:
            raise ShapeError("sent an item of `data` without `index` and `embedding`")
        if not 0 <= index < count:
            raise ShapeError(f"sent a vector for text number {index} of {count}")
        if index in found:
            raise ShapeError(f"sent two vectors for text number {index}")
        found[index] = item["embedding"]
    if len(found) != count:
        raise ShapeError(f"sent {len(found)} vectors for {count} texts")
    return [found[index] for index in range(count)]


def _counted(vectors: Any, where: str, count: int) -> Sequence[Any]:
    if not isinstance(vectors, list):
        raise ShapeError(f"sent no list {where}")
    if len(vectors) != count:
        raise ShapeError(f"sent {len(vectors)} vectors for {count} texts")
    return vectors


def _ollama(answer: Any, count: int) -> Sequence[Any]:
    return _counted(answer.get("embeddings") if isinstance(answer, Mapping) else None, "`embeddings`", count)


def _tei(answer: Any, count: int) -> Sequence[Any]:
    return _counted(answer, "of vectors", count)


def _cohere(answer: Any, count: int) -> Sequence[Any]:
    kinds = answer.get("embeddings") if isinstance(answer, Mapping) else None
    return _counted(kinds.get("float") if isinstance(kinds, Mapping) else None, "`embeddings.float`", count)


_USAGE: Final = (("usage", "prompt_tokens"), ("usage", "total_tokens"))
"""Voyage says only the second; the first is what was read where both are there."""

WIRES: Final[Mapping[Dialect, Wire]] = {
    "openai": Wire(
        version="v1",
        operation="embeddings",
        # Said even where it is the default: some servers send what a client library would have asked for.
        options=lambda settings: {"encoding_format": settings.encoding},
        vectors=_indexed,
        tokens=_USAGE,
    ),
    "voyage": Wire(
        version="v1",
        operation="embeddings",
        dimension="output_dimension",
        query={"input_type": "query"},
        document={"input_type": "document"},
        # Its `encoding_format` has no word for lists of numbers.
        options=lambda settings: {
            "truncation": settings.truncate,
            **({"encoding_format": "base64"} if settings.encoding == "base64" else {}),
        },
        vectors=_indexed,
        tokens=_USAGE,
    ),
    "jina": Wire(
        version="v1",
        operation="embeddings",
        query={"task": "retrieval.query"},
        document={"task": "retrieval.passage"},
        options=lambda settings: {
            "truncate": settings.truncate,
            "normalized": True,
            "embedding_type": settings.encoding,
        },
        vectors=_indexed,
        tokens=_USAGE,
    ),
    "mistral": Wire(
        version="v1",
        operation="embeddings",
        dimension="output_dimension",
        options=lambda settings: {"encoding_format": settings.encoding},
        vectors=_indexed,
        tokens=_USAGE,
    ),
    "ollama": Wire(
        version="api",
        operation="embed",
        options=lambda settings: {"truncate": settings.truncate},
        vectors=_ollama,
        tokens=(("prompt_eval_count",),),
    ),
    "tei": Wire(
        version="",
        operation="embed",
        texts="inputs",
        model=None,
        options=lambda settings: {"normalize": True, "truncate": settings.truncate},
        vectors=_tei,
        counted_in="x-compute-tokens",
    ),
    "cohere": Wire(
        version="v2",
        operation="embed",
        texts="texts",
        dimension="output_dimension",
        query={"input_type": "search_query"},
        document={"input_type": "search_document"},
        options=lambda settings: {"embedding_types": ["float"], "truncate": "END" if settings.truncate else "NONE"},
        vectors=_cohere,
        tokens=(("meta", "billed_units", "input_tokens"),),
    ),
}
"""Dialect -> its wire format."""
