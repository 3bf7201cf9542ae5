"""Batches of `hosted.embedder`: their limits, how many run at once, and what becomes of them when something fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import anyio
import pytest
from embedding_parts import DIMENSION, TEXTS, fake, opened, texts_in, unit_of, words
from hypothesis import given
from hypothesis import strategies as st
from server_faults import deaf

from narrowgate.decisions import NO_USAGE, Usage, account
from narrowgate.errors import EmbeddingError
from narrowgate_hosted.embedding.embedder import batched
from narrowgate_http.testing import FAULTS, Answer, FaultServer, Recorded

pytestmark = pytest.mark.anyio

SAFE = 30
"""Seconds after which a test gives up: a net, never a measure."""


@given(st.lists(st.text(max_size=20)), st.integers(1, 5), st.integers(1, 40))
def test_batches_are_as_large_as_both_limits_allow(texts: list[str], count: int, size: int) -> None:
    """Nothing is lost or moved; a batch over the limit of bytes holds one text; none could have taken the next text too."""
    batches = list(batched(texts, count, size))

    def length(batch: list[str]) -> int:
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in batch)

    assert [text for batch in batches for text in batch] == texts
    assert all(1 <= len(batch) <= count for batch in batches)
    assert all(length(batch) <= size or len(batch) == 1 for batch in batches)
    for batch, following in pairwise(batches):
        assert len(batch) == count or length([*batch, following[0]]) > size


async def test_texts_are_sent_in_batches_and_come_back_in_order() -> None:
    """By number and by bytes; the result is that of one request."""
    texts = [f"note number {number}" for number in range(23)]
    with FaultServer(fake()) as server:
        async with opened(server.url, batch_size=4, batch_bytes=30) as embedder:
            vectors = await embedder.embed(texts)
    sizes = [len(texts_in(request)) for request in server.requests]
    assert sum(sizes) == 23
    assert max(sizes) == 2  # two of them are 26 bytes and more, three over 30
    for text, vector in zip(texts, vectors, strict=True):
        assert list(vector) == pytest.approx(unit_of(text), abs=1e-6)


async def test_a_text_over_the_limit_of_bytes_goes_alone_and_whole() -> None:
    """Nothing is cut here: the server's limit is the server's business."""
    long = "word " * 100
    with FaultServer(fake()) as server:
        async with opened(server.url, batch_bytes=20) as embedder:
            await embedder.embed(["a", long, "b"])
    assert sorted(texts_in(request) for request in server.requests) == [["a"], ["b"], [long]]


async def test_equal_texts_are_sent_once_and_blank_ones_never() -> None:
    """Each keeps its place. A blank text is near nothing but other blank ones; nothing at all asks nobody."""
    with FaultServer(fake()) as server:
        async with opened(server.url, query_prefix="query: ") as embedder:
            assert await embedder.embed([]) == []
            assert len(await embedder.embed(["", " \n", "\u3000"])) == 3
            assert server.requests == []
            vectors = [list(vector) for vector in await embedder.embed(["one", " ", "two", "one"], query=True)]
    assert [texts_in(request) for request in server.requests] == [["query: one", "query: two"]]
    assert vectors[0] == vectors[3] != vectors[2]
    assert vectors[1] == [1.0, *[0.0] * (DIMENSION - 1)]


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    """As many as `concurrency` at once where there is enough to do; the answers wait until that many have arrived."""
    gathered = threading.Barrier(3)

    def answer(request: Recorded) -> Answer:
        gathered.wait(SAFE)
        return fake()(request)

    with FaultServer(answer) as server:
        async with opened(server.url, batch_size=1, concurrency=3) as embedder:
            with anyio.fail_after(SAFE):
                await embedder.embed([f"note {number}" for number in range(9)])
        assert server.most_under_way == 3
        assert server.connections == 3


def by_text(**answers: Answer) -> Callable[[Recorded], Answer]:
    """Return a script that answers some texts as given and all others rightly."""

    def answer(request: Recorded) -> Answer:
        (text,) = texts_in(request)
        return answers[text] if text in answers else fake()(request)

    return answer


@contextmanager
def served(script: Callable[[Recorded], Answer]) -> Iterator[FaultServer]:
    """Serve a script."""
    with FaultServer(script) as server:
        yield server


async def test_the_first_failure_ends_all_and_everything_is_counted() -> None:
    """One request succeeded, one fails, two hang and are cancelled, the rest is never sent: each in the account."""
    good_first = threading.Event()

    def answer(request: Recorded) -> Answer:
        (text,) = texts_in(request)
        if text == "bad":
            # After the good one is answered and both that hang have arrived.
            good_first.wait(SAFE)
            while len(server.requests) < 5:
                good_first.wait(0.001)
            return FAULTS["422"]
        if text.startswith("hang"):
            return Answer(hold=True)
        if text == "after good":
            good_first.set()
            return Answer(hold=True)
        return fake()(request)

    with served(answer) as server:
        async with opened(server.url, batch_size=1, concurrency=4) as embedder:
            texts = ["bad", "hang one", "hang two", "good", "after good", "never", "never either"]
            with anyio.fail_after(SAFE), pytest.raises(EmbeddingError) as caught:
                await embedder.embed(texts)
        await server.deserted()
        sent = [texts_in(request)[0] for request in server.requests]
    assert sorted(sent) == ["after good", "bad", "good", "hang one", "hang two"]
    assert caught.value.code == "bad-request"
    # The tokens of those that were cut off are not known, so neither is the sum.
    assert caught.value.usage == Usage(5, 5, None, None)


async def test_what_was_read_before_a_failure_is_counted() -> None:
    """One after the other: known tokens of the first, none of the one that was refused."""
    with served(by_text(bad=FAULTS["401"])) as server:
        async with opened(server.url, batch_size=1, concurrency=1) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(["one two three", "bad", "never"])
    assert caught.value.code == "unauthorised"
    assert caught.value.usage == Usage(2, 2, 3, 0)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "fault",
    ["slow-first-byte", "slow-trickle", "wait"],
    ids=["waiting for headers", "reading the body", "waiting for another attempt"],
)
async def test_a_call_that_is_given_up_leaves_nothing_and_stays_in_the_account(fault: str) -> None:
    """Whatever it waits for: the cancellation passes, connections are closed, and what it cost can be read."""
    script = Answer(status=503, headers={"retry-after": "3600"}) if fault == "wait" else FAULTS[fault]
    with FaultServer(script) as server:
        async with opened(server.url, batch_size=1, timeout=7200.0, deadline=7200.0) as embedder:
            with anyio.fail_after(SAFE):
                async with anyio.create_task_group() as group:
                    with account() as spent:
                        group.start_soon(embedder.embed, TEXTS)
                        await server.arrived(3)
                        group.cancel_scope.cancel()
        with anyio.fail_after(SAFE):
            await server.deserted()
        assert spent.usage == Usage(3, 3, None, None)
        assert len(server.requests) == 3


async def test_a_call_that_is_given_up_while_it_waits_for_its_turn() -> None:
    """The only place is taken: the second call has sent nothing, and ends at once."""
    with FaultServer(Answer(hold=True)) as server:
        async with opened(server.url, concurrency=1) as embedder:
            with anyio.fail_after(SAFE):
                async with anyio.create_task_group() as group:
                    group.start_soon(embedder.embed, ["first"])
                    await server.arrived(1)
                    with anyio.move_on_after(0.01) as scope:
                        await embedder.embed(["second"])
                    assert scope.cancelled_caught
                    group.cancel_scope.cancel()
        assert len(server.requests) == 1


async def test_a_call_that_is_given_up_while_it_connects() -> None:
    """A port whose queue is full answers nothing; the cancellation still passes at once."""
    with deaf() as url:
        async with opened(url) as embedder:
            with anyio.fail_after(SAFE):
                with anyio.move_on_after(0.05) as scope:
                    await embedder.embed(["one"])
                assert scope.cancelled_caught


async def test_a_query_has_a_deadline_of_its_own() -> None:
    """A server that hangs costs a search its vectors, not its time."""
    with FaultServer(Answer(hold=True)) as server:
        async with opened(server.url, timeout=7200.0, deadline=7200.0, query_deadline=0.2, retries=0) as embedder:
            with anyio.fail_after(SAFE), pytest.raises(EmbeddingError) as caught:
                await embedder.embed(["one"], query=True)
    assert caught.value.code == "timeout"
    assert caught.value.usage == Usage(1, 1, None, None)


async def test_a_text_that_is_no_unicode_cannot_be_sent() -> None:
    """Half of a surrogate pair is refused before anything is sent, which costs nothing."""
    with FaultServer(fake()) as server:
        async with opened(server.url) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(["\ud800"])
    assert (caught.value.code, caught.value.usage) == ("unencodable", NO_USAGE)
    assert server.requests == []


async def test_a_text_has_one_vector_whoever_it_comes_with() -> None:
    """Alone, in a batch, as one of many batches: bit for bit, as far as the server does so."""
    with FaultServer(fake()) as server:
        async with opened(server.url, batch_size=2) as embedder:
            alone = [list((await embedder.embed([text]))[0]) for text in TEXTS]
            together = [list(vector) for vector in await embedder.embed(TEXTS)]
    assert alone == together
    assert sum(words(texts_in(request)) for request in server.requests) == 2 * words(TEXTS)
