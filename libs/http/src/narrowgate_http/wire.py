"""One exchange over the wire: a request that knows whether it left, an answer that is read as far as allowed.

The transport of httpx is used without its client: the client logs each URL with its query, which may hold a credential,
keeps cookies, and computes redirects that are not followed.
"""

from __future__ import annotations

import socket
import ssl
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.request import getproxies, proxy_bypass

import anyio
import attrs
import httpx

from narrowgate.seams import Locality
from narrowgate_http.address import locality_of, split
from narrowgate_http.settings import HttpSettings

ERROR_BYTES: Final = 65_536
"""As much of an error's body as is read."""

_KEPT: Final = 30.0
"""Seconds that an idle connection is kept for the next request."""

_ANY_GZIP: Final = 32 + zlib.MAX_WBITS


class TooLongError(Exception):
    """An answer longer than allowed.

    Attributes:
        announced: the length that the server announced, where that was enough to refuse it.
    """

    def __init__(self, announced: int | None = None) -> None:
        super().__init__()
        self.announced = announced


class EncodingError(Exception):
    """A compressed body that is damaged, or compressed in a way that was not asked for."""


class Body(httpx.AsyncByteStream):
    """A request's body, which notes when it is taken: then the headers before it have left.

    Attributes:
        taken: whether that happened. Not set by a failed connection, nor by the request that opens a tunnel.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._given = False
        self.taken = False

    # An iterator, no generator: trio complains about a generator that a cancellation leaves unfinished.
    def __aiter__(self) -> Self:
        self._given = False
        return self

    async def __anext__(self) -> bytes:
        if self._given:
            raise StopAsyncIteration
        self._given = self.taken = True
        return self._content


@attrs.frozen
class Answer:
    """A server's answer.

    Attributes:
        status: the status code.
        headers: the headers, names in lower case, several of one name joined.
        body: the body without its compression; of an error, its head.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)

    @property
    def kind(self) -> str:
        """The content type without parameters, in lower case; empty where none was sent."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@attrs.define
class Attempt:
    """What became of one attempt, also when it failed.

    Attributes:
        body: what is sent.
        status: the answer's status, or `None` when there was none.
        headers: the answer's headers.
    """

    body: Body
    status: int | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def sent(self) -> bool:
        """Whether the request left this process."""
        return self.body.taken or self.status is not None

    @property
    def tokens_unknown(self) -> bool:
        """Whether it may have cost tokens that nobody reported: no answer, one that is unusable, or a gateway's timeout."""
        return self.sent and (self.status is None or self.status < 300 or self.status in (504, 524))


