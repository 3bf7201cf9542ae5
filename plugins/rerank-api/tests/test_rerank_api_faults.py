"""Every fault of a server, within a search over a real store: a code, the true cost, and nothing that hangs."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import pytest

import narrowgate
from narrowgate.decisions import account, unreported
from narrowgate.errors import DeadlineError, RerankError
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate_http.testing import ALL_FAULTS, Answer, FaultServer, fault_server, without_waits

TEXTS: Final = ["backup runs at night", "backup fails on disk two", "lunch and backup at noon"]
QUERY: Final = "backup"


@attrs.frozen
class Expected:
    """What becomes of a fault: its code, how many requests reach the server, and whether they may have cost tokens."""

    code: str
    requests: int = 1
    unknown: bool = True

    @property
    def usage(self) -> Usage:
        """The cost of a pool of `TEXTS`."""
        if self.requests == 0:
            return NO_USAGE
        tokens = None if self.unknown else 0
        return Usage(len(TEXTS), self.requests, tokens, tokens)


MATRIX: Final = {
    "refused": Expected("unreachable", 0),
    "dns": Expected("dns", 0),
    "tls-plain-text": Expected("tls", 0),
    "tls-unknown-authority": Expected("tls", 0),
    "401": Expected("unauthorised", unknown=False),
    "402": Expected("payment", unknown=False),
    "403": Expected("forbidden", unknown=False),
    "404": Expected("not-found", unknown=False),
    "413": Expected("too-large", unknown=False),
    "422": Expected("bad-request", unknown=False),
    "429-seconds": Expected("rate-limited", 3, unknown=False),
    "429-date": Expected("rate-limited", 3, unknown=False),
    "429-ms": Expected("rate-limited", 3, unknown=False),
    "429-plain": Expected("rate-limited", 3, unknown=False),
    "500": Expected("server-error", 3, unknown=False),
    "503": Expected("overloaded", 3, unknown=False),
    "529": Expected("overloaded", 3, unknown=False),
    "empty-body": Expected("empty-body"),
    "html-body": Expected("not-json"),
    "slow-first-byte": Expected("timeout", 3),
    "slow-trickle": Expected("timeout", 3),
    "cut-body": Expected("cut", 3),
    "wrong-content-type": Expected("wrong-shape"),
    "huge-body": Expected("response-too-large"),
    "huge-body-unannounced": Expected("response-too-large"),
    "wrong-shape": Expected("wrong-shape"),
    "nan": Expected("non-finite"),
    "redirect": Expected("redirect", unknown=False),
    "closed": Expected("cut", 3),
}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of whoever runs the tests would answer for hosts that do not exist."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def searching(folder: Path, url: str, on_failure: str, **settings: Any) -> AsyncIterator[Any]:
    """Open a memory of `TEXTS` whose second stage is at `url`."""
    overrides = {
        "search": settings.pop("search", {}),
        "use": {"reranker": "rerank-api.endpoint", "embedder": "none", "channels": ["sqlite.lexical"]},
        "rerank": {"on_failure": on_failure},
        "settings": {
            "sqlite.store": {"path": str(folder / "memory.db")},
            "rerank-api.endpoint": {"base_url": url, "allow_http": True, **settings},
        },
    }
    async with narrowgate.open(overrides=overrides) as gate:
        await gate.remember("notes", TEXTS)
        yield gate


def test_the_matrix_is_whole() -> None:
    """No fault of the server is left out."""
    assert sorted(MATRIX) == sorted(ALL_FAULTS)


def _patience(name: str) -> dict[str, Any]:
    """Return settings under which a fault of slowness is over soon."""
    return {"timeout": 0.3} if name.startswith("slow") else {}


@pytest.mark.anyio
@pytest.mark.parametrize("name", MATRIX)
async def test_a_fault_is_an_error_of_the_search(name: str, tmp_path: Path) -> None:
    """With `on_failure = "raise"`: the fault's code, the cost, no content in the message; the connection is given up."""
    expected = MATRIX[name]
    with fault_server(name) as server, without_waits(), anyio.fail_after(60):
        async with searching(tmp_path, server.url, "raise", **_patience(name)) as gate:
            before = len(anyio.get_running_tasks())
            with pytest.raises(RerankError) as caught:
                await gate.search(QUERY, memory="notes")
            assert len(anyio.get_running_tasks()) == before
        await server.deserted()
        if expected.requests:
            assert len(server.requests) == expected.requests
    assert caught.value.code == expected.code
    assert caught.value.usage == expected.usage
    message = str(caught.value)
    assert message.startswith("rerank-api.endpoint: http")
    assert not any(word in message for text in TEXTS for word in text.split() if len(word) > 4)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MATRIX)
