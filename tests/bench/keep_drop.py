"""The second stage over a server: keep/drop of 30 candidates against one that takes 50 ms for each request.

The floor is the waves, one after the other: what nobody can do faster who asks exactly what a one-by-one scan asks. With
batches a wave is one request; without them its questions go side by side, so that it still takes one round. Beside it stands
what httpx alone takes for the same rounds of requests, one client for each request of a round: where that itself misses the
bound, as with ten single questions at once on two cores, no use of httpx can meet it.

A round takes turns with a bare one, and the best of several counts: what a machine does besides can only add to a time.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter, process_time
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
MODEL: Final = "bench-1"

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
        ours: a whole scan.
        bare: the same rounds of requests with httpx alone.
    """

    name: str
    waves: int
    requests: float
    expected: int
    ours: Times
    bare: Times

    @property
    def floor(self) -> float:
        """Seconds that the server alone takes for the waves."""
        return self.waves * SECONDS

    @property
    def ratio(self) -> float:
        """Ours over the floor."""
        return self.ours.wall / self.floor

    @property
    def ok(self) -> bool:
        """Whether one request or one round is sent for each wave, within `RATIO` of the floor."""
        return self.requests == self.expected and self.ratio <= RATIO


@attrs.frozen
class Times:
    """Seconds, the best of all rounds each.

    Attributes:
        wall: from the beginning to the end.
        cpu: of this process.
    """

    wall: float
    cpu: float


async def measure(rounds: int = 10) -> list[Measured]:
    """Measure each pool with and without batches, over connections that are kept."""
    found = []
    for name, every in _POOLS.items():
        pool = [_candidate(rank, dropped=rank % every == 0) for rank in range(1, CANDIDATES + 1)]
        waves = _waves(pool)
        for batches in (True, False):
            bodies = [_bodies(size, batches) for size in waves]
            seen, ours, bare = await _scan(pool, bodies, batches, rounds)
            what = f"{name}, {'batches' if batches else 'single questions'}"
            found.append(Measured(what, len(waves), seen, sum(map(len, bodies)), ours, bare))
    return found


async def _scan(pool: list[Candidate], bodies: list[list[bytes]], batches: bool, rounds: int) -> tuple[float, Times, Times]:
    """Return how many requests the server saw in a scan, and the times of ours and of the bare rounds."""
    component = next(item for item in narrowgate_decision_backends() if item.name == "hosted.systemone")
    async with AsyncExitStack() as stack:
        server = stack.enter_context(_server())
        url = server.recv()
        limit = None if batches else 1
        settings = component.settings(base_url=url, concurrency=LIMIT, batch_limit=limit, model=MODEL, retries=0)
        backend = await stack.enter_async_context(component.build(settings, Deps({}, analyser="none")))
        # One pool of httpx for ten requests at once would spend as much again on looking at its connections.
        clients = [await stack.enter_async_context(httpx.AsyncClient(timeout=10)) for _ in range(max(map(len, bodies)))]
        reranker = KeepDrop(backend)

        async def ours() -> None:
            await reranker.rerank("who keeps the harbour's books?", pool, LIMIT)

        async def bare() -> None:
            for wave in bodies:
                async with anyio.create_task_group() as group:
                    for client, body in zip(clients, wave, strict=False):
                        group.start_soon(_post, client, f"{url}/v1/systemone", body)

        times: dict[str, list[Times]] = {"ours": [], "bare": []}
        for _ in range(rounds + 1):
            times["ours"].append(await _timed(ours))
            times["bare"].append(await _timed(bare))
        server.send(None)
        seen = server.recv() / (rounds + 1) - sum(map(len, bodies))
        return seen, _best(times["ours"]), _best(times["bare"])


async def _timed(work: Callable[[], Awaitable[None]]) -> Times:
    wall, cpu = perf_counter(), process_time()
    await work()
    return Times(perf_counter() - wall, process_time() - cpu)


def _best(times: list[Times]) -> Times:
    """Return the best of all but the first, which also connects."""
    return Times(min(item.wall for item in times[1:]), min(item.cpu for item in times[1:]))


async def _post(client: httpx.AsyncClient, url: str, body: bytes) -> None:
    response = await client.post(url, content=body, headers={"content-type": "application/json"})
    response.raise_for_status().json()


def _bodies(size: int, batches: bool) -> list[bytes]:
    """Return requests of about the size of ours for a wave of `size` questions."""
    question = {"type": "noul", "instructions": "x" * 600}
    requests = [[f"q{place}" for place in range(size)]] if batches else [["q0"]] * size
    return [
        json.dumps({"model": MODEL, "state": {"query": "?"}, "questions": dict.fromkeys(names, question)}).encode()
        for names in requests
    ]


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
    return json.dumps({"model": MODEL, "answers": answers, "usage": {"input_tokens": 100, "output_tokens": 1}}).encode()


def _candidate(rank: int, dropped: bool) -> Candidate:
    text = f"Note {rank}: the ledger of the harbour is kept by the second mate, {_DROP if dropped else 'as agreed'}. " * 2
    return Candidate(
        rank, EntryRef("bench", 1, f"e{rank}", 1), content_of(EntryDraft(text)), 1 / rank, (ChannelKind.LEXICAL,)
    )
