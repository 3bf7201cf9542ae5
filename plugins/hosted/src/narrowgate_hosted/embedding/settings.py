"""What an operator can set about `hosted.embedder`. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs
from attrs import validators as v

from narrowgate.seams.options import seconds, whole
from narrowgate_http import HttpSettings

Dialect = Literal["openai", "voyage", "jina", "mistral", "ollama", "tei", "cohere"]

DIALECTS: Final[tuple[Dialect, ...]] = ("openai", "voyage", "jina", "mistral", "ollama", "tei", "cohere")

MOST_TEXTS: Final[Mapping[Dialect, int]] = {"openai": 2048, "voyage": 1000, "jina": 2048, "cohere": 96}
"""The most texts in one request, where the service documents a limit. That of `tei` is set by who starts the server."""

ENCODINGS: Final[frozenset[Dialect]] = frozenset({"openai", "voyage", "jina", "mistral"})
"""The dialects that can send vectors in base64."""

_OWN_FIELDS: Final = frozenset({"model", "input", "inputs", "texts"})


def _documented(instance: EmbedderSettings, _attribute: object, value: int) -> None:
    most = MOST_TEXTS.get(instance.dialect)
    if most is not None and value > most:
        raise ValueError(f"dialect {instance.dialect!r} takes at most {most} texts in a request")


def _encodable(instance: EmbedderSettings, _attribute: object, value: str) -> None:
    if value == "base64" and instance.dialect not in ENCODINGS:
        raise ValueError(f"dialect {instance.dialect!r} sends no base64")


def _free(_instance: object, _attribute: object, value: Mapping[str, str]) -> None:
    taken = sorted(_OWN_FIELDS & set(value))
    if taken:
        raise ValueError(f"{taken[0]!r} is a field that the embedder fills in itself")


@attrs.frozen(kw_only=True)
class EmbedderSettings(HttpSettings):
    """Settings of `hosted.embedder`.

    Attributes:
        dialect: how the server is spoken to. `openai` is `/v1/embeddings` as OpenAI, vLLM, llama.cpp, LM Studio, Infinity
            and most gateways have it; `voyage`, `jina` and `mistral` are its variants with field names of their own;
            `ollama` is `/api/embed`, `tei` is `/embed` of Text Embeddings Inference, `cohere` is `/v2/embed`.
        model: the model that is asked for, and its name in the embedding profile. `tei` serves one model: its name.
        dimension: length of the model's vectors, 1..65536. It must be known without asking; another length is refused.
        send_dimension: ask for vectors of `dimension`, from models that can shorten theirs. Others refuse the request.
        version: version in the embedding profile. Change it when the model behind the name changes, so that the index is
            rebuilt.
        threshold: cosine below which a candidate of the vector channel is noise, -1..1. It differs between models.
        query_prefix: put before a query, e.g. `query: `. Part of the profile.
        document_prefix: put before any other text, e.g. `passage: `. Part of the profile.
        query_fields: further fields of the request for queries, over those of the dialect; an empty value leaves a field
            out. Part of the profile.
        document_fields: likewise for all other texts.
        truncate: let the server cut texts that are too long for its model, in the dialects with a flag for that (all but
            `openai` and `mistral`, where it is the server's business); `false` has it refuse them.
        encoding: how vectors are sent: `float` or, in a quarter of the bytes, `base64` where the dialect has that.
        batch_size: the most texts in one request, 1..2048, at most what the dialect's service documents.
        batch_bytes: the most bytes of text in one request, >= 1; a single longer text goes alone. A token is at least a
            byte, so that this bounds the tokens of a request too.
        timeout: seconds for one attempt, from connecting to the last byte, finite and > 0.
        deadline: seconds for one request with all its attempts and waits, finite and > 0.
        query_deadline: the same for a query, which a search waits for. Below `channel_deadline` of `[search]`, so that a
            server that hangs is told as what it is, with its cost.
    """

    dialect: Dialect = attrs.field(default="openai", validator=v.in_(DIALECTS))
    model: str = attrs.field(validator=v.min_len(1))
    dimension: int = attrs.field(validator=[whole, v.ge(1), v.le(65_536)])
    send_dimension: bool = False
    version: str = attrs.field(default="1", validator=v.min_len(1))
    threshold: float = attrs.field(default=0.3, validator=[v.ge(-1.0), v.le(1.0)])
    query_prefix: str = ""
    document_prefix: str = ""
    query_fields: Mapping[str, str] = attrs.field(factory=dict, validator=_free)
    document_fields: Mapping[str, str] = attrs.field(factory=dict, validator=_free)
    truncate: bool = True
    encoding: Literal["float", "base64"] = attrs.field(default="float", validator=[v.in_(("float", "base64")), _encodable])
    batch_size: int = attrs.field(default=32, validator=[whole, v.ge(1), v.le(2048), _documented])
    batch_bytes: int = attrs.field(default=100_000, validator=[whole, v.ge(1)])
    timeout: float = attrs.field(default=30.0, validator=seconds)
    deadline: float = attrs.field(default=60.0, validator=seconds)
    query_deadline: float = attrs.field(default=8.0, validator=seconds)
