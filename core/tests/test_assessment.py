"""An assessment that claims what did not happen cannot be made (spec 3.3): every invariant, over all combinations."""

from __future__ import annotations

import itertools
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import NO_USAGE, DecisionOutcome, Usage
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource

_A, _V, _S, _O = Attempt, GateVerdict, VerdictSource, DecisionOutcome

POSSIBLE: Final[dict[Attempt, dict[str, set[Any]]]] = {
    _A.NO_CALL: {"verdict": {_V.UNKNOWN}, "source": {_S.NONE}, "outcome": {None}, "fallback": {False}},
    _A.LOCAL_RULE: {
        "verdict": {_V.ALLOW, _V.DENY, _V.REVIEW},
        "source": {_S.LOCAL_RULE},
        "outcome": {None},
        "fallback": {False},
    },
    _A.BACKEND_FALLBACK: {"verdict": {_V.UNKNOWN}, "source": {_S.NONE}, "outcome": {None}, "fallback": {True}},
    _A.PRIVACY_FALLBACK: {"verdict": {_V.UNKNOWN}, "source": {_S.NONE}, "outcome": {None}, "fallback": {True}},
    _A.PARSE_FAILURE: {"verdict": {_V.UNKNOWN}, "source": {_S.NONE}, "outcome": {None}, "fallback": {True}},
}
"""What each kind of attempt but BACKEND can be; told apart from the code by being a table."""

JUDGING: Final = {_V.ALLOW, _V.DENY, _V.REVIEW}


def possible(
    attempt: Attempt, coverage: Coverage, verdict: GateVerdict, source: VerdictSource, outcome: Any, fallback: bool
) -> bool:
    """Return whether such an attempt can have been."""
    judged = coverage is Coverage.ADJUDICATED
    if attempt is _A.BACKEND:
        decided = outcome in (_O.YES, _O.NO)
        verdicts = JUDGING if decided else {_V.UNKNOWN}
        return (
            source is _S.DECISION_MODEL
            and not fallback
            and outcome is not None
            and judged is decided
            and verdict in verdicts
        )
    table = POSSIBLE[attempt]
    return (
        judged is (attempt is _A.LOCAL_RULE)
        and verdict in table["verdict"]
        and source in table["source"]
        and outcome in table["outcome"]
        and fallback in table["fallback"]
    )


def make(**fields: Any) -> DecisionAssessment:
    """Return an assessment of a policy in shadow."""
    return DecisionAssessment(policy_id="p", policy_version="1", reason="code", **{"mode": GateMode.SHADOW, **fields})


def test_every_combination_is_made_or_refused() -> None:
    """All 1,152 combinations of attempt, coverage, verdict, source, outcome and fallback: 14 can be, the others cannot."""
    made = []
    for combination in itertools.product(Attempt, Coverage, GateVerdict, VerdictSource, (None, *_O), (False, True)):
        names = ("attempt", "coverage", "verdict", "source", "outcome", "used_fallback")
        fields = dict(zip(names, combination, strict=True))
        if possible(*combination):
            made.append(make(**fields))
            continue
        with pytest.raises(ValueError, match=r"\w"):
            make(**fields)
    assert len(made) == 14
    assert all(item.coverage is Coverage.UNADJUDICATED for item in made if item.used_fallback)
    allowed = [item for item in made if item.verdict is GateVerdict.ALLOW]
    assert {item.attempt for item in allowed} == {Attempt.LOCAL_RULE, Attempt.BACKEND}
    assert all(item.coverage is Coverage.ADJUDICATED for item in allowed)


