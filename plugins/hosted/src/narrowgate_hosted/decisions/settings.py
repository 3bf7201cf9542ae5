"""What an operator can set about the decision services. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

import attrs
from attrs import validators as v

from narrowgate.seams.options import whole
from narrowgate_http.settings import HttpSettings

_SIZE = v.optional([whole, v.ge(256)])


def _band(instance: DecisionsSettings, _attribute: object, value: float) -> None:
    if value > instance.keep_at:
        raise ValueError("drop_below must not be greater than keep_at")


@attrs.frozen(kw_only=True)
class DecisionsSettings(HttpSettings):
    """What every decision service has beside `HttpSettings`.

    Attributes:
        keep_at: a probability of at least this is YES, 0..1.
        drop_below: a probability below this is NO; between the two the answer is ABSTAIN. At most `keep_at`, 0..1.
        text_in: where the text that is judged stands. `question`: with its question, so that the questions about many texts
            share a request. `state`: in the state, one text for each request, as models trained on short questions have it.
        batch_limit: the most questions in one request, 1..1000; `None` for the documented limit of the service.
        max_request_bytes: the longest request body in bytes, >= 256; more questions go into further requests. `None` for
            the documented limit; where that is a number of tokens, two bytes for each.
        max_question_bytes: the most bytes of the state and one question, >= 256; a text for which that is too little is
            refused with the code `too-large`, never cut. `None` as for `max_request_bytes`.
    """

    keep_at: float = attrs.field(default=0.6, validator=[v.ge(0.0), v.le(1.0)])
    drop_below: float = attrs.field(default=0.4, validator=[v.ge(0.0), v.le(1.0), _band])
    text_in: Literal["question", "state"] = attrs.field(default="question", validator=v.in_(("question", "state")))
    batch_limit: int | None = attrs.field(default=None, validator=v.optional([whole, v.ge(1), v.le(1000)]))
    max_request_bytes: int | None = attrs.field(default=None, validator=_SIZE)
    max_question_bytes: int | None = attrs.field(default=None, validator=_SIZE)


@attrs.frozen(kw_only=True)
class SystemOneSettings(DecisionsSettings):
    """Settings of `hosted.systemone`.

    Attributes:
        base_url: where the server is.
        dialect: what the server speaks exactly: `jev` (TypeSafe, and servers that follow it closely), `ollama`, `llama.cpp`,
            `laya`, `jev-compatible` (Hanno-Labs), `nimble` (Bespoke Labs). Chooses limits and the form of texts.
        model: the model to ask; `None` for `jev-latest`, or for none in dialects where the server itself chooses.
    """

    base_url: str = "https://api.typesafe.ai"
    dialect: Literal["jev", "ollama", "llama.cpp", "laya", "jev-compatible", "nimble"] = attrs.field(
        default="jev", validator=v.in_(("jev", "ollama", "llama.cpp", "laya", "jev-compatible", "nimble"))
    )
    model: str | None = attrs.field(default=None, validator=v.optional(v.min_len(1)))


@attrs.frozen(kw_only=True)
class OpenAIDecisionsSettings(DecisionsSettings):
    """Settings of `hosted.openai-decisions`.

    Attributes:
        base_url: where the server is.
        model: the model to ask.
    """

    base_url: str = "https://api.openai.com"
    model: str = attrs.field(default="gpt-6-luna", validator=v.min_len(1))


@attrs.frozen(kw_only=True)
class OpenRouterDecisionsSettings(DecisionsSettings):
    """Settings of `hosted.openrouter-decisions`.

    Attributes:
        base_url: where the server is.
        model: the model to ask; a `~` at its beginning stands for an alias that moves.
    """

    base_url: str = "https://openrouter.ai/api"
    model: str = attrs.field(default="typesafe/jev-1.13", validator=v.min_len(1))
