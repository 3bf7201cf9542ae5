"""The three services: how settings become a dialect, a model and a wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from narrowgate_hosted.decisions.dialects import DIALECTS, OPENAI, OPENROUTER, Dialect
from narrowgate_hosted.decisions.settings import OpenAIDecisionsSettings, OpenRouterDecisionsSettings, SystemOneSettings
from narrowgate_hosted.decisions.wires import OpenAIDecisions, SystemOne, Wire


@attrs.frozen(kw_only=True)
class Service:
    """One decision service.

    Attributes:
        name: the component's full name.
        summary: for `narrowgate plugins`.
        settings: its settings class, a `DecisionsSettings`.
        dialect: settings -> dialect.
        wire: settings -> wire.
    """

    name: str
    summary: str
    settings: type
    dialect: Callable[[Any], Dialect]
    wire: Callable[[Any], Wire]

    def model(self, settings: Any) -> str | None:
        """Return the model that is asked for; `None` where the server chooses."""
        chosen: str | None = settings.model
        return self.dialect(settings).model if chosen is None else chosen


def _systemone(settings: SystemOneSettings) -> Wire:
    dialect = DIALECTS[settings.dialect]
    return SystemOne(
        dialect=dialect,
        model=SYSTEMONE.model(settings),
        text_in_state=settings.text_in == "state",
        name=f"systemone/{dialect.name}",
        route=("v1", "systemone"),
    )


def _openai(settings: OpenAIDecisionsSettings) -> Wire:
    return OpenAIDecisions(dialect=OPENAI, model=settings.model, text_in_state=settings.text_in == "state")


def _openrouter(settings: OpenRouterDecisionsSettings) -> Wire:
    return SystemOne(
        dialect=OPENROUTER,
        model=settings.model,
        text_in_state=settings.text_in == "state",
        name="decisions/openrouter",
        route=("alpha", "decisions"),
    )


SYSTEMONE: Final = Service(
    name="hosted.systemone",
    summary="TypeSafe Jev and the servers that speak like it (System One): Ollama, llama.cpp, laya-serve and others.",
    settings=SystemOneSettings,
    dialect=lambda settings: DIALECTS[settings.dialect],
    wire=_systemone,
)

OPENAI_DECISIONS: Final = Service(
    name="hosted.openai-decisions",
    summary="OpenAI Decisions and services of the same shape; a refusal is an abstention.",
    settings=OpenAIDecisionsSettings,
    dialect=lambda _settings: OPENAI,
    wire=_openai,
)

OPENROUTER_DECISIONS: Final = Service(
    name="hosted.openrouter-decisions",
    summary="Decision models through OpenRouter.",
    settings=OpenRouterDecisionsSettings,
    dialect=lambda _settings: OPENROUTER,
    wire=_openrouter,
)

SERVICES: Final = (SYSTEMONE, OPENAI_DECISIONS, OPENROUTER_DECISIONS)
"""All of them."""
