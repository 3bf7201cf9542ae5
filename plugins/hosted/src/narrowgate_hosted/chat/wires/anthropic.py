"""Anthropic's messages: the schema in `output_config`, or as the input of a tool that must be called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from narrowgate_hosted.chat.answers import Parsed, UnusableError, count, list_in, no_error_in, object_in, odd_end, text_of
from narrowgate_hosted.chat.prompts import Prompt
from narrowgate_hosted.chat.schemas import without_bounds
from narrowgate_hosted.chat.settings import ChatSettings
from narrowgate_hosted.chat.wires.chat import NAME

VERSION: Final = "2023-06-01"
"""The protocol's version that is asked for; another one can be set in `headers`."""

_ENDED: Final = (None, "end_turn", "stop_sequence", "stop")
"""Ends of a whole answer; `stop` is the word of some servers other than Anthropic's."""

_CUT: Final = ("max_tokens", "model_context_window_exceeded")
_TEXT: Final = frozenset({"text"})


@attrs.frozen
class Anthropic:
    """`POST .../v1/messages`."""

    settings: ChatSettings
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": VERSION}

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return a request's body. Bounds are left out of the schema, since the service refuses such keywords."""
        body: dict[str, Any] = {
            "model": self.settings.model,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
            "max_tokens": self.settings.max_output_tokens,
        }
        if self.settings.send_temperature:
            body["temperature"] = 0
        schema = without_bounds(prompt.schema)
        if self.settings.schema_as == "native":
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        elif self.settings.schema_as == "tool":
            body["tools"] = [{"name": NAME, "description": "Takes the answer.", "input_schema": schema}]
            body["tool_choice"] = {"type": "tool", "name": NAME}
        return body

    def answer(self, reply: Mapping[str, Any]) -> str | Parsed:
        """Return the text, or the tool's input, which comes as JSON.

        Raises:
            UnusableError: see `Wire.answer`.
        """
        no_error_in(reply)
        end = reply.get("stop_reason")
        if end in _CUT:
            raise UnusableError("cut-answer", f"answered with a text that is cut (stop_reason {end})")
        if end == "refusal":
            raise UnusableError("refused", "answered with a refusal (stop_reason refusal)")
        blocks = [object_in(block, "a block of `content`") for block in list_in(reply.get("content"), "`content`")]
        as_tool = self.settings.schema_as == "tool"
        if end not in _ENDED and not (as_tool and end == "tool_use"):
            raise odd_end("stop_reason", end)
        if as_tool:
            calls = [block for block in blocks if block.get("type") == "tool_use" and block.get("name") == NAME]
            if len(calls) == 1:
                return Parsed(calls[0].get("input"))
            if calls:
                raise UnusableError("wrong-schema", "called the tool more than once")
        text = text_of(blocks, "`content`", _TEXT)
        if text is None:
            raise UnusableError("no-answer", "answered with an empty message")
        return text

    def tokens(self, reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Return the tokens read and written; cached ones are not among `input_tokens` and are added."""
        usage = reply.get("usage")
        read = count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return read, count(usage, "output_tokens")
