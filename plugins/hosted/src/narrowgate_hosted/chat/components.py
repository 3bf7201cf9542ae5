"""What the plugin offers of this: descriptors alone; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from narrowgate.seams import CheckContext, Component, Deps, Problem, Seam
from narrowgate_hosted.chat import checks
from narrowgate_hosted.chat.settings import ChatDecisionSettings, GeneratorSettings
from narrowgate_http import http_client, locality

if TYPE_CHECKING:
    from narrowgate.seams.ports import DecisionBackend, Generator

_DECISION: Final = "hosted.chat-decision"
_GENERATOR: Final = "hosted.generator"


@asynccontextmanager
async def _decision(settings: ChatDecisionSettings, _deps: Deps) -> AsyncIterator[DecisionBackend]:
    from narrowgate_hosted.chat.decision import ChatDecisionBackend

    async with http_client(_DECISION, settings) as client:
        yield ChatDecisionBackend(settings, client)


@asynccontextmanager
async def _generator(settings: GeneratorSettings, _deps: Deps) -> AsyncIterator[Generator]:
    from narrowgate_hosted.chat.generator import ChatGenerator

    async with http_client(_GENERATOR, settings) as client:
        yield ChatGenerator(settings, client)


def _check_decision(settings: ChatDecisionSettings, _context: CheckContext) -> Iterator[Problem]:
    return checks.check(_DECISION, settings)


def _check_generator(settings: GeneratorSettings, _context: CheckContext) -> Iterator[Problem]:
    return checks.check(_GENERATOR, settings)


BACKENDS: Final[tuple[Component, ...]] = (
    Component(
        _DECISION,
        Seam.DECISION_BACKEND,
        "A chat model answers yes, no or abstain: OpenAI, Anthropic, Ollama, vLLM, llama.cpp and whatever speaks like them.",
        _decision,
        ChatDecisionSettings,
        locality=locality,
        check=_check_decision,
        facts=checks.facts,
        probe=checks.probe_decision,
    ),
)

GENERATORS: Final[tuple[Component, ...]] = (
    Component(
        _GENERATOR,
        Seam.GENERATOR,
        "JSON by a language model that fits a schema or is an error: chat completions, Responses, Anthropic, Ollama.",
        _generator,
        GeneratorSettings,
        locality=locality,
        check=_check_generator,
        facts=checks.facts,
        probe=checks.probe_generator,
    ),
)
