"""What an operator can set about the components of this plugin."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal

import attrs
from attrs import validators as v

from narrowgate.seams.options import whole
from narrowgate.values.entry import Scalar
from narrowgate.values.secret import Secret
from narrowgate_http import HttpSettings
from narrowgate_rerank_api.dialects import AGENT_MEMORY, DIALECTS, OWN_FIELDS, Dialect
from narrowgate_rerank_api.weighting import Weight

DialectName = Literal[
    "standard",
    "cohere",
    "cohere-v1",
    "jina",
    "voyage",
    "vllm",
    "tei",
    "llama.cpp",
    "infinity",
    "siliconflow",
    "dashscope",
    "dashscope-compatible",
    "mixedbread",
    "zeroentropy",
    "openrouter",
    "nvidia",
]

_OPTIONAL_COUNT = v.optional([whole, v.ge(1)])


def _range(_: object, __: object, value: tuple[float, float] | None) -> None:
    if value is not None and not (value[0] < value[1] and isfinite(value[0]) and isfinite(value[1] - value[0])):
        raise ValueError("score_range must be the lowest and the highest possible score, finite, the lowest first")


def _within_range(instance: Any, _: object, value: float | None) -> None:
    bounds = getattr(instance, "score_range", None)
    if value is None:
        return
    if bounds is None:
        raise ValueError("min_score says nothing without score_range: servers score in 0..1, in logits, or over the list")
    if not bounds[0] <= value <= bounds[1]:
        raise ValueError("min_score must lie within score_range")


def _distinct(_: object, __: object, value: tuple[Weight, ...]) -> None:
    if len(set(value)) < len(value):
        raise ValueError("weights must not name a factor twice")


def _foreign(_: object, __: object, value: Mapping[str, Scalar]) -> None:
    taken = sorted(OWN_FIELDS.intersection(value))
    if taken:
        raise ValueError(f"options must not hold {', '.join(taken)}, which the component fills in itself")


@attrs.frozen(kw_only=True)
class ScoringSettings(HttpSettings):
    """The options that both components have, beside those of `HttpSettings`.

    Attributes:
        model: the model to ask for; `None` where the server has one only.
        score_range: the lowest and the highest score that the model can give, e.g. `[0, 1]`, where you know that. Nothing is
            assumed about scores otherwise; with it, a score outside is refused.
        min_score: candidates that score less are dropped; needs `score_range`. When none is left, the page is empty.
        unscored: what becomes of candidates that the server does not name, and of blank texts: they come `after` the scored
            ones in coarse order, or `drop` out. They never get a score.
        weights: what is multiplied onto the relevance afterwards: `priority`, `vitality`, `recency` of an entry; see
            `narrowgate_rerank_api.weighting`.
        max_documents: the most documents in one request, >= 1; `None` for the dialect's limit.
        max_request_bytes: the longest request, >= 1; `None` for the dialect's limit.
        pointwise: the model scores each document by itself, so that scores of several requests can be compared. Say `false`
            for models that score a list as a whole: a pool that needs more than one request is then an error.
    """

    model: str | None = None
    score_range: tuple[float, float] | None = attrs.field(default=None, validator=_range)
    min_score: float | None = attrs.field(default=None, validator=_within_range)
    unscored: Literal["after", "drop"] = attrs.field(default="after", validator=v.in_(("after", "drop")))
    weights: tuple[Weight, ...] = attrs.field(
        default=(), validator=[v.deep_iterable(v.in_(("priority", "vitality", "recency"))), _distinct]
    )
    max_documents: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    max_request_bytes: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    pointwise: bool = True


def _address(instance: EndpointSettings) -> str:
    row = DIALECTS.get(instance.dialect)
    return "" if row is None else row.base_url


@attrs.frozen(kw_only=True)
class EndpointSettings(ScoringSettings):
    """Settings of `rerank-api.endpoint`, beside those of `ScoringSettings`.

    Attributes:
        dialect: how the server is asked; `standard` is what most of them have in common.
        base_url: where the server is; by default the dialect's vendor, where it has one.
        options: further fields of each request, as the server documents them (`instruction`, `truncation`, ...). Shown by
            `narrowgate check`: no place for a secret.
    """

    dialect: DialectName = attrs.field(default="standard", validator=v.in_(tuple(DIALECTS)))
    base_url: str = attrs.field(default=attrs.Factory(_address, takes_self=True))
    options: Mapping[str, Scalar] = attrs.field(factory=dict, validator=_foreign)

    @property
    def asked(self) -> Dialect:
        """How the server is asked."""
        return DIALECTS[self.dialect]


@attrs.frozen(kw_only=True)
class AgentMemorySettings(ScoringSettings):
    """Settings of `rerank-api.agent-memory`, beside those of `ScoringSettings`.

    Attributes:
        provider: `openai`, `jina` or `cohere`, in any case, which all mean the same; anything else means off, which is
            refused at start-up. Variable: `AGENT_MEMORY_RERANK_PROVIDER`.
        model: the model to ask for. Variable: `AGENT_MEMORY_RERANK_MODEL`.
        base_url: where the server is; `/rerank` is appended. Variables: `AGENT_MEMORY_RERANK_BASE_URL`, `OPENAI_BASE_URL`.
        api_key: the credential. Variables: `AGENT_MEMORY_RERANK_API_KEY`, `OPENAI_API_KEY`.
        weights: what is multiplied onto the relevance; agent-memory always weights by vitality, and by priority or recency
            as the question is.
        options: further fields of each request, as for `rerank-api.endpoint`.
    """

    provider: str = attrs.field(default="none", metadata={"variables": ("AGENT_MEMORY_RERANK_PROVIDER",)})
    model: str | None = attrs.field(default="Qwen/Qwen3-Reranker-8B", metadata={"variables": ("AGENT_MEMORY_RERANK_MODEL",)})
    base_url: str = attrs.field(
        default=AGENT_MEMORY.base_url, metadata={"variables": ("AGENT_MEMORY_RERANK_BASE_URL", "OPENAI_BASE_URL")}
    )
    api_key: Secret | None = attrs.field(
        default=None, metadata={"variables": ("AGENT_MEMORY_RERANK_API_KEY", "OPENAI_API_KEY")}
    )
    weights: tuple[Weight, ...] = attrs.field(
        default=("priority", "vitality"),
        validator=[v.deep_iterable(v.in_(("priority", "vitality", "recency"))), _distinct],
    )
    options: Mapping[str, Scalar] = attrs.field(factory=dict, validator=_foreign)

    @property
    def asked(self) -> Dialect:
        """How the server is asked."""
        return AGENT_MEMORY
