"""`hosted.embedder` against servers that others wrote, each in a process of its own: llmock, stubllm and mock-ai-api."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.request import urlopen

import pytest
from embedding_parts import TEXTS, opened

from narrowgate.decisions import Usage
from narrowgate.errors import EmbeddingError
from narrowgate_hosted.embedding.probing import probe
from narrowgate_http.testing import free_port, program

pytestmark = pytest.mark.anyio

OPTIONS: Final[dict[str, Any]] = {"model": "text-embedding-3-small", "dimension": 1536}


@contextmanager
def running(name: str, *arguments: str) -> Iterator[str]:
    """Run a server's own command on a free port; yields its URL once it listens."""
    port = free_port()
    with program(name, *arguments, "--port", str(port)):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def llmock(*options: str) -> Iterator[str]:
    """Run llmock."""
    with running("llmock", "serve", "--host", "127.0.0.1", *options) as url:
        yield url


@pytest.fixture(scope="module")
def llmock_url() -> Iterator[str]:
    """Run llmock without faults."""
    with llmock() as url:
        yield url


@pytest.fixture(scope="module")
def stubllm_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run stubllm without fixtures."""
    folder = str(tmp_path_factory.mktemp("fixtures"))
    with running("stubllm", "serve", "--host", "127.0.0.1", "--fixture-dir", folder) as url:
        yield url


@pytest.fixture(scope="module")
def mock_ai_api_url() -> Iterator[str]:
    """Run the OpenAI half of mock-ai-api. Its command starts two servers and would leave both behind."""
    with running("uvicorn", "app.openai_app:app", "--host", "127.0.0.1") as url:
        yield url


@pytest.mark.parametrize("server", ["llmock_url", "mock_ai_api_url"])
@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_vectors_come_in_order_and_of_length_one(server: str, encoding: str, request: pytest.FixtureRequest) -> None:
    """One batch or three: the same vectors, whether the server heeds the encoding or not."""
    url = request.getfixturevalue(server)
    async with opened(url, **OPTIONS, encoding=encoding) as embedder:
        together = await embedder.embed(TEXTS)
    async with opened(url, **OPTIONS, batch_size=1) as embedder:
        apart = await embedder.embed(TEXTS)
        assert embedder.answered_by == OPTIONS["model"]
    for left, right in zip(together, apart, strict=True):
        assert list(left) == pytest.approx(list(right), abs=1e-6)
        assert sum(number * number for number in left) == pytest.approx(1, abs=1e-5)
    assert list(together[0]) != list(together[1])


async def test_vectors_without_direction_are_refused(stubllm_url: str) -> None:
    """stubllm answers with zeros, which compare with nothing: refused, with the tokens that it reports."""
    async with opened(stubllm_url, **OPTIONS) as embedder:
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(TEXTS)
    assert caught.value.code == "zero-vector"
    assert caught.value.usage == Usage(3, 1, 15, 0)


async def test_another_length_is_refused(llmock_url: str) -> None:
    """llmock makes 1,536 numbers whatever is asked for."""
    async with opened(llmock_url, model=OPTIONS["model"], dimension=256) as embedder:
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(TEXTS)
    assert caught.value.code == "wrong-dimension"
    assert "1536" in str(caught.value)


@pytest.mark.parametrize("path", ["/v1/embedding", "/rerank"])
async def test_a_route_that_is_not_there(llmock_url: str, path: str) -> None:
    """The message names the URL that was called."""
    async with opened(llmock_url, **OPTIONS, path=path) as embedder:
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(TEXTS)
    assert caught.value.code == "not-found"
    assert f"{llmock_url}{path}" in str(caught.value)


async def test_the_probe_is_not_taken_in_by_vectors_at_random(llmock_url: str) -> None:
    """llmock's vectors are well formed and mean nothing: an unrelated text is as near as an answer."""
    async with opened(llmock_url, **OPTIONS) as embedder:
        problems = await probe(embedder)
    assert [problem.code for problem in problems] == ["probe-failed"]


def _verdict(url: str) -> Any:
    with urlopen(f"{url}/_llmock/verdict", timeout=30) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize(("status", "attempts"), [(429, 2), (503, 2), (401, 1), (400, 1)])
async def test_an_independent_judge_finds_no_fault_with_the_retries(status: int, attempts: int) -> None:
    """llmock fails every request and judges its client: repeats what may pass, waits as told, and nothing else."""
    with llmock("--error-rate", f"{status}=1.0") as url:
        async with opened(url, **OPTIONS, retries=1) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS)
        verdict = _verdict(url)
    assert caught.value.usage == Usage(3, attempts, 0, 0)
    assert verdict["attempts"] == attempts
    assert (verdict["errors"], verdict["warnings"]) == (0, 0), verdict
