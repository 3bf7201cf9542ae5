"""An answer that is not exactly what was asked for is no verdict at all."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from decisions_parts import OPENAI, SYSTEMONE, TEXTS, answered, asked, opened
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import Usage
from narrowgate.errors import DecisionError
from narrowgate_hosted.decisions.dialects import JEV
from narrowgate_hosted.decisions.dialects import OPENAI as OPENAI_LIMITS
from narrowgate_hosted.decisions.wires import OpenAIDecisions, SystemOne, UnreadableError
from narrowgate_http.testing import Answer, FaultServer

TWO: Final = asked(TEXTS[:2])


def _with(**changes: Any) -> dict[str, Any]:
    return {**answered(0.9, 0.1), **changes}


def _first(answer: Any) -> dict[str, Any]:
    return _with(answers={"q1": answer, "q2": {"type": "noul", "noul": 0.1}})


NOUL: Final = {"type": "noul", "noul": 0.9}

BAD: Final[dict[str, tuple[Any, str]]] = {
    "missing": (_with(answers={"q1": NOUL}), "wrong-shape"),
    "extra": (answered(0.9, 0.1, 0.5), "wrong-shape"),
    "another name": (_with(answers={"q1": NOUL, "Q2": NOUL}), "wrong-shape"),
    "another type": (_first({"type": "boolean", "noul": 0.9}), "wrong-shape"),
    "no type": (_first({"noul": 0.9}), "wrong-shape"),
    "a choice": (_first({"type": "choice", "choice": "true", "probabilities": {"true": 1}, "confidence": 1}), "wrong-shape"),
    "true": (_first({"type": "noul", "noul": True}), "wrong-shape"),
    "text": (_first({"type": "noul", "noul": "0.9"}), "wrong-shape"),
    "null": (_first({"type": "noul", "noul": None}), "wrong-shape"),
    "no value": (_first({"type": "noul"}), "wrong-shape"),
    "unknown": (_first({"type": "noul", "noul": "unknown"}), "wrong-shape"),
    "above": (_first({"type": "noul", "noul": 1.0498}), "wrong-shape"),
    "below": (_first({"type": "noul", "noul": -0.01}), "wrong-shape"),
    "a bare number": (_first(0.9), "wrong-shape"),
    "a list of answers": (_with(answers=[NOUL, NOUL]), "wrong-shape"),
    "no answers": ({"model": "m", "usage": {}}, "wrong-shape"),
    "a list": ([], "wrong-shape"),
    "null body": (None, "wrong-shape"),
    "an error": ({"error": {"code": 429, "message": "quota"}}, "provider-error"),
    "an error beside answers": (_with(error={"message": "overloaded"}), "provider-error"),
    "unsupported": (_first({"type": "unsupported", "question_type": "noul", "reason": "x"}), "unsupported"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", BAD)
async def test_an_answer_of_another_shape_is_refused(name: str) -> None:
    """Case 23 and its relatives: a code, the cost, and no part of it believed; it is not asked again."""
    body, code = BAD[name]
    with FaultServer(Answer(json=body)) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(TWO)
        assert len(server.requests) == 1
    known = isinstance(body, dict) and bool(body.get("usage"))
    assert caught.value.code == code
    assert caught.value.usage == (Usage(2, 1, 40, 4) if known else Usage(2, 1, None, None))
    assert f"[{code}]" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_a_number_that_is_none_is_refused(number: str) -> None:
    """JSON has no such numbers, though Python's own reader takes them."""
    raw = json.dumps(answered(0.9, 0.1)).replace("0.9", number)
    with FaultServer(Answer(body=raw.encode())) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(TWO)
    assert caught.value.code == "non-finite"


@pytest.mark.anyio
async def test_two_verdicts_on_one_question_are_none() -> None:
    """Which of them counts would depend on who reads: this one takes the first, that one the last."""
    raw = b'{"answers":{"q1":{"type":"noul","noul":0.9},"q2":{"type":"noul","noul":0.9},"q2":{"type":"noul","noul":0.1}}}'
    with FaultServer(Answer(body=raw)) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(TWO)
    assert (caught.value.code, caught.value.usage) == ("wrong-shape", Usage(2, 1, None, None))


OPENAI_BAD: Final[dict[str, Any]] = {
    "too few": [{"type": "predicate", "name": "q1", "probability": 0.9}],
    "exchanged": [
        {"type": "predicate", "name": "q2", "probability": 0.9},
        {"type": "predicate", "name": "q1", "probability": 0.1},
    ],
    "nameless": [{"type": "predicate", "name": None, "probability": 0.9}] * 2,
    "nameless refusal": [{"type": "refusal", "name": None}] * 2,
    "another type": [{"type": "noul", "name": "q1", "noul": 0.9}, {"type": "noul", "name": "q2", "noul": 0.9}],
    "true": [{"type": "predicate", "name": "q1", "probability": True}, {"type": "refusal", "name": "q2"}],
    "a map": {"q1": {"type": "predicate", "name": "q1", "probability": 0.9}},
    "no objects": [0.9, 0.1],
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", OPENAI_BAD)
async def test_answers_in_order_must_have_the_names_of_their_questions(name: str) -> None:
    """Order alone is trusted no more than a name alone."""
    with FaultServer(Answer(json={"model": "m", "answers": OPENAI_BAD[name]})) as server:
        async with opened(OPENAI, base_url=server.url) as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(TWO)
    assert (caught.value.code, caught.value.usage) == ("wrong-shape", Usage(2, 1, None, None))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 33, "output_tokens": 0}, (33, 0)),
        ({"input_tokens": 33.0, "output_tokens": 2}, (None, 2)),
        ({"input_tokens": True, "output_tokens": -1}, (None, None)),
        ({"input_tokens": "33"}, (None, None)),
        (None, (None, None)),
        ([33, 2], (None, None)),
    ],
)
async def test_tokens_that_nobody_counted_are_unknown(usage: Any, tokens: tuple[int | None, int | None]) -> None:
    """Never an error by itself, and never nothing."""
    with FaultServer(Answer(json=_with(usage=usage))) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            first, second = await backend.evaluate_many(TWO)
    assert first.usage == Usage(1, 1, *tokens)
    assert second.usage == Usage(1)


@pytest.mark.anyio
async def test_json_in_unusual_clothes_is_taken() -> None:
    """A guard line, another content type, a byte order mark, members that nobody asked for."""
    body = {**answered(0.9, 0.1), "id": "gen-dec-1", "provider": "p", "meta": {}, "x_debug": None}
    for before, kind in (
        (b")]}'\n", "application/json"),
        (b"\xef\xbb\xbf", "text/plain"),
        (b"", "text/plain; charset=utf-8"),
    ):
        raw = before + json.dumps(body).encode()
        with FaultServer(Answer(body=raw, headers={"content-type": kind})) as server:
            async with opened(SYSTEMONE, base_url=server.url) as backend:
                results = await backend.evaluate_many(TWO)
        assert [item.probability for item in results] == [0.9, 0.1]


_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["answers", "q1", "q2", "type", "noul", "name", "error", "probability"]), inner)
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_json_is_read_or_refused(body: Any) -> None:
    """No other exception, and whatever is read is one probability or refusal for each question."""
    wires = (
        SystemOne(dialect=JEV, model=None, text_in_state=False, name="w"),
        OpenAIDecisions(dialect=OPENAI_LIMITS, model="m", text_in_state=False),
    )
    for wire in wires:
        with suppress(UnreadableError):
            answers = wire.answers(body, ["q1", "q2"])
            assert len(answers) == 2
            assert all(item == "refused" or 0.0 <= float(item) <= 1.0 for item in answers)
