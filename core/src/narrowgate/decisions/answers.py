"""What a backend's answer must be before anybody acts on it, and what a call cost.

Backends come from third parties, so that a type annotation is a promise and not a fact. Whoever calls one passes the answer
through `checked` (or `checked_many`) and charges a failed call with `cost_of`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final, TypeGuard

from narrowgate.errors import DecisionError, NarrowgateError, RecallError
from narrowgate.values.decision import NO_USAGE, DecisionOutcome, DecisionResult, Usage

INVALID_ANSWER: Final = "invalid-answer"
"""The code of an answer that breaks the contract of its port."""

WITHHELD: Final = "withheld"
"""Stands for what came from outside and has not the shape that it should have: it may be a sentence about the content."""

_NAME: Final = re.compile(r"[\w.:;/+=#@,()\[\]-]{1,512}", re.ASCII)
"""What an id of a backend or a model looks like: no spaces, no line breaks, nothing but ASCII."""

_CODE: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def total(usages: Iterable[Usage]) -> Usage:
    """Add up; `NO_USAGE` for nothing."""
    return sum(usages, NO_USAGE)


def unreported(questions: int) -> Usage:
    """Return the cost of one request with `questions` questions whose token counts nobody reported."""
    return Usage(questions, 1, None, None)


def cost_of(error: Exception, questions: int) -> Usage:
    """Return what a call that failed with `error` cost.

    That is the usage which the error carries. An error without one says nothing about cost; the call was started, so it is
    charged as one request with unknown token counts, never as nothing. A backend that failed before it asked anyone says so
    by raising with `NO_USAGE`.

    Args:
        error: what the call raised.
        questions: how many questions the call carried, >= 1.
    """
    carried = error.usage if isinstance(error, RecallError) else None
    return carried if is_usage(carried) else unreported(questions)


def code_of(error: BaseException) -> str | None:
    """Return the closed, content-free name of a failure's cause: the `code` of an error of ours, `timeout` for a
    `TimeoutError`, `None` where there is none."""
    code = getattr(error, "code", None) if isinstance(error, NarrowgateError) else None
    if is_code(code):
        return code
    return "timeout" if isinstance(error, TimeoutError) else None


def is_code(value: object) -> TypeGuard[str]:
    """Return whether `value` has the shape of a code: words in lower case, at most 64 characters. A sentence has not."""
    return isinstance(value, str) and len(value) <= 64 and _CODE.fullmatch(value) is not None


def name_of(value: object) -> str:
    """Return an id of a backend or a model as it may be told; `withheld` for what has not the shape of one."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else WITHHELD


def is_usage(value: object) -> TypeGuard[Usage]:
    """Return whether `value` is a `Usage` whose numbers are counts."""
    return (
        isinstance(value, Usage)
        and all(map(_is_count, (value.calls, value.requests)))
        and all(tokens is None or _is_count(tokens) for tokens in (value.input_tokens, value.output_tokens))
    )


def sum_of(answers: object, questions: int) -> Usage:
    """Return what answers that nobody has checked say they cost; one request with unknown tokens where one says nothing.

    Args:
        answers: a sequence of objects with a `usage`.
        questions: how many questions the call carried, >= 1.
    """
    if not isinstance(answers, tuple | list) or not answers:
        return unreported(questions)
    usages = [usage for answer in answers if is_usage(usage := getattr(answer, "usage", None))]
    return total(usages) if len(usages) == len(answers) else unreported(questions)


def checked(result: object) -> DecisionResult:
    """Return `result` when it is a verdict.

    Raises:
        DecisionError: it is no `DecisionResult`, its outcome is no `DecisionOutcome`, its probability lies outside 0..1, its
            score is not finite, its reason is no code, or its usage is no count. Carries the result's usage where that is
            one.
    """
    if not isinstance(result, DecisionResult):
        text = f"a decision backend must answer with a DecisionResult, not {type(result).__name__}"
        raise DecisionError(text, code=INVALID_ANSWER)
    usage = result.usage if is_usage(result.usage) else None
    flaw = None
    if usage is None:
        flaw = "a usage that is no count"
    elif not isinstance(result.outcome, DecisionOutcome):
        flaw = f"an outcome of type {type(result.outcome).__name__}, not DecisionOutcome"
    elif not _is_number(result.probability, 0.0, 1.0):
        flaw = "a probability outside 0..1"
    elif not _is_number(result.score, -math.inf, math.inf) or result.score in (math.inf, -math.inf):
        flaw = "a score that is no finite number"
    elif result.reason is not None and not is_code(result.reason):
        # A sentence could be a piece of memory, and reasons go into observations that are kept.
        flaw = "a reason that is no code in lower case, e.g. no_terms"
    elif not isinstance(result.used_fallback, bool):
        flaw = "a used_fallback that is neither true nor false"
    if flaw is not None:
        raise DecisionError(f"decision backend {name_of(result.policy_id)!r} answered with {flaw}", usage, INVALID_ANSWER)
    return result


def checked_many(results: object, questions: int) -> tuple[DecisionResult, ...]:
    """Return `results` when they are exactly one verdict for each question.

    Args:
        results: what `evaluate_many` returned.
        questions: how many questions it was asked, >= 1.

    Raises:
        DecisionError: no sequence of that many, or one of them is no verdict (see `checked`). Carries the request's cost.
    """
    if not isinstance(results, tuple | list):
        text = f"evaluate_many must return a tuple of results, not {type(results).__name__}"
        raise DecisionError(text, unreported(questions), INVALID_ANSWER)
    if len(results) != questions:
        text = f"evaluate_many answered {len(results)} of {questions} questions: nobody knows which"
        raise DecisionError(text, unreported(questions), INVALID_ANSWER)
    try:
        return tuple(checked(result) for result in results)
    except DecisionError as error:
        raise DecisionError(str(error), sum_of(results, questions), error.code) from None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_number(value: object, low: float, high: float) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high)
