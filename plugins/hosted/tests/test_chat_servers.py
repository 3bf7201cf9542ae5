"""Both components against servers that others wrote: what these say, and no reading of ours, decides whether we fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_fakes import SCHEMA, deciding, generating

from narrowgate.decisions import DecisionOutcome, DecisionRequest, Usage
from narrowgate.errors import DecisionError, GenerationError
from narrowgate.values.secret import Secret
from narrowgate_hosted.chat.components import BACKENDS, GENERATORS
from narrowgate_http.testing import free_port, program

pytestmark = pytest.mark.anyio

DATA = {"query": "larch", "candidates": ["larch and pine", "tide tables"]}

FIXTURES: list[dict[str, Any]] = [
    {
        "name": "fenced",
        "match": {"model": "fenced"},
        "response": {"content": '```json\n{"ranks": [2]}\n```', "usage": {"prompt_tokens": 90, "completion_tokens": 10}},
    },
    {"name": "cut", "match": {"model": "cut"}, "response": {"content": '{"ranks": [2]}', "finish_reason": "length"}},
    {"name": "cut-2", "match": {"model": "cut-2"}, "response": {"content": '{"ranks"', "finish_reason": "max_tokens"}},
    {"name": "filtered", "match": {"model": "filtered"}, "response": {"content": "", "finish_reason": "content_filter"}},
    {"name": "strings", "match": {"model": "strings"}, "response": {"content": '{"ranks": ["2"]}'}},
    {"name": "prose", "match": {"model": "prose"}, "response": {"content": "None of these fit the question."}},
    {
        "name": "limit",
        "match": {"model": "limit"},
        "response": {"http_status": 429, "error_message": "Rate limit exceeded."},
    },
    {"name": "bill", "match": {"model": "bill"}, "response": {"http_status": 402, "error_message": "No credit is left."}},
    {
        "name": "second-time",
        "match": {"model": "second-time"},
        "sequence": [
            {"content": "Let me think.", "usage": {"prompt_tokens": 90, "completion_tokens": 10}},
            {"content": '{"ranks": [1, 2]}', "usage": {"prompt_tokens": 90, "completion_tokens": 30}},
        ],
    },
]
"""What the fixtures of stubllm make it say, by the model asked for."""


@pytest.fixture(scope="module")
def llmock() -> Iterator[str]:
    """Run llmock: it keeps to schemas, and checks requests as the services do."""
    port = free_port()
    with program("llmock", "serve", "-h", "127.0.0.1", "-p", str(port)):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def told(folder: Path) -> Iterator[str]:
    """Run stubllm with `FIXTURES` in a folder: it says what it is told to say."""
    (folder / "fixtures.json").write_text(json.dumps(FIXTURES), encoding="utf-8")
    port = free_port()
    with program("stubllm", "serve", "--host", "127.0.0.1", "--port", str(port), "--fixture-dir", str(folder)):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def stubllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run stubllm for all tests in which it does not matter how often it was asked."""
    with told(tmp_path_factory.mktemp("fixtures")) as url:
        yield url


@pytest.fixture(scope="module")
def mock_ai_api() -> Iterator[tuple[str, str]]:
    """Run mock-ai-api, which passes over schemas; return the URLs of its OpenAI and its Anthropic."""
    openai, anthropic = free_port(), free_port()
    with program("mock-ai-api", "--openai-port", str(openai), "--anthropic-port", str(anthropic), listeners=2):
        yield f"http://127.0.0.1:{openai}", f"http://127.0.0.1:{anthropic}"


@pytest.mark.parametrize(
    ("wire", "base", "form"),
    [
        ("chat", "", "native"),
        ("chat", "/v1", "json_object"),
        ("chat", "/groq/openai/v1", "native"),
        ("chat", "/mistral", "native"),
        ("responses", "", "native"),
        ("responses", "/v1/responses", "native"),
        ("anthropic", "/anthropic", "tool"),
    ],
)
async def test_llmock_keeps_to_the_schema(llmock: str, wire: str, base: str, form: str) -> None:
    """A value that fits and a cost that is told, on every wire that it speaks; the probe finds nothing."""
    assert GENERATORS[0].probe is not None
    async with generating(llmock + base, wire, schema_as=form, api_key=Secret("k-1")) as generator:
        answer = await generator.generate("Rank them.", DATA, SCHEMA)
        assert list(await GENERATORS[0].probe(generator)) == []
    assert all(isinstance(rank, int) for rank in answer.value["ranks"])
    assert (answer.usage.calls, answer.usage.requests) == (1, 1)
    assert answer.usage.input_tokens
    assert answer.usage.output_tokens
    assert answer.model


