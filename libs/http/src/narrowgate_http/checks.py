"""Offline checks of an address, and what `narrowgate check` shows of it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from narrowgate.seams import Locality, Problem
from narrowgate_http import headers
from narrowgate_http.address import append, join, locality_of, shown, split
from narrowgate_http.failures import CURES
from narrowgate_http.settings import HttpSettings


def resolve(settings: HttpSettings, version: str, operation: str) -> str:
    """Return the URL that a component calls: `path` where it is set, else by the rule of `narrowgate_http.address`.

    Raises:
        ValueError: `base_url` is no absolute http or https URL, or `path` is no path.
    """
    if settings.path is not None:
        return append(settings.base_url, settings.path)
    return join(settings.base_url, version, operation)


def locality(settings: HttpSettings) -> Locality:
    """Return where content goes, by the host of `base_url`; for `Component.locality`."""
    return locality_of(settings.base_url)


def check_http(settings: HttpSettings, component: str, *, key: bool = False, key_hint: str = "") -> Iterator[Problem]:
    """Yield what is wrong with address, proxy, credential, headers and certificates.

    The codes are `bad-url`, `insecure-url`, `missing-key`, `missing-file` and `wrong-setting`.

    Args:
        settings: the settings.
        component: the component's full name.
        key: whether the server at this address cannot do without a credential.
        key_hint: the variable that usually holds it, for the hint.
    """
    where = f'[settings."{component}"]'
    for option, reason in headers.faults(settings):
        yield Problem("wrong-setting", f"{component}: {option}: {reason}", f"correct {option} in {where}", component)
    yield from _ca_file(settings, component, where)
    try:
        parts = split(settings.base_url)
    except ValueError as error:
        yield Problem("bad-url", f"{component}: base_url: {error}", f"correct base_url in {where}", component)
        return
    try:
        append(settings.base_url, settings.path or "")
    except ValueError as error:
        yield Problem("bad-url", f"{component}: path: {error}", f"correct path in {where}", component)
    yield from _proxy(settings, component)
    if parts.scheme == "http" and locality_of(settings.base_url) is Locality.HOSTED and not settings.allow_http:
        yield Problem(
            "insecure-url",
            f"{component}: base_url {shown(settings.base_url)} would send content unencrypted to another machine",
            f"use https://, or set allow_http = true in {where} where the network is trusted",
            component,
        )
    if key and settings.api_key is None:
        variable = key_hint or "API_KEY"
        yield Problem(
            "missing-key",
            f"{component}: {shown(settings.base_url)} wants a credential, and api_key is not set",
            f'set api_key = {{ env = "{variable}" }} in {where}',
            component,
        )


def _proxy(settings: HttpSettings, component: str) -> Iterator[Problem]:
    # Late, since they take longer to import than all the rest.
    import httpx

    from narrowgate_http.wire import proxy_for

    proxy = proxy_for(settings.base_url)
    if proxy is None:
        return
    try:
        _ = urlsplit(proxy).port  # raises for what is no port
        httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), proxy=httpx.Proxy(proxy))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # Only the type: the error's own words hold the proxy's URL, perhaps with a password.
        text = f"{component}: the proxy of the environment cannot be used ({type(error).__name__})"
        yield Problem("bad-url", text, CURES["proxy"], component)


def _ca_file(settings: HttpSettings, component: str, where: str) -> Iterator[Problem]:
    if settings.ca_file is None:
        return
    if not settings.ca_file.is_file():
        text = f"{component}: ca_file {str(settings.ca_file)!r} is no file"
        yield Problem("missing-file", text, f"correct ca_file in {where}", component)
        return
    try:
        ssl.create_default_context(cafile=str(settings.ca_file))
    except OSError:
        text = f"{component}: ca_file {str(settings.ca_file)!r} cannot be read as certificates in PEM"
        yield Problem("wrong-setting", text, f"correct ca_file in {where}", component)
