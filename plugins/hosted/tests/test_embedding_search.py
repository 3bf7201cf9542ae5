"""`hosted.embedder` in a whole composition: a file, both channels, and a server that is well, ill, or gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from embedding_parts import DIMENSION, TEXTS, fake, texts_in

import narrowgate
from narrowgate import ChannelError, CompositionError, Mode, Narrowgate
from narrowgate.decisions import NO_USAGE, Usage
from narrowgate_http.testing import FAULTS, Answer, FaultServer, Recorded, fault_server, without_waits

pytestmark = pytest.mark.anyio

QUERY = "where does the backup run"
SAFE = 60


@asynccontextmanager
async def gate(file: Path, url: str, search: dict[str, Any] | None = None, **options: Any) -> AsyncIterator[Narrowgate]:
    """Open a composition of the file with this embedder."""
    overrides = {
        "use": {"store": "sqlite.store", "embedder": "hosted.embedder"},
        "search": search or {},
        "settings": {
            "sqlite.store": {"path": str(file)},
            "hosted.embedder": {"base_url": url, "model": "m", "dimension": DIMENSION, **options},
        },
    }
    with anyio.fail_after(SAFE):
        async with narrowgate.open(overrides=overrides, env={}) as opened:
            yield opened


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    """A file whose entries all have vectors."""
    file = tmp_path / "memory.db"
    with FaultServer(fake()) as server:
        async with gate(file, server.url) as opened:
            receipt = await opened.remember("notes", TEXTS)
            assert (receipt.vectors_pending, receipt.warning) == (0, None)
        assert [texts_in(request) for request in server.requests] == [list(TEXTS)]
    return file


async def test_a_search_by_meaning_counts_what_the_server_says(filled: Path) -> None:
    """The page has the mode, the tokens and the round trips that there really were."""
    with FaultServer(fake()) as server:
        async with gate(filled, server.url) as opened:
            page = await opened.search(QUERY, memory="notes")
    assert page.mode is Mode.HYBRID
    assert page.hits[0].content.text == TEXTS[0]
    assert page.usage == Usage(1, 1, len(QUERY.split()), 0)


async def test_a_retried_query_is_counted_as_two_requests(filled: Path) -> None:
    """The first attempt cost a round trip too."""

    def answer(request: Recorded) -> Answer:
        return FAULTS["503"] if len(server.requests) == 1 else fake()(request)

    with FaultServer(answer) as server, without_waits():
        async with gate(filled, server.url) as opened:
            page = await opened.search(QUERY, memory="notes", mode="vector")
    assert (page.mode, page.usage.calls, page.usage.requests) == (Mode.VECTOR, 1, 2)


# fault -> what the failing attempts of one query cost
COSTS: dict[str, Usage] = {
    "refused": NO_USAGE,
    "500": Usage(1, 2, 0, 0),
    "cut-body": Usage(1, 2, None, None),
    "401": Usage(1, 1, 0, 0),
    "wrong-shape": Usage(1, 1, None, 0),
}
CODES = {
    "refused": "unreachable",
    "500": "server-error",
    "cut-body": "cut",
    "401": "unauthorised",
    "wrong-shape": "wrong-shape",
}


@pytest.mark.parametrize("name", COSTS)
async def test_auto_goes_on_by_words_and_says_so(name: str, filled: Path) -> None:
    """Spec 1.4: a failed query embedding falls back, the page has the mode really used, and the attempt its cost."""
    with fault_server(name) as server, without_waits():
        async with gate(filled, server.url, retries=1) as opened:
            page = await opened.search(QUERY, memory="notes")
    assert page.mode is Mode.LEXICAL
    assert page.hits[0].content.text == TEXTS[0]
    assert page.usage == COSTS[name]
    (vector,) = [trace for trace in page.trace.channels if trace.component == "sqlite.vector"]
    assert vector.status == "failed"
    assert vector.usage == COSTS[name]
    assert f"[{CODES[name]}]" in (vector.reason or "")
    assert server.url in (vector.reason or "")
    assert "backup" not in (vector.reason or "")


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
@pytest.mark.parametrize("name", COSTS)
async def test_a_mode_that_was_named_never_degrades(name: str, mode: str, filled: Path) -> None:
    """It fails, with the cause and the cost."""
    with fault_server(name) as server, without_waits():
        async with gate(filled, server.url, retries=1) as opened:
            with pytest.raises(ChannelError) as caught:
                await opened.search(QUERY, memory="notes", mode=mode)
    assert caught.value.channel == "sqlite.vector"
    assert caught.value.usage == COSTS[name]
    assert f"[{CODES[name]}]" in str(caught.value)
    assert "backup" not in str(caught.value)


@pytest.mark.parametrize(
    ("search", "options", "status"),
    [
        ({}, {"query_deadline": 0.3}, "failed"),
        ({"channel_deadline": 0.3}, {}, "timeout"),
    ],
    ids=["its own deadline", "the channels' deadline"],
)
async def test_a_server_that_hangs_is_left_out_with_its_cost(
    search: dict[str, Any], options: dict[str, Any], status: str, filled: Path
) -> None:
    """Whoever ends the waiting: the request was made, and nobody knows its tokens."""
    with FaultServer(Answer(hold=True)) as server:
        async with gate(filled, server.url, search, retries=0, **options) as opened:
            page = await opened.search(QUERY, memory="notes")
            assert len(server.requests) == 1
    (vector,) = [trace for trace in page.trace.channels if trace.component == "sqlite.vector"]
    assert (page.mode, vector.status) == (Mode.LEXICAL, status)
    assert page.usage == Usage(1, 1, None, None)


async def test_a_write_without_the_server_loses_no_memory(tmp_path: Path) -> None:
    """The text is there at once and found by words; the receipt says what is missing and why; reindexing completes it."""
    file = tmp_path / "memory.db"
    with fault_server("503") as server, without_waits():
        async with gate(file, server.url) as opened:
            receipt = await opened.remember("notes", TEXTS)
            page = await opened.search(QUERY, memory="notes")
    assert receipt.vectors_pending == 3
    assert receipt.warning is not None
    assert "[overloaded]" in receipt.warning
    assert "reindex" in receipt.warning
    assert "backup" not in receipt.warning
    assert page.mode is Mode.LEXICAL
    with FaultServer(fake()) as healthy:
        async with gate(file, healthy.url) as opened:
            await opened.reindex()
            page = await opened.search(QUERY, memory="notes")
    assert page.mode is Mode.HYBRID


@pytest.mark.parametrize(
    "options",
    [
        {"document_prefix": "passage: "},
        {"query_prefix": "query: "},
        {"query_fields": {"input_type": "query"}},
        {"version": "2"},
        {"model": "another"},
        {"dialect": "voyage"},
    ],
    ids=lambda options: next(iter(options)),
)
async def test_vectors_made_another_way_are_not_compared(options: dict[str, Any], filled: Path) -> None:
    """A prefix, a field, a version, a model: another profile, and the file is refused until it is reindexed."""
    with FaultServer(fake()) as server, pytest.raises(CompositionError) as caught:
        async with gate(filled, server.url, **options):
            pytest.fail("must not open")
    assert [problem.code for problem in caught.value.problems] == ["embedding-profile-mismatch"]
    assert server.requests == []


@pytest.mark.parametrize(
    "change",
    [{"base_url": "http://localhost:9"}, {"batch_size": 2}, {"encoding": "base64"}, {"truncate": False}, {"threshold": 0.5}],
    ids=lambda change: next(iter(change)),
)
async def test_what_changes_no_vector_changes_no_profile(change: dict[str, Any], filled: Path) -> None:
    """Moving the server to another address needs no new index."""
    options = {"url": "http://127.0.0.1:9", **change}
    async with gate(filled, options.pop("base_url", options.pop("url")), **options):
        pass


async def test_searches_while_others_write_share_the_pool(filled: Path) -> None:
    """Many at once, over no more connections than `concurrency`."""
    pages: list[Any] = []

    async def one(opened: Narrowgate, number: int) -> None:
        if number % 2:
            await opened.remember("notes", f"note number {number}")
        else:
            pages.append(await opened.search(QUERY, memory="notes"))

    with FaultServer(fake()) as server:
        async with gate(filled, server.url, concurrency=2) as opened, anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, opened, number)
        assert server.most_under_way <= 2
        assert server.connections <= 2
    assert [page.mode for page in pages] == [Mode.HYBRID] * 5