@pytest.mark.parametrize("probability", [False, True])
async def test_llmock_decides(llmock: str, probability: bool) -> None:
    """It takes the first outcome allowed for every question, which is yes and no sign of a mind: the probe says so."""
    assert BACKENDS[0].probe is not None
    async with deciding(llmock, probability=probability) as backend:
        result = await backend.evaluate(DecisionRequest("test.kind", "Does it mention larch?", "tide tables", ("larch",)))
        (problem,) = await BACKENDS[0].probe(backend)
    assert result.outcome is DecisionOutcome.YES
    assert problem.code == "polarity"


async def test_llmock_answers_one_of_three_questions(llmock: str) -> None:
    """Valid JSON of the right form whose list is too short: no question gets another one's answer."""
    requests = [DecisionRequest("test.kind", "Does it mention larch?", text) for text in ("a", "b", "c")]
    async with deciding(llmock, batch=3) as backend:
        with pytest.raises(DecisionError) as caught:
            await backend.evaluate_many(requests)
    assert caught.value.code == "wrong-ids"


async def test_llmock_knows_no_ollama(llmock: str) -> None:
    """The message names the URL that was called, since the base URL is the usual fault."""
    async with generating(llmock, "ollama") as generator:
        with pytest.raises(GenerationError) as caught:
            await generator.generate("Rank them.", DATA, SCHEMA)
    assert caught.value.code == "not-found"
    assert f"{llmock}/api/chat" in str(caught.value)


@pytest.mark.parametrize(("wire", "place"), [("chat", 0), ("responses", 0), ("anthropic", 1)])
async def test_mock_ai_api_passes_over_the_schema(mock_ai_api: tuple[str, str], wire: str, place: int) -> None:
    """Prose with a status of success is an error with its cost, and the probe finds such a server."""
    assert GENERATORS[0].probe is not None
    async with generating(mock_ai_api[place], wire) as generator:
        with pytest.raises(GenerationError) as caught:
            await generator.generate("Rank them.", DATA, SCHEMA)
        (problem,) = await GENERATORS[0].probe(generator)
    assert caught.value.code == "prose"
    assert caught.value.usage is not None
    assert (caught.value.usage.requests, caught.value.usage.output_tokens) == (1, 12)
    assert problem.code == "probe-failed"


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("mock-tool-call", "no-answer"),
        ("mock-400", "bad-request"),
        ("mock-401", "unauthorised"),
        ("mock-429", "rate-limited"),
    ],
)
async def test_mock_ai_api_fails_on_demand(mock_ai_api: tuple[str, str], model: str, code: str) -> None:
    """Its scenarios of OpenAI's errors, and a tool call that nobody asked for."""
    async with generating(mock_ai_api[0], model=f"gpt-4.1:{model}", retries=0) as generator:
        with pytest.raises(GenerationError) as caught:
            await generator.generate("Rank them.", DATA, SCHEMA)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("wire", "model", "code"),
    [
        ("chat", "cut", "cut-answer"),
        ("chat", "filtered", "refused"),
        ("chat", "strings", "wrong-schema"),
        ("chat", "prose", "wrong-schema"),  # it puts prose into an object of its own when a schema is sent
        ("chat", "limit", "rate-limited"),
        ("chat", "bill", "payment"),
        ("anthropic", "cut-2", "cut-answer"),
        ("anthropic", "strings", "wrong-schema"),
        ("anthropic", "prose", "prose"),
        ("anthropic", "unheard-of", "prose"),
    ],
)
async def test_what_stubllm_is_told_to_say_is_refused(stubllm: str, wire: str, model: str, code: str) -> None:
    """The malformed outputs, from a server that is not ours; nothing of what was asked is in a message."""
    async with generating(stubllm, wire, model=model, retries=0) as generator:
        with pytest.raises(GenerationError) as caught:
            await generator.generate("Rank them.", DATA, SCHEMA)
    assert caught.value.code == code
    assert "larch" not in str(caught.value)


async def test_a_fence_is_taken(stubllm: str) -> None:
    """Case 37: one fenced block with nothing after it is an answer."""
    async with generating(stubllm, model="fenced", schema_as="prompt") as generator:
        assert (await generator.generate("Rank them.", DATA, SCHEMA)).value == {"ranks": [2]}


async def test_a_second_attempt_is_paid(tmp_path: Path) -> None:
    """Case 43: a hundred tokens and a hundred and twenty add up; it counts its requests, so that it is started anew."""
    with told(tmp_path) as url:
        async with generating(url, model="second-time", schema_as="prompt", repeats=1) as generator:
            answer = await generator.generate("Rank them.", DATA, SCHEMA)
    assert (answer.value, answer.usage) == ({"ranks": [1, 2]}, Usage(1, 2, 180, 40))
