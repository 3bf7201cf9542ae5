"""Base URLs: one rule for joining a route, and where an address leads.

The rule. A route is a version and an operation: `v1` and `rerank`, or no version and `rerank`. Slashes at the end of the
base URL do not count. Then:

1. a base that already ends in the operation is taken as it is (`http://h/v1/rerank`);
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
    path = parts.path.rstrip("/")
    if not f"{path}/".endswith(f"/{operation}/"):
        last = path.rpartition("/")[2]
        versioned = last == version or _VERSION.fullmatch(last) is not None
        path += f"/{operation}" if versioned or not version else f"/{version}/{operation}"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def append(base_url: str, path: str) -> str:
    """Return `base_url` with `path` behind it as it stands, one slash between them."""
    parts = split(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/" + path.lstrip("/"), parts.query, ""))


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
    if re.search(r"[\s\x00-\x1f]", url.strip()):
        raise ValueError("it holds a space or a control character")
    return parts


def shown(url: str) -> str:
    """Return a URL as messages have it: the values of its query, which may be credentials, as three stars."""
    parts = urlsplit(url)
    query = re.sub(r"=[^&;]*", "=***", parts.query) if "=" in parts.query else ("***" if parts.query else "")
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def locality_of(url: str) -> Locality:
    """Return `LOOPBACK` for an address of this machine itself (`localhost`, 127.0.0.0/8, ::1), else `HOSTED`.

    A name that merely resolves to such an address is `HOSTED`: it may resolve to another one tomorrow.
    """
    host = (urlsplit(url.strip()).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return Locality.LOOPBACK
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return Locality.HOSTED
    mapped = getattr(address, "ipv4_mapped", None)
    return Locality.LOOPBACK if (mapped or address).is_loopback else Locality.HOSTED
