"""What is sent of a pool: no blank text, each text once, in requests that keep the limits; and who pays when one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.errors import RerankError
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate_http.bodies import encode
from narrowgate_http.testing import Answer, FaultServer, Recorded
from narrowgate_rerank_api import DIALECTS
from narrowgate_rerank_api.pools import Pool, batches


@pytest.mark.anyio
async def test_blank_texts_are_never_sent(
    pool: Callable[..., Any], endpoint: Callable[..., Any], scoring: Callable[..., Any]
) -> None:
    """Case 19: the answer maps back to the places of the texts that were sent; blank ones come last, and are no fault."""
    with FaultServer(scoring({"x": 0.1, "y": 0.9})) as server:
        async with endpoint(server.url) as reranker:
            decision = await reranker.rerank("q", pool(["x", "", "  ", "y"]), 4)
        assert server.requests[0].json["documents"] == ["x", "y"]
    assert decision.selected_ranks == (4, 1, 2, 3)
    assert decision.partial is None
    assert decision.usage.calls == 2


@pytest.mark.anyio
async def test_a_pool_of_blank_texts_asks_nobody(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Case 19: coarse order stands in and says so; with `drop` nothing is left."""
    with FaultServer(Answer(status=400)) as server:
        async with endpoint(server.url) as reranker:
            decision = await reranker.rerank("q", pool(["", "\n", " "]), 2)
        async with endpoint(server.url, unscored="drop") as reranker:
            dropped = await reranker.rerank("q", pool(["", "\n", " "]), 2)
        assert server.requests == []
    assert (decision.selected_ranks, decision.used_fallback, decision.partial) == ((1, 2), True, "blank")
    assert (dropped.selected_ranks, dropped.nothing_kept, dropped.used_fallback) == ((), True, False)
    assert decision.usage == dropped.usage == NO_USAGE


@pytest.mark.anyio
async def test_identical_texts_stay_candidates_of_their_own(
    pool: Callable[..., Any], endpoint: Callable[..., Any], scoring: Callable[..., Any]
) -> None:
    """Case 11 for rerankers: sent once, and both come back, in coarse order, without any index being shifted."""
    with FaultServer(scoring({"same": 0.7, "low": 0.1, "top": 0.9})) as server:
        async with endpoint(server.url) as reranker:
            decision = await reranker.rerank("q", pool(["same", "low", "same", "top"]), 4)
        assert server.requests[0].json["documents"] == ["same", "low", "top"]
    assert decision.selected_ranks == (4, 1, 3, 2)
    assert decision.usage == Usage(3, 1, 30, 0)


@pytest.mark.anyio
async def test_a_pool_over_the_limit_is_split(
    pool: Callable[..., Any], endpoint: Callable[..., Any], scoring: Callable[..., Any]
) -> None:
    """The indices of each answer are those of its request; the selection is the one of a single request."""
    texts = [f"t{number}" for number in range(70)]
    with FaultServer(scoring({text: (7 * place) % 70 / 100 for place, text in enumerate(texts)})) as server:
        async with endpoint(server.url, max_documents=32) as reranker:
            split = await reranker.rerank("q", pool(texts), 70)
        assert sorted(len(request.json["documents"]) for request in server.requests) == [6, 32, 32]
        async with endpoint(server.url) as reranker:
            whole = await reranker.rerank("q", pool(texts), 70)
    assert split.selected_ranks == whole.selected_ranks
    assert split.usage == Usage(70, 3, 700, 0)
    assert whole.usage == Usage(70, 1, 700, 0)


