"""Offline checks of the decision services, and what `narrowgate check` shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from narrowgate.seams import CheckContext, Problem
from narrowgate_hosted.decisions.limits import Limits
from narrowgate_hosted.decisions.services import Service
from narrowgate_hosted.decisions.settings import DecisionsSettings
from narrowgate_http import check_http, resolve, shown

KEYS: Final = {
    "api.typesafe.ai": "TYPESAFE_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Host -> the variable that usually holds its credential. These hosts answer nobody without one."""


def check(service: Service, settings: DecisionsSettings, _context: CheckContext) -> Iterator[Problem]:
    """Yield what is wrong with address and credential (see `narrowgate_http.check_http`), and `missing-model`."""
    try:
        host = (urlsplit(settings.base_url).hostname or "").lower()
    except ValueError:
        host = ""
    yield from check_http(settings, service.name, key=host in KEYS, key_hint=KEYS.get(host, ""))
    dialect = service.dialect(settings)
    if dialect.needs_model and service.model(settings) is None:
        yield Problem(
            "missing-model",
            f"{service.name}: a server of the dialect {dialect.name!r} wants a model, and `model` is not set",
            f'set model in [settings."{service.name}"]',
            service.name,
        )


def facts(service: Service, settings: DecisionsSettings, _context: CheckContext) -> Mapping[str, str]:
    """Return the resolved URL, the wire, the model asked for, and the limits of a request."""
    wire = service.wire(settings)
    try:
        url = shown(resolve(settings, *wire.route))
    except ValueError:
        return {}  # the check says why
    limits = Limits.of(settings, service.dialect(settings))
    return {
        "url": url,
        "wire": wire.name,
        "model": service.model(settings) or "the server's own",
        "batch": f"at most {limits.questions} questions and {limits.request_bytes} bytes in a request",
    }
