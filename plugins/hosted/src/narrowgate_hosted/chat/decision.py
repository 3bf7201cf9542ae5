"""`hosted.chat-decision`: a language model as a decision backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from narrowgate.decisions import (
    NO_USAGE,
    DecisionOutcome,
    DecisionRequest,
    DecisionResult,
    Usage,
    cost_of,
    total,
    unreported,
)
from narrowgate.errors import DecisionError, GenerationError
from narrowgate_hosted.chat.answers import CURES
from narrowgate_hosted.chat.model import ChatModel, policy
from narrowgate_hosted.chat.prompts import FRAME
from narrowgate_hosted.chat.settings import ChatDecisionSettings
from narrowgate_http import HttpClient
from narrowgate_http.together import each

NAME: Final = "hosted.chat-decision"

PROMPT: Final = "decision-prompt.v1"
"""The version of the instructions below. Another wording is another version."""

_ONE: Final = """\
You answer one narrow question. `question` is what is asked. `subject` is the text that is judged. `evidence` is the list \
of texts that it is judged against; it may be empty. The answer is an object whose key `answer` is"""

_MANY: Final = """\
You answer narrow questions, each on its own as if the others were not there. `questions` is a list. In each item \
`question` is what is asked, `subject` is the text that is judged, and `evidence` is the list of texts that it is judged \
against; it may be empty. The answer is an object whose key `answers` is a list with exactly one object for each item: its \
key `id` is that of the item, and its key `answer` is"""

_OUTCOMES: Final = """\
 "yes" when the answer to the question is yes, "no" when it is no, and "abstain" when it cannot be told from these texts."""

_PROBABILITY: Final = """\
 The key `probability` is how likely it is, from 0 to 1, that the answer to the question is yes."""


class ChatDecisionBackend:
    """A `DecisionBackend`: the model answers yes, no or abstain.

    A refusal is an abstention with the reason `refused`. Every other answer that is none raises: an outage, a cut answer and
    prose are no abstentions.

    Args:
        settings: see `ChatDecisionSettings`.
        client: made by `http_client` with the same settings.
    """

    def __init__(self, settings: ChatDecisionSettings, client: HttpClient) -> None:
        self._settings = settings
        self._model = ChatModel(settings, client)
        shape = [FRAME, PROMPT]
        if settings.batch > 1:
            shape.append("list")
        if settings.probability:
            shape.append(f"probability={settings.drop_below:g}..{settings.keep_at:g}")
        self._policy_id = policy(f"{NAME}.v1", settings, *shape)
        self._instructions = (_MANY if settings.batch > 1 else _ONE) + _OUTCOMES
        if settings.probability:
            self._instructions += _PROBABILITY

    @property
    def policy_id(self) -> str:
        """Names the prompts' versions, the wire, the model asked for, and a digest of the settings that change an answer."""
        return self._policy_id

    @property
    def exact_model(self) -> str | None:
        """The model's name where it always means the same model, else `None`."""
        return self._model.exact_model

    @property
    def batch_limit(self) -> int:
        """The setting `batch`."""
        return self._settings.batch

    @property
    def concurrency(self) -> int:
        """The setting `concurrency`."""
        return self._settings.concurrency

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return the verdict on one question.

        Raises:
            DecisionError: with the code and the cost of the failing call.
        """
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return the verdicts in order.

        When the model refuses a request with several questions, each is asked by itself, as many at once as `concurrency`
        allows: one of them is the cause, and the others have a verdict.

        Raises:
            ValueError: more than `batch_limit` questions.
            DecisionError: with the code and the cost of every request of this call.
        """
        if len(requests) > self.batch_limit:
            raise ValueError(f"at most {self.batch_limit} questions, not {len(requests)}")
        if not requests:
            return ()
        try:
            return await self._ask(requests)
        except GenerationError as error:
            spent = error.usage or NO_USAGE
            if error.code != "refused":
                raise DecisionError(str(error), spent, error.code) from error
        if len(requests) == 1:
            return (DecisionResult(DecisionOutcome.ABSTAIN, self._policy_id, spent, reason="refused"),)
        return await self._singly(requests, attrs.evolve(spent, calls=0))

    async def _singly(self, requests: Sequence[DecisionRequest], spent: Usage) -> tuple[DecisionResult, ...]:
        """Ask one by one; the first verdict bears what the refused request cost."""
        costs: list[Usage] = []

        async def one(request: DecisionRequest) -> DecisionResult:
            place = len(costs)
            # Entered before the call and corrected after it, so that a cancelled call stays in the account.
            costs.append(unreported(1))
            try:
                result = await self.evaluate(request)
            except DecisionError as error:
                costs[place] = cost_of(error, 1)
                raise
            costs[place] = result.usage
            return result

        try:
            first, *others = await each(requests, one, self.concurrency)
        except DecisionError as error:
            raise DecisionError(str(error), spent + total(costs), error.code) from error
        return (attrs.evolve(first, usage=spent + first.usage), *others)

    async def _ask(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Send one request.

        Raises:
            GenerationError: no answer to every question.
        """
        told = [{"question": item.question, "subject": item.subject, "evidence": list(item.evidence)} for item in requests]
        if self._settings.batch == 1:
            answer = await self._model.ask(self._instructions, told[0], self._closed(self._answer()))
            return (self._result(answer.value, answer.usage),)
        ids = [f"q{number}" for number in range(1, len(requests) + 1)]
        data = {"questions": [{"id": name, **item} for name, item in zip(ids, told, strict=True)]}
        one = self._closed({"id": {"type": "string", "enum": ids}, **self._answer()})
        schema = self._closed({"answers": {"type": "array", "items": one}})
        answer = await self._model.ask(self._instructions, data, schema, calls=len(requests))
        found = answer.value["answers"]
        by_id = {item["id"]: item for item in found}
        if len(found) != len(ids) or len(by_id) != len(ids):
            flaw = f"{NAME}: answered {len(by_id)} of {len(ids)} questions, with {len(found)} answers"
            raise GenerationError(f"{flaw} [wrong-ids]: {CURES['wrong-ids']}", answer.usage, "wrong-ids")
        # The request is charged to its first question, so that the sum over all is what was spent.
        costs = [attrs.evolve(answer.usage, calls=1)] + [Usage(calls=1)] * (len(ids) - 1)
        return tuple(self._result(by_id[name], cost) for name, cost in zip(ids, costs, strict=True))

    def _answer(self) -> dict[str, Any]:
        keys: dict[str, Any] = {"answer": {"type": "string", "enum": [str(outcome) for outcome in DecisionOutcome]}}
        if self._settings.probability:
            keys["probability"] = {"type": "number", "minimum": 0, "maximum": 1}
        return keys

    @staticmethod
    def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "required": list(properties),
            "properties": dict(properties),
        }

    def _result(self, answer: Mapping[str, Any], usage: Usage) -> DecisionResult:
        said = DecisionOutcome(answer["answer"])
        score = float(answer["probability"]) if self._settings.probability else None
        outcome, reason = self._verdict(said, score)
        return DecisionResult(outcome, self._policy_id, usage, score=score, reason=reason)

    def _verdict(self, said: DecisionOutcome, score: float | None) -> tuple[DecisionOutcome, str | None]:
        """Return outcome and reason: the thresholds decide; a word that says the opposite of its number is no verdict."""
        if said is DecisionOutcome.ABSTAIN:
            return said, "undecided"
        if score is None:
            return said, None
        if score >= self._settings.keep_at:
            meant = DecisionOutcome.YES
        elif score < self._settings.drop_below:
            meant = DecisionOutcome.NO
        else:
            return DecisionOutcome.ABSTAIN, "uncertain"
        return (said, None) if meant is said else (DecisionOutcome.ABSTAIN, "contradictory")
