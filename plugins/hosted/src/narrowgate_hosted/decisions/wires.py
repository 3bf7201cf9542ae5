"""The wires: how a request is written and an answer is read. Pure; no input or output.

An answer is believed only when it is exactly what was asked for. Whatever is missing, too much, of another type or out of
range makes the whole answer unreadable: which part of a wrong answer is right, nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import attrs

from narrowgate.values.decision import DecisionRequest
from narrowgate_hosted.decisions.dialects import Dialect
from narrowgate_hosted.decisions.prompt import CRITERIA, instructions_of, state_of

REFUSED: Final = "refused"
"""The service declined to answer one question: a deliberate abstention."""

Answer = float | Literal["refused"]
"""The probability of yes, 0..1, or `REFUSED`."""


class UnreadableError(Exception):
    """An answer that cannot be believed.

    Attributes:
        code: `wrong-shape`, `provider-error` or `unsupported`.
        what: what is wrong with it, without content.
    """

    def __init__(self, code: str, what: str) -> None:
        super().__init__(what)
        self.code, self.what = code, what


class Wire(Protocol):
    """One service's request and answer."""

    @property
    def name(self) -> str:
        """The wire with its dialect, as policy ids have it."""
        ...

    @property
    def route(self) -> tuple[str, str]:
        """Version and operation of its URL."""
        ...

    def frame(self, request: DecisionRequest) -> dict[str, Any]:
        """Return the body without questions, for all questions that share the state of `request`."""
        ...

    def question(self, request: DecisionRequest) -> dict[str, Any]:
        """Return one question, still without a name."""
        ...

    def body(self, frame: Mapping[str, Any], questions: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the whole body, with questions by name."""
        ...

    def answers(self, body: Any, names: Sequence[str]) -> list[Answer]:
        """Return one answer for each name, in order.

        Raises:
            UnreadableError: anything but that.
        """
        ...


@attrs.frozen(kw_only=True)
class SystemOne:
    """`POST /v1/systemone` and its relatives: questions and answers by name.

    Attributes:
        dialect: see `Dialect`.
        model: the model to ask for; `None` sends none.
        text_in_state: whether the text that is judged stands in the state.
        name: see `Wire`.
        route: see `Wire`.
    """

    dialect: Dialect
    model: str | None
    text_in_state: bool
    name: str
    route: tuple[str, str] = ("v1", "systemone")

    def frame(self, request: DecisionRequest) -> dict[str, Any]:
        """See `Wire`."""
        state = state_of(request, with_text=self.text_in_state)
        return {"state": state} if self.model is None else {"model": self.model, "state": state}

    def question(self, request: DecisionRequest) -> dict[str, Any]:
        """See `Wire`."""
        told = instructions_of(request, with_text=not self.text_in_state, structured=self.dialect.structured)
        return {"type": "noul", "instructions": told, "criteria": CRITERIA}

    def body(self, frame: Mapping[str, Any], questions: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """See `Wire`."""
        return {**frame, "questions": dict(questions)}

    def answers(self, body: Any, names: Sequence[str]) -> list[Answer]:
        """See `Wire`; by name, whatever the order."""
        found = _member(body, "answers", dict)
        missing = sum(name not in found for name in names)
        if missing or len(found) != len(names):
            extra = len(found) - len(names) + missing
            raise UnreadableError(
                "wrong-shape", f"did not answer the {len(names)} questions asked ({missing} missing, {extra} not asked)"
            )
        return [self._answer(found[name], place) for place, name in enumerate(names, 1)]

    def _answer(self, answer: Any, place: int) -> float:
        kind = answer.get("type") if isinstance(answer, dict) else None
        if kind == "unsupported":
            # No judgement: this server never answers yes/no questions, and to abstain from all would hide that.
            raise UnreadableError("unsupported", "says that it does not support questions of the type noul")
        if kind != "noul":
            raise UnreadableError("wrong-shape", f"gave answer {place} another type than noul")
        return _probability(answer.get("noul"), place)


@attrs.frozen(kw_only=True)
class OpenAIDecisions:
    """`POST /v1/decisions` of OpenAI: an array of predicates, answers in the order of the questions.

    Attributes:
        dialect: see `Dialect`.
        model: the model to ask for.
        text_in_state: whether the text that is judged stands in the input.
        name: see `Wire`.
        route: see `Wire`.
    """

    dialect: Dialect
    model: str
    text_in_state: bool
    name: str = "decisions/openai"
    route: tuple[str, str] = ("v1", "decisions")

    def frame(self, request: DecisionRequest) -> dict[str, Any]:
        """See `Wire`."""
        part = {"type": "input_json", "data": state_of(request, with_text=self.text_in_state)}
        return {"model": self.model, "input": [{"role": "user", "content": [part]}]}

    def question(self, request: DecisionRequest) -> dict[str, Any]:
        """See `Wire`."""
        told = instructions_of(request, with_text=not self.text_in_state, structured=self.dialect.structured)
        return {"type": "predicate", "instructions": told}

    def body(self, frame: Mapping[str, Any], questions: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """See `Wire`."""
        return {**frame, "questions": [{"name": name, **question} for name, question in questions.items()]}

    def answers(self, body: Any, names: Sequence[str]) -> list[Answer]:
        """See `Wire`; in order, and the names must agree."""
        found = _member(body, "answers", list)
        if len(found) != len(names):
            raise UnreadableError("wrong-shape", f"gave {len(found)} answers to {len(names)} questions")
        return [self._answer(answer, name, place) for place, (answer, name) in enumerate(zip(found, names, strict=True), 1)]

    def _answer(self, answer: Any, name: str, place: int) -> Answer:
        if not isinstance(answer, dict) or answer.get("name") != name:
            raise UnreadableError("wrong-shape", f"gave answer {place} another name than its question has")
        if answer.get("type") == "refusal":
            return REFUSED
        if answer.get("type") != "predicate":
            raise UnreadableError("wrong-shape", f"gave answer {place} another type than predicate or refusal")
        return _probability(answer.get("probability"), place)


def _member(body: Any, name: str, kind: type) -> Any:
    found = body.get(name) if isinstance(body, dict) else None
    # Also beside answers: then nobody knows which of them stand.
    if isinstance(body, dict) and body.get("error"):
        raise UnreadableError("provider-error", "answered 200 with an error")
    if isinstance(found, kind):
        return found
    raise UnreadableError("wrong-shape", f"answered without {name!r} of the form wanted")


def _probability(value: Any, place: int) -> float:
    # Finite already: the client refuses NaN and Infinity. A bool is an int to Python, and no probability to anybody.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError("wrong-shape", f"gave answer {place} no number as its probability")
    if not 0.0 <= value <= 1.0:
        raise UnreadableError("wrong-shape", f"gave answer {place} a probability outside 0..1")
    return float(value)
