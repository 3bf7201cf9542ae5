"""Errors of services as they were met in the wild: a code, the service's words, the cost, and no content."""

from __future__ import annotations

from typing import Any, Final

import pytest
from decisions_parts import SYSTEMONE, asked, opened

from narrowgate.decisions import DecisionRequest, Usage
from narrowgate.errors import DecisionError
from narrowgate_http.testing import Answer, FaultServer

LIVE: Final[list[tuple[str, int, Any, str, str]]] = [
    (
        "no key",
        403,
        {"detail": {"error_type": "authentication_error", "message": "Must supply a key!"}},
        "forbidden",
        "supply",
    ),
    ("credits", 402, {"detail": {"error_type": "payment_required", "message": "Out of credits"}}, "payment", "credits"),
    ("bare string", 400, {"detail": "Too many choices. Must have at most 255 choices."}, "bad-request", "255"),
    ("no message", 400, {"detail": {"error_type": "max_tokens_exceeded"}}, "too-large", "max_tokens_exceeded"),
    (
        "fields",
        422,
        {"detail": [{"loc": ["body", "state"], "msg": "Field required", "type": "missing"}]},
        "bad-request",
        "body.state",
    ),
    (
        "flat",
        401,
        {"message": "Cannot authenticate with the server.", "error_type": "authentication_error"},
        "unauthorised",
        "authenticate",
    ),
    ("ollama", 413, {"error": "request body must not exceed 64 KiB without images"}, "too-large", "64"),
    ("laya", 422, {"error": {"message": "unknown model 'x'", "field": "model"}}, "bad-request", "unknown model"),
    (
        "router",
        402,
        {"error": {"code": 402, "message": "Insufficient credits", "metadata": {}}, "user_id": None},
        "payment",
        "credits",
    ),
    (
        "no decisions",
        501,
        {"error": {"code": 501, "message": "not a decision model", "type": "not_supported_error"}},
        "unsupported",
        "model",
    ),
    ("edge", 404, "<html>", "not-found", "404"),
    ("empty", 401, "", "unauthorised", "401"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("status", "body", "code", "word"), [row[1:] for row in LIVE], ids=[row[0] for row in LIVE])
async def test_an_error_of_the_service_has_its_code_and_its_words(status: int, body: Any, code: str, word: str) -> None:
    """Whatever its form; nothing is retried, and the call cost one request and no tokens."""
    answer = Answer(status=status, body=body.encode()) if isinstance(body, str) else Answer(status=status, json=body)
    with FaultServer(answer) as server:
        async with opened(SYSTEMONE, "secret-key", base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(asked())
        assert len(server.requests) == 1
    assert caught.value.code == code
    assert caught.value.usage == Usage(5, 1, 0, 0)
    assert word in str(caught.value)
    assert "/v1/systemone" in str(caught.value)


@pytest.mark.anyio
async def test_no_message_repeats_what_was_judged() -> None:
    """Case 53: servers quote what they refuse; neither text, query nor credential comes out again, nor by the cause."""
    text, query = "Zanzibar keeps the orchid ledger", "who keeps the ledger"
    words = f"invalid input {text!r} for {query!r} with key secret-key-123"
    for body in ({"error": words}, {"detail": [{"loc": ["body", text], "msg": words, "type": "x"}]}):
        with FaultServer(Answer(status=422, json=body)) as server:
            async with opened(SYSTEMONE, "secret-key-123", base_url=f"{server.url}?api_key=secret-key-123") as backend:
                with pytest.raises(DecisionError) as caught:
                    await backend.evaluate(DecisionRequest("k", "Is it so?", text, (query,)))
        told = f"{caught.value} {caught.value.__cause__}"
        for word in ("Zanzibar", "orchid", "ledger", "secret"):
            assert word not in told
        assert "invalid input" in told
