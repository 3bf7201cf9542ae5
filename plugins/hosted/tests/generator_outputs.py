"""Malformed outputs of language models, as people have met them, and what must become of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from chat_fakes import GOOD, WIRES, reply

from narrowgate_http.testing import Answer

TAKEN: Final = "taken"
"""In place of a code: the output is an answer."""


@attrs.frozen
class Output:
    """One output.

    Attributes:
        name: what the table of the docs calls it.
        code: the code that it fails with, or `TAKEN`.
        wire: the wire on which it comes.
        answer: what the server sends.
        settings: settings of the generator that it needs.
    """

    name: str
    code: str
    wire: str
    answer: Answer
    settings: Mapping[str, Any] = attrs.field(factory=dict)


_WHOLE: Final = json.dumps(GOOD)
_FENCED: Final = f"```json\n{_WHOLE}\n```"

TEXTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "fence": (TAKEN, [_FENCED, f"\n```\n{_WHOLE}```  ", f"```JSON\r\n{_WHOLE}\r\n```", f"\ufeff {_WHOLE}\n"]),
    "fence-and-prose": (
        "prose",
        [f"{_FENCED}\nI hope this helps.", f"Here you are:\n{_FENCED}", f"{_FENCED}\n{_FENCED}", f"```json\n{_WHOLE}"],
    ),
    "prose": ("prose", ["None of these fit the question.", "Doc: 2, Relevance: 8 (because it says so)", "[2] > [1]"]),
    "number-in-prose": ("prose", ["I am 90% sure: 0.2", "9/10", "٣"]),
    "bare-number": ("wrong-schema", ["3.0", "6", '"6"', "null"]),
    "number-as-string": ("wrong-schema", ['{"ranks": ["2", "1"]}', '{"ranks": "2, 1"}']),
    "other-number": ("wrong-schema", ['{"ranks": [2.0]}', '{"ranks": [true]}', '{"ranks": [null]}']),
    "label": ("wrong-schema", ['{"ranks": ["EXISTING-0"]}', '{"ranks": ["[2]"]}']),
    "schema-ignored": (
        "wrong-schema",
        ['{"result": "2, 1"}', '{"ranks": [2], "why": "it says so"}', "[2, 1]", "{}", '{"ranks": {"0": 2}}'],
    ),
    "key-twice": ("wrong-schema", ['{"ranks": [2], "ranks": [1]}']),
    "not-finite": ("wrong-schema", ['{"ranks": [NaN]}', '{"ranks": [1e999]}', '{"ranks": [-Infinity]}']),
    "broken-json": ("prose", ['{"ranks": [2,', '{"ranks": [2, 1]', "{'ranks': [2]}", '{"ranks": [2],}', "[" * 100_000]),
    "two-values": ("prose", [f"{_WHOLE}\n{_WHOLE}", f"<think>Two is best.</think>{_WHOLE}"]),
    "runaway": ("prose", ['{"ranks": [' + "9" * 5000 + "]}"]),
    "blank": ("no-answer", ["", " \n" * 500]),
}
"""What stands in the message, on every wire: name -> code and texts."""


def _texts() -> list[Output]:
    return [
        Output(name, code, wire, Answer(json=reply(wire, text)))
        for name, (code, texts) in TEXTS.items()
        for wire in WIRES
        for text in texts
    ]


def _chat(message: Mapping[str, Any], end: str | None = "stop") -> dict[str, Any]:
    whole = reply("chat", None)
    whole["choices"] = [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": end}]
    return whole


def _responses(**fields: Any) -> dict[str, Any]:
    return {**reply("responses", _WHOLE), **fields}


def _item(**fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed", "content": [], **fields}


def _anthropic(*blocks: Mapping[str, Any], end: str = "end_turn") -> dict[str, Any]:
    return {**reply("anthropic", None, end=end), "content": list(blocks)}


def _tool(value: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": value}


def _ollama(**fields: Any) -> dict[str, Any]:
    return {**reply("ollama", _WHOLE), **fields}


_ERROR: Final = {"error": {"message": "the engine stopped", "type": "server_error", "code": 500}}
_REASONED: Final = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": _WHOLE}]}
_PIECES: Final = b'{"message":{"content":"{"},"done":false}\n{"message":{"content":"}"},"done":true}\n'
_AS_TOOL: Final = {"schema_as": "tool"}

REPLIES: Final[Sequence[tuple[str, str, str, Sequence[Any]]]] = [
    # A text that looks whole is cut all the same where the server says so.
    ("cut", "cut-answer", "chat", [reply("chat", text, end="length") for text in (_WHOLE, '{"ranks": [2', " " * 99)]),
    ("cut", "cut-answer", "chat", [reply("chat", _WHOLE, end="model_length"), reply("chat", "{", end="abort")]),
    ("cut", "cut-answer", "responses", [reply("responses", _WHOLE, end="max_output_tokens")]),
    ("cut", "cut-answer", "responses", [_responses(output=[_item(status="incomplete")])]),
    ("cut", "cut-answer", "anthropic", [reply("anthropic", _WHOLE, end="max_tokens")]),
    ("cut", "cut-answer", "anthropic", [reply("anthropic", "{", end="model_context_window_exceeded")]),
    ("cut", "cut-answer", "ollama", [reply("ollama", _WHOLE, end="length")]),
    ("refusal", "refused", "chat", [_chat({"content": None, "refusal": "I cannot help with that."})]),
    ("refusal", "refused", "responses", [_responses(output=[_item(content=[{"type": "refusal", "refusal": "No."}])])]),
    ("refusal", "refused", "anthropic", [reply("anthropic", "I cannot.", end="refusal"), _anthropic(end="refusal")]),
    ("filtered", "refused", "chat", [reply("chat", _WHOLE, end="content_filter"), _chat({"content": ""}, "content_filter")]),
    ("filtered", "refused", "responses", [reply("responses", "{", end="content_filter")]),
    ("reasoning-only", "no-answer", "chat", [_chat({"content": None, "reasoning_content": _WHOLE})]),
    ("reasoning-only", "no-answer", "chat", [_chat({"content": "", "reasoning": _WHOLE})]),
    ("reasoning-only", "no-answer", "chat", [_chat({"content": [{"type": "thinking", "thinking": _WHOLE}]})]),
    ("reasoning-only", "no-answer", "responses", [_responses(output=[_REASONED])]),
    ("reasoning-only", "no-answer", "anthropic", [_anthropic({"type": "thinking", "thinking": _WHOLE})]),
    ("reasoning-only", "no-answer", "ollama", [_ollama(message={"role": "assistant", "content": "", "thinking": _WHOLE})]),
    ("other-end", "no-answer", "chat", [_chat({"content": None, "tool_calls": [{}]}, "tool_calls")]),
    ("other-end", "no-answer", "chat", [{**reply("chat", _WHOLE), "choices": []}]),
    ("other-end", "no-answer", "responses", [_responses(status="in_progress"), _responses(status="cancelled")]),
    ("other-end", "no-answer", "anthropic", [reply("anthropic", _WHOLE, end=end) for end in ("pause_turn", "tool_use")]),
    ("other-end", "no-answer", "ollama", [reply("ollama", _WHOLE, end="load")]),
    ("error-in-200", "provider-error", "chat", [_ERROR, {**reply("chat", _WHOLE), **_ERROR}]),
    ("error-in-200", "provider-error", "chat", [{"choices": [{**_ERROR, "finish_reason": "error"}]}]),
    ("error-in-200", "provider-error", "responses", [_responses(status="failed", output=[], **_ERROR), _ERROR]),
    ("error-in-200", "provider-error", "responses", [_responses(status="failed", output=[])]),
    ("error-in-200", "provider-error", "anthropic", [{"type": "error", **_ERROR, "request_id": "req_1"}]),
    ("error-in-200", "provider-error", "ollama", [{"error": "the model has stopped"}]),
    ("several-choices", "wrong-shape", "chat", [{**reply("chat", _WHOLE), "choices": reply("chat", _WHOLE)["choices"] * 2}]),
    ("first-piece", "wrong-shape", "ollama", [_ollama(done=False), {"message": {"content": "{"}}]),
    ("prompt-cut", "cut-prompt", "ollama", [_ollama(prompt_eval_count=8192), _ollama(prompt_eval_count=8190)]),
    *[("other-shape", "wrong-shape", wire, [[], {}, {"unexpected": True}, None, "text"]) for wire in WIRES],
    ("other-shape", "wrong-shape", "chat", [{"choices": [{}]}, {"choices": ["text"]}, {"choices": {"0": {}}}]),
    ("other-shape", "wrong-shape", "chat", [_chat({"content": 7}), _chat({"content": [{"type": "text"}]})]),
    ("other-shape", "wrong-shape", "responses", [_responses(output=None), _responses(output=[_item(content=3)])]),
    ("other-shape", "wrong-shape", "anthropic", [{"content": "text"}, {"content": ["text"]}]),
    ("other-shape", "wrong-shape", "ollama", [_ollama(message="text"), _ollama(message={"content": 1})]),
]
"""Whole replies: name, code, wire, bodies."""

TOOLS: Final[Sequence[tuple[str, str, Any]]] = [
    ("no-tool-call", "prose", _anthropic({"type": "text", "text": "The second one."})),
    ("tool-input", "wrong-schema", _anthropic(_tool({"ranks": "[2, 1]"}), end="tool_use")),
    ("tool-input", "wrong-schema", _anthropic(_tool(_WHOLE), end="tool_use")),
    ("tool-input", "wrong-schema", _anthropic(_tool(GOOD), _tool(GOOD), end="tool_use")),
]
"""Replies of the form `tool`: name, code, body."""

STREAMS: Final = ("application/x-ndjson", "text/event-stream")

OUTPUTS: Final[Sequence[Output]] = [
    *_texts(),
    *(Output(name, code, wire, Answer(json=body)) for name, code, wire, bodies in REPLIES for body in bodies),
    *(Output(name, code, "anthropic", Answer(json=body), _AS_TOOL) for name, code, body in TOOLS),
    *(
        Output("stream", "wrong-shape", wire, Answer(body=_PIECES, headers={"content-type": kind}))
        for wire in WIRES
        for kind in STREAMS
    ),
]
"""Every output."""
