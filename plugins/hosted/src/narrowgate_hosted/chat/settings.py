"""What an operator can set about the components that speak with a language model. Nothing heavy is imported here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs
from attrs import validators as v

from narrowgate.seams.options import seconds, whole
from narrowgate_http.settings import HttpSettings

WireName: TypeAlias = Literal["chat", "responses", "anthropic", "ollama"]
SchemaForm: TypeAlias = Literal["native", "json_object", "structured_outputs", "tool", "prompt"]

BASE_URLS: Final[Mapping[str, str]] = {
    "chat": "https://api.openai.com/v1",
    "responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "ollama": "http://127.0.0.1:11434",
}
"""Wire -> where its server is when nobody says."""

FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "chat": ("native", "json_object", "structured_outputs", "prompt"),
    "responses": ("native", "prompt"),
    "anthropic": ("native", "tool", "prompt"),
    "ollama": ("native", "prompt"),
}
"""Wire -> the ways in which it can send a schema."""

OURS: Final = frozenset(
    """
    format input instructions max_completion_tokens max_output_tokens max_tokens messages model n options output_config
    response_format shift store stream structured_outputs system temperature text think tool_choice tools truncate
    """.split()  # noqa: SIM905 - a list of words to read
)
"""The fields of a body that a wire may write itself, and `n`: nobody could tell which of several answers counts."""

_DATED: Final = re.compile(r".*[-@:_](20\d\d-?\d\d-?\d\d)")


def _base_url(settings: ChatSettings) -> str:
    return BASE_URLS.get(settings.wire, "")


def _auth(settings: ChatSettings) -> Literal["bearer", "x-api-key"]:
    return "x-api-key" if settings.wire == "anthropic" else "bearer"


def _token_field(settings: ChatSettings) -> Literal["max_completion_tokens", "max_tokens"]:
    return "max_completion_tokens" if of_service(settings.base_url, "api.openai.com") else "max_tokens"


def is_dated(model: str) -> bool:
    """Return whether a model's name ends in a date, and so means one model for good."""
    return _DATED.fullmatch(model) is not None


def _pinned(settings: ChatSettings) -> bool:
    return is_dated(settings.model)


def host_of(url: str) -> str:
    """Return the host of a URL in lower case; nothing for what is no URL."""
    try:
        return (urlsplit(url.strip()).hostname or "").lower()
    except ValueError:
        return ""


def of_service(url: str, host: str) -> bool:
    """Return whether a URL leads to `host` or to one of its regions (`eu.api.openai.com`)."""
    return f".{host_of(url)}".endswith(f".{host}")


def _fits_wire(settings: ChatSettings, _: attrs.Attribute[str], value: str) -> None:
    # Asked alone, an option knows only the others that were given; see `narrowgate.host.settings`.
    wire = getattr(settings, "wire", "chat")
    if value not in FORMS.get(wire, (value,)):
        raise ValueError(f"wire {wire!r} sends a schema as one of {', '.join(FORMS[wire])}")


def _not_ours(_: ChatSettings, attribute: attrs.Attribute[Mapping[str, Any]], value: Mapping[str, Any]) -> None:
    taken = sorted(OURS.intersection(value))
    if taken:
        raise ValueError(f"{attribute.name} must not hold {', '.join(taken)}: the component writes that itself")


