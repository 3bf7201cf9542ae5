"""The whole way: entries in a SQLite file, a search, a chat server on loopback, a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from listwise_parts import NOTES, QUERY, RIGHT, by_text, chosen, completion, data_in, gate, sections

import narrowgate
from narrowgate import diagnose, load_config
from narrowgate.decisions import NO_USAGE, Usage
from narrowgate.errors import RerankError
from narrowgate_http.testing import Answer, FaultServer, fault_server, without_waits
from narrowgate_listwise import INSTRUCTIONS, SCHEMA


@pytest.mark.anyio
async def test_a_search_is_one_request_and_the_model_chooses(tmp_path: Path) -> None:
    """The pool goes out once, as data under our instructions, at temperature 0; the page is what was picked."""
    with FaultServer(by_text(RIGHT)) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search(QUERY)
    assert [hit.content.text for hit in page.hits] == [NOTES[1]]
    assert (page.status, page.reason, page.usage) == ("applied", None, Usage(1, 1, 120, 9))
    (request,) = server.requests
    body = request.json
    assert body["temperature"] == 0
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["messages"][0]["content"].startswith(INSTRUCTIONS)
    assert data_in(request)["query"] == QUERY
    assert len(data_in(request)["candidates"]) >= 3
    for hit in page.trace.rerank.candidates if page.trace.rerank else ():
        assert hit.ref.entry not in request.body.decode()
    assert page.trace.rerank is not None
    assert page.trace.rerank.policy_id.startswith("memory.rerank.listwise.v1;prompt=p1;generator=hosted.generator")


@pytest.mark.anyio
async def test_a_hostile_entry_reaches_the_model_as_data_alone(tmp_path: Path) -> None:
    """It is in the pool, in the user's message, and in no instruction; the evidence is picked all the same."""
    with FaultServer(by_text(RIGHT)) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search(QUERY)
    system, user = (message["content"] for message in server.requests[0].json["messages"])
    assert NOTES[3] in user
    assert NOTES[3] not in system
    assert [hit.content.text for hit in page.hits] == [NOTES[1]]


@pytest.mark.anyio
async def test_the_models_order_is_the_pages_order(tmp_path: Path) -> None:
    """Ranks, repeated and out of range among them, become hits with the identity and score of their candidates."""
    with FaultServer(chosen(3, 0, 1, 3, 77)) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search(QUERY)
    rerank = page.trace.rerank
    assert rerank is not None
    assert rerank.decision is not None
    assert [hit.ref for hit in page.hits] == [rerank.candidates[2].ref, rerank.candidates[0].ref]
    assert [hit.score for hit in page.hits] == [rerank.candidates[2].score, rerank.candidates[0].score]
    assert rerank.decision.discarded_rank_count == 3


@pytest.mark.anyio
async def test_nothing_found_asks_nobody(tmp_path: Path) -> None:
    """A search without candidates costs nothing."""
    with FaultServer(chosen(1)) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search("zeppelin")
    assert (page.status, page.hits, server.requests) == ("not_applied", (), [])


@pytest.mark.anyio
async def test_none_relevant_is_told_on_the_page(tmp_path: Path) -> None:
    """Case 33: by default nothing comes back; with `coarse` the head does, and the page still says none_relevant."""
    with FaultServer(chosen()) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search(QUERY)
        assert (page.status, page.reason, page.hits) == ("none_relevant", "nothing-kept", ())
        async with gate(server.url, tmp_path, listwise__select={"on_none_relevant": "coarse"}) as opened:
            page = await opened.search(QUERY, limit=2)
    assert (page.status, page.reason, len(page.hits)) == ("none_relevant", "nothing-kept", 2)
    assert page.usage.calls == 1


@pytest.mark.anyio
async def test_ranks_that_name_nothing_leave_coarse_order_and_say_so(tmp_path: Path) -> None:
    """The built-in fallback is visible on the page."""
    with FaultServer(chosen(0, 99)) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search(QUERY, limit=2)
    assert (page.status, page.reason, len(page.hits)) == ("applied", "no-valid-selection", 2)


