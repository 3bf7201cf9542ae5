"""Chat servers that others wrote, started on loopback: a schema that is kept to without sense, prose, fixed bad answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

import narrowgate
from narrowgate import load_config
from narrowgate.decisions import Usage
from narrowgate.errors import RerankError
from narrowgate.host.runtime import Narrowgate
from narrowgate.seams import Problem
from narrowgate.values.search import SearchPage
from narrowgate_http.testing import free_port, program

NOTES: Final = [
    "The coffee machine on the third floor is broken.",
    "Maren repairs the coffee machine on Tuesdays.",
    "The coffee beans are ordered by the front desk.",
]
FIXTURES: Final = """
fixtures:
  - {name: outside, match: {messages: [{role: user, content: {contains: "who is outside"}}]},
     response: {content: '{"selected_ranks": [0, 99, -1]}', usage: {prompt_tokens: 300, completion_tokens: 8}}}
  - {name: chosen, match: {messages: [{role: user, content: {contains: "who is chosen"}}]},
     response: {content: '{"selected_ranks": [3, 0, 3, 1]}', usage: {prompt_tokens: 300, completion_tokens: 8}}}
  - {name: none, match: {messages: [{role: user, content: {contains: "who is nobody"}}]},
     response: {content: '{"selected_ranks": []}', usage: {prompt_tokens: 300, completion_tokens: 4}}}
  - {name: text, match: {messages: [{role: user, content: {contains: "who is text"}}]},
     response: {content: '{"selected_ranks": ["1", "2"]}', usage: {prompt_tokens: 300, completion_tokens: 8}}}
  - {name: cut, match: {messages: [{role: user, content: {contains: "who is cut"}}]},
     response: {content: '{"selected_ranks": [1, 2', finish_reason: length,
                usage: {prompt_tokens: 300, completion_tokens: 8}}}
  - {name: busy, match: {messages: [{role: user, content: {contains: "who is busy"}}]},
     response: {http_status: 429, error_message: "Rate limit exceeded."}}
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return name -> base URL of three servers that run while this module is tested."""
    folder = tmp_path_factory.mktemp("fixtures")
    (folder / "ranks.yaml").write_text(FIXTURES)
    ports = {name: free_port() for name in ("llmock", "stubllm", "mock-ai-api")}
    with ExitStack() as stack:
        stack.enter_context(program("llmock", "serve", "--host", "127.0.0.1", "--port", str(ports["llmock"])))
        stubbed = ("serve", "--port", str(ports["stubllm"]), "--fixture-dir", str(folder))
        stack.enter_context(program("stubllm", *stubbed))
        other = ("--openai-port", str(ports["mock-ai-api"]), "--anthropic-port", str(free_port()))
        stack.enter_context(program("mock-ai-api", *other, listeners=2))
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}


async def with_gate(url: str, path: Path, work: Any, **options: Any) -> Any:
    """Return what `work` makes of an open composition."""
    overrides = {
        "use": {
            "store": "sqlite.store",
            "channels": ["sqlite.lexical"],
            "reranker": "listwise.select",
            "generator": "hosted.generator",
        },
        "settings": {
            "sqlite.store": {"path": str(path / "memory.db")},
            "hosted.generator": {"base_url": url, "model": "gpt-4o", "retries": 0, **options},
        },
    }
    with anyio.fail_after(60):
        async with narrowgate.open(load_config(overrides=overrides, env={"KEY": "k"})) as opened:
            await opened.remember("default", NOTES)
            return await work(opened)


async def searched(url: str, path: Path, query: str, **options: Any) -> SearchPage:
    page: SearchPage = await with_gate(url, path, lambda opened: opened.search(query), **options)
    return page


@pytest.mark.anyio
async def test_a_server_that_only_keeps_to_the_schema_selects_and_is_found_out(
    servers: dict[str, str], tmp_path: Path
) -> None:
    """llmock answers any schema with a minimal value, so it always picks rank 1: a page, and a warning of the probe."""
    page = await searched(servers["llmock"], tmp_path, "who repairs the coffee machine?")
    assert (page.status, len(page.hits)) == ("applied", 1)
    assert page.trace.rerank is not None
    assert page.hits[0].ref == page.trace.rerank.candidates[0].ref
    assert page.usage.calls == page.usage.requests == 1

    async def probe(opened: Narrowgate) -> list[Problem]:
        return [problem for problem in await opened.probe() if problem.component == "listwise.select"]

    problems = await with_gate(servers["llmock"], tmp_path, probe)
    assert [(problem.code, problem.severity) for problem in problems] == [("position-bias", "warning")] * 2


@pytest.mark.anyio
async def test_prose_fails_the_search(servers: dict[str, str], tmp_path: Path) -> None:
    """Case 37: mock-ai-api passes over the schema and makes conversation."""
    with pytest.raises(RerankError) as caught:
        await searched(servers["mock-ai-api"], tmp_path, "who repairs the coffee machine?")
    assert caught.value.code == "prose"
    assert caught.value.usage is not None
    assert (caught.value.usage.calls, caught.value.usage.requests) == (1, 1)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "status", "reason", "hits", "discarded"),
    [
        ("coffee, who is outside", "applied", "no-valid-selection", 3, 3),
        ("coffee, who is chosen", "applied", None, 2, 2),
        ("coffee, who is nobody", "none_relevant", "nothing-kept", 0, 0),
    ],
)
async def test_valid_json_with_bad_ranks(
    query: str, status: str, reason: str | None, hits: int, discarded: int, servers: dict[str, str], tmp_path: Path
) -> None:
    """Cases 31, 33: stubllm with fixed answers: out of range, repeated, and none."""
    page = await searched(servers["stubllm"], tmp_path, query)
    assert (page.status, page.reason, len(page.hits)) == (status, reason, hits)
    assert page.trace.rerank is not None
    assert page.trace.rerank.decision is not None
    assert page.trace.rerank.decision.discarded_rank_count == discarded
    assert (page.usage.calls, page.usage.requests, page.usage.input_tokens) == (1, 1, 300)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "code", "usage"),
    [
        ("coffee, who is text", "wrong-schema", Usage(1, 1, 300, 8)),
        ("coffee, who is cut", "cut-answer", Usage(1, 1, 300, 8)),
        ("coffee, who is busy", "rate-limited", Usage(1, 1, 0, 0)),
    ],
)
async def test_fixed_bad_answers_fail_the_search(
    query: str, code: str, usage: Usage, servers: dict[str, str], tmp_path: Path
) -> None:
    """Case 35: text for numbers, a cut answer, 429."""
    with pytest.raises(RerankError) as caught:
        await searched(servers["stubllm"], tmp_path, query)
    assert (caught.value.code, caught.value.usage) == (code, usage)


@pytest.mark.anyio
@pytest.mark.parametrize(("schema_as", "code"), [("native", "wrong-schema"), ("prompt", "prose")])
async def test_what_a_server_says_when_it_knows_no_answer(
    schema_as: str, code: str, servers: dict[str, str], tmp_path: Path
) -> None:
    """Case 37: stubllm has a sentence for it, which it wraps into JSON of its own where a JSON schema is asked for."""
    with pytest.raises(RerankError) as caught:
        await searched(servers["stubllm"], tmp_path, "coffee, who is unknown to it", schema_as=schema_as)
    assert caught.value.code == code
    assert caught.value.usage is not None
    assert (caught.value.usage.calls, caught.value.usage.requests) == (1, 1)
