"""How questions are divided into requests: by evidence, by number, by size; and what nothing of them may change."""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest
from decisions_fakes import RULES, SystemOneFake
from decisions_parts import OPENAI, QUESTION, SYSTEMONE, asked, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowgate.decisions import NO_USAGE, DecisionRequest, Usage
from narrowgate.errors import DecisionError
from narrowgate_http.testing import Answer, FaultServer, Recorded

TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(
    texts=st.lists(st.tuples(TEXT, st.sampled_from(["one query", "another", '"quoted" \\ 问'])), min_size=1, max_size=12),
    limit=st.integers(1, 12),
    size=st.integers(4_000, 9_000),
    dialect=st.sampled_from(["jev", "ollama"]),
)
@settings(max_examples=20)
def test_no_request_is_larger_than_allowed_and_every_question_is_asked_once(
    texts: list[tuple[str, str]], limit: int, size: int, dialect: str
) -> None:
    """Whatever the texts hold; and a verdict is the same however the questions were divided."""
    requests = [DecisionRequest("k", QUESTION, text, (query,)) for text, query in texts]

    async def run() -> None:
        with FaultServer(SystemOneFake(RULES[dialect])) as server:
            common: Any = {"base_url": server.url, "dialect": dialect, "model": "jev-latest"}
            async with opened(SYSTEMONE, batch_limit=12, **common) as backend:
                ones = [await backend.evaluate(request) for request in requests]
            server.requests.clear()
            async with opened(SYSTEMONE, batch_limit=limit, max_request_bytes=size, **common) as backend:
                assert backend.batch_limit == limit
                many = [
                    result
                    for start in range(0, len(requests), limit)
                    for result in await backend.evaluate_many(requests[start : start + limit])
                ]
            assert [(item.outcome, item.probability) for item in many] == [(item.outcome, item.probability) for item in ones]
            assert all(len(sent.body) <= size for sent in server.requests)
            assert all(len(sent.json["questions"]) <= limit for sent in server.requests)
            assert sum(len(sent.json["questions"]) for sent in server.requests) == len(requests)
            assert sum(item.usage.requests for item in many) == len(server.requests)
            assert sum(item.usage.calls for item in many) == len(requests)
            assert sum(item.usage.input_tokens or 0 for item in many) == sum(len(r.body) // 4 for r in server.requests)

    anyio.run(run)


@pytest.mark.anyio
async def test_questions_on_other_evidence_go_into_another_request() -> None:
    """A request has one state; the order of the verdicts is that of the questions."""
    requests = [DecisionRequest("k", QUESTION, f"alpha {place}", (("alpha", "beta")[place % 2],)) for place in range(6)]
    with FaultServer(SystemOneFake()) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            results = await backend.evaluate_many(requests)
        assert sorted(str(sent.json["state"]["judged_against"]) for sent in server.requests) == ["['alpha']", "['beta']"]
    assert [item.probability for item in results] == [0.95, 0.05] * 3
    assert sum(item.usage.requests for item in results) == 2


@pytest.mark.anyio
async def test_questions_without_evidence_are_asked_about_their_texts() -> None:
    """The state is an object all the same, since `null` is refused."""
    with FaultServer(SystemOneFake()) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            await backend.evaluate(DecisionRequest("k", "Is it a preference?", "Tea without sugar."))
        assert server.requests[0].json["state"] == {"judged_against": []}


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["subject", "evidence"])
async def test_a_question_that_does_not_fit_is_refused_before_anything_is_sent(place: str) -> None:
    """Never cut in silence: a code, a cure, no cost; and the other questions of the call are not asked either."""
    long = "x" * 3000
    request = DecisionRequest("k", QUESTION, *((long, ("q",)) if place == "subject" else ("text", (long,))))
    with FaultServer(SystemOneFake()) as server:
        async with opened(SYSTEMONE, base_url=server.url, max_question_bytes=3000) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many([*asked(), request])
            assert len(await backend.evaluate_many(asked())) == 5
        assert len(server.requests) == 1
    assert (caught.value.code, caught.value.usage) == ("too-large", NO_USAGE)
    assert "max_question_bytes" in str(caught.value)
    assert "xxx" not in str(caught.value)


