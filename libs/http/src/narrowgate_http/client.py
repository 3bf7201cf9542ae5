"""The client: one connection pool, one deadline for a call, an account that is right whatever happens."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, Final

import anyio
import attrs
import httpx

from narrowgate.seams import Locality
from narrowgate_http.address import locality_of, shown
from narrowgate_http.bodies import NonFiniteError, code_in, decode, encode, is_too_large, scrubbed, words_of
from narrowgate_http.failures import CURES, HttpError
from narrowgate_http.retrying import code_of, may_retry, wait_before
from narrowgate_http.settings import HttpSettings

_REQUEST_IDS: Final = ("x-typesafe-request-id", "x-request-id", "request-id")


_STREAMS: Final = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "text/event-stream"})
"""Content types of answers in pieces, which nobody asked for."""

_ERROR_BYTES: Final = 65_536
"""As much of an error's body as is read."""


@attrs.frozen
class Reply:
    """A successful answer.

    Attributes:
        json: the decoded body.
        headers: the answer's headers, names in lower case.
        requests: how many attempts reached the server, >= 1.
        tokens_unknown: whether an earlier attempt may have cost tokens that nobody reported.
        request_id: the server's name for the request, for its support; `None` where it gives none.
    """

    json: Any
    headers: Mapping[str, str]
    requests: int
    tokens_unknown: bool
    request_id: str | None


@attrs.define
class _Attempt:
    """What became of one attempt.

    Attributes:
        sent: whether the request left this process.
        answered: whether the server answered with a status.
        headers: its headers.
    """

    sent: bool = False
    answered: bool = False
    headers: Mapping[str, str] = attrs.field(factory=dict)

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        """Take an event of the transport."""
        if event.endswith("send_request_headers.started"):
            self.sent = True


class HttpClient:
    """Posts JSON to one server for one component. Made by `http_client`.

    Args:
        name: the component's full name, for messages.
        settings: see `HttpSettings`.
        client: the pool.
    """

    def __init__(self, name: str, settings: HttpSettings, client: httpx.AsyncClient) -> None:
        self.name, self.settings = name, settings
        self._client = client
        self._slots = anyio.Semaphore(settings.concurrency)

    async def post(
        self,
        url: str,
        body: Mapping[str, Any],
        *,
        contents: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        within: float | None = None,
    ) -> Reply:
        """Send `body` and return the decoded answer, within `deadline`.

        Attempts are repeated where that may help, never so that a wait ends after the deadline. Redirects are not followed.

        Args:
            url: the resolved URL (see `narrowgate_http.address.join`).
            body: what to send as JSON.
            contents: the texts in `body` that no message may repeat.
            headers: further headers of this request.
            within: seconds that the caller has left, where that is less than `deadline`.

        Raises:
            HttpError: no usable answer; a cancellation passes as it is.
        """
        try:
            content = encode(body)
        except ValueError:
            raise HttpError("unencodable", f"{self.name}: the request is no JSON: {CURES['unencodable']}") from None
        secrets = self._secrets()
        end = monotonic() + min(self.settings.deadline, float("inf") if within is None else within)
        requests, unknown = 0, False
        for number in range(1, self.settings.retries + 2):
            attempt = _Attempt()
            try:
                json = await self._try(url, content, headers or {}, attempt, end, (*contents, *secrets))
                found = {name.lower(): value for name, value in attempt.headers.items()}
                request_id = next((found[name] for name in _REQUEST_IDS if name in found), None)
                return Reply(json, found, requests + 1, unknown, request_id)
            except HttpError as failure:
                requests += attempt.sent
                unknown = unknown or (attempt.sent and (failure.status is None or failure.status < 300))
                failure.requests, failure.tokens_unknown = requests, unknown
                wait = wait_before(number, attempt.headers)
                last = number > self.settings.retries or not may_retry(failure.code, attempt.headers)
                if last or monotonic() + wait >= end:
                    raise
            await anyio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _secrets(self) -> tuple[str, ...]:
        key = self.settings.api_key
        return () if key is None else (key.reveal(),)

    async def _try(
        self,
        url: str,
        content: bytes,
        headers: Mapping[str, str],
        attempt: _Attempt,
        end: float,
        private: Sequence[str],
    ) -> Any:
        try:
            async with self._turn(end):
                with anyio.fail_after(max(0.0, min(self.settings.timeout, end - monotonic()))):
                    status, raw, kind = await self._exchange(url, content, headers, attempt)
        except TimeoutError:
            raise self._failure("timeout", url, "did not answer in time") from None
        except httpx.HTTPError as error:
            code = _network_code(error)
            raise self._failure(code, url, f"failed with {type(error).__name__}") from None
        return self._read(url, status, raw, kind, private)

    @asynccontextmanager
    async def _turn(self, end: float) -> AsyncIterator[None]:
        """Wait for a place among the requests under way; the wait counts against the deadline, not against the attempt."""
        with anyio.fail_after(max(0.0, end - monotonic())):
            await self._slots.acquire()
        try:
            yield
        finally:
            self._slots.release()

    async def _exchange(
        self, url: str, content: bytes, headers: Mapping[str, str], attempt: _Attempt
    ) -> tuple[int, bytes, str]:
        extensions = {"trace": attempt.note}
        async with self._client.stream("POST", url, content=content, headers=headers, extensions=extensions) as answer:
            attempt.answered, attempt.headers = True, answer.headers
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            limit = self.settings.max_response_bytes
            if not answer.is_success:
                return answer.status_code, await _head(answer), kind
            length = answer.headers.get("content-length", "")
            if length.isdigit() and int(length) > limit:
                raise self._failure("response-too-large", url, f"announced {length} bytes", answer.status_code)
            parts, size = [], 0
            async for part in answer.aiter_bytes():
                size += len(part)
                if size > limit:
                    raise self._failure("response-too-large", url, f"sent more than {limit} bytes", answer.status_code)
                parts.append(part)
            return answer.status_code, b"".join(parts), kind

    def _read(self, url: str, status: int, raw: bytes, kind: str, private: Sequence[str]) -> Any:
        if not 200 <= status < 300:
            body: Any = None
            with suppress(ValueError):
                body = decode(raw)
            code = code_of(status)
            if code == "rate-limited" and code_in(body) == "insufficient_quota":
                code = "quota"
            elif code == "bad-request" and is_too_large(body):
                code = "too-large"
            raise self._failure(code, url, f"answered {status}", status, words_of(body), private)
        if not raw.strip():
            raise self._failure("empty-body", url, f"answered {status} with an empty body", status)
        try:
            return decode(raw)
        except NonFiniteError:
            raise self._failure("non-finite", url, f"answered {status} with NaN or Infinity", status) from None
        except ValueError:
            if kind in _STREAMS:
                raise self._failure("wrong-shape", url, f"answered {status} with a stream ({kind})", status) from None
            what = f" ({kind})" if kind and len(kind) <= 40 else ""
            raise self._failure("not-json", url, f"answered {status} with something else than JSON{what}", status) from None

    def refused(self, code: str, url: str, what: str, said: Any = None, contents: Sequence[str] = ()) -> HttpError:
        """Return the failure of an answer whose JSON a component cannot use; the caller fills in its cost.

        Args:
            code: a key of `CURES`, mostly `wrong-shape` or `provider-error`.
            url: the URL that was called.
            what: what is wrong, without content.
            said: the answer's JSON, where it may hold a provider's error.
            contents: the texts that no message may repeat.
        """
        return self._failure(code, url, what, 200, words_of(said), (*contents, *self._secrets()))

    def _failure(
        self,
        code: str,
        url: str,
        what: str,
        status: int | None = None,
        words: str | None = None,
        private: Sequence[str] = (),
    ) -> HttpError:
        said = f" ({scrubbed(words, private)})" if words else ""
        return HttpError(code, f"{self.name}: {shown(url)} {what}{said} [{code}]: {CURES[code]}", status=status)


