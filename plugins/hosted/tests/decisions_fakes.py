"""Decision services on loopback, one for each dialect, strict about what each accepts and faithful in what it sends.

They judge by content: how many words of the evidence stand in the text. Neither names nor the other questions of a request
nor their order matter. `jevcompat test` certifies the dialect `jev`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from narrowgate_http.testing import Answer, Recorded

KEY_ERROR: Final = {"error_type": "authentication_error", "message": "Cannot authenticate with the server."}


class RefusedError(Exception):
    """A request that the service does not accept."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status, self.body = status, body


@attrs.frozen(kw_only=True)
class Rules:
    """What a dialect accepts.

    Attributes:
        paths: the routes that answer.
        models: the models that are served, the first being the one named in answers; `None` echoes whatever is asked for.
        model_optional: whether a request may leave the model out.
        closed: whether fields that are not listed are refused.
        texts: whether instructions must be strings.
        descriptions: whether criteria must be strings.
        instructions: whether instructions are required.
        both_sides: whether noul criteria must have both sides.
        questions: the most questions.
        options: the most options of a choice, and levels of a score.
        body: the longest body in bytes.
        invalid: (place, message) -> status and body of a refusal.
        unknown_model: (model) -> status and body.
        legend_list: whether a score's legend is a list.
        more: further members of an answer.
    """

    paths: tuple[str, ...] = ("/v1/systemone",)
    models: tuple[str, ...] | None = ("jev-1.13.0", "jev-latest", "jev-preview")
    model_optional: bool = False
    closed: bool = False
    texts: bool = False
    descriptions: bool = False
    instructions: bool = False
    both_sides: bool = False
    questions: int = 10_000
    options: tuple[int, int] = (255, 10)
    body: int = 64 << 20
    invalid: Callable[[str, str], tuple[int, Any]]
    unknown_model: Callable[[str], tuple[int, Any]]
    legend_list: bool = False
    more: Mapping[str, Any] = attrs.field(factory=dict)


def _fastapi(place: str, message: str) -> tuple[int, Any]:
    return 422, {"detail": [{"loc": ["body", *place.split(".")], "msg": message, "type": "value_error"}]}


def _usage_error(message: str) -> Any:
    return {"detail": {"error_type": "api_usage_error", "message": message}}


def _router(status: int, message: str) -> tuple[int, Any]:
    return status, {"error": {"code": status, "message": message, "metadata": {}}, "user_id": None}


JEV: Final = Rules(invalid=_fastapi, unknown_model=lambda model: (400, _usage_error(f"Unknown model: {model}")))

RULES: Final[dict[str, Rules]] = {
    "jev": JEV,
    "ollama": Rules(
        models=None,
        texts=True,
        descriptions=True,
        instructions=True,
        questions=64,
        options=(26, 26),
        body=65_536,
        invalid=lambda place, message: (400, {"error": f"{place}: {message}"}),
        unknown_model=lambda model: (404, {"error": f"model {model!r} not found"}),
    ),
    "llama.cpp": Rules(
        models=None,
        model_optional=True,
        invalid=lambda place, message: (400, {"error": {"code": 400, "message": message, "type": "invalid_request_error"}}),
        unknown_model=lambda model: (404, {"error": {"code": 404, "message": "no such model", "type": "not_found_error"}}),
    ),
    "laya": Rules(
        models=("laya-english", "jev-latest", "laya"),
        closed=True,
        instructions=True,
        invalid=lambda place, message: (422, {"error": {"message": message, "field": f"body.{place}"}}),
        unknown_model=lambda model: (422, {"error": {"message": f"unknown model {model!r}", "field": "model"}}),
    ),
    "jev-compatible": Rules(
        paths=("/v1/systemone", "/systemone"),
        models=("loop",),
        model_optional=True,
        closed=True,
        instructions=True,
        both_sides=True,
        options=(255, 255),
        invalid=_fastapi,
        unknown_model=lambda model: (422, {"detail": f"model {model!r} is not registered"}),
        legend_list=True,
    ),
    "nimble": Rules(
        models=("nimble-1",),
        questions=64,
        options=(255, 255),
        body=1 << 20,
        invalid=_fastapi,
        unknown_model=lambda model: (404, {"detail": f"unknown model {model}"}),
    ),
    "openrouter": Rules(
        paths=("/api/alpha/decisions",),
        models=("typesafe/jev-1.13-20260917", "typesafe/jev-1.13", "~typesafe/jev-latest"),
        instructions=True,
        both_sides=True,
        invalid=lambda place, message: _router(400, f"{place}: {message}"),
        unknown_model=lambda model: _router(404, f"No endpoints found for {model}."),
        more={"id": "gen-dec-1", "provider": "TypeSafe"},
    ),
}

