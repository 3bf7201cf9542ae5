"""The fault matrix: whatever is wrong with a server or the way to it, a code and the cost, and nothing hangs or is left."""

from __future__ import annotations

import socket
from typing import Any, Final

import anyio
import anyio.to_thread
import pytest
from decisions_parts import OPENAI, OPENROUTER, SYSTEMONE, asked, opened

from narrowgate.decisions import DecisionOutcome, FailOpen, Usage
from narrowgate.errors import DecisionError
from narrowgate_http import CURES
from narrowgate_http.testing import ALL_FAULTS, FAULTS, PLACES, Answer, FaultServer, fault_server, without_waits

FAST: Final[dict[str, Any]] = {"timeout": 0.5, "deadline": 2.0, "retries": 1, "allow_http": True}
"""Bounds for servers that never answer; `allow_http`, since the fault server's unknown host has no TLS."""

CODES: Final = {
    "401": "unauthorised",
    "402": "payment",
    "403": "forbidden",
    "404": "not-found",
    "413": "too-large",
    "422": "bad-request",
    "429-seconds": "rate-limited",
    "429-date": "rate-limited",
    "429-ms": "rate-limited",
    "429-plain": "rate-limited",
    "500": "server-error",
    "503": "overloaded",
    "529": "overloaded",
    "empty-body": "empty-body",
    "html-body": "not-json",
    "slow-first-byte": "timeout",
    "slow-trickle": "timeout",
    "cut-body": "cut",
    "wrong-content-type": "wrong-shape",
    "huge-body": "response-too-large",
    "huge-body-unannounced": "response-too-large",
    "wrong-shape": "wrong-shape",
    "nan": "non-finite",
    "redirect": "redirect",
    "closed": "cut",
    "refused": "unreachable",
    "dns": "dns",
    "tls-plain-text": "tls",
    "tls-unknown-authority": "tls",
}
"""Fault -> the code of the error."""

RETRIED: Final = {"429-seconds", "429-date", "429-ms", "429-plain", "500", "503", "529", "slow-first-byte", "slow-trickle",
                  "cut-body", "closed"}  # fmt: skip


def test_every_fault_is_met() -> None:
    """None that the fault server knows is left out."""
    assert sorted(CODES) == sorted(ALL_FAULTS)
    assert set(CODES.values()) <= set(CURES)


@pytest.mark.anyio
@pytest.mark.parametrize("component", [SYSTEMONE, OPENAI, OPENROUTER])
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_a_fault_is_an_error_with_code_and_cost(fault: str, component: str) -> None:
    """As many requests as reached the server, and no tokens made up; nothing is left open."""
    with fault_server(fault) as server, without_waits(), anyio.fail_after(30):
        async with opened(component, base_url=server.url, **FAST) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(asked())
        await server.deserted()
        reached = len(server.requests)
    assert caught.value.code == CODES[fault]
    usage = caught.value.usage
    assert usage is not None
    assert reached == (0 if fault in PLACES else 2 if fault in RETRIED else 1)
    assert (usage.calls, usage.requests) == ((5, reached) if reached else (0, 0))
    nothing_read = fault in PLACES or (fault in FAULTS and FAULTS[fault].status >= 300)
    assert (usage.input_tokens, usage.output_tokens) == ((0, 0) if nothing_read else (None, None))
    assert f"[{CODES[fault]}]" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_an_advisory_role_abstains_and_says_that_it_fell_back(fault: str) -> None:
    """Through the one fail-open envelope: no verdict, the flag, and the cost of the call that failed."""
    with fault_server(fault) as server, without_waits(), anyio.fail_after(30):
        async with opened(SYSTEMONE, base_url=server.url, **FAST) as backend:
            results = await FailOpen(backend).evaluate_many(asked())
        reached = len(server.requests)
    assert [item.outcome for item in results] == [DecisionOutcome.ABSTAIN] * 5
    assert all(item.used_fallback and item.probability is None for item in results)
    assert sum(item.usage.requests for item in results) == reached
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
