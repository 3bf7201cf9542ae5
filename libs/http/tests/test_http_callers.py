"""What callers ask of a single call: less time than the settings give, and no stream that nobody asked for."""

from __future__ import annotations

import pytest

from narrowgate_http import HttpError, HttpSettings, http_client, join
from narrowgate_http.testing import Answer, FaultServer


@pytest.mark.anyio
async def test_a_caller_with_less_time_ends_sooner() -> None:
    """`within` is a bound below the deadline: the wait that the server asks for would end after it."""
    busy = Answer(status=503, headers={"retry-after": "30"})
    with FaultServer([busy, Answer(json={"value": 1})]) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, deadline=60.0)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {}, within=5.0)
            assert (caught.value.code, caught.value.requests) == ("overloaded", 1)
            assert (await client.post(server.url, {}, within=5.0)).json == {"value": 1}


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["application/x-ndjson", "text/event-stream; charset=utf-8"])
async def test_an_answer_in_pieces_is_of_the_wrong_shape(kind: str) -> None:
    """A server that streams unasked is told from one that sends no JSON at all."""
    pieces = b'{"done": false}\n{"done": true}\n'
    with FaultServer(Answer(body=pieces, headers={"content-type": kind})) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert caught.value.code == "wrong-shape"
    assert caught.value.tokens_unknown


@pytest.mark.parametrize("base", ["http://h:1", "http://h:1/", "http://h:1/api", "http://h:1/api/", "http://h:1/api/chat"])
def test_a_route_whose_version_is_a_word_is_not_doubled(base: str) -> None:
    """Case 21, for a server whose routes begin with `/api`."""
    assert join(base, "api", "chat") == "http://h:1/api/chat"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"error": {"message": "no", "code": "context_length_exceeded"}}, "too-large"),
        ({"error": {"message": "no", "type": "exceed_context_size_error", "code": 400}}, "too-large"),
        ({"message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError"}, "too-large"),
        ({"error": "the input length exceeds the context length"}, "too-large"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}, "too-large"),
        ({"error": {"message": "context budget exceeded: ~40001 tokens", "field": "questions"}}, "too-large"),
        ({"error": {"message": "no", "code": "content_filter", "status": 400}}, "refused"),
        ({"error": {"message": "no", "code": "content_policy_violation", "param": None}}, "refused"),
        ({"error": {"message": "no", "code": "unknown_field"}}, "bad-request"),
    ],
)
async def test_a_bad_request_tells_what_is_bad_about_it(error: dict[str, object], code: str) -> None:
    """Too many tokens and refused content have codes of their own, however a service says it; none is tried again."""
    with FaultServer(Answer(status=400, json=error)) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
        assert len(server.requests) == 1
    assert caught.value.code == code