BACKEND: Final[dict[str, Any]] = {
    "attempt": Attempt.BACKEND,
    "coverage": Coverage.ADJUDICATED,
    "verdict": GateVerdict.ALLOW,
    "source": VerdictSource.DECISION_MODEL,
    "outcome": DecisionOutcome.YES,
}
OPEN: Final[dict[str, Any]] = {
    "coverage": Coverage.UNADJUDICATED,
    "verdict": GateVerdict.UNKNOWN,
    "source": VerdictSource.NONE,
}
BASES: Final[dict[Attempt, dict[str, Any]]] = {
    Attempt.NO_CALL: {"attempt": Attempt.NO_CALL, **OPEN},
    Attempt.LOCAL_RULE: {**BACKEND, "attempt": Attempt.LOCAL_RULE, "source": VerdictSource.LOCAL_RULE, "outcome": None},
    Attempt.BACKEND: BACKEND,
    **{
        attempt: {"attempt": attempt, **OPEN, "used_fallback": True}
        for attempt in (Attempt.BACKEND_FALLBACK, Attempt.PRIVACY_FALLBACK, Attempt.PARSE_FAILURE)
    },
}


@pytest.mark.parametrize("attempt", list(Attempt))
def test_only_what_answered_has_numbers(attempt: Attempt) -> None:
    """A probability, a score or a confidence of what nobody said would be made up."""
    for field in ("probability", "score"):
        if attempt is Attempt.BACKEND:
            assert getattr(make(**BASES[attempt], **{field: 0.5}), field) == 0.5
        else:
            with pytest.raises(ValueError, match="probability or a score"):
                make(**BASES[attempt], **{field: 0.5})
    if attempt in (Attempt.BACKEND, Attempt.LOCAL_RULE):
        assert make(**BASES[attempt], confidence=0.5).confidence == 0.5
    else:
        with pytest.raises(ValueError, match="no confidence"):
            make(**BASES[attempt], confidence=0.5)


@pytest.mark.parametrize("attempt", list(Attempt))
def test_only_what_was_called_costs(attempt: Attempt) -> None:
    """Neither a rule nor a refusal can have cost a request; a failed call can."""
    called = attempt in (Attempt.BACKEND, Attempt.BACKEND_FALLBACK, Attempt.PARSE_FAILURE)
    if called:
        assert make(**BASES[attempt], usage=Usage(1, 1)).usage == Usage(1, 1)
    else:
        with pytest.raises(ValueError, match="costs nothing"):
            make(**BASES[attempt], usage=Usage(1, 1))
    assert make(**BASES[attempt]).usage == NO_USAGE


def test_a_disabled_policy_assesses_nothing() -> None:
    """It is absent; there is nothing to record of it."""
    with pytest.raises(ValueError, match="disabled"):
        make(**BACKEND, mode=GateMode.DISABLED)


@given(
    probability=st.none() | st.floats(allow_nan=True),
    score=st.none() | st.floats(allow_nan=True),
    confidence=st.none() | st.floats(allow_nan=True),
    latency=st.floats(allow_nan=True),
    reason=st.text(max_size=5) | st.just("r" * 4097) | st.just("r" * 4096),
)
def test_numbers_are_in_their_bounds(
    probability: float | None, score: float | None, confidence: float | None, latency: float, reason: str
) -> None:
    """Probability and confidence lie in 0..1, a score is finite, a latency finite and >= 0, a reason 1..4096 long."""

    def unit(value: float | None) -> bool:
        return value is None or 0 <= value <= 1

    infinite = (float("inf"), float("-inf"))
    fits = unit(probability) and unit(confidence) and (score is None or (score == score and score not in infinite))
    fits = fits and 0 <= latency < float("inf") and 1 <= len(reason) <= 4096
    fields = {**BACKEND, "probability": probability, "score": score, "confidence": confidence, "latency_ms": latency}
    if fits:
        DecisionAssessment(policy_id="p", policy_version="1", mode=GateMode.SHADOW, reason=reason, **fields)
    else:
        with pytest.raises(ValueError):  # noqa: PT011 - the message is attrs' own
            DecisionAssessment(policy_id="p", policy_version="1", mode=GateMode.SHADOW, reason=reason, **fields)
