"""Each dialect against a server that takes exactly its vendor's request and answers in its vendor's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args

import attrs
import pytest

from narrowgate.values.decision import Usage
from narrowgate.values.secret import Secret
from narrowgate_http import resolve
from narrowgate_http.testing import Answer, FaultServer, Recorded
from narrowgate_rerank_api import DIALECTS, EndpointSettings
from narrowgate_rerank_api.dialects import KEYS
from narrowgate_rerank_api.settings import DialectName

QUERY: Final = "how long are logs kept?"
LUNCH: Final = "Lunch is at noon."
LOGS: Final = "Logs are kept 30 days."
TEXTS: Final = [LUNCH, LOGS]


@attrs.frozen
class Case:
    """One vendor's exchange for `QUERY` over `TEXTS`.

    Attributes:
        path: where the request must arrive.
        body: what it must be, exactly.
        answer: what the vendor answers.
        tokens: what the answer says that it read and wrote.
        headers: of the answer.
        model: the model that is asked for.
    """

    path: str
    body: dict[str, Any]
    answer: Any
    tokens: tuple[int | None, int | None]
    headers: dict[str, str] = attrs.field(factory=dict)
    model: str | None = "m"


def asked(**more: Any) -> dict[str, Any]:
    """Return a request's usual fields and further ones."""
    return {"model": "m", "query": QUERY, "documents": TEXTS, **more}


def results(name: str = "relevance_score", *, texts: bool = False, field: str = "document") -> list[dict[str, Any]]:
    """Return results, best first as most vendors have them."""
    rows: list[dict[str, Any]] = [{"index": 1, name: 0.97}, {"index": 0, name: 0.01}]
    return [{**row, field: {"text": TEXTS[row["index"]]}} for row in rows] if texts else rows