@pytest.mark.anyio
async def test_half_a_surrogate_pair_is_refused_before_anything_is_sent() -> None:
    """It can be in no JSON."""
    with FaultServer(SystemOneFake()) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate(DecisionRequest("k", QUESTION, "half \ud800", ("q",)))
        assert server.requests == []
    assert (caught.value.code, caught.value.usage) == ("unencodable", NO_USAGE)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "options", "limit"),
    [
        (SYSTEMONE, {}, 256),
        (SYSTEMONE, {"dialect": "ollama", "model": "m"}, 64),
        (SYSTEMONE, {"dialect": "nimble", "model": "m"}, 64),
        (SYSTEMONE, {"batch_limit": 3}, 3),
        (SYSTEMONE, {"text_in": "state"}, 1),
        (OPENAI, {}, 400),
    ],
)
async def test_more_questions_than_the_limit_are_a_mistake_of_the_caller(
    name: str, options: dict[str, Any], limit: int
) -> None:
    """The documented limit of the dialect, unless the operator says otherwise."""
    async with opened(name, base_url="http://127.0.0.1:9", concurrency=5, **options) as backend:
        assert (backend.batch_limit, backend.concurrency) == (limit, 5)
        with pytest.raises(ValueError, match=f"at most {limit} questions"):
            await backend.evaluate_many(asked(["text"] * (limit + 1)))
        assert await backend.evaluate_many([]) == ()


@pytest.mark.anyio
async def test_parts_are_sent_side_by_side_within_the_bound() -> None:
    """Six requests, three at once."""
    requests = [DecisionRequest("k", QUESTION, "text", (f"query {place}",)) for place in range(6)]
    held = {"model": "m", "answers": {"q1": {"type": "noul", "noul": 0.9}}}
    with FaultServer(Answer(json=held, hold=True)) as server:
        async with opened(SYSTEMONE, base_url=server.url, concurrency=3) as backend, anyio.create_task_group() as group:
            results: list[Any] = []

            async def ask() -> None:
                results.extend(await backend.evaluate_many(requests))

            group.start_soon(ask)
            with anyio.fail_after(10):
                await server.arrived(3)
            server.release()
        assert server.most_under_way == 3
        assert len(server.requests) == 6
    assert [item.usage for item in results] == [Usage(1, 1, None, None)] * 6


@pytest.mark.anyio
async def test_when_one_part_fails_the_others_end_and_the_cost_is_the_sum() -> None:
    """What was answered, what failed, and what was under way count; what was never sent does not."""

    def script(request: Recorded) -> Answer:
        (query,) = request.json["state"]["judged_against"]
        if query == "query 1":
            return Answer(status=402, json={"error": "credits"})
        answer = {"answers": {"q1": {"type": "noul", "noul": 0.9}}, "usage": {"input_tokens": 7, "output_tokens": 1}}
        return Answer(json=answer, hold=query == "query 2")

    requests = [DecisionRequest("k", QUESTION, "text", (f"query {place}",)) for place in range(6)]
    with FaultServer(script) as server:
        async with opened(SYSTEMONE, base_url=server.url, concurrency=1) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(requests)
        assert len(server.requests) == 2
        assert (caught.value.code, caught.value.usage) == ("payment", Usage(2, 2, 7, 1))
        async with opened(SYSTEMONE, base_url=server.url, concurrency=2) as backend:
            with anyio.fail_after(10), pytest.raises(DecisionError) as caught:
                await backend.evaluate_many([requests[2], requests[1], requests[3]])
        assert caught.value.code == "payment"
        # Unknown tokens: of the request that was held, nobody heard.
        assert caught.value.usage == Usage(2, 2, None, None)
        with anyio.fail_after(10):
            await server.deserted()
