"""What `hosted.embedder` sends in each dialect, and what it reads."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from embedding_parts import DIMENSION, FAKES, TEXTS, fake, in_base64, listed, opened, settings_of, unit_of, vector_of, words
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import Usage
from narrowgate.errors import EmbeddingError
from narrowgate_hosted.embedding.dialects import WIRES
from narrowgate_hosted.embedding.vectors import VectorError, unit
from narrowgate_http.testing import Answer, FaultServer

pytestmark = pytest.mark.anyio

# dialect -> the other fields of a request for a query, and for any other text
SENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "openai": ({"model": "m", "encoding_format": "float"},) * 2,
    "voyage": (
        {"model": "m", "truncation": True, "input_type": "query"},
        {"model": "m", "truncation": True, "input_type": "document"},
    ),
    "jina": (
        {"model": "m", "truncate": True, "normalized": True, "embedding_type": "float", "task": "retrieval.query"},
        {"model": "m", "truncate": True, "normalized": True, "embedding_type": "float", "task": "retrieval.passage"},
    ),
    "mistral": ({"model": "m", "encoding_format": "float"},) * 2,
    "ollama": ({"model": "m", "truncate": True},) * 2,
    "tei": ({"normalize": True, "truncate": True},) * 2,
    "cohere": (
        {"model": "m", "embedding_types": ["float"], "truncate": "END", "input_type": "search_query"},
        {"model": "m", "embedding_types": ["float"], "truncate": "END", "input_type": "search_document"},
    ),
}
dialects = pytest.mark.parametrize("dialect", FAKES)


def test_every_dialect_has_a_fake() -> None:
    """None is without its test."""
    assert set(FAKES) == set(WIRES) == set(SENT)


@dialects
@pytest.mark.parametrize("query", [True, False], ids=["query", "document"])
async def test_a_request_holds_what_the_dialect_knows_and_nothing_else(dialect: str, query: bool) -> None:
    """The fake refuses unknown fields and routes; vectors come back in order, of length 1."""
    with FaultServer(fake(dialect)) as server:
        async with opened(server.url, dialect=dialect) as embedder:
            vectors = await embedder.embed(TEXTS, query=query)
    (request,) = server.requests
    assert request.path == FAKES[dialect].path
    expected = {FAKES[dialect].texts: list(TEXTS), **SENT[dialect][0 if query else 1]}
    assert request.json == expected
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert list(vector) == pytest.approx(unit_of(text), abs=1e-6)
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-6)


@dialects
async def test_a_shorter_vector_is_asked_for_by_the_dialects_own_field(dialect: str) -> None:
    """Only with `send_dimension`: models without the option refuse it."""
    with FaultServer(fake(dialect)) as server:
        async with opened(server.url, dialect=dialect, dimension=8, send_dimension=True) as embedder:
            (vector,) = await embedder.embed(TEXTS[:1])
        async with opened(server.url, dialect=dialect, dimension=8) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS[:1])
    assert len(vector) == 8
    assert caught.value.code == "wrong-dimension"
    first, second = (set(request.json) for request in server.requests)
    assert first - second == {WIRES[dialect].dimension}  # type: ignore[index]


@pytest.mark.parametrize(
    ("dialect", "field", "value"),
    [
        ("voyage", "truncation", False),
        ("jina", "truncate", False),
        ("ollama", "truncate", False),
        ("tei", "truncate", False),
        ("cohere", "truncate", "NONE"),
    ],
)
async def test_a_server_can_be_told_to_refuse_long_texts(dialect: str, field: str, value: Any) -> None:
    """`truncate = false`, in the words of each dialect that has a flag for it."""
    with FaultServer(fake(dialect)) as server:
        async with opened(server.url, dialect=dialect, truncate=False) as embedder:
            await embedder.embed(TEXTS)
    assert server.requests[0].json[field] == value


@pytest.mark.parametrize("dialect", ["openai", "voyage", "jina", "mistral"])
async def test_base64_gives_the_same_vectors(dialect: str) -> None:
    """Asked for where the dialect has it; the vectors are those of the lists."""
    with FaultServer(fake(dialect)) as server:
        async with opened(server.url, dialect=dialect, encoding="base64") as embedder:
            coded = await embedder.embed(TEXTS)
        async with opened(server.url, dialect=dialect) as embedder:
            plain = await embedder.embed(TEXTS)
    assert "base64" in server.requests[0].json.values()
    for left, right in zip(coded, plain, strict=True):
        assert list(left) == pytest.approx(list(right), abs=1e-6)


async def test_base64_is_read_unasked() -> None:
    """Some servers send what a client library would have asked for."""
    body = listed([in_base64(vector_of(text)) for text in TEXTS])
    with FaultServer(Answer(body=body)) as server:
        async with opened(server.url) as embedder:
            vectors = await embedder.embed(TEXTS)
    assert list(vectors[1]) == pytest.approx(unit_of(TEXTS[1]), abs=1e-6)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_a_vector_in_base64_is_the_vector_in_a_list(numbers: list[float]) -> None:
    """Bytes are little-endian 32-bit floats, whatever the machine; either way the result has length 1 or is refused."""

    def result(raw: object) -> object:
        try:
            return unit(raw, len(numbers))
        except VectorError as error:
            return error.code

    made = result(numbers)
    assert result(in_base64(numbers)) == made
    assert made == "zero-vector" or math.hypot(*made) == pytest.approx(1, abs=1e-6)  # type: ignore[misc]


async def test_vectors_are_ordered_by_index_and_not_by_place() -> None:
    """A server may answer in any order."""
    body = listed([vector_of(TEXTS[place]) for place in (2, 0, 1)], indices=[2, 0, 1])
    with FaultServer(Answer(body=body)) as server:
        async with opened(server.url) as embedder:
            vectors = await embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert list(vector) == pytest.approx(unit_of(text), abs=1e-6)


GOOD = [1.0] * DIMENSION
USAGE = {"usage": {"prompt_tokens": 7, "total_tokens": 7}}
REFUSED: dict[str, tuple[str, bytes]] = {
    "index twice": ("wrong-shape", listed([GOOD] * 3, indices=[0, 1, 1], **USAGE)),
    "index twice beside all others": ("wrong-shape", listed([GOOD] * 4, indices=[0, 1, 2, 2], **USAGE)),
    "index missing": ("wrong-shape", listed([GOOD] * 2, indices=[0, 2], **USAGE)),
    "index too large": ("wrong-shape", listed([GOOD] * 3, indices=[0, 1, 3], **USAGE)),
    "index negative": ("wrong-shape", listed([GOOD] * 3, indices=[-1, 0, 1], **USAGE)),
    "index a truth value": ("wrong-shape", listed([GOOD] * 3, indices=[0, True, 2], **USAGE)),
    "index text": ("wrong-shape", listed([GOOD] * 3, indices=["0", "1", "2"], **USAGE)),
    "index a fraction": ("wrong-shape", listed([GOOD] * 3, indices=[0.0, 1.0, 2.0], **USAGE)),
    "too many": ("wrong-shape", listed([GOOD] * 4, **USAGE)),
    "none": ("wrong-shape", listed([], **USAGE)),
    "no embedding": ("wrong-shape", json.dumps({"data": [{"index": 0}] * 3, **USAGE}).encode()),
    "items of another kind": ("wrong-shape", json.dumps({"data": [GOOD] * 3, **USAGE}).encode()),
    "no list": ("wrong-shape", json.dumps({"data": {}, **USAGE}).encode()),
    "a bare list": ("wrong-shape", b"[]"),
    "null for a number": ("wrong-shape", listed([GOOD, [None] * DIMENSION, GOOD], **USAGE)),
    "text for a number": ("wrong-shape", listed([GOOD, ["1"] * DIMENSION, GOOD], **USAGE)),
    "truth values": ("wrong-shape", listed([GOOD, [True] * DIMENSION, GOOD], **USAGE)),
    "a list in a list": ("wrong-shape", listed([GOOD, [GOOD], GOOD], **USAGE)),
    "null for a vector": ("wrong-shape", listed([GOOD, None, GOOD], **USAGE)),
    "no base64": ("wrong-shape", listed([GOOD, "not base64!", GOOD], **USAGE)),
    "base64 of a part": ("wrong-shape", listed([GOOD, "AAAA", GOOD], **USAGE)),
    "too short": ("wrong-dimension", listed([GOOD, GOOD[1:], GOOD], **USAGE)),
    "too long": ("wrong-dimension", listed([[*GOOD, 1.0]] * 3, **USAGE)),
    "base64 too short": ("wrong-dimension", listed([GOOD, in_base64([1.0]), GOOD], **USAGE)),
    "zeros": ("zero-vector", listed([GOOD, [0] * DIMENSION, GOOD], **USAGE)),
    "nan in base64": ("non-finite", listed([GOOD, in_base64([math.nan] * DIMENSION), GOOD], **USAGE)),
    "infinity in base64": ("non-finite", listed([GOOD, in_base64([math.inf] * DIMENSION), GOOD], **USAGE)),
    "beyond floats": ("non-finite", listed([GOOD, [10**400] * DIMENSION, GOOD], **USAGE)),
    "an error with status 200": ("provider-error", json.dumps({"error": {"message": "model broken"}, **USAGE}).encode()),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_an_answer_that_does_not_fit_is_refused(name: str) -> None:
    """By its code, with what it cost, and without a word of what was sent: no vector is ever guessed."""
    code, body = REFUSED[name]
    with FaultServer(Answer(body=body)) as server:
        async with opened(server.url) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS)
    error = caught.value
    assert error.code == code
    tokens = 7 if b"prompt_tokens" in body else None
    assert error.usage == Usage(3, 1, tokens, 0)
    assert "hosted.embedder" in str(error)
    assert server.url in str(error)
    assert not any(word in str(error) for word in ("backup", "disk", "paid", "李雷"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("dialect", ["ollama", "tei", "cohere"])
@pytest.mark.parametrize("count", [2, 4])
async def test_where_the_place_counts_the_number_must_be_right(dialect: str, count: int) -> None:
    """Dialects without an index: one vector too few or too many belongs to nobody knows which text."""
    vectors = [GOOD] * count
    body = {"ollama": {"embeddings": vectors}, "tei": vectors, "cohere": {"embeddings": {"float": vectors}}}[dialect]
    with FaultServer(Answer(json=body)) as server:
        async with opened(server.url, dialect=dialect) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS)
    assert caught.value.code == "wrong-shape"
    assert f"{count} vectors for 3 texts" in str(caught.value)


@pytest.mark.parametrize("dialect", ["ollama", "tei", "cohere"])
async def test_another_shape_is_told_from_no_vectors(dialect: str) -> None:
    """An answer of the dialect `openai` to any other."""
    with FaultServer(Answer(body=listed([GOOD] * 3))) as server:
        async with opened(server.url, dialect=dialect) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS)
    assert caught.value.code == "wrong-shape"
    assert "dialect" in str(caught.value)


@dialects
async def test_the_account_of_tokens_is_taken_over(dialect: str) -> None:
    """From the place where each dialect has it; read through the cost of a request that fails by its second half."""
    with FaultServer(fake(dialect)) as server:
        async with opened(server.url, dialect=dialect, dimension=DIMENSION + 1) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS)
    assert caught.value.code == "wrong-dimension"
    assert caught.value.usage == Usage(3, 1, words(TEXTS), 0)


@pytest.mark.parametrize("said", [None, -1, 1.5, "7", True, [7], {}])
async def test_an_account_that_is_no_count_is_unknown(said: Any) -> None:
    """Never nothing, and never an error by itself."""
    body = listed([[0.0] * DIMENSION] * 3, usage={"prompt_tokens": said})
    with FaultServer(Answer(body=body)) as server:
        async with opened(server.url) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS)
    assert caught.value.usage == Usage(3, 1, None, 0)


async def test_prefixes_stand_before_each_text() -> None:
    """Models such as e5 are trained with them."""
    with FaultServer(fake()) as server:
        async with opened(server.url, query_prefix="query: ", document_prefix="passage: ") as embedder:
            await embedder.embed(["one"], query=True)
            await embedder.embed(["one", "two"])
    assert [request.json["input"] for request in server.requests] == [["query: one"], ["passage: one", "passage: two"]]


async def test_fields_go_over_those_of_the_dialect() -> None:
    """A field of the settings replaces the dialect's, adds one, or leaves it out when it is empty."""
    options = {"query_fields": {"task": "nl2code.query"}, "document_fields": {"task": ""}}
    with FaultServer(fake("jina")) as server:
        async with opened(server.url, dialect="jina", **options) as embedder:
            await embedder.embed(["one"], query=True)
            await embedder.embed(["one"])
    with FaultServer(fake("tei")) as other:
        async with opened(other.url, dialect="tei", query_fields={"prompt_name": "query"}) as embedder:
            await embedder.embed(["one"], query=True)
            await embedder.embed(["one"])
    assert server.requests[0].json["task"] == "nl2code.query"
    assert "task" not in server.requests[1].json
    assert other.requests[0].json["prompt_name"] == "query"
    assert "prompt_name" not in other.requests[1].json


async def test_a_route_of_its_own_is_taken_as_it_stands() -> None:
    """Infinity has `/embeddings` without a version: `path` says so."""
    with FaultServer(Answer(body=listed([GOOD]))) as server:
        async with opened(server.url, path="/embeddings") as embedder:
            await embedder.embed(["one"])
    assert server.requests[0].path == "/embeddings"


def test_settings_of_the_helper_are_valid() -> None:
    """The least that must be said: where, which model, how long its vectors are."""
    assert settings_of().dialect == "openai"
