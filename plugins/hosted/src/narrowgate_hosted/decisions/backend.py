"""The decision backend over a service: batches within the service's limits, thresholds, and a true account."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from narrowgate.decisions import cost_of, total, unreported
from narrowgate.errors import DecisionError
from narrowgate.values.decision import NO_USAGE, DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate_hosted.decisions.dialects import Dialect
from narrowgate_hosted.decisions.limits import Limits
from narrowgate_hosted.decisions.prompt import PROMPT_VERSION
from narrowgate_hosted.decisions.settings import DecisionsSettings
from narrowgate_hosted.decisions.wires import Answer, UnreadableError, Wire
from narrowgate_hosted.models import is_another
from narrowgate_http.bodies import encode
from narrowgate_http.client import HttpClient, Reply
from narrowgate_http.failures import CURES, HttpError
from narrowgate_http.together import each

UNDECIDED: Final = "undecided"
"""Reason of an abstention: the probability lies between the thresholds."""

_EXACT: Final = re.compile(
    r"(?<!\d)\d+\.\d+\.\d+(?![\d.])|(?<!\d)\d{8}(?!\d)|(?<!\d)\d{4}-\d\d-\d\d(?!\d)|@sha256:[0-9a-f]{12}"
)
_MOVING: Final = re.compile(r"^~|latest|preview|nightly", re.IGNORECASE)


def exact(model: str | None) -> str | None:
    """Return `model` when its name is of one exact version (`jev-1.13.0`, a date, a digest), else `None`.

    A name of which nobody can tell counts as an alias that may move: `jev-latest`, `jev-1.14`, `gpt-6-luna`, `mine:7b`.
    """
    pinned = model is not None and _EXACT.search(model) is not None and _MOVING.search(model) is None
    return model if pinned else None


_NAMING: Final = 24
"""More bytes than a question takes in a body beside its own: name, quotes, comma."""


@attrs.define
class _Part:
    """One request in the making.

    Attributes:
        frame: the body without questions.
        frame_size: its bytes.
        size: bytes of the body so far, rather too many than too few.
        places: the places of its questions among those asked.
        requests: the questions.
        questions: name -> question as it is sent, in order.
    """

    frame: Mapping[str, Any]
    frame_size: int
    size: int
    places: list[int] = attrs.field(factory=list)
    requests: list[DecisionRequest] = attrs.field(factory=list)
    questions: dict[str, dict[str, Any]] = attrs.field(factory=dict)


class DecisionsBackend:
    """A `DecisionBackend` that puts yes/no questions to a decision service.

    Args:
        client: of the component.
        url: the resolved URL.
        settings: of the component.
        wire: how the service is spoken to.
        dialect: the service's limits.
        model: the model that the wire asks for; `None` where the server chooses.
    """

    def __init__(
        self,
        client: HttpClient,
        url: str,
        settings: DecisionsSettings,
        *,
        wire: Wire,
        dialect: Dialect,
        model: str | None,
    ) -> None:
        self._client, self._url, self._settings, self._wire, self._model = client, url, settings, wire, model
        self._limits = Limits.of(settings, dialect)
        self._other = False
        place = "" if settings.text_in == "question" else f";text-in={settings.text_in}"
        self._policy_id = (
            f"{client.name}.v1;wire={wire.name};model={model or 'default'};prompt={PROMPT_VERSION}{place}"
            f";keep-at={settings.keep_at:g};drop-below={settings.drop_below:g}"
        )

    @property
    def policy_id(self) -> str:
        """Component, wire, model asked for, version of the prompt, thresholds."""
        return self._policy_id

    @property
    def exact_model(self) -> str | None:
        """The model asked for when its name is of one exact version (see `exact`) and no reply named another; or `None`."""
        return None if self._other else exact(self._model)

    @property
    def batch_limit(self) -> int:
        """The most questions in one request; 1 where each text has a request of its own."""
        return self._limits.questions

    @property
    def concurrency(self) -> int:
        """The most requests under way at once."""
        return self._settings.concurrency

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return the verdict on one question; see `evaluate_many`."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return the verdicts in order, in one request where evidence and size allow, else in several at once.

        Abstains with `undecided` (the probability lies between the thresholds) and `refused` (the service declined). However
        many requests that takes, all of them together have the seconds of `deadline`.

        Raises:
            ValueError: more than `batch_limit` questions.
            DecisionError: `too-large` or `unencodable` before anything was sent, else any code of `narrowgate_http`.
        """
        if len(requests) > self.batch_limit:
            raise ValueError(f"at most {self.batch_limit} questions, not {len(requests)}")
        end = anyio.current_time() + self._settings.deadline
        parts = self._parts(requests)
        answered = [await self._ask(parts[0], end)] if len(parts) == 1 else await self._ask_all(parts, end)
        results = {
            place: result
            for part, verdicts in zip(parts, answered, strict=True)
            for place, result in zip(part.places, verdicts, strict=True)
        }
        return tuple(results[place] for place in range(len(requests)))

    def _parts(self, requests: Sequence[DecisionRequest]) -> list[_Part]:
        """Divide the questions into requests: one state in each, no more questions and bytes than allowed."""
        parts: list[_Part] = []
        latest: dict[tuple[str, ...], _Part] = {}
        for place, request in enumerate(requests):
            question = self._wire.question(request)
            size = self._size(question) + _NAMING
            part = latest.get(request.evidence)
            if part is None or len(part.places) == self._limits.questions or part.size + size > self._limits.request_bytes:
                frame = self._wire.frame(request)
                size_of_frame = self._size(self._wire.body(frame, {}))
                part = _Part(frame, size_of_frame, size_of_frame)
                parts.append(part)
                latest[request.evidence] = part
            self._check_size(part.frame_size + size)
            part.size += size
            part.places.append(place)
            part.requests.append(request)
            part.questions[f"q{len(part.places)}"] = question
        return parts

    def _check_size(self, size: int) -> None:
        limit = self._limits.question_bytes
        if size > limit:
            raise DecisionError(
                f"{self._client.name}: a question with its state has {size} bytes, and the limit is {limit} [too-large]:"
                " raise max_question_bytes and max_request_bytes where the server takes more, or store shorter texts",
                NO_USAGE,
                "too-large",
            )

    def _size(self, value: Any) -> int:
        try:
            return len(encode(value))
        except ValueError:
            message = f"{self._client.name}: the request is no JSON [unencodable]: {CURES['unencodable']}"
            raise DecisionError(message, NO_USAGE, "unencodable") from None

    async def _ask_all(self, parts: Sequence[_Part], end: float) -> list[list[DecisionResult]]:
        """Send several requests at once. When one fails, no further one is sent, and those under way are cancelled."""
        costs: list[Usage] = []

        async def ask(part: _Part) -> list[DecisionResult]:
            place = len(costs)
            # Entered before the request and corrected after it, so that a cancelled one stays in the account.
            costs.append(unreported(len(part.places)))
            try:
                results = await self._ask(part, end)
            except DecisionError as error:
                costs[place] = cost_of(error, len(part.places))
                raise
            costs[place] = total(result.usage for result in results)
            return results

        try:
            return await each(parts, ask, self._settings.concurrency)
        except DecisionError as first:
            raise DecisionError(str(first), total(costs), first.code) from first

    async def _ask(self, part: _Part, end: float) -> list[DecisionResult]:
        body = self._wire.body(part.frame, part.questions)
        contents = [text for item in part.requests for text in (item.question, item.subject, *item.evidence)]
        try:
            reply = await self._client.post(self._url, body, contents=contents, within=end - anyio.current_time())
        except HttpError as error:
            raise error.as_error(DecisionError, len(part.places)) from error
        usage = _usage(reply, len(part.places))
        # For good: once another one has answered, nobody knows when it will again.
        self._other = self._other or (isinstance(reply.json, dict) and is_another(reply.json.get("model"), self._model))
        try:
            answers = self._wire.answers(reply.json, list(part.questions))
        except UnreadableError as error:
            said = reply.json if error.code == "provider-error" else None
            failure = self._client.refused(error.code, self._url, error.what, said, contents)
            raise DecisionError(str(failure), usage, error.code) from None
        # A request is charged to the first question that it carries.
        first = attrs.evolve(usage, calls=1)
        return [self._result(answer, Usage(1) if place else first) for place, answer in enumerate(answers)]

    def _result(self, answer: Answer, usage: Usage) -> DecisionResult:
        if isinstance(answer, str):
            return DecisionResult(DecisionOutcome.ABSTAIN, self._policy_id, usage, reason=answer)
        if answer >= self._settings.keep_at:
            return DecisionResult(DecisionOutcome.YES, self._policy_id, usage, probability=answer)
        if answer < self._settings.drop_below:
            return DecisionResult(DecisionOutcome.NO, self._policy_id, usage, probability=answer)
        return DecisionResult(DecisionOutcome.ABSTAIN, self._policy_id, usage, probability=answer, reason=UNDECIDED)


def _usage(reply: Reply, calls: int) -> Usage:
    """Return what an answered request cost; tokens that nobody told, or told as no count, are unknown and not nothing."""
    told = reply.json.get("usage") if isinstance(reply.json, dict) else None
    counts = [told.get(name) if isinstance(told, dict) else None for name in ("input_tokens", "output_tokens")]
    known = [
        count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 and not reply.tokens_unknown else None
        for count in counts
    ]
    return Usage(calls, reply.requests, known[0], known[1])