@pytest.mark.anyio
async def test_a_pool_of_which_nothing_fits_costs_nothing(tmp_path: Path) -> None:
    """Nobody is asked, so that nothing is charged: not even one request with unknown tokens."""
    with FaultServer(chosen(1)) as server:
        async with gate(server.url, tmp_path, listwise__select={"max_prompt_tokens": 2000}) as opened:
            await opened.remember("long", ["coffee " + "密" * 2600])
            with pytest.raises(RerankError) as caught:
                await opened.search("coffee", memory="long")
        assert server.requests == []
    assert (caught.value.code, caught.value.usage) == ("over-budget", NO_USAGE)


@pytest.mark.anyio
async def test_a_pool_beyond_the_budget_is_partial(tmp_path: Path) -> None:
    """Long notes: the page says `partial`, the trace how many were not shown, and the server saw the rest whole."""
    long = [f"coffee note {number} " + "about the machine " * 60 for number in range(5)]
    with FaultServer(chosen(1)) as server:
        async with gate(server.url, tmp_path, listwise__select={"max_prompt_tokens": 2800}) as opened:
            await opened.remember("long", long)
            page = await opened.search("coffee", memory="long")
    rerank = page.trace.rerank
    assert rerank is not None
    assert rerank.decision is not None
    shown = [item["text"] for item in data_in(server.requests[0])["candidates"]]
    assert (page.status, page.reason) == ("partial", "over-budget")
    assert 0 < len(shown) < 5
    assert rerank.decision.unseen_count == 5 - len(shown)
    assert all(text + " " in long or text in [item.strip() for item in long] for text in shown)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (completion("None of these fit the question."), "prose"),
        (completion("Doc: 2, Relevance: 8 (because it says so)"), "prose"),
        (completion('Sure! {"selected_ranks": [2]}'), "prose"),
        (completion('{"selected_ranks": [1, 2', finish="length"), "cut-answer"),
        (completion(None, refusal="I can't help with that."), "refused"),
        (completion("", finish="content_filter"), "refused"),
        (completion(""), "no-answer"),
        (completion('{"selected_ranks": ["1"]}'), "wrong-schema"),
        (completion('{"selected_ranks": [true]}'), "wrong-schema"),
        (completion('{"ranking": [1]}'), "wrong-schema"),
        (completion("[1]"), "wrong-schema"),
    ],
    ids=["prose", "labels", "preface", "cut", "refusal", "filter", "empty", "string", "boolean", "other key", "bare list"],
)
async def test_what_is_no_answer_fails_the_search_with_its_cost(answer: Answer, code: str, tmp_path: Path) -> None:
    """Cases 35, 37: never coarse order, never a guess; the tokens were spent and are counted."""
    with FaultServer(answer) as server:
        async with gate(server.url, tmp_path) as opened:
            with pytest.raises(RerankError) as caught:
                await opened.search(QUERY)
    assert (caught.value.code, caught.value.usage) == (code, Usage(1, 1, 120, 9))
    assert not any(note in str(caught.value) for note in (*NOTES, QUERY))


@pytest.mark.anyio
async def test_a_fenced_answer_is_read(tmp_path: Path) -> None:
    """Case 37: one fenced block with nothing around it is an answer."""
    with FaultServer(completion('```json\n{"selected_ranks": [2]}\n```')) as server:
        async with gate(server.url, tmp_path) as opened:
            page = await opened.search(QUERY)
    assert (page.status, len(page.hits)) == ("applied", 1)


@pytest.mark.anyio
async def test_a_repeated_generation_costs_both(tmp_path: Path) -> None:
    """Case 43: a first answer that is no JSON and a second that is: one call, two requests, the tokens of both."""
    with FaultServer([completion("I think the second one."), chosen(1)]) as server:
        async with gate(server.url, tmp_path, hosted__generator={"repeats": 1}) as opened:
            page = await opened.search(QUERY)
    assert (page.status, page.usage) == ("applied", Usage(1, 2, 240, 18))


