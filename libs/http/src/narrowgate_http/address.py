"""Base URLs: one rule for joining a route, and where an address leads.

The rule. A route is a version and an operation: `v1` and `rerank`, or no version and `rerank`. Slashes at the end of the
base URL do not count. Then:

1. a base that already ends in the operation, or in the beginning of it, gets what is missing
   (`http://h/v1/rerank`, `http://h/v1/chat` + `/completions`);
2. a base that ends in a version (`v1`, `v1beta`, `alpha`, ..., or the route's own) gets the operation
   (`http://h/gw/cohere/v2` + `/rerank`, `http://h/api` + `/chat`);
3. any other base gets version and operation (`http://h` + `/v1/rerank`).

No segment is ever doubled, none is lost. A query stays at the end. `narrowgate check` shows the result.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from narrowgate.seams import Locality

_VERSION: Final = re.compile(r"v\d+[a-z0-9.]*|alpha|beta")


def join(base_url: str, version: str, operation: str) -> str:
    """Return the URL of an operation.

    Args:
        base_url: as the operator wrote it.
        version: the route's version segment, or nothing.
        operation: the rest of the route, e.g. `chat/completions`.

    Raises:
        ValueError: `base_url` is no absolute http or https URL.
    """
    parts = split(base_url)
    segments = parts.path.rstrip("/").split("/")
    wanted = operation.split("/")
    shared = next((count for count in range(len(wanted), 0, -1) if segments[-count:] == wanted[:count]), 0)
    if shared:
        segments += wanted[shared:]
    else:
        versioned = segments[-1] == version or _VERSION.fullmatch(segments[-1]) is not None
        segments += wanted if versioned or not version else [version, *wanted]
    return urlunsplit((parts.scheme, parts.netloc, "/".join(segments), parts.query, ""))


def append(base_url: str, path: str) -> str:
    """Return `base_url` with `path` behind it as it stands, one slash between them; nothing for an empty path.

    Queries of both are kept.

    Raises:
        ValueError: `base_url` is no absolute http or https URL, or `path` is none.
    """
    parts = split(base_url)
    if _BROKEN.search(path) or "#" in path or "://" in path:
        raise ValueError("it must be a path below base_url")
    below, _, query = path.partition("?")
    whole = f"{parts.path.rstrip('/')}/{below.lstrip('/')}" if below else parts.path
    return urlunsplit((parts.scheme, parts.netloc, whole, "&".join(filter(None, (parts.query, query))), ""))


_BROKEN: Final = re.compile(r"[\s\\\x00-\x1f\x7f]")
"""What programs that read URLs understand differently."""


def split(url: str) -> SplitResult:
    """Return the parts of an absolute http or https URL.

    Raises:
        ValueError: it is none, or it holds a user name or password. The message does not repeat the URL.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("it is no URL") from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ValueError("it must be an absolute URL that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it holds a user name or password: use `api_key`, with `auth = 'basic'` where needed")
    if _BROKEN.search(url.strip()):
        raise ValueError("it holds a space, a backslash or a control character")
    if host not in _called_host(url.strip()):
        raise ValueError("its host cannot be one")
    return parts


def _called_host(url: str) -> tuple[str, ...]:
    """Return how the host that would be called is written, so that what is checked and what is called cannot differ."""
    import httpx  # takes longer to import than all the rest, and plugins that only declare themselves need none

    try:
        called = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        return ()
    return called.host, called.raw_host.decode("ascii")


def shown(url: str) -> str:
    """Return a URL as messages have it: the values of its query, which may be credentials, as three stars."""
    parts = urlsplit(url)
    query = re.sub(r"[^&;]+", lambda item: f"{item[0].partition('=')[0]}=***" if "=" in item[0] else "***", parts.query)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def locality_of(url: str) -> Locality:
    """Return `LOOPBACK` for an address of this machine itself (`localhost`, 127.0.0.0/8, ::1), else `HOSTED`.

    A name that merely resolves to such an address is `HOSTED`: it may resolve to another one tomorrow. That goes for
    `localhost.` and `x.localhost` too, for which systems ask the name service, and for whatever stands before a `%`: with a
    zone, or an escaped dot, it is looked up like a name. What is no URL is `HOSTED`.
    """
    try:
        host = (urlsplit(url.strip()).hostname or "").lower()
    except ValueError:
        return Locality.HOSTED
    if host == "localhost":
        return Locality.LOOPBACK
    try:
        address = ipaddress.ip_address("" if "%" in host else host)
    except ValueError:
        return Locality.HOSTED
    mapped = getattr(address, "ipv4_mapped", None)
    return Locality.LOOPBACK if (mapped or address).is_loopback else Locality.HOSTED