CASES: Final[dict[str, Case]] = {
    "standard": Case("/v1/rerank", asked(top_n=2), {"results": results()}, (None, None)),
    "cohere": Case(
        "/v2/rerank",
        asked(top_n=2),
        {
            "id": "3f0c",
            "results": results(),
            "meta": {
                "api_version": {"version": "2"},
                "billed_units": {"search_units": 1},
                "tokens": {"input_tokens": 40, "output_tokens": 0},
                "warnings": [],
            },
        },
        (40, 0),
    ),
    "cohere-v1": Case(
        "/v1/rerank",
        asked(top_n=2, return_documents=False),
        {"id": "3f0c", "results": results(), "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}}},
        (None, None),
    ),
    "jina": Case(
        "/v1/rerank",
        asked(top_n=2, return_documents=False),
        {
            "model": "m",
            "object": "list",
            "usage": {"total_tokens": 21, "prompt_tokens": 21},
            "results": [{"index": 1, "relevance_score": 0.41}, {"index": 0, "relevance_score": -0.03}],
        },
        (21, 0),
    ),
    "voyage": Case(
        "/v1/rerank",
        asked(top_k=2, return_documents=False),
        {"object": "list", "data": results(), "model": "m", "usage": {"total_tokens": 26}},
        (26, 0),
    ),
    "vllm": Case(
        "/v1/rerank",
        asked(top_n=2, truncate_prompt_tokens=-1),
        {
            "id": "rerank-1",
            "model": "m",
            "usage": {"prompt_tokens": 56, "total_tokens": 56},
            "results": [{**row, "document": {**row["document"], "multi_modal": None}} for row in results(texts=True)],
        },
        (56, 0),
    ),
    "tei": Case(
        "/rerank",
        {"query": QUERY, "texts": TEXTS, "return_text": False, "truncate": True},
        results("score"),
        (33, 0),
        headers={"x-compute-tokens": "33", "x-compute-time": "4"},
        model=None,
    ),
    "llama.cpp": Case(
        "/v1/rerank",
        asked(top_n=2),
        {
            "model": "m",
            "object": "list",
            "usage": {"prompt_tokens": 30, "total_tokens": 30},
            "results": [{"index": 0, "relevance_score": -8.1}, {"index": 1, "relevance_score": -4.7}],
        },
        (30, 0),
    ),
    "infinity": Case(
        "/rerank",
        asked(top_n=2, return_documents=False),
        {
            "object": "rerank",
            "id": "infinity-1",
            "model": "m",
            "created": 1,
            "usage": {"prompt_tokens": 28, "total_tokens": 28},
            "results": [{**row, "document": None} for row in results()],
        },
        (28, 0),
    ),
    "siliconflow": Case(
        "/v1/rerank",
        asked(top_n=2, return_documents=False),
        {"id": "1", "results": results(), "tokens": {"input_tokens": 19, "output_tokens": 2}},
        (19, 2),
    ),
    "dashscope": Case(
        "/api/v1/services/rerank/text-rerank/text-rerank",
        {
            "model": "m",
            "input": {"query": QUERY, "documents": TEXTS},
            "parameters": {"top_n": 2, "return_documents": False},
        },
        {"output": {"results": results(texts=True)}, "usage": {"total_tokens": 31}, "request_id": "r"},
        (31, 0),
    ),
    "dashscope-compatible": Case(
        "/compatible-api/v1/reranks",
        asked(top_n=2),
        {"object": "list", "results": results(), "model": "m", "id": "r", "usage": {"total_tokens": 31}},
        (31, 0),
    ),
    "mixedbread": Case(
        "/v1/reranking",
        {"model": "m", "query": QUERY, "input": TEXTS, "top_k": 2, "return_input": False},
        {
            "object": "list",
            "model": "m",
            "usage": {"prompt_tokens": 17, "total_tokens": 17},
            "data": [{**row, "object": "rank_result"} for row in results("score")],
            "top_k": 2,
            "return_input": False,
        },
        (17, 0),
    ),
    "zeroentropy": Case(
        "/v1/models/rerank",
        asked(top_n=2),
        {
            "results": results(),
            "total_bytes": 90,
            "total_tokens": 24,
            "e2e_latency": 0.1,
            "inference_latency": 0.1,
            "actual_latency_mode": "fast",
        },
        (24, 0),
    ),
    "openrouter": Case(
        "/v1/rerank",
        asked(top_n=2),
        {"id": "g", "model": "m", "results": results(texts=True), "usage": {"total_tokens": 25, "cost": 0.001}},
        (25, 0),
    ),
    "nvidia": Case(
        "/v1/ranking",
        {"model": "m", "query": {"text": QUERY}, "passages": [{"text": LUNCH}, {"text": LOGS}]},
        {"rankings": [{"index": 1, "logit": 3.5}, {"index": 0, "logit": -11.25}], "usage": {"total_tokens": 29}},
        (29, 0),
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", CASES)
async def test_the_request_and_answer_of_a_vendor(name: str, pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Nothing but listed fields is sent, with the credential; the better text comes first; tokens are counted."""
    case = CASES[name]

    def vendor(request: Recorded) -> Answer:
        assert (request.method, request.path) == ("POST", case.path)
        assert request.headers["authorization"] == "Bearer key-1"
        assert request.json == case.body
        return Answer(json=case.answer, headers=case.headers)

    with FaultServer(vendor) as server:
        async with endpoint(server.url, dialect=name, model=case.model, api_key=Secret("key-1")) as reranker:
            decision = await reranker.rerank(QUERY, pool(TEXTS), 2)
    assert decision.selected_ranks == (2, 1)
    assert decision.usage == Usage(2, 1, *case.tokens)
    assert (decision.partial, decision.used_fallback, decision.discarded_rank_count) == (None, False, 0)
    assert f"dialect={name}" in reranker.policy_id


def test_every_dialect_is_covered_and_can_be_set() -> None:
    """The table, the setting and these tests name the same dialects."""
    assert list(DIALECTS) == list(get_args(DialectName)) == list(CASES)


ADDRESSES: Final = {
    "cohere": "https://api.cohere.com/v2/rerank",
    "cohere-v1": "https://api.cohere.com/v1/rerank",
    "jina": "https://api.jina.ai/v1/rerank",
    "voyage": "https://api.voyageai.com/v1/rerank",
    "siliconflow": "https://api.siliconflow.cn/v1/rerank",
    "dashscope": "https://dashscope.aliyuncs.com/api/v1/services/rerank/text-rerank/text-rerank",
    "dashscope-compatible": "https://dashscope.aliyuncs.com/compatible-api/v1/reranks",
    "mixedbread": "https://api.mixedbread.com/v1/reranking",
    "zeroentropy": "https://api.zeroentropy.dev/v1/models/rerank",
    "openrouter": "https://openrouter.ai/api/v1/rerank",
}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_address_of_a_vendor(name: str) -> None:
    """A vendor's dialect knows its address; the dialect of a server that one runs oneself has none to guess."""
    settings = EndpointSettings(dialect=name)  # type: ignore[arg-type]
    if name in ADDRESSES:
        assert resolve(settings, settings.asked.version, settings.asked.operation) == ADDRESSES[name]
        assert KEYS[settings.base_url.split("/")[2]] == settings.asked.key
    else:
        assert settings.base_url == ""


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h", "http://h/v1/rerank"),
        ("http://h/", "http://h/v1/rerank"),
        ("http://h/v1", "http://h/v1/rerank"),
        ("http://h/v1/", "http://h/v1/rerank"),
        ("http://h/v1/rerank", "http://h/v1/rerank"),
        ("http://h/gw/cohere/v2", "http://h/gw/cohere/v2/rerank"),
    ],
)
def test_a_base_url_may_end_anywhere(base: str, url: str) -> None:
    """Case 21: no segment is doubled and none is lost."""
    settings = EndpointSettings(base_url=base)
    assert resolve(settings, settings.asked.version, settings.asked.operation) == url


def test_a_route_of_its_own_is_taken_as_it_stands() -> None:
    """`path` is for gateways that put the operation somewhere else."""
    settings = EndpointSettings(base_url="http://h/gw", path="models/7/rank")
    assert resolve(settings, settings.asked.version, settings.asked.operation) == "http://h/gw/models/7/rank"


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "place"), [("siliconflow", ()), ("dashscope", ("parameters",))], ids=["top", "in a table"])
async def test_further_fields_of_a_vendor(
    name: str, place: tuple[str, ...], pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """`options` are sent where the vendor has its options, and the policy id tells that there are some."""
    with FaultServer(Answer(json=CASES[name].answer)) as server:
        async with endpoint(server.url, dialect=name, model="m", options={"instruct": "By subject."}) as reranker:
            await reranker.rerank(QUERY, pool(TEXTS), 2)
        body = server.requests[0].json
    for table in place:
        body = body[table]
    assert body["instruct"] == "By subject."
    assert ";options=" in reranker.policy_id
