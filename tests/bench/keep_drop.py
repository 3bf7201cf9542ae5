"""The second stage over a server: keep/drop of 30 candidates against one that takes 50 ms for each request.

The floor is the waves, one after the other: what nobody can do faster who asks exactly what a one-by-one scan asks. With
batches a wave is one request; without them its questions go side by side, so that it still takes one round. Beside it stands
what a bare httpx client takes for the same rounds in the same run.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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

from narrowgate.decisions import DecisionOutcome, DecisionResult
from narrowgate.memory.drafts import content_of
from narrowgate.seams import Deps
from narrowgate.values.entry import EntryDraft
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind
from narrowgate_decision import KeepDrop
from narrowgate_decision.scan import Scan
from narrowgate_hosted.plugin import narrowgate_decision_backends

RATIO: Final = 1.2
CANDIDATES: Final = 30
LIMIT: Final = 10
SECONDS: Final = 0.05
"""What the server takes for a request."""

_DROP: Final = "beside the point"
_POOLS: Final = {"a third dropped": 3, "all dropped": 1}
"""Name of a pool -> every how manieth candidate is dropped."""


@attrs.frozen
class Measured:
    """One pool against one kind of server.

    Attributes:
        name: what was measured.
        waves: rounds that the scan needs.
        requests: requests that the server saw in one scan.
        expected: requests that it should see.
        seconds: median of a whole scan.
        bare: median of the same rounds of requests with httpx alone.
        floor: `waves` times what the server takes.
    """

    name: str
    waves: int
    requests: int
    expected: int
    seconds: float
    bare: float
    floor: float

    @property
    def ratio(self) -> float:
        """Ours over the floor."""
        return self.seconds / self.floor


async def measure(rounds: int = 7) -> list[Measured]:
    """Measure each pool with and without batches, over a connection that is kept."""
    found = []
    for name, every in _POOLS.items():
        pool = [_candidate(rank, dropped=rank % every == 0) for rank in range(1, CANDIDATES + 1)]
        waves = _waves(pool)
        for batches in (True, False):
            expected = len(waves) if batches else sum(waves)
            requests, seconds, bare = await _scan(pool, [1] * len(waves) if batches else waves, batches, rounds)
            what = f"{name}, {'batches' if batches else 'single questions'}"
            found.append(Measured(what, len(waves), requests, expected, seconds, bare, len(waves) * SECONDS))
    return found


async def _scan(pool: list[Candidate], waves: list[int], batches: bool, rounds: int) -> tuple[int, float, float]:
    component = next(item for item in narrowgate_decision_backends() if item.name == "hosted.systemone")
    with _server() as server:
        url = server.recv()
        settings = component.settings(
            base_url=url, concurrency=LIMIT, batch_limit=None if batches else 1, model="bench-1", retries=0
        )
        async with component.build(settings, Deps({}, analyser="none")) as backend, httpx.AsyncClient(timeout=10) as client:
            reranker = KeepDrop(backend)
            times: list[tuple[float, float]] = []
            for _ in range(rounds + 1):
                started = perf_counter()
                await reranker.rerank("who keeps the harbour's books?", pool, LIMIT)
                between = perf_counter()
                for size in waves:
                    async with anyio.create_task_group() as group:
                        for _ in range(size):
                            group.start_soon(_bare, client, f"{url}/v1/systemone")
                times.append((between - started, perf_counter() - between))
            server.send(None)
            # The first round also connects.
            ours, bare = (statistics.median(column) for column in zip(*times[1:], strict=True))
            return server.recv() // len(times) - sum(waves), ours, bare


async def _bare(client: httpx.AsyncClient, url: str) -> None:
    question = {"type": "noul", "instructions": "x" * 200}
    response = await client.post(url, json={"model": "bench-1", "state": {"query": "?"}, "questions": {"q": question}})
    response.raise_for_status().json()


@contextmanager
def _server() -> Iterator[Connection]:
    """Run a server in a process of its own, so that it takes no time from ours.

    It sends its URL; for each `None` it sends the number of requests so far.
    """
    processes = get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join()


def _serve(pipe: Connection) -> None:
    anyio.run(_listen, pipe)


async def _listen(pipe: Connection) -> None:
    """Answer requests as cheaply as can be, in one thread: ten threads on two cores would measure their own quarrel."""
    seen = 0

    async def talk(stream: SocketStream) -> None:
        nonlocal seen
        async with stream:
            buffered = BufferedByteReceiveStream(stream)
            with suppress(anyio.IncompleteRead, anyio.BrokenResourceError):
                while True:
                    head = await buffered.receive_until(b"\r\n\r\n", 65_536)
                    size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                    body = await buffered.receive_exactly(size)
                    due = anyio.current_time() + SECONDS
                    seen += 1
                    answer = _answer(json.loads(body))
                    await anyio.sleep(due - anyio.current_time())
                    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer))

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    pipe.send(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, talk)
        with suppress(EOFError):
            while True:
                await anyio.to_thread.run_sync(pipe.recv)
                pipe.send(seen)
        group.cancel_scope.cancel()


def _waves(pool: list[Candidate]) -> list[int]:
    """Return how many questions each wave of the scan has."""
    scan = Scan([candidate.content.text for candidate in pool], LIMIT, frozenset({DecisionOutcome.YES}))
    sizes = []
    while wave := scan.wave():
        sizes.append(len(wave))
        scan.learn({t: DecisionResult(DecisionOutcome.NO if _DROP in t else DecisionOutcome.YES, "bench") for t in wave})
    return sizes


def _answer(request: dict[str, Any]) -> bytes:
    answers = {
        name: {"type": "noul", "noul": 0.1 if _DROP in json.dumps(question) else 0.9}
        for name, question in request["questions"].items()
    }
    return json.dumps({"model": "bench-1", "answers": answers, "usage": {"input_tokens": 100, "output_tokens": 1}}).encode()


def _candidate(rank: int, dropped: bool) -> Candidate:
    text = f"Note {rank}: the ledger of the harbour is kept by the second mate, {_DROP if dropped else 'as agreed'}. " * 2
    return Candidate(
        rank, EntryRef("bench", 1, f"e{rank}", 1), content_of(EntryDraft(text)), 1 / rank, (ChannelKind.LEXICAL,)
    )
