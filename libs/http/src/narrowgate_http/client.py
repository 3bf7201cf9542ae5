"""The client: connections that are kept, one deadline for a call, an account that is right whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import attrs
import httpx

from narrowgate_http import headers as _headers
from narrowgate_http.address import shown, split
from narrowgate_http.bodies import (
    NonFiniteError,
    RepeatedNameError,
    code_in,
    decode,
    encode,
    is_refusal,
    is_too_large,
    scrubbed,
    words_of,
)
from narrowgate_http.failures import CURES, HttpError
from narrowgate_http.retrying import asked_wait, code_of, may_retry, usual_wait
from narrowgate_http.settings import HttpSettings
from narrowgate_http.wire import (
    Answer,
    Attempt,
    Body,
    Connections,
    EncodingError,
    TooLongError,
    exchange,
    network_code,
    proxy_for,
)

_REQUEST_IDS: Final = ("x-typesafe-request-id", "x-request-id", "request-id")

_STREAMS: Final = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "text/event-stream"})
"""Content types of answers in pieces, which nobody asked for."""


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

    json: Any = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    requests: int
    tokens_unknown: bool
    request_id: str | None


@attrs.frozen
class _Target:
    """A URL that was found to lead to the component's server, with the headers of its requests but the body's length."""

    url: httpx.URL
    headers: Mapping[str, str] = attrs.field(repr=False)
    raw: Sequence[tuple[bytes, bytes]] = attrs.field(repr=False)


class HttpClient:
    """Posts JSON to one server for one component. Made by `http_client`.

    Args:
        name: the component's full name, for messages.
        settings: see `HttpSettings`.
        connections: its connections.
        via: the proxy, as messages name it; empty without one.

    Raises:
        ValueError: a header or credential that cannot be sent; the message does not repeat it.
    """

    def __init__(self, name: str, settings: HttpSettings, connections: Connections, via: str = "") -> None:
        self.name, self.settings = name, settings
        self._connections, self._via = connections, via
        self._headers = _headers.of(settings)
        self._secrets = _headers.secrets(settings)
        self._slots = anyio.Semaphore(settings.concurrency)
        self._targets: dict[str, _Target] = {}

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
        A cancelled call reports no cost: who cancels it counts what it began.

        Args:
            url: the resolved URL (see `narrowgate_http.address.join`).
            body: what to send as JSON.
            contents: the texts in `body` that no message may repeat.
            headers: further headers of this request.
            within: seconds that the caller has left, where that is less than `deadline`.

        Raises:
            HttpError: no usable answer; a cancellation passes as it is.
            ValueError: `url` leads to another server than `base_url`, or one of `headers` cannot be sent.
        """
        target = self._target(url)
        content = self._encoded(body)
        sent = _raw({**target.headers, **_headers.checked(headers)}) if headers else list(target.raw)
        sent.append((b"content-length", b"%d" % len(content)))
        private = (*contents, *self._secrets)
        end = anyio.current_time() + min(self.settings.deadline, float("inf") if within is None else within)
        requests, unknown = 0, False
        for number in count(1):
            attempt = Attempt(Body(content))
            try:
                json = await self._try(target.url, sent, attempt, end, private)
            except HttpError as failure:
                requests += attempt.sent
                unknown = unknown or attempt.tokens_unknown
                failure.requests, failure.tokens_unknown = requests, unknown
                wait = asked_wait(attempt.headers)
                wait = usual_wait(number) if wait is None else wait
                again = number <= self.settings.retries and may_retry(failure.code, attempt.status, attempt.headers)
                if not again or anyio.current_time() + wait >= end:
                    raise
            else:
                found = attempt.headers
                request_id = next((found[name] for name in _REQUEST_IDS if name in found), None)
                return Reply(json, found, requests + 1, unknown, request_id)
            await anyio.sleep(wait)
        raise AssertionError("unreachable: the loop returns or raises")

    def _encoded(self, body: Mapping[str, Any]) -> bytes:
        with suppress(ValueError):
            return encode(body)
        # Outside the block: the error would hold the text as its context.
        raise HttpError(
            "unencodable", f"{self.name}: the request is no JSON [unencodable]: {CURES['unencodable']}", tokens_unknown=False
        )

    def _target(self, url: str) -> _Target:
        found = self._targets.get(url)
        if found is None:
            if _origin(url) != _origin(self.settings.base_url):
                raise ValueError(f"{self.name}: {shown(url)} leads to another server than base_url")
            parsed = httpx.URL(url)
            headers = {"host": parsed.netloc.decode("ascii"), **self._headers}
            found = _Target(parsed, headers, _raw(headers))
            if len(self._targets) >= 32:  # one or two in practice; a bound all the same
                self._targets.clear()
            self._targets[url] = found
        return found

    async def _try(
        self,
        url: httpx.URL,
        headers: Sequence[tuple[bytes, bytes]],
        attempt: Attempt,
        end: float,
        private: Sequence[str],
    ) -> Any:
        """Make one attempt in one of the places among the requests under way; waiting for one takes from the deadline."""
        try:
            try:
                self._slots.acquire_nowait()
            except anyio.WouldBlock:
                with anyio.fail_after(max(0.0, end - anyio.current_time())):
                    await self._slots.acquire()
        except TimeoutError:
            what = f"was not asked: {self.settings.concurrency} others (`concurrency`) were under way until the deadline"
            raise self._failure("timeout", str(url), what) from None
        try:
            answer = await self._answer(url, headers, attempt, end)
        finally:
            self._slots.release()
        return self._read(str(url), answer, private)

    async def _answer(self, url: httpx.URL, headers: Sequence[tuple[bytes, bytes]], attempt: Attempt, end: float) -> Answer:
        limit = self.settings.max_response_bytes
        try:
            seconds = max(0.0, min(self.settings.timeout, end - anyio.current_time()))
            with self._connections.one() as transport, anyio.fail_after(seconds):
                return await exchange(transport, url, headers, attempt, limit)
        except TimeoutError:
            raise self._failure("timeout", str(url), f"did not answer in time{self._via}", attempt.status) from None
        except TooLongError as error:
            what = f"sent more than {limit} bytes" if error.announced is None else f"announced {error.announced} bytes"
            raise self._failure("response-too-large", str(url), what, attempt.status) from None
        except EncodingError:
            what = f"answered {attempt.status} with a compressed body that cannot be read"
            raise self._failure("not-json", str(url), what, attempt.status) from None
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            code = network_code(error)
            what = f"{'broke off' if code == 'cut' else 'could not be reached'}{self._via} ({type(error).__name__})"
            raise self._failure(code, str(url), what, attempt.status) from None

    def _read(self, url: str, answer: Answer, private: Sequence[str]) -> Any:
        status, raw = answer.status, answer.body
        if not 200 <= status < 300:
            raise self._refusal(url, answer, private)
        if not raw.strip():
            raise self._failure("empty-body", url, f"answered {status} with an empty body", status)
        try:
            return decode(raw)
        except NonFiniteError:
            raise self._failure("non-finite", url, f"answered {status} with NaN or Infinity", status) from None
        except RepeatedNameError:
            raise self._failure("wrong-shape", url, f"answered {status} with JSON that has one name twice", status) from None
        except ValueError:
            if answer.kind in _STREAMS:
                raise self._failure("wrong-shape", url, f"answered {status} with a stream ({answer.kind})", status) from None
            # Only a plain type is repeated: a header is the server's to fill.
            what = f" ({answer.kind})" if answer.kind.replace("/", "").isalpha() and len(answer.kind) <= 40 else ""
            raise self._failure("not-json", url, f"answered {status} with something else than JSON{what}", status) from None

    def _refusal(self, url: str, answer: Answer, private: Sequence[str]) -> HttpError:
        body: Any = None
        with suppress(ValueError):
            body = decode(answer.body)
        code = code_of(answer.status)
        if code == "rate-limited" and code_in(body) == "insufficient_quota":
            code = "quota"
        elif code == "bad-request" and is_too_large(body):
            code = "too-large"
        elif code == "bad-request" and is_refusal(body):
            code = "refused"
        what = f"answered {answer.status}"
        wait = asked_wait(answer.headers) or 0.0
        if wait >= 1 and code in ("rate-limited", "overloaded"):
            what += f" and asks to wait {wait:.0f} s"
        return self._failure(code, url, what, answer.status, words_of(body), private)

    def refused(self, code: str, url: str, what: str, said: Any = None, contents: Sequence[str] = ()) -> HttpError:
        """Return the failure of an answer whose JSON a component cannot use; the caller fills in its cost.

        Args:
            code: a key of `CURES`, mostly `wrong-shape` or `provider-error`.
            url: the URL that was called.
            what: what is wrong, without content.
            said: the answer's JSON, where it may hold a provider's error.
            contents: the texts that no message may repeat.
        """
        return self._failure(code, url, what, 200, words_of(said), (*contents, *self._secrets))

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
    """Open the connections of one component, and close them at the end.

    Proxies are those of the environment (see `narrowgate_http.wire.proxy_for`), certificates those of certifi, of
    `SSL_CERT_FILE` or `SSL_CERT_DIR` where one is set, and of `ca_file` alone where that is set.

    Args:
        name: the component's full name, for messages.
        settings: see `HttpSettings`; `base_url` was checked by `check_http`.

    Raises:
        HttpError: the proxy of the environment cannot be used, or `ca_file` cannot be read.
        ValueError: a base URL, header or credential that cannot be used; `check_http` finds it before.
    """
    proxy = proxy_for(settings.base_url)
    try:
        via = "" if proxy is None else f" through the proxy {_place(proxy)}"
        connections = Connections(settings, proxy)
    except OSError as error:
        text = f"{name}: ca_file cannot be used ({type(error).__name__}) [tls]: {CURES['tls']}"
        raise HttpError("tls", text, tokens_unknown=False) from None
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # Only the type: the error's own words hold the proxy's URL, perhaps with a password.
        text = f"{name}: the proxy of the environment cannot be used ({type(error).__name__}) [proxy]: {CURES['proxy']}"
        raise HttpError("proxy", text, tokens_unknown=False) from None
    try:
        yield HttpClient(name, settings, connections, via)
    finally:
        await connections.aclose()


def _place(proxy: str) -> str:
    parts = urlsplit(proxy)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _origin(url: str) -> tuple[str, str, int]:
    parts = split(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}[parts.scheme]


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
