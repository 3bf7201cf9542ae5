"""Both components on servers and networks that fail: the code, the cost, nothing that hangs, nothing that is left."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from chat_fakes import SCHEMA, WIRES, deciding, generating, reply
from server_faults import EXPECTED, deaf

from narrowgate.decisions import NO_USAGE, DecisionOutcome, DecisionRequest, FailOpen, Usage
from narrowgate.errors import DecisionError, GenerationError, RecallError
from narrowgate.values.secret import Secret
from narrowgate_http.testing import ALL_FAULTS, Answer, FaultServer, fault_server, without_waits

pytestmark = pytest.mark.anyio

SECRET = "k-0123456789abcdef"
REQUEST = DecisionRequest("test.kind", "Does it mention ivy?", "ivy covers the lighthouse", ("lighthouse",))
DATA = {"subject": "ivy covers the lighthouse"}


def quick(fault: str) -> dict[str, Any]:
    """Return settings: the time limit is short only where it is the fault's end, so that no machine is too slow."""
    slow = fault.startswith("slow")
    return {"timeout": 0.5 if slow else 20.0, "deadline": 25.0, "retries": 1, "api_key": Secret(SECRET)}


async def _failure(fault: str, ask: Callable[[str], Awaitable[Any]], kind: type[RecallError], calls: int = 1) -> RecallError:
    with fault_server(fault) as server, without_waits(), anyio.fail_after(60):
        with pytest.raises(kind) as caught:
            await ask(server.url)
        await server.deserted()
    code, requests, unknown = EXPECTED[fault]
    assert len(server.requests) == requests
    error: RecallError = caught.value
    tokens = None if unknown else 0
    assert error.code == code
    assert error.usage == (Usage(calls, requests, tokens, tokens) if requests else NO_USAGE)
    told = f"{error}{error.__cause__}"
    assert not re.search(f"ivy|lighthouse|{SECRET}", told)
    assert f"[{error.code}]" in str(error)
    return error


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_the_generator_fails_with_code_and_cost(fault: str, wire: str) -> None:
    """The account is that of the server: the requests that it got, and no tokens where it says that it did nothing."""

    async def ask(url: str) -> None:
        async with generating(url, wire, **quick(fault)) as generator:
            await generator.generate("Say what it covers.", DATA, SCHEMA)

    await _failure(fault, ask, GenerationError)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_the_backend_fails_with_code_and_cost(fault: str, batch: int) -> None:
    """Never an abstention: whoever must have a judgement gets an error. A list is one request and as many calls."""

    async def ask(url: str) -> None:
        async with deciding(url, batch=batch, **quick(fault)) as backend:
            await backend.evaluate_many([REQUEST] * batch)

    await _failure(fault, ask, DecisionError, calls=batch)


@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_an_advisory_role_abstains_and_says_so(fault: str) -> None:
    """Case 27: the envelope's abstention is marked and bears the cost of the failure."""
    with fault_server(fault) as server, without_waits(), anyio.fail_after(60):
        async with deciding(server.url, **quick(fault)) as backend:
            result = await FailOpen(backend).evaluate(REQUEST)
        assert result.usage.requests == EXPECTED[fault][1] == len(server.requests)
    assert (result.outcome, result.used_fallback) == (DecisionOutcome.ABSTAIN, True)


def _places() -> dict[str, tuple[Answer, dict[str, Any]]]:
    held, slow = Answer(hold=True), Answer(pad=100_000, trickle=0.02)
    waiting = Answer(status=503, headers={"retry-after": "20"})
    patient = {"timeout": 60.0, "deadline": 90.0}
    return {
        "headers": (held, patient),
        "body": (slow, patient),
        "retry": (waiting, patient),
        "repeat": (Answer(json=reply("chat", "No idea.")), {**patient, "repeats": 1_000_000}),
    }


@pytest.mark.parametrize("place", ["headers", "body", "retry", "repeat"])
async def test_a_cancelled_generation_ends_at_once(place: str) -> None:
    """Case 39: waiting for headers, in the body, before another attempt, and amid repeats; nothing is left open."""
    answer, settings = _places()[place]
    with FaultServer(answer) as server, anyio.fail_after(30):
        async with generating(server.url, **settings) as generator, anyio.create_task_group() as group:

            async def ask() -> None:
                await generator.generate("Say what it covers.", DATA, SCHEMA)

            group.start_soon(ask)
            await server.arrived(1)
            group.cancel_scope.cancel()
        sent = len(server.requests)
        await server.deserted()
        assert len(server.requests) == sent


@pytest.mark.parametrize("place", ["headers", "body", "retry", "slot"])
async def test_a_cancelled_decision_ends_at_once(place: str) -> None:
    """Likewise, and while another question holds the only place."""
    answer, settings = _places()["headers" if place == "slot" else place]
    with FaultServer(answer) as server, anyio.fail_after(30):
        async with deciding(server.url, concurrency=1, **settings) as backend, anyio.create_task_group() as group:
            group.start_soon(backend.evaluate, REQUEST)
            if place == "slot":
                group.start_soon(backend.evaluate, REQUEST)
            await server.arrived(1)
            group.cancel_scope.cancel()
        await server.deserted()
        assert len(server.requests) == 1


async def test_a_call_is_cancelled_while_it_connects() -> None:
    """A port whose queue is full answers nothing; the cancellation still passes at once, through an envelope too."""
    with deaf() as url, anyio.fail_after(60):
        async with deciding(url) as backend, generating(url) as generator:
            with anyio.move_on_after(0.05) as deciding_scope:
                await FailOpen(backend).evaluate(REQUEST)
            with anyio.move_on_after(0.05) as generating_scope:
                await generator.generate("Say what it covers.", DATA, SCHEMA)
    assert deciding_scope.cancelled_caught
    assert generating_scope.cancelled_caught


async def test_a_port_that_is_deaf_is_a_timeout_that_costs_nothing() -> None:
    """Nothing was sent, and the deadline ends the wait."""
    with deaf() as url, anyio.fail_after(60):
        async with deciding(url, timeout=0.2, deadline=0.3) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate(REQUEST)
    assert (caught.value.code, caught.value.usage) == ("timeout", NO_USAGE)


async def test_a_call_that_is_cancelled_beforehand_sends_nothing() -> None:
    """A cancelled scope passes before a byte is sent, and an envelope does not make an abstention of it."""
    with FaultServer(Answer(hold=True)) as server:
        async with deciding(server.url) as backend:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await FailOpen(backend).evaluate(REQUEST)
                pytest.fail("the cancellation was swallowed")
        assert scope.cancelled_caught
        assert server.requests == []


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    """Whatever the caller starts at once."""
    with FaultServer(Answer(json=reply("chat", '{"answer": "no"}'))) as server:
        async with deciding(server.url, concurrency=2) as backend, anyio.create_task_group() as group:
            assert backend.concurrency == 2
            for _ in range(12):
                group.start_soon(backend.evaluate, REQUEST)
        assert server.most_under_way <= 2
        assert len(server.requests) == 12
        assert server.connections <= 2, "connections are kept"
