"""The self-check: the same pool in two orders."""

from __future__ import annotations

from typing import Any

import pytest

from narrowgate.decisions import Usage
from narrowgate.errors import GenerationError, RerankError
from narrowgate.seams import Component
from narrowgate_listwise import Listwise, ListwiseSettings
from narrowgate_listwise.plugin import narrowgate_rerankers
from narrowgate_listwise.position_bias import SAMPLES, examine, probe

ANSWERS = {text for sample in SAMPLES for label, text in sample.texts.items() if label in sample.answer}


def knowing(data: Any) -> dict[str, Any]:
    """Pick the texts that answer."""
    return {"selected_ranks": [entry["rank"] for entry in data["candidates"] if entry["text"] in ANSWERS]}


def component() -> Component:
    (found,) = narrowgate_rerankers()
    return found


@pytest.mark.anyio
async def test_a_model_that_judges_texts_passes(scripted: type) -> None:
    """Same texts in both orders, in both languages: nothing to report, after four generations."""
    generator = scripted(knowing)
    assert component().probe is not None
    assert await component().probe(Listwise(generator)) == []  # type: ignore[misc]
    assert len(generator.asked) == 4
    pools = [[entry["text"] for entry in data["candidates"]] for _, data, _ in generator.asked]
    assert pools[0] == pools[1][::-1]
    assert pools[2] == pools[3][::-1]
    findings = await examine(Listwise(generator))
    assert [finding.usage for finding in findings] == [Usage(2, 2, 200, 10)] * 2


@pytest.mark.anyio
@pytest.mark.parametrize("picks", [[1, 2], [5, 6], [2, 6], [3]], ids=str)
async def test_a_model_that_picks_by_place_is_found_out(picks: list[int], scripted: type) -> None:
    """Whichever places it likes: a warning per language that names what differed by labels, and the cost."""
    problems = await probe(Listwise(scripted({"selected_ranks": picks})))
    assert [(problem.code, problem.severity) for problem in problems] == [("position-bias", "warning")] * 2
    assert "the check cost 4 generations in 4 requests" in problems[0].message
    for problem in problems:
        assert not any(text in problem.message for sample in SAMPLES for text in sample.texts.values())


@pytest.mark.anyio
async def test_the_order_of_the_picks_does_not_count(scripted: type) -> None:
    """Which of two pieces of evidence comes first is a matter of taste."""

    def turned(data: Any) -> dict[str, Any]:
        ranks = knowing(data)["selected_ranks"]
        return {"selected_ranks": sorted(ranks)}

    assert await probe(Listwise(scripted(turned))) == []


@pytest.mark.anyio
@pytest.mark.parametrize("said", [[], [0, 77], [2, 5]], ids=["none", "unusable", "mirrored places"])
async def test_a_model_that_finds_nothing_is_reported(said: list[int], scripted: type) -> None:
    """It agrees with itself, and is of no use: coarse ranks that stand in are no pick, whatever the setting."""
    value = {"selected_ranks": said}
    problems = await probe(Listwise(scripted(value), ListwiseSettings(on_none_relevant="coarse")))
    assert [(problem.code, problem.severity) for problem in problems] == [("missed-evidence", "warning")] * 2
    assert "repairer" in problems[0].message or "day" in problems[0].message


@pytest.mark.anyio
async def test_a_model_that_knows_one_language_is_reported_for_the_other(scripted: type) -> None:
    """Each language is a sample of its own."""

    def english(data: Any) -> dict[str, Any]:
        return knowing(data) if data["query"].isascii() else {"selected_ranks": []}

    (problem,) = await probe(Listwise(scripted(english)))
    assert problem.code == "missed-evidence"
    assert "Chinese" in problem.message


@pytest.mark.anyio
async def test_a_generator_that_fails_fails_the_probe(scripted: type) -> None:
    """The host makes `probe-failed` of it; the message is the stage's own."""
    with pytest.raises(RerankError, match="no key"):
        await probe(Listwise(scripted(GenerationError("no key", code="unauthorised"))))
