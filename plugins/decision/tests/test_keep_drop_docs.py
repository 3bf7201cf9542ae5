"""The page of this plugin is true: each code that it names is brought about, and there is no other."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from narrowgate.decisions import DecisionOutcome, DecisionResult, FailOpen, Usage
from narrowgate.errors import DecisionError, RerankError
from narrowgate_decision import KeepDrop, KeepDropSettings

HERE: Final = Path(__file__).parents[1]
TABLE: Final = (HERE / "README.md").read_text(encoding="utf-8").split("\n| code | cause | cure |\n")[1].split("\n\n")[0]
ROWS: Final = dict(re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", TABLE, re.MULTILINE))
YES: Final = DecisionOutcome.YES


async def never() -> None:
    await anyio.Event().wait()


async def ended_by_another() -> None:
    task = asyncio.ensure_future(never())
    task.cancel()
    await task


def answering(scripted: Callable[..., Any], result: Any) -> Any:
    """Return a backend that gives one answer to both texts."""
    return scripted({"a": result, "b": result}, batch_limit=2)


def miscounting(scripted: Any, answers: int) -> Any:
    """Return a backend that gives as many answers as told, whatever it was asked."""

    class Miscounting(scripted):
        async def evaluate_many(self, requests):
            return (await super().evaluate_many(requests))[:1] * answers

    return Miscounting({"a": YES, "b": YES}, batch_limit=2)


def verdict(**changed: Any) -> DecisionResult:
    """Return a verdict with something wrong in it."""
    return DecisionResult(**{"outcome": YES, "policy_id": "x", "usage": Usage(1, 1), **changed})


CASES: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "deadline": ("deadline", lambda scripted: scripted({"a": YES, "b": YES}, waits=never)),
    "too few answers": ("invalid-answer", lambda scripted: miscounting(scripted, 1)),
    "too many answers": ("invalid-answer", lambda scripted: miscounting(scripted, 3)),
    "a reason that is a sentence": ("invalid-answer", lambda scripted: answering(scripted, verdict(reason="so it says!"))),
    "no verdict": ("invalid-answer", lambda scripted: answering(scripted, "yes")),
    "no batch limit": ("invalid-bounds", lambda scripted: scripted({}, batch_limit=0)),
    "half a request at once": ("invalid-bounds", lambda scripted: scripted({}, concurrency=0.5)),
    "an envelope": ("used-fallback", lambda scripted: FailOpen(answering(scripted, DecisionError("503")))),
    "ended by another": ("cancelled", lambda scripted: scripted({"a": YES, "b": YES}, waits=ended_by_another)),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", CASES)
async def test_a_cause_leads_to_the_code_told(case, scripted, pool, anyio_backend):
    """A `RerankError` with exactly that code."""
    code, backend = CASES[case]
    if code == "cancelled" and anyio_backend != "asyncio":
        pytest.skip("only asyncio tells whoever awaits a task of its cancellation as if it were its own")
    with pytest.raises(RerankError) as caught:
        await KeepDrop(backend(scripted), KeepDropSettings(deadline=0.2 if code == "deadline" else 20)).rerank(
            "q", pool(["a", "b"]), 2
        )
    assert caught.value.code == code
    assert code in ROWS


def test_the_table_has_every_code_of_this_plugin_and_no_other() -> None:
    """Each row is brought about above; what the sources raise by name is there."""
    assert {code for code, _ in CASES.values()} == set(ROWS)
    raised = set()
    for path in (HERE / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("RerankError", "DecisionError"):
                given = [*node.args[2:3], *(keyword.value for keyword in node.keywords if keyword.arg == "code")]
                raised |= {value.value for value in given if isinstance(value, ast.Constant)}
    # An answer that breaks the contract is found by the core, for every role alike.
    assert raised == set(ROWS) - {"invalid-answer"}


def test_the_causes_named_for_an_invalid_answer_are_those_tried() -> None:
    """What the row lists stands among the cases."""
    assert all(words in ROWS["invalid-answer"] for words in ("too few", "too many", "no verdict", "a sentence"))
