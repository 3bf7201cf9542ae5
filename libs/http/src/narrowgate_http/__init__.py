"""The HTTP client of narrowgate's plugins; plugins of others may use it too."""

from narrowgate_http.address import join, locality_of, shown
from narrowgate_http.checks import check_http, locality, resolve
from narrowgate_http.client import HttpClient, Reply, http_client
from narrowgate_http.failures import CURES, HttpError
from narrowgate_http.settings import HttpSettings

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
