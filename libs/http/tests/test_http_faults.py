"""Every fault with a name: its code, its attempts, its cost, and that nothing is left of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx
import pytest

from narrowgate.errors import DecisionError
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate_http import CURES, HttpError, HttpSettings, Reply, http_client, resolve
from narrowgate_http.testing import ALL_FAULTS, FaultServer, fault_server, without_waits
from narrowgate_http.wire import network_code

# Fault -> (code or None for success, requests that reach the server, whether tokens may have been spent unreported).
MATRIX: Final[dict[str, tuple[str | None, int, bool]]] = {
    "refused": ("unreachable", 0, False),
    "dns": ("dns", 0, False),
    "tls-plain-text": ("tls", 0, False),
    "tls-unknown-authority": ("tls", 0, False),
    "401": ("unauthorised", 1, False),
    "402": ("payment", 1, False),
    "403": ("forbidden", 1, False),
    "404": ("not-found", 1, False),
    "413": ("too-large", 1, False),
    "422": ("bad-request", 1, False),
    "429-seconds": ("rate-limited", 3, False),
    "429-date": ("rate-limited", 3, False),
    "429-ms": ("rate-limited", 3, False),
    "429-plain": ("rate-limited", 3, False),
    "500": ("server-error", 3, False),
    "503": ("overloaded", 3, False),
    "529": ("overloaded", 3, False),
    "empty-body": ("empty-body", 1, True),
    "html-body": ("not-json", 1, True),
    "slow-first-byte": ("timeout", 3, True),
    "slow-trickle": ("timeout", 3, True),
    "cut-body": ("cut", 3, True),
    "wrong-content-type": (None, 1, False),
    "huge-body": ("response-too-large", 1, True),
    "huge-body-unannounced": ("response-too-large", 1, True),
    "wrong-shape": (None, 1, False),
    "nan": ("non-finite", 1, True),
    "redirect": ("redirect", 1, False),
    "closed": ("cut", 3, True),
}


def _tasks() -> set[asyncio.Task[Any]]:
    """Return the tasks of asyncio; trio's cannot outlive the block that started them."""
    with suppress(RuntimeError):
        return asyncio.all_tasks()
    return set()


@asynccontextmanager
async def nothing_left(server: FaultServer) -> AsyncIterator[None]:
    """See that what happens in the block ends in time and leaves no task and no connection."""
    tasks = _tasks()
    with anyio.fail_after(20):
        yield
        await server.deserted()
    assert _tasks() == tasks


async def call(server: FaultServer, **options: object) -> Reply:
    """Post something to the server."""
    settings = HttpSettings(**{"base_url": server.url, "deadline": 20.0, **options})  # type: ignore[arg-type]
    async with http_client("a.b", settings) as client:
        return await client.post(resolve(settings, "v1", "x"), {"text": "n"}, contents=["n"])


def test_every_fault_has_its_line() -> None:
    """A fault added to the server is added here."""
    assert tuple(MATRIX) == ALL_FAULTS


@pytest.mark.anyio
@pytest.mark.parametrize("name", ALL_FAULTS)
async def test_each_fault_has_its_code_and_its_cost(name: str) -> None:
    """What may pass is tried three times, all else once; each request that left is counted, and nothing is left running."""
    code, requests, unknown = MATRIX[name]
    timeout = 0.1 if code == "timeout" else 20.0
    with fault_server(name) as server, without_waits():
        async with nothing_left(server):
            if code is None:
                reply = await call(server, timeout=timeout)
                assert (reply.requests, reply.tokens_unknown) == (requests, unknown)
            else:
                with pytest.raises(HttpError) as caught:
                    await call(server, timeout=timeout)
                assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == (code, requests, unknown)
                assert f"[{code}]: {CURES[code]}" in str(caught.value)
                assert str(caught.value).startswith(f"a.b: {server.url}/v1/x ")
        assert len(server.requests) == requests
        assert server.under_way == 0


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["tls-plain-text", "tls-unknown-authority"])
async def test_a_failed_handshake_is_not_repeated(name: str) -> None:
    """A certificate that is wrong now is wrong in half a second too."""
    with fault_server(name) as server:
        async with nothing_left(server):
            with pytest.raises(HttpError):
                await call(server)
        assert server.connections == 1


@pytest.mark.anyio
@pytest.mark.parametrize("name", [name for name, (code, *_) in MATRIX.items() if code is not None])
async def test_without_retries_there_is_one_attempt(name: str) -> None:
    """`retries = 0` means what it says."""
    with fault_server(name) as server:
        async with nothing_left(server):
            with pytest.raises(HttpError) as caught:
                await call(server, retries=0, timeout=0.1 if MATRIX[name][0] == "timeout" else 20.0)
        assert caught.value.requests == len(server.requests) == min(1, MATRIX[name][1])
        assert server.connections <= 1


def test_a_failure_says_what_it_cost() -> None:
    """Nothing where nothing left; unknown tokens are unknown and no zero."""
    assert HttpError("dns", "m").usage(3) == NO_USAGE
    assert HttpError("cut", "m", requests=2).usage(3) == Usage(3, 2, None, None)
    assert HttpError("payment", "m", requests=1, tokens_unknown=False).usage(3) == Usage(3, 1, 0, 0)


def test_a_failure_becomes_an_error_of_a_seam_whole() -> None:
    """Message, cost and code go along."""
    error = HttpError("cut", "the message", requests=2).as_error(DecisionError, calls=4)
    assert type(error) is DecisionError
    assert (str(error), error.usage, error.code) == ("the message", Usage(4, 2, None, None), "cut")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (httpx.ConnectTimeout(""), "unreachable"),
        (httpx.ConnectError(""), "unreachable"),
        (httpx.ReadTimeout(""), "cut"),
        (httpx.ReadError(""), "cut"),
        (httpx.RemoteProtocolError(""), "cut"),
        (httpx.ProxyError(""), "proxy"),
        (UnicodeError(), "dns"),
    ],
)
def test_a_connection_that_the_system_gives_up_on_was_never_there(error: Exception, code: str) -> None:
    """The kernel has a time limit of its own for connecting, which httpx reports as a timeout."""
    assert network_code(error) == code