@pytest.mark.anyio
@pytest.mark.parametrize("on_failure", ["raise", "coarse"])
@pytest.mark.parametrize(
    ("fault", "code", "requests"),
    [
        ("refused", "unreachable", 0),
        ("401", "unauthorised", 1),
        ("429-ms", "rate-limited", 1),
        ("500", "server-error", 1),
        ("html-body", "not-json", 1),
        ("cut-body", "cut", 1),
        ("nan", "non-finite", 1),
        ("wrong-shape", "wrong-shape", 1),
    ],
)
async def test_a_fault_of_the_server_is_the_roles_business(
    fault: str, code: str, requests: int, on_failure: str, tmp_path: Path
) -> None:
    """An error with code and cost; or, where that was asked for, coarse order that says `failed` and why."""
    with fault_server(fault) as server, without_waits():
        async with gate(server.url, tmp_path, on_failure) as opened:
            if on_failure == "raise":
                with pytest.raises(RerankError) as caught:
                    await opened.search(QUERY)
                assert caught.value.usage is not None
                found = (caught.value.code, caught.value.usage.requests)
            else:
                page = await opened.search(QUERY)
                assert page.status == "failed"
                assert page.hits
                found = (page.reason, page.usage.requests)
    assert found == (code, requests)


@pytest.mark.anyio
async def test_a_hung_server_ends_with_the_stage_and_not_with_the_search(tmp_path: Path) -> None:
    """The stage's deadline: the search fails with `deadline`, the request is charged, the connection closed."""
    with FaultServer(Answer(hold=True)) as server:
        async with gate(server.url, tmp_path, listwise__select={"deadline": 0.2}) as opened:
            with pytest.raises(RerankError) as caught:
                await opened.search(QUERY)
            assert (caught.value.code, caught.value.usage) == ("deadline", Usage(1, 1, None, None))
            await server.deserted()


@pytest.mark.anyio
async def test_a_cancelled_search_leaves_no_request_behind(tmp_path: Path) -> None:
    """While the server is thinking: the search ends as cancelled, the connection is closed, another search works."""
    with FaultServer(Answer(hold=True)) as server:
        async with gate(server.url, tmp_path) as opened:
            async with anyio.create_task_group() as group:
                group.start_soon(opened.search, QUERY)
                await server.arrived(1)
                group.cancel_scope.cancel()
            await server.deserted()
            server.release()
            with pytest.raises(RerankError):
                await opened.search(QUERY)
    assert len(server.requests) == 2


def codes(overrides: Mapping[str, Any]) -> list[str]:
    return [problem.code for problem in diagnose(load_config(overrides=overrides, env={})).problems]


def test_without_a_generator_the_start_is_refused(tmp_path: Path) -> None:
    """Enabled and nobody to generate: `need-unmet`, also when a hosted one is installed and not named."""
    config = sections("http://127.0.0.1:1", tmp_path / "m.db")
    assert codes(config) == []
    del config["use"]["generator"], config["settings"]["hosted.generator"]
    assert codes(config) == ["need-unmet"]
    config["use"]["generator"] = "none"
    assert codes(config) == ["need-unmet"]


def test_local_only_takes_a_loopback_server_and_refuses_another(tmp_path: Path) -> None:
    """The pool goes where the generator is: a local one keeps the promise, another does not start."""
    local = sections("http://127.0.0.1:11434", tmp_path / "m.db") | {"privacy": {"local_only": True}}
    hosted = sections("https://models.example/v1", tmp_path / "m.db") | {"privacy": {"local_only": True}}
    assert codes(local) == []
    assert codes(hosted) == ["not-local"]


def test_off_means_that_nobody_is_asked(tmp_path: Path) -> None:
    """Installed, with a generator named, and not switched on: coarse order, no trace of a second stage."""

    async def work() -> None:
        with FaultServer(chosen(1)) as server:
            config = sections(server.url, tmp_path / "m.db")
            config["use"]["reranker"] = "none"
            async with narrowgate.open(load_config(overrides=config, env={})) as opened:
                await opened.remember("default", NOTES)
                page = await opened.search(QUERY)
            assert (page.status, page.trace.rerank, server.requests) == ("not_applied", None, [])

    anyio.run(work)
