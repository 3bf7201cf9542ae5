"""OpenAI's chat completions, as OpenAI, vLLM, llama.cpp's server, LM Studio, Ollama and many gateways speak them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from narrowgate_hosted.chat.answers import UnusableError, count, list_in, no_error_in, object_in, odd_end, text_of
from narrowgate_hosted.chat.prompts import Prompt
from narrowgate_hosted.chat.schemas import without_bounds
from narrowgate_hosted.chat.settings import ChatSettings

NAME: Final = "answer"
"""What the schema is called; at most 64 of `[A-Za-z0-9_-]`."""

_ENDED: Final = (None, "", "stop", "eos", "eos_token", "stop_sequence", "end_turn")
"""Ends of a whole answer. Servers other than OpenAI's have words of their own, or none."""

_CUT: Final = ("length", "max_tokens", "model_length", "abort")
_REFUSED: Final = ("content_filter", "refusal", "safety", "guardrail_intervened")
_TEXT: Final = frozenset({"text", "output_text"})


@attrs.frozen
class Chat:
    """`POST .../v1/chat/completions`."""

    settings: ChatSettings
    headers: ClassVar[Mapping[str, str]] = {}

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return a request's body; see `ChatSettings.schema_as` for where the schema goes.

        Bounds go to llama.cpp alone: strict modes and grammars of other servers refuse some of those keywords.
        """
        body: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            self.settings.token_field: self.settings.max_output_tokens,
        }
        if self.settings.send_temperature:
            body["temperature"] = 0
        if self.settings.schema_as == "native":
            named = {"name": NAME, "strict": True, "schema": without_bounds(prompt.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif self.settings.schema_as == "json_object":
            body["response_format"] = {"type": "json_object", "schema": prompt.schema}
        elif self.settings.schema_as == "structured_outputs":
            body["structured_outputs"] = {"json": without_bounds(prompt.schema)}
        return body

    def answer(self, reply: Mapping[str, Any]) -> str:
        """Return the text of the only choice.

        Raises:
            UnusableError: see `Wire.answer`.
        """
        no_error_in(reply)
        choices = list_in(reply.get("choices"), "`choices`")
        if not choices:
            raise UnusableError("no-answer", "answered without a choice")
        if len(choices) > 1:
            raise UnusableError("wrong-shape", "answered with several choices, and one was asked for")
        choice = object_in(choices[0], "the choice")
        no_error_in(choice)
        message = object_in(choice.get("message"), "`message`")
        end = choice.get("finish_reason")
        if end in _CUT:
            raise UnusableError("cut-answer", f"answered with a text that is cut (finish_reason {end})")
        if end in _REFUSED:
            raise UnusableError("refused", f"held its answer back (finish_reason {end})")
        if message.get("refusal"):
            raise UnusableError("refused", "answered with a refusal")
        if end not in _ENDED:
            raise odd_end("finish_reason", end)
        text = text_of(message.get("content"), "`content`", _TEXT)
        if text is None:
            thought = message.get("reasoning") or message.get("reasoning_content")
            raise UnusableError("no-answer", f"answered with {'reasoning alone' if thought else 'an empty message'}")
        return text

    def tokens(self, reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Return the tokens read and written; cached ones are among `prompt_tokens`."""
        usage = reply.get("usage")
        return count(usage, "prompt_tokens"), count(usage, "completion_tokens")
