"""What a component adds to a call: 30 candidates over a kept connection on loopback, against httpx with the same body.

The server answers at once, from a process of its own. Ours and a bare httpx client with a kept connection take turns, call
by call, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any, Final

import anyio
import anyio.to_thread
import attrs
import httpx
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from narrowgate.memory.drafts import content_of
from narrowgate.seams import Component, Deps
from narrowgate.values.decision import DecisionRequest
from narrowgate.values.entry import EntryDraft
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind
from narrowgate_hosted.plugin import narrowgate_decision_backends
from narrowgate_http.testing import Answer, FaultServer
from narrowgate_rerank_api.plugin import narrowgate_rerankers

RATIO: Final = 1.3
CANDIDATES: Final = 30
QUERY: Final = "who keeps the harbour's books?"

TEXTS: Final = [
    f"Note {place}: the ledger of the harbour is kept by the second mate, as agreed with the master in {1900 + place}. " * 2
    for place in range(CANDIDATES)
]

Call = Callable[[], Awaitable[Any]]


@attrs.frozen
class Measured:
    """One component.

    Attributes:
        name: its full name.
        seconds: median of a call through the component.
        bare: median of the same call with httpx alone, its answer decoded.
    """

    name: str
    seconds: float
    bare: float

    @property
    def ratio(self) -> float:
        """Ours over the bare call."""
        return self.seconds / self.bare


async def measure(rounds: int = 400) -> list[Measured]:
    """Measure a decision backend with one batch, and an endpoint reranker."""
    return [
        await _measure("hosted.systemone", _deciding, rounds),
        await _measure("rerank-api.endpoint", _reranking, rounds),
    ]


@asynccontextmanager
async def _deciding(url: str) -> AsyncIterator[Call]:
    component = _component(narrowgate_decision_backends(), "hosted.systemone")
    settings = component.settings(base_url=url, model="bench-1", retries=0)
    requests = [DecisionRequest("memory.rerank", "Does it help?", text, (QUERY,)) for text in TEXTS]
    async with component.build(settings, Deps({}, analyser="none")) as backend:
        yield lambda: backend.evaluate_many(requests)


@asynccontextmanager
async def _reranking(url: str) -> AsyncIterator[Call]:
    component = _component(narrowgate_rerankers(), "rerank-api.endpoint")
    settings = component.settings(base_url=url, model="bench-1", retries=0)
    pool = [
        Candidate(rank, EntryRef("bench", 1, f"e{rank}", 1), content_of(EntryDraft(text)), 1 / rank, (ChannelKind.LEXICAL,))
        for rank, text in enumerate(TEXTS, 1)
    ]
    async with component.build(settings, Deps({}, analyser="none")) as reranker:
        yield lambda: reranker.rerank(QUERY, pool, 10)


def _component(offered: list[Component], name: str) -> Component:
    return next(item for item in offered if item.name == name)


async def _measure(name: str, opened: Callable[[str], Any], rounds: int) -> Measured:
    with FaultServer(lambda request: Answer(body=_answer(request.json))) as recorder:
        async with opened(recorder.url) as call:
            await call()
    (request,) = recorder.requests
    body, path = request.json, request.path
    times: list[tuple[float, float]] = []
    with _server() as url:
        async with opened(url) as ours, httpx.AsyncClient(timeout=10) as client:

            async def bare() -> Any:
                response = await client.post(f"{url}{path}", json=body)
                return response.raise_for_status().json()

            for number in range(rounds + 20):
                first, second = (ours, bare) if number % 2 else (bare, ours)
                started = perf_counter()
                await first()
                between = perf_counter()
                await second()
                pair = (between - started, perf_counter() - between)
                times.append(pair if number % 2 else pair[::-1])
    # The first calls also connect.
    seconds, alone = (statistics.median(column) for column in zip(*times[20:], strict=True))
    return Measured(name, seconds, alone)


def _answer(request: dict[str, Any]) -> bytes:
    """Answer as a System One server or a rerank endpoint, by what is asked."""
    if "questions" in request:
        answers = {name: {"type": "noul", "noul": 0.9} for name in request["questions"]}
        told: dict[str, Any] = {"model": "bench-1", "answers": answers, "usage": {"input_tokens": 100, "output_tokens": 1}}
    else:
        places = range(len(request["documents"]))
        told = {"results": [{"index": place, "relevance_score": 1 / (place + 1)} for place in places]}
    return json.dumps(told).encode()


@contextmanager
def _server() -> Iterator[str]:
    """Run a server in a process of its own, so that it takes no time from ours; yields its URL."""
    processes = get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join()


def _serve(pipe: Connection) -> None:
    anyio.run(_listen, pipe)


async def _listen(pipe: Connection) -> None:
    answers: dict[bytes, bytes] = {}

    async def talk(stream: SocketStream) -> None:
        async with stream:
            buffered = BufferedByteReceiveStream(stream)
            with suppress(anyio.IncompleteRead, anyio.BrokenResourceError):
                while True:
                    head = await buffered.receive_until(b"\r\n\r\n", 65_536)
                    size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                    body = await buffered.receive_exactly(size)
                    if body not in answers:
                        answers[body] = _answer(json.loads(body))
                    answer = answers[body]
                    kind = b"content-type: application/json"
                    await stream.send(b"HTTP/1.1 200 OK\r\n%s\r\ncontent-length: %d\r\n\r\n%s" % (kind, len(answer), answer))

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    pipe.send(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, talk)
        with suppress(EOFError):
            await anyio.to_thread.run_sync(pipe.recv)
        group.cancel_scope.cancel()
