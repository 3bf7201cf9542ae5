"""OpenAI's Responses. Nothing is stored there (`store` false)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from narrowgate_hosted.chat.answers import UnusableError, count, list_in, no_error_in, object_in, text_of
from narrowgate_hosted.chat.prompts import Prompt
from narrowgate_hosted.chat.schemas import without_bounds
from narrowgate_hosted.chat.settings import ChatSettings
from narrowgate_hosted.chat.wires.chat import NAME

_TEXT: Final = frozenset({"output_text"})


@attrs.frozen
class Responses:
    """`POST .../v1/responses`."""

    settings: ChatSettings
    headers: ClassVar[Mapping[str, str]] = {}

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return a request's body. Bounds are left out of the schema, as strict modes may refuse such keywords."""
        body: dict[str, Any] = {
            "model": self.settings.model,
            "input": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "max_output_tokens": self.settings.max_output_tokens,
            "store": False,
        }
        if self.settings.send_temperature:
            body["temperature"] = 0
        if self.settings.schema_as == "native":
            schema = without_bounds(prompt.schema)
            body["text"] = {"format": {"type": "json_schema", "name": NAME, "strict": True, "schema": schema}}
        return body

    def answer(self, reply: Mapping[str, Any]) -> str:
        """Return the text of the last `message` item: items of reasoning stand before it.

        Raises:
            UnusableError: see `Wire.answer`.
        """
        no_error_in(reply)
        status = reply.get("status", "completed")
        if status == "failed":
            raise UnusableError("provider-error", "answered 200 with the status failed", reply)
        if status == "incomplete":
            details = reply.get("incomplete_details")
            if isinstance(details, Mapping) and details.get("reason") == "content_filter":
                raise UnusableError("refused", "held its answer back (content_filter)")
            raise UnusableError("cut-answer", "answered with a text that is cut (status incomplete)")
        if status != "completed":
            raise UnusableError("no-answer", "answered before the response was complete")
        items = [object_in(item, "an item of `output`") for item in list_in(reply.get("output"), "`output`")]
        messages = [item for item in items if item.get("type") == "message"]
        if not messages:
            raise UnusableError("no-answer", "answered without a message")
        if messages[-1].get("status", "completed") != "completed":
            raise UnusableError("cut-answer", "answered with a message that is not complete")
        text = text_of(messages[-1].get("content"), "`content`", _TEXT)
        if text is None:
            raise UnusableError("no-answer", "answered with an empty message")
        return text

    def tokens(self, reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Return the tokens read and written; cached ones are among `input_tokens`."""
        usage = reply.get("usage")
        return count(usage, "input_tokens"), count(usage, "output_tokens")
