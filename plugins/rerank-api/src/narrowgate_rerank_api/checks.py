"""What `narrowgate check` says of the components: offline what is missing, and with a call whether better means more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from narrowgate.seams import CheckContext, Locality, Problem
from narrowgate.values.secret import Secret
from narrowgate_http import check_http, locality, resolve, shown
from narrowgate_rerank_api.dialects import KEYS
from narrowgate_rerank_api.endpoint import EndpointReranker
from narrowgate_rerank_api.settings import AgentMemorySettings, EndpointSettings

ENDPOINT: Final = "rerank-api.endpoint"
AGENT_MEMORY: Final = "rerank-api.agent-memory"

PROVIDERS: Final = ("openai", "jina", "cohere")
"""What agent-memory knows as a provider, all of which mean the same."""

QUERY: Final = "How long are log files kept?"
RELEVANT: Final = "Log files are kept for thirty days and deleted after that."
IRRELEVANT: Final = "Lunch in the canteen starts at noon."


def endpoint(settings: EndpointSettings, _context: CheckContext) -> Iterator[Problem]:
    """Yield what is wrong with the settings of `rerank-api.endpoint`."""
    where = f'[settings."{ENDPOINT}"]'
    if settings.base_url:
        key = KEYS.get(_host(settings.base_url), "")
        yield from check_http(settings, ENDPOINT, key=bool(key), key_hint=key)
    else:
        yield Problem(
            "missing-setting",
            f"{ENDPOINT}: base_url is not set, and the dialect {settings.dialect!r} has no address of its own",
            f'set base_url = "http://127.0.0.1:8080" (your server) in {where}, or the dialect of a vendor',
            ENDPOINT,
        )
    if settings.asked.model == "required" and not settings.model:
        yield Problem(
            "missing-setting",
            f"{ENDPOINT}: model is not set, and the dialect {settings.dialect!r} needs one",
            f"set model in {where} to a model that the server has",
            ENDPOINT,
        )
    if settings.asked.model == "absent" and settings.model:
        yield Problem(
            "wrong-setting",
            f"{ENDPOINT}: model is set, and the dialect {settings.dialect!r} cannot name one: the server has only one",
            f"take model out of {where}",
            ENDPOINT,
        )


def agent_memory(settings: AgentMemorySettings, _context: CheckContext) -> Iterator[Problem]:
    """Yield what is wrong with the settings of `rerank-api.agent-memory`."""
    provider = settings.provider.strip().lower()
    if provider not in PROVIDERS:
        what = "is off" if provider in ("", "none", "off") else "is none that agent-memory knows, which it takes for off"
        yield Problem(
            "reranker-off",
            f"{AGENT_MEMORY} is in use, and its provider {settings.provider!r} {what}",
            f"set AGENT_MEMORY_RERANK_PROVIDER to one of {', '.join(PROVIDERS)}, or take the reranker out of [use]",
            AGENT_MEMORY,
        )
        return
    # agent-memory switches itself off without a key; a server of one's own needs none.
    outside = locality(settings) is Locality.HOSTED
    yield from check_http(settings, AGENT_MEMORY, key=outside, key_hint="AGENT_MEMORY_RERANK_API_KEY")


def facts(settings: EndpointSettings | AgentMemorySettings, context: CheckContext) -> Mapping[str, str]:
    """Return the resolved URL, the limits of a request, and whether variables of other programs hold."""
    asked = settings.asked
    found = {}
    with suppress(ValueError):  # the check has told what is wrong with it
        found["url"] = shown(resolve(settings, asked.version, asked.operation))
    limits = [
        f"{limit} {unit}"
        for limit, unit in (
            (settings.max_documents or asked.max_documents, "documents"),
            (settings.max_request_bytes or asked.max_bytes, "bytes"),
        )
        if limit is not None
    ]
    found["request_limit"] = " and ".join(limits) or "none"
    for field in attrs.fields(type(settings)):
        told = _honoured(field, getattr(settings, field.name), context.env)
        if told is not None:
            found[field.name] = told
    return found


def _honoured(field: attrs.Attribute[Any], value: Any, env: Mapping[str, str]) -> str | None:
    """Return whether the variable of another program that is set for an option holds; never a value: it may be a secret."""
    name = next((name for name in field.metadata.get("variables", ()) if env.get(name)), None)
    if name is None:
        return None
    plain = value.reveal() if isinstance(value, Secret) else value
    return f"as {name} says" if env[name] == plain else f"not as {name} says: a setting of narrowgate comes before it"


def _host(base_url: str) -> str:
    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""


async def probe(reranker: EndpointReranker) -> list[Problem]:
    """Let the server score a relevant and an irrelevant text, and say when the order is wrong.

    Raises:
        RerankError: no usable answer.
    """
    scores = await reranker.scores(QUERY, (IRRELEVANT, RELEVANT))
    if len(scores) == 2 and scores[1] > scores[0]:
        return []
    if len(scores) < 2:
        what = "gave only one of two texts a score"
    elif scores[0] == scores[1]:
        what = "scored a relevant and an irrelevant text alike"
    else:
        what = "scored an irrelevant text above a relevant one"
    return [
        Problem(
            "polarity",
            f"the server {what}",
            "use a model that was made for reranking, with the template and pooling that it was trained with",
        )
    ]
