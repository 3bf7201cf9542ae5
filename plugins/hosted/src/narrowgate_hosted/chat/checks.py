"""Offline checks and facts of the components that speak with a language model, and their probes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from narrowgate.decisions import DecisionOutcome, DecisionRequest
from narrowgate.errors import GenerationError
from narrowgate.seams import CheckContext, Problem
from narrowgate.seams.ports import DecisionBackend, Generator
from narrowgate_hosted.chat.answers import INVALID
from narrowgate_hosted.chat.settings import ChatSettings, of_service
from narrowgate_hosted.chat.wires import ROUTES
from narrowgate_http import check_http, resolve, shown

KEYS: Final[Mapping[str, str]] = {
    "api.openai.com": "OPENAI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Host that cannot do without a credential -> the variable that usually holds it."""


def check(name: str, settings: ChatSettings) -> Iterator[Problem]:
    """Yield what is wrong with address, credential and wire of the component `name`."""
    variable = next((found for host, found in KEYS.items() if of_service(settings.base_url, host)), None)
    yield from check_http(settings, name, key=variable is not None, key_hint=variable or "")
    if settings.wire == "ollama" and urlsplit(settings.base_url).path.rstrip("/").endswith("/v1"):
        yield Problem(
            "bad-url",
            f"{name}: base_url ends in /v1, where Ollama speaks the wire 'chat' and not 'ollama'",
            f'take /v1 out of base_url, or set wire = "chat", in [settings."{name}"]',
            name,
        )


def facts(settings: ChatSettings, _context: CheckContext) -> Mapping[str, str]:
    """Return the URL that is called, the wire and the model."""
    try:
        url = shown(resolve(settings, *ROUTES[settings.wire]))
    except ValueError:
        return {}
    return {"url": url, "wire": settings.wire, "model": settings.model}


_WORDS: Final = ["violet-41", "amber-73"]
_UNGUESSABLE: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["seal"],
    "properties": {"seal": {"type": "string", "enum": _WORDS}},
}


async def probe_generator(generator: Generator) -> Iterable[Problem]:
    """Ask for a value that only the schema names, so that a server which passes over the schema cannot hit it.

    Raises:
        GenerationError: the call failed, or the answer was cut or refused.
    """
    try:
        await generator.generate("Greet the reader of the place named by `place`.", {"place": "harbour"}, _UNGUESSABLE)
    except GenerationError as error:
        if error.code not in INVALID:
            raise
        message = f"the server passed over the schema, or its model writes no answer. {error}"
        return [Problem("probe-failed", message, "set `schema_as` to what this server understands, or use another server")]
    return ()


_QUESTION: Final = "Does this text hold evidence that answers the query?"
_QUERY: Final = ("On which day does the harbour ferry not run?",)
_PAIRS: Final = (
    ("The harbour ferry runs on all days but Tuesday.", True),
    ("Bread dough should rest for an hour before it is baked.", False),
)


async def probe_decision(backend: DecisionBackend) -> Iterable[Problem]:
    """Ask about a text that holds the evidence and one that has nothing to do with it.

    Raises:
        DecisionError: a question was not answered.
    """
    problems = []
    for text, supports in _PAIRS:
        result = await backend.evaluate(DecisionRequest("hosted.probe", _QUESTION, text, _QUERY))
        right = result.outcome is DecisionOutcome.YES if supports else result.outcome is not DecisionOutcome.YES
        if not right:
            kind = "answers a query" if supports else "has nothing to do with a query"
            problems.append(
                Problem(
                    "polarity",
                    f"{result.policy_id} says {result.outcome} of a text that {kind}",
                    "use another model: this one does not tell evidence from other texts",
                )
            )
    return problems