class _Handshake:
    """Closes the connection under a TLS handshake that is cut off.

    httpcore does so for errors and not for cancellations, which is what our time limits are too: the socket would stay open.
    """

    def __init__(self) -> None:
        self._plain: Any = None

    async def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Take an event of the transport."""
        if event.endswith("connect_tcp.complete"):
            self._plain = info["return_value"]
        elif event.endswith("start_tls.failed") and self._plain is not None:
            with anyio.CancelScope(shield=True):  # does not wait for the server
                await self._plain.aclose()


async def exchange(
    transport: httpx.AsyncHTTPTransport,
    url: httpx.URL,
    headers: Sequence[tuple[bytes, bytes]],
    attempt: Attempt,
    limit: int,
) -> Answer:
    """Post `attempt.body` and read the answer. Nothing here bounds the time: the caller's cancel scope does.

    Args:
        transport: the connection, see `Connections`.
        url: where to.
        headers: all headers, `host` and `content-length` too.
        attempt: noted as it goes on.
        limit: the longest body in bytes, with and without its compression.

    Raises:
        TooLongError: a successful answer longer than `limit`.
        EncodingError: its compression cannot be undone.
        httpx.HTTPError, OSError, UnicodeError: no answer, or only part of one.
    """
    extensions = {"trace": _Handshake().note}
    request = httpx.Request("POST", url, headers=headers, stream=attempt.body, extensions=extensions)
    response = await transport.handle_async_request(request)
    try:
        attempt.status, attempt.headers = response.status_code, _joined(response.headers.raw)
        if not response.is_success:
            return Answer(response.status_code, attempt.headers, await _head(response))
        length = attempt.headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise TooLongError(int(length))
        raw, whole = await _read(response, limit)
        if not whole:
            raise TooLongError
        encoding = attempt.headers.get("content-encoding", "identity").strip().lower()
        return Answer(
            response.status_code, attempt.headers, raw if encoding == "identity" else _inflated(raw, encoding, limit)
        )
    finally:
        with anyio.CancelScope(shield=True):  # does not wait for the server
            await response.aclose()


def _joined(raw: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    joined: dict[str, str] = {}
    for key, value in raw:
        name, text = key.decode("latin-1").lower(), value.decode("latin-1")
        joined[name] = f"{joined[name]}, {text}" if name in joined else text
    return joined


async def _head(response: httpx.Response) -> bytes:
    """Return the body of an error as far as a message can need it."""
    raw, _ = await _read(response, ERROR_BYTES)
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return raw
    try:
        return zlib.decompressobj(_ANY_GZIP).decompress(raw, ERROR_BYTES) if encoding == "gzip" else b""
    except zlib.error:
        return b""


async def _read(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """Return the body as it came, at most `limit` bytes of it, and whether that is all."""
    parts, left, whole = [], limit, True
    stream = response.stream
    if not isinstance(stream, httpx.AsyncByteStream):  # pragma: no cover - what an asynchronous transport returns
        raise TypeError("a synchronous answer")
    try:
        async for part in stream:
            parts.append(part[:left])
            left -= len(parts[-1])
            if len(part) > len(parts[-1]):
                whole = False
                # The generators below are ended by the error that reading a closed connection is, not left unfinished:
                # trio complains about those. What was received already still comes, and is cut off above.
                await response.aclose()
    except (httpx.HTTPError, OSError):
        if whole:
            raise
    return b"".join(parts), whole


def _inflated(raw: bytes, encoding: str, limit: int) -> bytes:
    """Return the body without its compression; never holds more than `limit` bytes of it, whatever they expand to."""
    if encoding != "gzip":
        raise EncodingError
    inflater = zlib.decompressobj(_ANY_GZIP)
    try:
        body = inflater.decompress(raw, limit + 1)
    except zlib.error:
        raise EncodingError from None
    if len(body) > limit:
        raise TooLongError
    if not inflater.eof:
        raise EncodingError
    return body


def network_code(error: BaseException) -> str:
    """Return the failure code of an exchange that brought no answer, by what lies under the error."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        if isinstance(seen, socket.gaierror | UnicodeError):
            return "dns"
        if isinstance(seen, ssl.SSLError):
            return "tls"
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, httpx.ProxyError):
        return "proxy"
    # A connection that the system itself gives up on is a timeout to httpx.
    return "unreachable" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else "cut"


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a URL, or `None`.

    `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` count in either case, and what macOS and Windows have set where
    none is there. An address of this machine is never reached through a proxy: what was promised to stay would leave.
    """
    if locality_of(url) is Locality.LOOPBACK:
        return None
    parts = split(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class Connections:
    """The connections of a component, each in a pool of its own, made when first needed.

    One pool for all looks at each of its connections, with a system call, whenever a request begins or ends: with ten
    requests under way at once, that is half of what a request costs this process. The one used last is used next, so that
    requests one after the other share a connection.

    Args:
        settings: of the component; `concurrency` bounds how many are taken at once.
        proxy: see `proxy_for`.

    Raises:
        OSError: `ca_file` cannot be read, or holds no certificate.
        ImportError, ValueError, httpx.InvalidURL: `proxy` cannot be used.
    """

    def __init__(self, settings: HttpSettings, proxy: str | None) -> None:
        if settings.ca_file is not None:
            self._context = ssl.create_default_context(cafile=str(settings.ca_file))
        elif all(url.lower().startswith("http:") for url in (settings.base_url.strip(), proxy or "http:")):
            # Nothing to verify: reading the usual certificates would cost tens of milliseconds.
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        else:
            self._context = httpx.create_ssl_context()
        self._proxy = None
        if proxy is not None:
            self._proxy = httpx.Proxy(proxy, ssl_context=self._context if proxy.lower().startswith("https:") else None)
        self._all: list[httpx.AsyncHTTPTransport] = []
        # The first is made at once, so that a proxy that cannot be used is known at start-up.
        self._free = [self._made()]

    def _made(self) -> httpx.AsyncHTTPTransport:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=_KEPT)
        made = httpx.AsyncHTTPTransport(verify=self._context, limits=limits, proxy=self._proxy)
        self._all.append(made)
        return made

    @contextmanager
    def one(self) -> Iterator[httpx.AsyncHTTPTransport]:
        """Take a connection for the length of a block."""
        taken = self._free.pop() if self._free else self._made()
        try:
            yield taken
        finally:
            self._free.append(taken)

    async def aclose(self) -> None:
        """Close all; does not wait for the server."""
        with anyio.CancelScope(shield=True):
            for transport in self._all:
                await transport.aclose()
