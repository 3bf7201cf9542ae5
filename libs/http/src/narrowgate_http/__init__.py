"""The HTTP client of narrowgate's plugins; plugins of others may use it too."""

from typing import TYPE_CHECKING, Any

from narrowgate_http.address import join, locality_of, shown
from narrowgate_http.checks import check_http, locality, resolve
from narrowgate_http.failures import CURES, HttpError
from narrowgate_http.settings import HttpSettings

if TYPE_CHECKING:
    from narrowgate_http.client import HttpClient, Reply, http_client

__all__ = [
    "CURES",
    "HttpClient",
    "HttpError",
    "HttpSettings",
    "Reply",
    "check_http",
    "http_client",
    "join",
    "locality",
    "locality_of",
    "resolve",
    "shown",
]


def __getattr__(name: str) -> Any:
    """Import the client when it is first asked for: plugins that only declare themselves do not pay for httpx."""
    if name in ("HttpClient", "Reply", "http_client"):
        from narrowgate_http import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
