"""Fake chat servers for the four wires. They check what they are sent, as strict servers do."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from narrowgate_hosted.chat.decision import ChatDecisionBackend
from narrowgate_hosted.chat.generator import ChatGenerator
from narrowgate_hosted.chat.prompts import _HEADING
from narrowgate_hosted.chat.settings import ChatDecisionSettings, GeneratorSettings
from narrowgate_http import http_client
from narrowgate_http.testing import Answer, Recorded

WIRES = ("chat", "responses", "anthropic", "ollama")

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "ollama": "/api/chat",
}

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["ranks"],
    "properties": {"ranks": {"type": "array", "items": {"type": "integer"}}},
}
"""What most tests ask for."""

GOOD: Mapping[str, Any] = {"ranks": [2, 1]}

MODEL_ANSWERED = "model-as-served"


@attrs.frozen
class Asked:
    """A request as a model gets it."""

    system: str
    data: Any
    schema: Any


Speak = Callable[[Asked], Any]
"""What the model writes: text as it is, anything else as JSON."""


def fake(wire: str, speak: Speak, **fields: Any) -> Callable[[Recorded], Answer]:
    """Return the script of a server that checks each request strictly and lets `speak` write the answer.

    Args:
        wire: which of the four it speaks.
        speak: the model.
        fields: passed to `reply`.
    """

    def answer(request: Recorded) -> Answer:
        asked = CHECKS[wire](request)
        written = speak(asked)
        return Answer(json=reply(wire, written if isinstance(written, str) else json.dumps(written), **fields))

    return answer


def reply(wire: str, text: str | None, *, end: str | None = None, read: int = 100, written: int = 20) -> dict[str, Any]:
    """Return a whole reply of a wire with `text` as the model's answer.

    Args:
        wire: which of the four.
        text: the message's text; `None` where there is none.
        end: why it ended, in the wire's word; the word of a whole answer by default.
        read: tokens read.
        written: tokens written.
    """
    if wire == "chat":
        message = {"role": "assistant", "content": text, "refusal": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL_ANSWERED,
            "choices": [{"index": 0, "message": message, "finish_reason": end or "stop"}],
            "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
        }
    if wire == "responses":
        parts = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
        return {
            "id": "resp_1",
            "object": "response",
            "model": MODEL_ANSWERED,
            "status": "incomplete" if end else "completed",
            "error": None,
            "incomplete_details": {"reason": end} if end else None,
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "message", "role": "assistant", "status": "completed", "content": parts},
            ],
            "usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        }
    if wire == "anthropic":
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODEL_ANSWERED,
            "content": [] if text is None else [{"type": "text", "text": text}],
            "stop_reason": end or "end_turn",
            "stop_sequence": None,
            # What was cached is not among the input tokens on this wire.
            "usage": {
                "input_tokens": read - 60,
                "cache_creation_input_tokens": 10,
                "cache_read_input_tokens": 50,
                "output_tokens": written,
            },
        }
    return {
        "model": MODEL_ANSWERED,
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": text or "", "thinking": ""},
        "done": True,
        "done_reason": end or "stop",
        "total_duration": 1,
        "prompt_eval_count": read,
        "eval_count": written,
    }


def _fields(body: Mapping[str, Any], required: str, optional: str = "") -> None:
    missing = set(required.split()) - set(body)
    unknown = set(body) - set(required.split()) - set(optional.split())
    assert not missing, f"a field is missing: {missing}"
    assert not unknown, f"a strict server knows no such fields: {unknown}"


_COMMON = {"type", "additionalProperties", "required", "properties", "items", "enum"}
_BOUNDS = {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}


def _strict(schema: Any, *, bounds: bool = False) -> Any:
    """Check a schema as strict modes do: closed objects, every key required, nothing beyond the common subset.

    Bounds are refused too, but by llama.cpp and by Ollama, which is built on it.
    """
    assert set(schema) <= (_COMMON | _BOUNDS if bounds else _COMMON)
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False
        assert sorted(schema["required"]) == sorted(schema["properties"])
        for inner in schema["properties"].values():
            _strict(inner, bounds=bounds)
    if schema["type"] == "array":
        _strict(schema["items"], bounds=bounds)
    return schema


def _data(user: str) -> Any:
    """Return the data of a user message, which must be a fixed heading and one line of JSON."""
    heading, line = user.split("\n")
    assert heading == _HEADING
    assert len(line.splitlines()) == 1, "something in the data ends the line"
    return json.loads(line)


def _messages(messages: Sequence[Mapping[str, Any]]) -> tuple[str, Any]:
    system, user = messages
    assert (system["role"], user["role"]) == ("system", "user")
    assert set(system) == set(user) == {"role", "content"}
    return system["content"], _data(user["content"])


def _posted(request: Recorded, wire: str) -> Any:
    assert (request.method, request.path) == ("POST", PATHS[wire])
    assert request.headers["content-type"] == "application/json"
    body = request.json
    assert isinstance(body["model"], str)
    return body


def _chat(request: Recorded) -> Asked:
    body = _posted(request, "chat")
    _fields(body, "model messages", "max_tokens max_completion_tokens temperature response_format structured_outputs")
    assert sum(name in body for name in ("max_tokens", "max_completion_tokens")) == 1
    assert body.get("temperature", 0) == 0
    schema = None
    form = body.get("response_format")
    if form is not None and form["type"] == "json_schema":
        _fields(form, "type json_schema")
        _fields(form["json_schema"], "name strict schema")
        assert form["json_schema"]["strict"] is True
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", form["json_schema"]["name"])
        schema = _strict(form["json_schema"]["schema"])
    elif form is not None:
        _fields(form, "type schema")
        assert form["type"] == "json_object"
        schema = _strict(form["schema"], bounds=True)
    elif "structured_outputs" in body:
        _fields(body["structured_outputs"], "json")
        schema = _strict(body["structured_outputs"]["json"])
    return Asked(*_messages(body["messages"]), schema)


def _responses(request: Recorded) -> Asked:
    body = _posted(request, "responses")
    _fields(body, "model input max_output_tokens store", "temperature text")
    assert body["store"] is False, "content must not be kept there"
    schema = None
    if "text" in body:
        form = body["text"]["format"]
        _fields(form, "type name strict schema")
        assert (form["type"], form["strict"]) == ("json_schema", True)
        schema = _strict(form["schema"])
    return Asked(*_messages(body["input"]), schema)


def _anthropic(request: Recorded) -> Asked:
    body = _posted(request, "anthropic")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", request.headers["anthropic-version"])
    _fields(body, "model max_tokens messages system", "temperature output_config tools tool_choice")
    (user,) = body["messages"]
    assert user["role"] == "user"
    schema = None
    if "output_config" in body:
        form = body["output_config"]["format"]
        _fields(form, "type schema")
        schema = _strict(form["schema"])
    elif "tools" in body:
        (tool,) = body["tools"]
        _fields(tool, "name description input_schema")
        assert body["tool_choice"] == {"type": "tool", "name": tool["name"]}
        schema = _strict(tool["input_schema"])
    return Asked(body["system"], _data(user["content"]), schema)


def _ollama(request: Recorded) -> Asked:
    body = _posted(request, "ollama")
    _fields(body, "model messages stream think truncate shift options", "format")
    assert body["stream"] is False, "it streams unless told not to"
    _fields(body["options"], "num_ctx num_predict", "temperature")
    schema = None if "format" not in body else _strict(body["format"], bounds=True)
    return Asked(*_messages(body["messages"]), schema)


CHECKS: Mapping[str, Callable[[Recorded], Asked]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "ollama": _ollama,
}


@asynccontextmanager
async def generating(url: str, wire: str = "chat", **settings: Any) -> AsyncIterator[ChatGenerator]:
    """Open a generator on a server."""
    made = GeneratorSettings(**{"base_url": url, "wire": wire, "model": "model-1", **settings})
    async with http_client("hosted.generator", made) as client:
        yield ChatGenerator(made, client)


@asynccontextmanager
async def deciding(url: str, wire: str = "chat", **settings: Any) -> AsyncIterator[ChatDecisionBackend]:
    """Open a decision backend on a server."""
    made = ChatDecisionSettings(**{"base_url": url, "wire": wire, "model": "model-1", **settings})
    async with http_client("hosted.chat-decision", made) as client:
        yield ChatDecisionBackend(made, client)
