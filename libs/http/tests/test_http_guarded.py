"""Bodies that decision services and gateways are known to send."""

from __future__ import annotations

import json

import pytest

from narrowgate_http import HttpError, HttpSettings, http_client
from narrowgate_http.bodies import decode
from narrowgate_http.testing import Answer, FaultServer


@pytest.mark.parametrize("guard", [b")]}'\n", b")]}',\n", b"\xef\xbb\xbf)]}'\r\n", b" )]}' \n"])
def test_a_guard_line_before_json_is_passed_over(guard: bytes) -> None:
    """It keeps browsers from running JSON as a script; what follows is JSON all the same."""
    assert decode(guard + b'{"a": [1, ")]}\'"]}') == {"a": [1, ")]}'"]}


@pytest.mark.parametrize("raw", [b")]}'", b")]}'{}", b")]}'\n", b")]}'\n)]}'\n{}", b"}'\n{}"])
def test_what_only_resembles_a_guard_line_is_no_json(raw: bytes) -> None:
    """One line, whole, and something behind it."""
    with pytest.raises(ValueError, match="Expecting value"):
        decode(raw)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        {"detail": {"error_type": "max_tokens_exceeded"}},
        {"message": "too long", "error_type": "max_tokens_exceeded"},
        {"error": {"code": 400, "message": 'HTTP 400: {"detail":{"error_type":"max_tokens_exceeded"}}'}},
    ],
    ids=["service", "flat", "quoted"],
)
async def test_too_many_tokens_are_told_from_other_bad_requests(body: object) -> None:
    """The status is 400 like that of any other mistake, the cure is another one."""
    with FaultServer(Answer(status=400, body=json.dumps(body).encode())) as server:
        async with http_client("x.y", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert caught.value.code == "too-large"
    assert len(server.requests) == 1
