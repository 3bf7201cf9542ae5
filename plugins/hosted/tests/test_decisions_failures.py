"""The fault matrix: whatever is wrong with a server or the way to it, a code and the cost, and nothing hangs or is left."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import anyio.to_thread
import pytest
from decisions_parts import OPENAI, OPENROUTER, SYSTEMONE, asked, opened
from server_faults import EXPECTED

from narrowgate.decisions import NO_USAGE, DecisionOutcome, FailOpen, MeteredBackend, Usage, account
from narrowgate.errors import DecisionError
from narrowgate_http.testing import ALL_FAULTS, FAULTS, Answer, FaultServer, fault_server, without_waits

PATIENT: Final[dict[str, Any]] = {"timeout": 30.0, "deadline": 60.0, "retries": 1, "allow_http": True}
"""Bounds that no server which answers at all can meet; `allow_http`, since the host that does not exist has no TLS."""

HASTY: Final[dict[str, Any]] = {**PATIENT, "timeout": 0.4, "deadline": 5.0}
"""Bounds for servers that never finish."""


def _bounds(fault: str) -> dict[str, Any]:
    return HASTY if fault.startswith("slow") else PATIENT


COMPONENTS: Final = (SYSTEMONE, OPENAI, OPENROUTER)


def _tasks() -> set[asyncio.Task[Any]]:
    """Return the tasks of asyncio; trio's cannot outlive the block that started them."""
    with suppress(RuntimeError):
        return asyncio.all_tasks()
    return set()


@asynccontextmanager
async def nothing_left(server: FaultServer) -> AsyncIterator[None]:
    """See that the block ends, and that neither a task nor a connection outlives it."""
    tasks = _tasks()
    with without_waits(), anyio.fail_after(60):
        yield
        await server.deserted()
    assert _tasks() == tasks


@pytest.mark.anyio
@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_a_fault_is_an_error_with_code_and_cost(fault: str, component: str) -> None:
    """As many requests as reached the server, and no tokens made up; nothing is left open."""
    with fault_server(fault) as server:
        async with nothing_left(server), opened(component, base_url=server.url, **_bounds(fault)) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(asked())
        reached = len(server.requests)
    code, requests, unknown = EXPECTED[fault]
    assert (caught.value.code, reached) == (code, requests)
    tokens = None if unknown else 0
    assert caught.value.usage == (Usage(5, reached, tokens, tokens) if reached else NO_USAGE)
    assert f"[{code}]" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_an_advisory_role_abstains_and_says_that_it_fell_back(fault: str, component: str) -> None:
    """Through the one fail-open envelope: no verdict, the flag, the code as its reason, the cost of the call that failed."""
    options = {**_bounds(fault), "retries": 0}
    with fault_server(fault) as server:
        async with nothing_left(server), opened(component, base_url=server.url, **options) as backend:
            results = await FailOpen(backend).evaluate_many(asked())
        reached = len(server.requests)
    assert [item.outcome for item in results] == [DecisionOutcome.ABSTAIN] * 5
    assert all(item.used_fallback and item.probability is None and item.reason == EXPECTED[fault][0] for item in results)
    assert sum(item.usage.requests for item in results) == reached == min(1, EXPECTED[fault][1])
    assert sum(item.usage.calls for item in results) == (5 if reached else 0)


@pytest.mark.anyio
async def test_a_wait_that_would_end_after_the_deadline_is_not_begun() -> None:
    """A server that asks for a minute is a failure now, not in a minute."""
    busy = Answer(status=429, headers={"retry-after": "60"}, json={"detail": {"error_type": "rate_limit_error"}})
    with FaultServer(busy) as server, anyio.fail_after(10):
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(asked())
        assert len(server.requests) == 1
    assert (caught.value.code, caught.value.usage) == ("rate-limited", Usage(5, 1, 0, 0))


@pytest.mark.anyio
async def test_the_cost_of_a_call_holds_its_attempts() -> None:
    """Case 43: two attempts failed, the third answered."""
    overloaded, answer = (
        FAULTS["529"],
        {"answers": {"q1": {"type": "noul", "noul": 0.9}}, "usage": {"input_tokens": 9, "output_tokens": 1}},
    )
    with FaultServer([overloaded, overloaded, Answer(json=answer)]) as server, without_waits():
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            result = await backend.evaluate(asked()[0])
    assert (result.outcome, result.usage) == (DecisionOutcome.YES, Usage(1, 3, 9, 1))
    cut, good = FAULTS["cut-body"], Answer(json=answer)
    with FaultServer([cut, good]) as server, without_waits():
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            result = await backend.evaluate(asked()[0])
    # The answer that was cut off may have cost tokens that nobody heard of.
    assert result.usage == Usage(1, 2, None, None)