@asynccontextmanager
async def http_client(name: str, settings: HttpSettings) -> AsyncIterator[HttpClient]:
    """Open the pool of one component, and close it at the end.

    Proxies and certificates are those of the environment, as httpx reads them. An address of this machine is never reached
    through a proxy: content that was promised to stay here would leave.

    Args:
        name: the component's full name, for messages.
        settings: see `HttpSettings`; `base_url` was checked by `check_http`.
    """
    outside = locality_of(settings.base_url) is Locality.HOSTED
    verify: ssl.SSLContext | bool = True
    if settings.ca_file is not None:
        verify = ssl.create_default_context(cafile=str(settings.ca_file))
    elif settings.base_url.strip().lower().startswith("http:"):
        verify = False  # nothing to verify: loading the certificates would cost tens of milliseconds
    async with httpx.AsyncClient(
        headers=_headers(settings),
        verify=verify,
        trust_env=outside,
        follow_redirects=False,
        timeout=httpx.Timeout(settings.timeout, pool=None),
        limits=httpx.Limits(max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency),
    ) as client:
        yield HttpClient(name, settings, client)


async def _head(answer: httpx.Response) -> bytes:
    """Return the body of an error as far as a message can need it."""
    head = b""
    async for part in answer.aiter_bytes():
        head += part
        if len(head) >= _ERROR_BYTES:
            break
    return head


def _headers(settings: HttpSettings) -> dict[str, str]:
    headers = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": "narrowgate",
        **{name.lower(): value for name, value in settings.headers.items()},
    }
    if settings.api_key is not None:
        key = settings.api_key.reveal().strip()
        if settings.auth == "x-api-key":
            headers["x-api-key"] = key
        else:
            scheme = settings.auth.capitalize()
            headers["authorization"] = key if key.lower().startswith(f"{settings.auth} ") else f"{scheme} {key}"
    return headers


def _network_code(error: BaseException) -> str:
    """Return the failure code of an httpx error, by what lies under it."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        if isinstance(seen, socket.gaierror):
            return "dns"
        if isinstance(seen, ssl.SSLError):
            return "tls"
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    return "unreachable" if isinstance(error, httpx.ConnectError) else "cut"
