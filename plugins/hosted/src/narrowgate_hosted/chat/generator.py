"""`hosted.generator`: structured generation over four wires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from narrowgate.seams.ports import Generation
from narrowgate_hosted.chat.model import ChatModel, policy
from narrowgate_hosted.chat.prompts import FRAME
from narrowgate_hosted.chat.settings import GeneratorSettings
from narrowgate_http import HttpClient

NAME = "hosted.generator"


class ChatGenerator:
    """A `Generator`: one request, one JSON value that fits, or a `GenerationError` with its code and its cost.

    Args:
        settings: see `GeneratorSettings`.
        client: made by `http_client` with the same settings.
    """

    def __init__(self, settings: GeneratorSettings, client: HttpClient) -> None:
        self._model = ChatModel(settings, client)
        self._repeats = settings.repeats
        self._policy_id = policy(f"{NAME}.v1", settings, FRAME)

    @property
    def policy_id(self) -> str:
        """Names the frame's version, the wire, the model asked for, and a digest of the settings that change an answer."""
        return self._policy_id

    @property
    def exact_model(self) -> str | None:
        """The model's name where it always means the same model, else `None`."""
        return self._model.exact_model

    async def generate(self, instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> Generation:
        """Return a JSON value that fits `schema`; see `Generator.generate`.

        Raises:
            ValueError: a schema outside the subset of `narrowgate_hosted.chat.schemas`, or `data` that is no JSON.
            TypeError: likewise.
            GenerationError: with a code of `narrowgate_hosted.chat.answers` or `narrowgate_http`.
        """
        return await self._model.ask(instructions, data, schema, repeats=self._repeats)