DIFFERS: Final[dict[str, set[str]]] = {
    "jev": set(),
    "llama.cpp": {"errors.validation-shape"},
    "laya": {"request.unknown-fields", "noul.no-instructions", "errors.validation-shape"},
    "nimble": {"request.model-alias", "errors.shape"},
    "ollama": {"request.structured-text", "noul.no-instructions", "choice.options", "errors.validation-shape"},
    "jev-compatible": {
        "request.model-alias",
        "request.unknown-fields",
        "noul.criteria",
        "noul.no-instructions",
        "score.legend",
        "errors.validation-shape",
        "dropin.sdk-python",
    },
}
"""Dialect -> the requirements of the reference that it is documented not to keep."""


def probability(state: Any, instructions: Any) -> float:
    """Return how much of the evidence stands in the text; of requests that are not narrowgate's, some fixed number."""
    if isinstance(instructions, str) and instructions.startswith("{"):
        instructions = json.loads(instructions)
    if not (isinstance(state, dict) and "judged_against" in state and isinstance(instructions, dict)):
        return _fixed(state, instructions)
    asked = set(re.findall(r"\w+", " ".join(state["judged_against"]).casefold()))
    held = set(re.findall(r"\w+", (state.get("text") or instructions["text"]).casefold()))
    return round(0.05 + 0.9 * len(asked & held) / max(1, len(asked)), 4)


def _fixed(*parts: Any) -> float:
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()
    return round(0.02 + 0.96 * digest[0] / 255, 4)