@attrs.frozen(kw_only=True)
class ChatSettings(HttpSettings):
    """What the components that speak with a language model have in common.

    Attributes:
        wire: the protocol: `chat` (OpenAI's chat completions, which vLLM, llama.cpp, LM Studio and gateways speak too),
            `responses` (OpenAI's Responses), `anthropic` (messages) or `ollama` (its own `/api/chat`).
        model: the model to ask for.
        base_url: where the server is; the wire's usual place where it is not set.
        auth: how the credential is sent; `x-api-key` with the wire `anthropic`, else `bearer`.
        max_output_tokens: the most tokens of an answer, reasoning included, >= 1. An answer that is cut here is refused.
        schema_as: how the schema is sent: `native` (the wire's own field); on the wire `chat` also `json_object` (llama.cpp
            form) and `structured_outputs` (vLLM form); on the wire `anthropic` also `tool`; or `prompt`, in the
            instructions alone, for servers that know no schemas.
        token_field: on the wire `chat`, the field that carries `max_output_tokens`: `max_completion_tokens` for
            api.openai.com and its regions, else `max_tokens`.
        send_temperature: send a temperature of 0; false for models that refuse the field.
        num_ctx: on the wire `ollama`, the context length in tokens, >= 256. A prompt that does not fit is refused.
        extra_body: further fields of each request, e.g. `{ reasoning_effort = "low" }`; none that the component writes.
        pinned: whether the model's name always means the same model; true where it ends in a date. Only verdicts of a pinned
            model may be remembered.
    """

    wire: WireName = attrs.field(default="chat", validator=v.in_(tuple(BASE_URLS)))
    model: str = attrs.field(validator=v.min_len(1))
    base_url: str = attrs.field(default=attrs.Factory(_base_url, takes_self=True))
    auth: Literal["bearer", "basic", "x-api-key"] = attrs.field(
        default=attrs.Factory(_auth, takes_self=True), validator=v.in_(("bearer", "basic", "x-api-key"))
    )
    max_output_tokens: int = attrs.field(default=1024, validator=[whole, v.ge(1)])
    schema_as: SchemaForm = attrs.field(default="native", validator=_fits_wire)
    token_field: Literal["max_completion_tokens", "max_tokens"] = attrs.field(
        default=attrs.Factory(_token_field, takes_self=True), validator=v.in_(("max_completion_tokens", "max_tokens"))
    )
    send_temperature: bool = True
    num_ctx: int = attrs.field(default=8192, validator=[whole, v.ge(256)])
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, validator=_not_ours)
    pinned: bool = attrs.field(default=attrs.Factory(_pinned, takes_self=True))


@attrs.frozen(kw_only=True)
class GeneratorSettings(ChatSettings):
    """The section `[settings."hosted.generator"]`.

    Attributes:
        repeats: further attempts when an answer is invalid (prose, another shape, nothing), >= 0. Each costs as much as the
            first; the cost of all is added up. A cut or refused answer is not asked for again.
        timeout: seconds for one attempt, from connecting to the last byte, finite and > 0.
        deadline: seconds for one call with all its attempts, repeats and waits, finite and > 0.
    """

    repeats: int = attrs.field(default=0, validator=[whole, v.ge(0)])
    timeout: float = attrs.field(default=20.0, validator=seconds)
    deadline: float = attrs.field(default=25.0, validator=seconds)


def _band(settings: ChatDecisionSettings, _: attrs.Attribute[float], value: float) -> None:
    if value > getattr(settings, "keep_at", 1.0):
        raise ValueError("drop_below must not be greater than keep_at")


@attrs.frozen(kw_only=True)
class ChatDecisionSettings(ChatSettings):
    """The section `[settings."hosted.chat-decision"]`.

    Attributes:
        batch: the most questions in one request, 1..50. Above 1 a request carries a list of questions, and the answers are
            told apart by id; `max_output_tokens` must do for all of them.
        probability: ask the model for its probability of yes beside its answer. It is a number that a model writes down, not
            a calibrated one, so that it becomes the `score` of a verdict.
        keep_at: with `probability`: at least this is YES, 0..1.
        drop_below: with `probability`: less than this is NO; between the two the verdict is ABSTAIN. At most `keep_at`.
    """

    batch: int = attrs.field(default=1, validator=[whole, v.ge(1), v.le(50)])
    probability: bool = False
    keep_at: float = attrs.field(default=0.6, validator=[v.ge(0.0), v.le(1.0)])
    drop_below: float = attrs.field(default=0.4, validator=[v.ge(0.0), v.le(1.0), _band])
