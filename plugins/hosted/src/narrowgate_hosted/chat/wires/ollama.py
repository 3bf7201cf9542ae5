"""Ollama's own chat, whose silent cutting of long prompts is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from narrowgate_hosted.chat.answers import UnusableError, count, no_error_in, object_in, odd_end, text_of
from narrowgate_hosted.chat.prompts import Prompt
from narrowgate_hosted.chat.settings import ChatSettings

_ENDED: Final = (None, "", "stop")


@attrs.frozen
class Ollama:
    """`POST .../api/chat`."""

    settings: ChatSettings
    headers: ClassVar[Mapping[str, str]] = {}

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return a request's body; newer servers obey `truncate` and `shift`, older ones are found out by their counts."""
        options: dict[str, Any] = {"num_ctx": self.settings.num_ctx, "num_predict": self.settings.max_output_tokens}
        if self.settings.send_temperature:
            options["temperature"] = 0
        body: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "stream": False,
            "think": False,
            "truncate": False,
            "shift": False,
            "options": options,
        }
        if self.settings.schema_as == "native":
            body["format"] = prompt.schema
        return body

    def answer(self, reply: Mapping[str, Any]) -> str:
        """Return the message's text.

        Raises:
            UnusableError: see `Wire.answer`.
        """
        no_error_in(reply)
        message = object_in(reply.get("message"), "`message`")
        if reply.get("done") is not True:
            raise UnusableError("wrong-shape", "answered with the first piece of a stream")
        end = reply.get("done_reason")
        if end == "length":
            raise UnusableError("cut-answer", "answered with a text that is cut (done_reason length)")
        read, written = self.tokens(reply)
        if read is not None and (read >= self.settings.num_ctx or read + (written or 0) > self.settings.num_ctx):
            raise UnusableError("cut-prompt", f"had to cut the prompt to its {self.settings.num_ctx} tokens of context")
        if end not in _ENDED:
            raise odd_end("done_reason", end)
        text = text_of(message.get("content"), "`content`", frozenset())
        if text is None:
            thought = message.get("thinking")
            raise UnusableError("no-answer", f"answered with {'reasoning alone' if thought else 'an empty message'}")
        return text

    def tokens(self, reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Return the tokens read and written; a prompt that was cached is not counted, and so unknown."""
        return count(reply, "prompt_eval_count"), count(reply, "eval_count")
