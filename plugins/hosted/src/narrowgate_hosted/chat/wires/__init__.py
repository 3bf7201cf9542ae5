"""The four protocols: how a prompt is put into a request, and what of a reply is the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from narrowgate_hosted.chat.answers import Parsed
from narrowgate_hosted.chat.prompts import Prompt
from narrowgate_hosted.chat.settings import ChatSettings
from narrowgate_hosted.chat.wires.anthropic import Anthropic
from narrowgate_hosted.chat.wires.chat import Chat
from narrowgate_hosted.chat.wires.ollama import Ollama
from narrowgate_hosted.chat.wires.responses import Responses


class Wire(Protocol):
    """One protocol under given settings. It keeps nothing of what passes through it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers that the protocol demands."""
        ...

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Return a request's body."""
        ...

    def answer(self, reply: Mapping[str, Any]) -> str | Parsed:
        """Return what the model wrote, after how it ended was looked at.

        Raises:
            UnusableError: `cut-answer`, `cut-prompt`, `refused`, `no-answer`, `provider-error`, `wrong-shape`.
        """
        ...

    def tokens(self, reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Return the tokens read (cached ones counted in) and written; `None` for what the reply does not tell."""
        ...


ROUTES: Final[Mapping[str, tuple[str, str]]] = {
    "chat": ("v1", "chat/completions"),
    "responses": ("v1", "responses"),
    "anthropic": ("v1", "messages"),
    "ollama": ("api", "chat"),
}
"""Wire -> version and operation of its route, for `narrowgate_http.resolve`."""

WIRES: Final[Mapping[str, Callable[[ChatSettings], Wire]]] = {
    "chat": Chat,
    "responses": Responses,
    "anthropic": Anthropic,
    "ollama": Ollama,
}
"""Wire name -> protocol."""