@pytest.mark.anyio
async def test_the_limit_of_the_dialect_holds_unless_another_is_set(
    pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """Text-Embeddings-Inference takes 32 texts by default, and its operator may have raised that."""

    def server_of_texts(request: Recorded) -> Answer:
        return Answer(json=[{"index": place, "score": place / 100} for place in range(len(request.json["texts"]))])

    texts = [f"t{number}" for number in range(40)]
    with FaultServer(server_of_texts) as server:
        async with endpoint(server.url, dialect="tei") as reranker:
            assert (await reranker.rerank("q", pool(texts), 1)).usage.requests == 2
        async with endpoint(server.url, dialect="tei", max_documents=64) as reranker:
            assert (await reranker.rerank("q", pool(texts), 1)).usage.requests == 1


@pytest.mark.anyio
async def test_scores_of_a_listwise_model_are_never_merged(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """With `pointwise = false` a pool that needs two requests is an error that names the cure; nobody is asked."""
    with FaultServer(Answer()) as server:
        async with endpoint(server.url, max_documents=2, pointwise=False) as reranker:
            with pytest.raises(RerankError, match="candidate_limit") as caught:
                await reranker.rerank("q", pool(["a", "b", "c"]), 1)
        assert server.requests == []
    assert (caught.value.code, caught.value.usage) == ("over-limit", NO_USAGE)


@pytest.mark.anyio
async def test_no_more_requests_at_once_than_allowed(
    pool: Callable[..., Any], endpoint: Callable[..., Any], scoring: Callable[..., Any]
) -> None:
    """`concurrency` bounds the requests of one pool, and of several searches together."""
    texts = [f"t{number}" for number in range(12)]
    with FaultServer(scoring(dict.fromkeys(texts, 0.5))) as server:
        async with endpoint(server.url, max_documents=1, concurrency=3) as reranker, anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(reranker.rerank, "q", pool(texts), 1)
        assert len(server.requests) == 36
        assert 1 <= server.most_under_way <= 3


@pytest.mark.anyio
async def test_a_failing_request_ends_the_others_and_counts_them(
    pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """The one under way is cancelled and counted with unknown tokens, the one that waits its turn is never sent."""
    under_way = threading.Event()

    def script(request: Recorded) -> Answer:
        if request.json["documents"] == ["slow"]:
            under_way.set()
            return Answer(hold=True)
        assert request.json["documents"] == ["bad"]
        assert under_way.wait(30)
        return Answer(status=401, json={"message": "no"})

    with FaultServer(script) as server, anyio.fail_after(30):
        async with endpoint(server.url, max_documents=1, concurrency=2) as reranker:
            with pytest.raises(RerankError) as caught:
                await reranker.rerank("q", pool(["slow", "bad", "never"]), 1)
            assert len(server.requests) == 2
            # The connection of the cancelled request is closed by then, or the server would wait for ever.
        await server.deserted()
    assert caught.value.code == "unauthorised"
    assert caught.value.usage == Usage(2, 2, None, None)


@pytest.mark.anyio
async def test_one_deadline_for_all_requests_of_a_pool(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Requests that wait their turn do not get a deadline of their own."""
    with FaultServer(Answer(hold=True)) as server, anyio.fail_after(30):
        async with endpoint(server.url, max_documents=1, concurrency=1, deadline=0.3, retries=0) as reranker:
            with pytest.raises(RerankError) as caught:
                await reranker.rerank("q", pool(["a", "b", "c"]), 1)
        assert len(server.requests) == 1
    assert caught.value.code == "timeout"
    assert caught.value.usage == Usage(1, 1, None, None)


@pytest.mark.anyio
async def test_a_request_gets_what_the_others_left_of_the_deadline(
    pool: Callable[..., Any], endpoint: Callable[..., Any], scoring: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer comes when the time is over: the second request is not sent, the first stays in the account."""
    passed = [0.0]
    monkeypatch.setattr("narrowgate_rerank_api.sending.monotonic", lambda: passed[0])

    def script(request: Recorded) -> Answer:
        passed[0] += 31.0
        answer: Answer = scoring({"a": 0.1, "b": 0.2})(request)
        return answer

    with FaultServer(script) as server, anyio.fail_after(60):
        async with endpoint(server.url, max_documents=1, concurrency=1, timeout=20.0, deadline=30.0) as reranker:
            with pytest.raises(RerankError) as caught:
                await reranker.rerank("q", pool(["a", "b"]), 1)
        assert len(server.requests) == 1
    assert (caught.value.code, caught.value.usage) == ("timeout", Usage(1, 1, 10, 0))


@pytest.mark.anyio
async def test_bounds(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """At least one candidate, a limit within the pool, ranks in coarse order: else nobody is asked."""
    with FaultServer(Answer()) as server:
        async with endpoint(server.url) as reranker:
            for candidates, limit in (([], 1), (pool(["a"]), 0), (pool(["a"]), 2), (pool(["a", "b"])[::-1], 1)):
                with pytest.raises(ValueError, match=r"candidates|limit"):
                    await reranker.rerank("q", candidates, limit)
        assert server.requests == []


TEXTS = st.lists(st.text(max_size=12), max_size=12)


@given(TEXTS)
def test_a_pool_maps_each_candidate_to_its_own_text(texts: list[str]) -> None:
    """Places are a function of the text; nothing blank, nothing twice is sent."""
    made = Pool.of(texts)
    assert len(set(made.texts)) == len(made.texts)
    for text, place in zip(texts, made.places, strict=True):
        assert (place is None) == (not text.strip())
        assert place is None or made.texts[place] == text


@given(
    st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=30),
    st.sampled_from(sorted(DIALECTS)),
    st.text(max_size=50),
    st.dictionaries(st.sampled_from(["instruct", "truncation"]), st.text(max_size=1500)),
    st.none() | st.integers(1, 10),
    st.none() | st.integers(1, 5000),
)
def test_batches_hold_everything_once_and_keep_the_limits(
    texts: list[str], dialect: str, query: str, options: dict[str, str], most: int | None, size: int | None
) -> None:
    """In order, without a gap; a body, options and all, is over the byte limit only when it holds a single text."""

    def body(part: Any) -> dict[str, Any]:
        return DIALECTS[dialect].body("m", query, part, options)

    made = list(batches(texts, body, most, size))
    assert [text for _, part in made for text in part] == texts
    assert [start for start, _ in made] == [sum(len(part) for _, part in made[:number]) for number in range(len(made))]
    for _, part in made:
        assert part
        assert most is None or len(part) <= most
        assert size is None or len(part) == 1 or len(encode(body(part))) <= size


@pytest.mark.anyio
@pytest.mark.parametrize("dialect", ["standard", "nvidia"])
async def test_no_body_on_the_wire_is_over_the_byte_limit(
    dialect: str, pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """Chinese is three bytes a character, `{"text": ...}` around each text and an operator's own fields count too."""
    texts = [f"第{number}条：备份在凌晨两点。" for number in range(60)]

    def server_of_texts(request: Recorded) -> Answer:
        documents = request.json.get("documents") or request.json["passages"]
        return Answer(json={"results": [{"index": place, "score": place / 100} for place in range(len(documents))]})

    with FaultServer(server_of_texts) as server:
        options = {"instruct": "By subject. " * 60}
        async with endpoint(
            server.url, dialect=dialect, model="m", max_request_bytes=2000, options=options, concurrency=1
        ) as reranker:
            decision = await reranker.rerank("备份在什么时候？", pool(texts), 1)
        sizes = [len(request.body) for request in server.requests]
    assert decision.usage.requests == len(sizes) > 1
    assert max(sizes) <= 2000
    # As few requests as the limit allows: another text would not have fitted into any but the last.
    assert min(sizes[:-1]) > 1900
