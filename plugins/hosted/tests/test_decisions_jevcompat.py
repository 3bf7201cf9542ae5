"""Every fault of the jevcompat mock, and the table of docs/systemone-faults.md held to what happens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from decisions_parts import SYSTEMONE, asked, mock, opened, proxy
from jevcompat.mock import FAULTS

from narrowgate.decisions import DecisionOutcome, DecisionResult
from narrowgate.errors import DecisionError
from narrowgate_hosted.decisions.probing import probe

TABLE: Final = dict(
    re.findall(
        r"^\| `([\w-]+)` \| [^|]* \| ([^|]*) \|$",
        (Path(__file__).parents[3] / "docs/systemone-faults.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
"""Fault -> what the page says narrowgate does."""


@attrs.frozen
class Setting:
    """What a fault needs to be met at all.

    Attributes:
        wanted: the credential that the server wants.
        given: the one that it is sent.
        model: the model that is asked for.
        more: further faults.
    """

    wanted: str | None = None
    given: str | None = None
    model: str | None = None
    more: frozenset[str] = frozenset()


SETTINGS: Final = {
    "auth-rejects-header": Setting(given="k"),
    "auth-x-api-key": Setting(wanted="k", given="k"),
    "auth-plain": Setting(wanted="k"),
    "auth-invalid-403-text": Setting(wanted="k", given="other"),
    "text-errors": Setting(model="unknown"),
    "error-flat": Setting(model="unknown"),
    "validation-400": Setting(more=frozenset({"string-only-text"})),
}


async def _ask(url: str, key: str | None = None, **options: Any) -> tuple[DecisionResult, ...]:
    async with opened(SYSTEMONE, key, base_url=url, **options) as backend:
        return await backend.evaluate_many(asked())


def _probabilities(results: Sequence[DecisionResult]) -> list[float | None]:
    return [item.probability for item in results]


def test_the_table_has_every_fault_once() -> None:
    """A fault that a later version adds is missed here first."""
    assert sorted(name for name in TABLE if name != "fault") == sorted(FAULTS)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if TABLE.get(fault, "").startswith("refused")])
async def test_a_fault_is_refused_with_the_code_of_the_table(fault: str) -> None:
    """With the cost of the one request that was made."""
    setting = SETTINGS.get(fault, Setting())
    with mock(fault, *setting.more, key=setting.wanted) as (url, _), pytest.raises(DecisionError) as caught:
        await _ask(url, setting.given, model=setting.model)
    assert TABLE[fault].partition(";")[0] == f"refused: `{caught.value.code}`"
    assert caught.value.usage is not None
    assert (caught.value.usage.calls, caught.value.usage.requests) == (5, 1)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not TABLE.get(fault, "").startswith("refused")])
async def test_a_fault_gives_the_verdicts_of_the_table(fault: str) -> None:
    """Those of the sound server, or others, which the probe then tells of."""
    said = TABLE[fault]
    with mock() as (sound_url, _), mock(fault) as (url, config):
        sound = await _ask(sound_url)
        async with opened(SYSTEMONE, base_url=url) as backend:
            found = await backend.evaluate_many(asked())
            assert config.requests == 1
            told = {problem.code for problem in await probe(backend)}
    same = _probabilities(found) == _probabilities(sound)
    assert said.partition(";")[0] == ("same verdicts" if same else "other verdicts")
    assert [item.outcome for item in found] == [_outcome(item.probability) for item in found]
    assert sum(item.usage.calls for item in found) == 5
    assert (found[0].usage.input_tokens is None) == ("tokens unknown" in said)
    assert ("batch-dependent" in told) == ("*probe*: `batch-dependent`" in said) == (not same)


def _outcome(probability: float | None) -> DecisionOutcome:
    assert probability is not None
    if probability >= 0.6:
        return DecisionOutcome.YES
    return DecisionOutcome.NO if probability < 0.4 else DecisionOutcome.ABSTAIN


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ("auth-x-api-key", {"auth": "x-api-key"}),
        ("reject-jev-latest", {"model": "jev-1.13.0"}),
        ("string-only-text", {"dialect": "ollama", "model": "mock"}),
    ],
)
async def test_a_setting_cures_what_the_table_says_it_cures(fault: str, options: dict[str, Any]) -> None:
    """The server with the fault answers as the sound one does with these settings (where it can be asked so at all)."""
    key = "k" if "auth" in options else None
    with mock() as (sound, _), mock(fault, key=key) as (url, _):
        assert _probabilities(await _ask(url, key, **options)) == _probabilities(await _ask(sound, **options))


@pytest.mark.anyio
async def test_answers_are_looked_up_by_name_whatever_their_order() -> None:
    """The proxy of the same authors hands answers on in another order than they were asked for."""
    with mock() as (url, _), proxy(url) as through:
        assert await _ask(through) == await _ask(url)


@pytest.mark.anyio
async def test_a_busy_server_is_asked_again_and_the_cost_says_so() -> None:
    """Every second request meets 429 with `Retry-After: 0`: it is repeated, and both attempts are counted."""
    with mock(busy_every=2) as (url, config):
        async with opened(SYSTEMONE, base_url=url) as backend:
            first = await backend.evaluate_many(asked())
            second = await backend.evaluate_many(asked())
    assert _probabilities(first) == _probabilities(second)
    assert (first[0].usage.requests, second[0].usage.requests, config.requests) == (1, 2, 3)


@pytest.mark.anyio
async def test_a_batch_equals_single_questions_in_order() -> None:
    """On a server that hashes what it is asked, any influence of the batch would show."""
    with mock() as (url, _):
        async with opened(SYSTEMONE, base_url=url) as backend:
            many = await backend.evaluate_many(asked())
            ones = [await backend.evaluate(request) for request in asked()]
    assert [(item.outcome, item.probability) for item in many] == [(item.outcome, item.probability) for item in ones]
    assert [item.usage.requests for item in many] == [1, 0, 0, 0, 0]