@attrs.define
class SystemOneFake:
    """A server of the System One family: the script of a `FaultServer`.

    Attributes:
        rules: the dialect.
        key: the credential that it wants; `None` takes anybody.
        live: refuse unknown types and too many options as the hosted service does, and not as its documentation says.
        unsupported: answer that noul is not supported.
    """

    rules: Rules = JEV
    key: str | None = None
    live: bool = False
    unsupported: bool = False

    def __call__(self, request: Recorded) -> Answer:
        """Answer a request."""
        try:
            status, body = 200, self._answered(request)
        except RefusedError as refused:
            status, body = refused.status, refused.body
        return Answer(status=status, json=body, headers={"x-typesafe-request-id": "req_1"})

    def _answered(self, request: Recorded) -> Any:
        self._admit(request)
        if request.method == "GET" and request.path == "/v1/models":
            names = self.rules.models or ("m",)
            return {"models": [{"name": name, "description": "-", "release_date": "2026-09-17"} for name in names]}
        if request.method != "POST" or request.path not in self.rules.paths:
            raise RefusedError(404, {"detail": {"error_type": "not_found", "message": "no such route"}})
        if len(request.body) > self.rules.body:
            raise RefusedError(413, {"error": "request body too large"})
        try:
            body = request.json
        except ValueError:
            raise self._invalid("body", "JSON decode error") from None
        self._check(body)
        model = self._model(body.get("model"))
        answers = {name: self._answer(body["state"], question) for name, question in body["questions"].items()}
        usage = {"input_tokens": len(request.body) // 4, "output_tokens": len(answers)}
        return {"model": model, "answers": answers, "usage": usage, **self.rules.more}

    def _admit(self, request: Recorded) -> None:
        given = request.headers.get("authorization")
        if self.key is None or given == f"Bearer {self.key}":
            return
        if given is None:
            raise RefusedError(403, {"detail": {**KEY_ERROR, "message": "Must supply an API key!"}})
        raise RefusedError(401, {"detail": KEY_ERROR})

    def _invalid(self, place: str, message: str) -> RefusedError:
        return RefusedError(*self.rules.invalid(place, message))

    def _model(self, asked: str | None) -> str:
        if self.rules.models is None:
            return asked or "loaded"
        if asked is not None and asked not in self.rules.models:
            raise RefusedError(*self.rules.unknown_model(asked))
        return self.rules.models[0]

    def _check(self, body: Any) -> None:
        if not isinstance(body, dict):
            raise self._invalid("body", "Input should be an object")
        if not isinstance(body.get("state"), str | dict | list):
            raise self._invalid("state", "Field required")
        if not isinstance(body.get("model"), str) and not (self.rules.model_optional and "model" not in body):
            raise self._invalid("model", "Field required")
        if self.rules.closed and (extra := set(body) - {"state", "model", "questions"}):
            raise self._invalid(min(extra), "Extra inputs are not permitted")
        questions = body.get("questions")
        if not isinstance(questions, dict) or not 1 <= len(questions) <= self.rules.questions:
            raise self._invalid("questions", f"must have 1 to {self.rules.questions} entries")
        for name, question in questions.items():
            self._check_question(f"questions.{name}", question)

    def _check_question(self, place: str, question: Any) -> None:
        kind = question.get("type") if isinstance(question, dict) else None
        if kind not in ("noul", "choice", "score"):
            if self.live:
                raise RefusedError(400, _usage_error("Invalid request."))
            raise self._invalid(place, "unknown type of question")
        told, criteria = question.get("instructions"), question.get("criteria")
        if told is None and (self.rules.instructions or (kind == "noul" and not criteria)):
            raise self._invalid(f"{place}.instructions", "Field required")
        if not isinstance(told, str if self.rules.texts else (str | dict | list | None)):
            raise self._invalid(f"{place}.instructions", "must be a string")
        if kind == "noul":
            self._check_sides(place, criteria)
        else:
            self._check_choices(place, kind, criteria)

    def _check_sides(self, place: str, criteria: Any) -> None:
        if criteria is None:
            return
        if not isinstance(criteria, dict) or set(criteria) - {"true", "false"}:
            raise self._invalid(f"{place}.criteria", "may only have true and false")
        if self.rules.both_sides and len(criteria) != 2:
            raise self._invalid(f"{place}.criteria", "both sides are required")
        self._check_texts(place, list(criteria.values()), nullable=True)

    def _check_choices(self, place: str, kind: str, criteria: Any) -> None:
        most = self.rules.options[kind == "score"]
        if not isinstance(criteria, dict if kind == "choice" else list) or not criteria:
            raise self._invalid(f"{place}.criteria", "of another form than wanted")
        if len(criteria) > most:
            if self.live:
                raise RefusedError(400, {"detail": f"Too many choices. Must have at most {most} choices."})
            raise self._invalid(f"{place}.criteria", f"at most {most} items")
        described = list(criteria.values()) if kind == "choice" else criteria
        self._check_texts(place, described, nullable=kind == "choice")

    def _check_texts(self, place: str, texts: list[Any], *, nullable: bool) -> None:
        for text in texts:
            if text is None and nullable:
                continue
            if not isinstance(text, str if self.rules.descriptions else (str | dict | list)):
                raise self._invalid(f"{place}.criteria", "must be a string")

    def _answer(self, state: Any, question: dict[str, Any]) -> dict[str, Any]:
        kind, told, criteria = question["type"], question.get("instructions"), question.get("criteria")
        if kind == "noul" and self.unsupported:
            told_why = {"question_type": "noul", "reason": "question_type_not_supported", "supported_types": ["choice"]}
            return {"type": "unsupported", **told_why}
        if kind == "noul":
            return {"type": "noul", "noul": probability(state, told) if told is not None else _fixed(state, criteria)}
        if kind == "choice":
            shares = _shares([_fixed(state, told, name, text) for name, text in criteria.items()])
            by_name = dict(zip(criteria, shares, strict=True))
            count = len(shares)
            sure = 1.0 if count == 1 else (max(shares) - 1 / count) / (1 - 1 / count)
            return {
                "type": "choice",
                "choice": max(by_name, key=by_name.__getitem__),
                "probabilities": by_name,
                "confidence": sure,
            }
        shares = _shares([_fixed(state, told, place, text) for place, text in enumerate(criteria)])
        legend = criteria if self.rules.legend_list else {str(place): text for place, text in enumerate(criteria)}
        return {
            "type": "score",
            "score": sum(place * share for place, share in enumerate(shares)),
            "legend": legend,
            "probabilities": {str(place): share for place, share in enumerate(shares)},
            "confidence": _spread(shares),
        }


def _shares(weights: list[float]) -> list[float]:
    powers = [math.exp(4 * weight) for weight in weights]
    return [power / sum(powers) for power in powers]


def _spread(shares: list[float]) -> float:
    """Return Jev's confidence of a score: one less the mean distance from the likeliest level, by that of equal shares."""
    count = len(shares)
    if count <= 1:
        return 1.0
    likeliest = max(range(count), key=shares.__getitem__)
    scale = sum(abs(place - (count - 1) / 2) for place in range(count)) / count
    return max(0.0, 1 - sum(share * abs(place - likeliest) for place, share in enumerate(shares)) / scale)


@attrs.define
class OpenAIFake:
    """OpenAI Decisions: an array of questions, answers in their order.

    Attributes:
        refuses: a word whose presence in a question's text makes the service decline that question.
    """

    refuses: str = "forbidden"

    def __call__(self, request: Recorded) -> Answer:
        """Answer a request."""
        if request.path != "/v1/decisions":
            return Answer(status=404, json={"error": {"message": "no such route", "type": "invalid_request_error"}})
        body = request.json
        questions = body["questions"]
        if body["model"] != "gpt-6-luna" or not 1 <= len(questions) <= 400 or set(body) != {"model", "input", "questions"}:
            error = {"message": "invalid request", "type": "invalid_request_error", "param": "model", "code": "bad"}
            return Answer(status=400, json={"error": error})
        (message,) = body["input"]
        (part,) = message["content"]
        assert (message["role"], part["type"]) == ("user", "input_json")
        answers = [self._answer(part["data"], question) for question in questions]
        usage = {
            "input_tokens": len(request.body) // 4,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": len(answers),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 0,
        }
        return Answer(json={"model": body["model"], "answers": answers, "usage": usage})

    def _answer(self, state: Any, question: dict[str, Any]) -> dict[str, Any]:
        assert set(question) == {"type", "name", "instructions"}
        assert question["type"] == "predicate"
        if self.refuses in question["instructions"]:
            return {"type": "refusal", "name": question["name"]}
        judged = probability(state, question["instructions"])
        return {"type": "predicate", "name": question["name"], "probability": judged}
