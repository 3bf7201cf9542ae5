"""The headers of a component's requests, and what cannot be one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl

from narrowgate_http.settings import HttpSettings

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")

_OURS: Final = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "transfer-encoding"}
)
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


def checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of one request, names in lower case.

    Raises:
        ValueError: one that cannot be sent; the message does not repeat its value.
    """
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"the header {name!r} cannot be sent")
    return {name.lower(): value for name, value in headers.items()}


def faults(settings: HttpSettings) -> Iterator[tuple[str, str]]:
    """Yield option and reason for each header and credential that cannot be sent; no reason repeats a value."""
    for name, value in settings.headers.items():
        if not _NAME.fullmatch(name):
            yield "headers", f"{name!r} is no name of a header"
        elif name.lower() in _OURS:
            yield "headers", f"{name!r} is set by the program itself"
        elif name.lower() in _CREDENTIALS:
            yield "headers", f"{name!r} is a credential, and headers are shown: use api_key and auth"
        elif not _VALUE.fullmatch(value):
            yield "headers", f"the value of {name!r} is empty, or holds what a header cannot hold"
    if settings.api_key is not None and not _VALUE.fullmatch(settings.api_key.reveal().strip()):
        yield "api_key", "it is empty, or holds what a header cannot hold"


def of(settings: HttpSettings) -> Mapping[str, str]:
    """Return the headers of every request, names in lower case.

    Raises:
        ValueError: see `faults`.
    """
    for option, reason in faults(settings):
        raise ValueError(f"{option}: {reason}")
    headers = {
        "accept": "application/json",
        "accept-encoding": "gzip",
        "content-type": "application/json",
        "user-agent": "narrowgate",
        **{name.lower(): value for name, value in settings.headers.items()},
    }
    return {**headers, **dict(_credential(settings))}


def secrets(settings: HttpSettings) -> tuple[str, ...]:
    """Return what no message may repeat: the credential as it is set and as it is sent, and what stands in the query of
    `base_url` or `path`, where gateways have theirs."""
    key = () if settings.api_key is None else (settings.api_key.reveal(),)
    queries = [url.partition("?")[2] for url in (settings.base_url, settings.path or "")]
    values = (value for query in queries for _, value in parse_qsl(query))
    return (*key, *(value for _, value in _credential(settings)), *queries, *values)


def _credential(settings: HttpSettings) -> Iterator[tuple[str, str]]:
    if settings.api_key is None:
        return
    key = settings.api_key.reveal().strip()
    if settings.auth == "x-api-key":
        yield "x-api-key", key
    elif key.lower().startswith(f"{settings.auth} "):
        yield "authorization", key
    elif settings.auth == "basic":
        # `user:password` is encoded here; what holds no colon is encoded already, as some services hand it out.
        yield "authorization", "Basic " + (base64.b64encode(key.encode()).decode() if ":" in key else key)
    else:
        yield "authorization", f"Bearer {key}"
