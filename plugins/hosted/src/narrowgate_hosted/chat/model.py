"""One language model behind one wire: asks, looks at how the answer ended, reads it strictly, and keeps the account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from time import monotonic
from typing import Any

from narrowgate.errors import GenerationError
from narrowgate.seams.ports import Generation
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate_hosted.chat.answers import CURES, INVALID, Parsed, UnusableError, value_in
from narrowgate_hosted.chat.prompts import framed, texts_in
from narrowgate_hosted.chat.schemas import check_schema, mismatch
from narrowgate_hosted.chat.settings import ChatSettings, is_dated
from narrowgate_hosted.chat.wires import ROUTES, WIRES
from narrowgate_hosted.models import is_another
from narrowgate_http import HttpClient, HttpError, Reply, resolve, shown

_LONGEST_NAME = 200
"""The longest model name, in characters, that is taken from a reply."""


class ChatModel:
    """Asks for JSON that fits a schema.

    Args:
        settings: see `ChatSettings`.
        client: posts for the component that this is part of, and bears its name.
    """

    def __init__(self, settings: ChatSettings, client: HttpClient) -> None:
        self.settings = settings
        self._other = False
        self._client = client
        self._wire = WIRES[settings.wire](settings)
        self._url = resolve(settings, *ROUTES[settings.wire])
        # What the operator set wins over what the protocol usually wants.
        given = {name.lower() for name in settings.headers}
        self._headers = {name: value for name, value in self._wire.headers.items() if name not in given}

    @property
    def exact_model(self) -> str | None:
        """The model's name where it always means the same model, else `None`.

        A name that is taken for one by its date alone is none any more once a reply named another model.
        """
        return self.settings.model if self.settings.pinned and not self._other else None

    async def ask(
        self, instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any], *, calls: int = 1, repeats: int = 0
    ) -> Generation:
        """Return a JSON value that fits `schema`.

        Args:
            instructions: what to do.
            data: what to do it with; untrusted.
            schema: see `check_schema`.
            calls: how many questions this carries, for the account.
            repeats: further attempts after an invalid answer; all within the deadline of one call.

        Raises:
            ValueError: the schema is outside the subset, or `data` holds a number that is not finite.
            TypeError: `data` holds what JSON has not.
            GenerationError: with the code and the cost of all attempts.
        """
        check_schema(schema)
        prompt = framed(instructions, data, schema, tell_schema=self.settings.schema_as == "prompt")
        body = {**self.settings.extra_body, **self._wire.body(prompt)}
        contents = texts_in(data)
        end = monotonic() + self.settings.deadline
        spent = NO_USAGE
        for attempt in range(repeats + 1):
            counted = 0 if spent.requests else calls
            try:
                reply = await self._client.post(
                    self._url, body, contents=contents, headers=self._headers, within=end - monotonic()
                )
            except HttpError as failure:
                raise GenerationError(str(failure), spent + failure.usage(counted), failure.code) from failure
            spent += self._cost(reply, counted)
            try:
                return Generation(self._value(reply, schema), self._model_of(reply), spent)
            except UnusableError as error:
                unusable = error
            if unusable.code not in INVALID or attempt == repeats or monotonic() >= end:
                break
        raise GenerationError(self._message(unusable, contents), spent, unusable.code) from unusable

    def _value(self, reply: Reply, schema: Mapping[str, Any]) -> Any:
        if not isinstance(reply.json, Mapping):
            raise UnusableError("wrong-shape", "answered with JSON that is no object")
        written = self._wire.answer(reply.json)
        value = written.value if isinstance(written, Parsed) else value_in(written)
        flaw = mismatch(value, schema)
        if flaw is not None:
            raise UnusableError("wrong-schema", f"answered with JSON that does not fit the schema: {flaw}")
        return value

    def _cost(self, reply: Reply, calls: int) -> Usage:
        read, written = self._wire.tokens(reply.json) if isinstance(reply.json, Mapping) else (None, None)
        if reply.tokens_unknown:
            read = written = None
        return Usage(calls, reply.requests, read, written)

    def _model_of(self, reply: Reply) -> str:
        name = reply.json.get("model")
        # What an operator says of a name without a date is theirs to know: servers call one file by several names.
        self._other = self._other or (is_dated(self.settings.model) and is_another(name, self.settings.model))
        return name if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME else self.settings.model

    def _message(self, unusable: UnusableError, contents: list[str]) -> str:
        code = unusable.code
        if code not in CURES:
            return str(self._client.refused(code, self._url, unusable.what, unusable.said, contents))
        return f"{self._client.name}: {shown(self._url)} {unusable.what} [{code}]: {CURES[code]}"


def policy(name: str, settings: ChatSettings, *versions: str) -> str:
    """Return a policy id: component, prompt versions, wire, model, and a digest of what else changes an answer.

    Args:
        name: the component's name with its version.
        settings: its settings.
        versions: the prompts' versions, and whatever else should be readable.
    """
    told = [settings.schema_as, settings.max_output_tokens, settings.send_temperature, dict(settings.extra_body)]
    if settings.wire == "ollama":
        told.append(settings.num_ctx)
    digest = sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return ";".join([name, *versions, f"wire={settings.wire}", f"model={settings.model}", f"settings={digest}"])
