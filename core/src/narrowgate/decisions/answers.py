"""What a backend's answer must be before anybody acts on it, and what a call cost.

Backends come from third parties, so that a type annotation is a promise and not a fact. Whoever calls one passes the answer
through `checked` (or `checked_many`) and charges a failed call with `cost_of`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard

from narrowgate.errors import DecisionError, RecallError
from narrowgate.values.decision import NO_USAGE, DecisionOutcome, DecisionResult, Usage


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
    return carried if _is_usage(carried) else unreported(questions)


def checked(result: object) -> DecisionResult:
    """Return `result` when it is a verdict.

    Raises:
        DecisionError: it is no `DecisionResult`, its outcome is no `DecisionOutcome`, its probability lies outside 0..1, its
            score is not finite, or its usage is no count. Carries the result's usage where that is one.
    """
    if not isinstance(result, DecisionResult):
        raise DecisionError(f"a decision backend must answer with a DecisionResult, not {type(result).__name__}")
    usage = result.usage if _is_usage(result.usage) else None
    flaw = None
    if usage is None:
        flaw = "a usage that is no count"
    elif not isinstance(result.outcome, DecisionOutcome):
        flaw = f"an outcome of type {type(result.outcome).__name__}, not DecisionOutcome"
    elif not _is_number(result.probability, 0.0, 1.0):
        flaw = "a probability outside 0..1"
    elif not _is_number(result.score, -math.inf, math.inf) or result.score in (math.inf, -math.inf):
        flaw = "a score that is no finite number"
    elif not isinstance(result.used_fallback, bool):
        flaw = "a used_fallback that is neither true nor false"
    if flaw is not None:
        raise DecisionError(f"decision backend {result.policy_id!r} answered with {flaw}", usage)
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
        raise DecisionError(
            f"evaluate_many must return a tuple of results, not {type(results).__name__}", unreported(questions)
        )
    if len(results) != questions:
        raise DecisionError(
            f"evaluate_many answered {len(results)} of {questions} questions: nobody knows which", unreported(questions)
        )
    try:
        return tuple(checked(result) for result in results)
    except DecisionError as error:
        usages = [usage for result in results if _is_usage(usage := getattr(result, "usage", None))]
        known = len(usages) == questions
        raise DecisionError(str(error), total(usages) if known else unreported(questions)) from None


def _is_usage(value: object) -> TypeGuard[Usage]:
    return (
        isinstance(value, Usage)
        and all(map(_is_count, (value.calls, value.requests)))
        and all(tokens is None or _is_count(tokens) for tokens in (value.input_tokens, value.output_tokens))
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_number(value: object, low: float, high: float) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high)
