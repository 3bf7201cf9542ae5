"""Deadlines, places among the requests under way, and cancellation at each await."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from narrowgate_http import HttpClient, HttpError, HttpSettings, http_client
from narrowgate_http.testing import AUTHORITY, FAULTS, Answer, FaultServer, server_tls

GOOD = Answer(json={"value": 1})


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ["slow-first-byte", "slow-trickle"])
async def test_the_deadline_bounds_the_call_whatever_an_attempt_may_take(fault: str) -> None:
    """A server that sends a byte now and then is as late as one that sends none."""
    with FaultServer(FAULTS[fault]) as server, anyio.fail_after(20):
        async with http_client("a.b", HttpSettings(base_url=server.url, timeout=100.0, deadline=0.1)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == ("timeout", 1, True)


@pytest.mark.anyio
async def test_waiting_for_a_place_takes_from_the_deadline() -> None:
    """A call that was never sent says so, and costs nothing."""
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(20):
        settings = HttpSettings(base_url=server.url, concurrency=1, timeout=100.0, deadline=100.0)
        async with http_client("a.b", settings) as client, anyio.create_task_group() as group:
            group.start_soon(client.post, server.url, {})
            await server.arrived(1)
            with pytest.raises(HttpError, match="1 others") as caught:
                await client.post(server.url, {}, within=0.05)
            assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == ("timeout", 0, False)
            server.release()
        assert len(server.requests) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("within", [0.0, -1.0])
async def test_a_caller_without_time_sends_nothing_that_counts_as_success(within: float) -> None:
    """No time left is a timeout, not an error of another kind."""
    with FaultServer(GOOD) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {}, within=within)
    assert caught.value.code == "timeout"


@pytest.mark.anyio
async def test_never_more_requests_are_under_way_than_allowed() -> None:
    """Twenty calls share three connections; each gets its own answer."""
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(20):
        async with http_client("a.b", HttpSettings(base_url=server.url, concurrency=3)) as client:
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(client.post, server.url, {})
                await server.arrived(3)
                server.release()
            assert len(server.requests) == 20
            assert (server.most_under_way, server.connections) == (3, 3)
        await server.deserted()


@pytest.mark.anyio
async def test_a_place_is_free_while_a_call_waits_to_repeat() -> None:
    """A server that asks one call to wait does not keep the others from trying."""
    busy = Answer(status=503, headers={"retry-after": "50"})
    with FaultServer([busy, GOOD]) as server, anyio.fail_after(20):
        settings = HttpSettings(base_url=server.url, concurrency=1, deadline=100.0)
        async with http_client("a.b", settings) as client, anyio.create_task_group() as group:
            group.start_soon(client.post, server.url, {})
            await server.arrived(1)
            assert (await client.post(server.url, {})).json == {"value": 1}
            group.cancel_scope.cancel()


async def _cancelled(client: HttpClient, url: str, ready: Callable[[], Awaitable[None]]) -> None:
    """Cancel a call as soon as `ready` returns; fail if it ends in another way."""
    ended = "not at all"

    async def call() -> None:
        nonlocal ended
        try:
            await client.post(url, {})
            ended = "with a reply"
        except anyio.get_cancelled_exc_class():
            ended = "cancelled"
            raise

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await ready()
            group.cancel_scope.cancel()
    assert ended == "cancelled"


@pytest.mark.anyio
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("answer", [Answer(hold=True), FAULTS["slow-trickle"]], ids=["headers", "body"])
async def test_cancelled_while_the_server_answers(answer: Answer, tls: bool) -> None:
    """The connection is closed, the place is free, and the next call works: headers or body, with TLS or without."""

    def script(request: object) -> Answer:
        return answer if len(server.requests) == 1 else GOOD

    with FaultServer(script, tls=server_tls() if tls else None) as server:
        settings = HttpSettings(base_url=server.url, concurrency=1, ca_file=AUTHORITY if tls else None)
        async with http_client("a.b", settings) as client:
            await _cancelled(client, server.url, lambda: server.arrived(1))
            with anyio.fail_after(20):
                await server.deserted()
                assert (await client.post(server.url, {})).json == {"value": 1}
        with anyio.fail_after(20):
            await server.deserted()
    assert len(server.requests) == 2


@pytest.mark.anyio
async def test_cancelled_while_connecting() -> None:
    """A handshake that never ends is left at once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"

        async def connected() -> None:
            connection, _ = await anyio.to_thread.run_sync(silent.accept)
            connections.append(connection)
            await anyio.to_thread.run_sync(connection.recv, 1)  # the handshake has begun

        connections: list[socket.socket] = []
        async with http_client("a.b", HttpSettings(base_url=url)) as client:
            await _cancelled(client, url, connected)
        connections[0].settimeout(20)
        while connections[0].recv(65_536):
            pass  # the rest of the client's greeting, then the end of the connection
        connections[0].close()


@pytest.mark.anyio
async def test_cancelled_while_waiting_for_a_place() -> None:
    """Whoever waits behind it gets the place that it no longer wants."""
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(20):
        settings = HttpSettings(base_url=server.url, concurrency=1)
        async with http_client("a.b", settings) as client, anyio.create_task_group() as group:
            group.start_soon(client.post, server.url, {})
            await server.arrived(1)
            await _cancelled(client, server.url, checkpoint)
            group.start_soon(client.post, server.url, {})
            server.release()
    assert len(server.requests) == 2


@pytest.mark.anyio
async def test_cancelled_while_waiting_to_repeat() -> None:
    """Case 39: a cancelled call makes no further attempt, and holds nothing while it waits."""
    with FaultServer(Answer(status=503, headers={"retry-after": "50"})) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, deadline=100.0, concurrency=1)) as client:

            async def waiting() -> None:
                await server.arrived(1)
                while client._slots.value == 0:  # the attempt is not over yet
                    await checkpoint()

            await _cancelled(client, server.url, waiting)
        with anyio.fail_after(20):
            await server.deserted()
    assert len(server.requests) == 1


@pytest.mark.anyio
async def test_a_crowd_of_cancelled_calls_leaves_the_pool_as_it_was() -> None:
    """No connection and no place is lost, wherever in its way each call was."""
    with FaultServer(lambda _: Answer(hold=True) if len(server.requests) % 2 else GOOD) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, concurrency=4)) as client:
            for wanted in range(10):
                with anyio.fail_after(20):
                    async with anyio.create_task_group() as group:
                        for _ in range(8):
                            group.start_soon(client.post, server.url, {})
                        for _ in range(wanted):
                            await checkpoint()
                        group.cancel_scope.cancel()
            server.release()
            assert client._slots.value == 4
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    for _ in range(8):
                        group.start_soon(client.post, server.url, {})
        with anyio.fail_after(20):
            await server.deserted()