async def test_a_fault_is_shown_on_the_page(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Case 27: with `on_failure = "coarse"`: coarse order, status `failed` with the code, the cost, one warning."""
    expected = MATRIX[name]
    with fault_server(name) as server, without_waits(), anyio.fail_after(60):
        async with searching(tmp_path, server.url, "coarse", **_patience(name)) as gate:
            before = len(anyio.get_running_tasks())
            with caplog.at_level(logging.WARNING, logger="narrowgate"):
                page = await gate.search(QUERY, memory="notes", limit=2)
            assert len(anyio.get_running_tasks()) == before
    assert (page.status, page.reason) == ("failed", expected.code)
    assert [hit.ref for hit in page.hits] == [candidate.ref for candidate in page.trace.rerank.candidates[:2]]
    assert page.usage == expected.usage
    assert page.trace.rerank.decision is None
    assert len([record for record in caplog.records if record.name.startswith("narrowgate")]) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["slow-first-byte", "slow-trickle", "503", "429-plain"])
async def test_nothing_goes_on_after_the_deadline(name: str, tmp_path: Path) -> None:
    """A slow server, or waits between attempts: `deadline` ends all of it, long before an attempt's own time is over."""
    # Where every attempt is answered, the last answer tells the failure: a busy machine must have the time to get one.
    deadline = 0.4 if name.startswith("slow") else 2.0
    with fault_server(name) as server, anyio.fail_after(60):
        async with searching(tmp_path, server.url, "raise", timeout=300.0, deadline=deadline, retries=9) as gate:
            with pytest.raises(RerankError) as caught:
                await gate.search(QUERY, memory="notes")
        await server.deserted()
    assert caught.value.code == MATRIX[name].code
    assert caught.value.usage is not None
    assert caught.value.usage.calls == len(TEXTS)
    assert caught.value.usage.requests == len(server.requests)


@pytest.mark.anyio
@pytest.mark.parametrize("on_failure", ["raise", "coarse"])
async def test_the_deadline_of_the_search_ends_a_stage_that_hangs(on_failure: str, tmp_path: Path) -> None:
    """`[search] deadline` over a component that would wait longer: the request is given up, and stays in the account."""
    patient = {"timeout": 300.0, "deadline": 300.0, "search": {"deadline": 0.5}}
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(60):
        async with searching(tmp_path, server.url, on_failure, **patient) as gate:
            if on_failure == "raise":
                with pytest.raises(DeadlineError) as caught:
                    await gate.search(QUERY, memory="notes")
                told = (caught.value.code, caught.value.usage)
            else:
                page = await gate.search(QUERY, memory="notes")
                assert (page.status, len(page.hits)) == ("failed", len(TEXTS))
                told = (page.reason, page.usage)
        await server.deserted()
        assert len(server.requests) == 1
    assert told == ("deadline", unreported(len(TEXTS)))


@pytest.mark.anyio
async def test_a_key_in_the_url_is_in_no_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Case 53: a 403 at a URL that carries a key: masked in error, cause, page, trace and log; the rest is told."""
    key = "K1234567890abcdef"
    with FaultServer(Answer(status=403, json={"message": f"key {key} may not"})) as server:
        url = f"{server.url}/v1/rerank?api_key={key}&x=1"
        async with searching(tmp_path, url, "raise") as gate:
            with pytest.raises(RerankError) as caught:
                await gate.search(QUERY, memory="notes")
        async with searching(tmp_path, url, "coarse") as gate:
            with caplog.at_level(logging.DEBUG):
                page = await gate.search(QUERY, memory="notes")
        assert {request.path for request in server.requests} == {f"/v1/rerank?api_key={key}&x=1"}
    everything = [repr(page), page.trace.rerank.detail, *(record.getMessage() for record in caplog.records)]
    error: BaseException | None = caught.value
    while error is not None:
        everything += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert not any(key[:10] in text for text in everything)
    assert "/v1/rerank?api_key=***&x=*** answered 403" in str(caught.value)


@pytest.mark.anyio
async def test_a_server_that_comes_back_is_used_again(tmp_path: Path) -> None:
    """A failed search leaves nothing behind that would fail the next one."""
    good = Answer(json={"results": [{"index": place, "relevance_score": place} for place in range(3)]})
    with FaultServer([Answer(drop=True), Answer(status=401), good]) as server:
        async with searching(tmp_path, server.url, "raise", retries=0) as gate:
            for code in ("cut", "unauthorised"):
                with pytest.raises(RerankError) as caught:
                    await gate.search(QUERY, memory="notes")
                assert caught.value.code == code
            page = await gate.search(QUERY, memory="notes")
    assert page.status == "applied"
    assert [hit.ref for hit in page.hits] == [candidate.ref for candidate in page.trace.rerank.candidates][::-1]


@contextmanager
def _silent() -> Iterator[str]:
    """Take connections at a TLS address and never say a word: a client waits in its handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.anyio
async def test_cancelled_while_connecting(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Case 39: the cancellation passes at once."""
    with _silent() as url:
        async with endpoint(url) as reranker:
            await _cancelled(reranker, pool(TEXTS), anyio.wait_all_tasks_blocked)


WAITS: Final = {
    "for the headers": Answer(hold=True),
    "for the body": Answer(pad=100_000, trickle=0.02),
    "for another attempt": Answer(status=503, headers={"retry-after": "25"}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("stage", WAITS)
async def test_cancelled_while_waiting(stage: str, pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Case 39: no further attempt, no connection left, and the request stays in the account with unknown tokens."""
    with FaultServer(WAITS[stage]) as server:
        async with endpoint(server.url, timeout=50.0, deadline=50.0) as reranker:
            await _cancelled(reranker, pool(TEXTS), lambda: server.arrived(1))
        with anyio.fail_after(30):
            await server.deserted()
        assert len(server.requests) == 1


@pytest.mark.anyio
async def test_cancelled_while_waiting_for_its_turn(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Case 39: a search that waits for the requests of others ends too, and frees no place that it never had."""
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(60):
        patient = endpoint(server.url, concurrency=1, timeout=50.0, deadline=50.0)
        async with patient as reranker, anyio.create_task_group() as group:
            group.start_soon(reranker.rerank, QUERY, pool(TEXTS), 1)
            await server.arrived(1)
            await _cancelled(reranker, pool(TEXTS), anyio.wait_all_tasks_blocked)
            assert len(server.requests) == 1
            group.cancel_scope.cancel()


async def _cancelled(reranker: Any, candidates: Any, ready: Callable[[], Any]) -> None:
    """Cancel a rerank when `ready` says so; see that nothing else comes out of it, and what it has cost."""
    ended = []

    async def work() -> None:
        with account() as cost:
            try:
                await reranker.rerank(QUERY, candidates, 1)
            except BaseException as error:
                ended.append((type(error), cost.usage))
                raise

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await ready()
            group.cancel_scope.cancel()
    assert ended == [(anyio.get_cancelled_exc_class(), unreported(len(candidates)))]
