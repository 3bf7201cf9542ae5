"""A server that takes a connection and never finishes the TLS handshake: whoever gives up leaves no socket open."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest

from narrowgate_http import HttpError, HttpSettings, http_client


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Listen and say nothing; the kernel takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        yield listener


def _is_closed_by_peer(listener: socket.socket) -> bool:
    """Return whether the one connection ends after the client's first words; waits for that, up to the time limit."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(30)
        try:
            while connection.recv(65_536):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
    return True


def _waits(listener: socket.socket) -> bool:
    """Return whether somebody has connected."""
    return bool(select.select([listener], [], [], 0)[0])


@pytest.mark.anyio
async def test_a_handshake_that_times_out_is_closed(silent: socket.socket) -> None:
    """While the client lives on: sockets would add up with every search."""
    url = f"https://127.0.0.1:{silent.getsockname()[1]}"
    for timeout in (0.2, 2.0, 20.0):  # the longer ones where even connecting took longer
        async with http_client("a.b", HttpSettings(base_url=url, timeout=timeout, deadline=30.0, retries=0)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(url, {})
            assert (caught.value.code, caught.value.requests) == ("timeout", 0)
            if _waits(silent):
                assert await anyio.to_thread.run_sync(_is_closed_by_peer, silent)
                return
    pytest.fail("nobody connected")


@pytest.mark.anyio
async def test_a_handshake_that_is_cancelled_is_closed(silent: socket.socket) -> None:
    """And the cancellation passes."""
    url = f"https://127.0.0.1:{silent.getsockname()[1]}"
    async with http_client("a.b", HttpSettings(base_url=url)) as client:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(client.post, url, {})
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(_is_closed_by_peer, silent)