@pytest.mark.anyio
async def test_the_requests_of_one_call_share_its_deadline() -> None:
    """Ten requests one after the other, each of which is answered in time, do not take ten times the time."""
    answer = {"answers": {"q1": {"type": "noul", "noul": 0.9}}}
    with FaultServer(Answer(json=answer, trickle=0.004)) as server:
        requests = [request for place in range(10) for request in asked(["text"], query=f"query {place}")]
        options: Any = {"concurrency": 1, "timeout": 30.0, "deadline": 0.6, "retries": 0}
        async with nothing_left(server), opened(SYSTEMONE, base_url=server.url, **options) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(requests)
        assert len(server.requests) < 10
    assert caught.value.code == "timeout"
    assert caught.value.usage is not None
    assert caught.value.usage.requests == len(server.requests)


_HANGS: Final[dict[str, Answer]] = {
    "headers": Answer(hold=True),
    "body": Answer(pad=100_000, trickle=0.05),
    "retry": Answer(status=503, headers={"retry-after": "10"}),
}
"""What a call waits for -> the server that lets it wait."""


@pytest.mark.anyio
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("wait", _HANGS)
async def test_a_cancelled_call_ends_and_leaves_nothing(wait: str, parts: int) -> None:
    """Case 39: while waiting for headers, for the body, for another attempt; alone and side by side; no further attempt."""
    requests = [request for place in range(parts) for request in asked(query=f"query {place}")]
    with FaultServer(_HANGS[wait]) as server, anyio.fail_after(20):
        async with opened(SYSTEMONE, base_url=server.url, timeout=30, deadline=60) as backend:
            ended = False
            async with anyio.create_task_group() as group:

                async def ask() -> None:
                    nonlocal ended
                    try:
                        await backend.evaluate_many(requests)
                    except anyio.get_cancelled_exc_class():
                        ended = True
                        raise

                group.start_soon(ask)
                await server.arrived(parts)
                group.cancel_scope.cancel()
            assert ended
        await server.deserted()
        assert len(server.requests) == parts


@pytest.mark.anyio
@pytest.mark.parametrize("wait", _HANGS)
async def test_the_cost_of_a_cancelled_call_is_in_the_account(wait: str) -> None:
    """Case 43: whoever cancels it can read what was asked; what nobody reported is unknown and not nothing."""
    slow: Any = {"timeout": 30, "deadline": 60}
    with FaultServer(_HANGS[wait]) as server, anyio.fail_after(20), account() as spent:
        async with opened(SYSTEMONE, base_url=server.url, **slow) as backend, anyio.create_task_group() as group:
            group.start_soon(MeteredBackend(backend).evaluate_many, asked())
            await server.arrived(1)
            group.cancel_scope.cancel()
    assert spent.usage == Usage(5, 1, None, None)


@pytest.mark.anyio
async def test_a_call_that_waits_for_its_turn_can_be_cancelled() -> None:
    """The one place is taken by a call that hangs."""
    slow: Any = {"concurrency": 1, "timeout": 30, "deadline": 60}
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(20):
        async with opened(SYSTEMONE, base_url=server.url, **slow) as backend, anyio.create_task_group() as group:
            group.start_soon(backend.evaluate, asked()[0])
            await server.arrived(1)
            group.start_soon(backend.evaluate, asked()[1])
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        await server.deserted()
        assert len(server.requests) == 1


@pytest.mark.anyio
async def test_a_call_that_connects_can_be_cancelled() -> None:
    """The other side takes the connection and never answers the greeting of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as silent, anyio.fail_after(20):
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        async with opened(SYSTEMONE, base_url=url, timeout=30, deadline=60) as backend:
            async with anyio.create_task_group() as group:
                group.start_soon(backend.evaluate, asked()[0])
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
            assert group.cancel_scope.cancelled_caught
        connection, _ = await anyio.to_thread.run_sync(silent.accept)
        with connection:
            while await anyio.to_thread.run_sync(connection.recv, 65_536):
                pass  # the greeting; then the end, since the client hung up
