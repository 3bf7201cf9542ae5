"""Every dialect: what is sent is what its servers accept, and what comes back becomes a verdict."""

from __future__ import annotations

from typing import Any, Final

import attrs
import pytest
from decisions_fakes import RULES, OpenAIFake, SystemOneFake
from decisions_parts import OPENAI, OPENROUTER, QUERY, QUESTION, SYSTEMONE, TEXTS, answered, asked, opened

from narrowgate.decisions import DecisionOutcome, Usage
from narrowgate.errors import DecisionError
from narrowgate_hosted.decisions.backend import exact
from narrowgate_hosted.decisions.probing import probe
from narrowgate_http.testing import Answer, FaultServer

YES, NO, ABSTAIN = DecisionOutcome.YES, DecisionOutcome.NO, DecisionOutcome.ABSTAIN

SERVERS: Final[dict[str, tuple[Any, str, dict[str, Any]]]] = {
    "jev": (SystemOneFake(), SYSTEMONE, {}),
    "ollama": (SystemOneFake(RULES["ollama"]), SYSTEMONE, {"dialect": "ollama", "model": "kev"}),
    "llama.cpp": (SystemOneFake(RULES["llama.cpp"]), SYSTEMONE, {"dialect": "llama.cpp"}),
    "laya": (SystemOneFake(RULES["laya"]), SYSTEMONE, {"dialect": "laya"}),
    "jev-compatible": (SystemOneFake(RULES["jev-compatible"]), SYSTEMONE, {"dialect": "jev-compatible"}),
    "nimble": (SystemOneFake(RULES["nimble"]), SYSTEMONE, {"dialect": "nimble", "model": "nimble-1"}),
    "openrouter": (SystemOneFake(RULES["openrouter"]), OPENROUTER, {}),
    "openai": (OpenAIFake(), OPENAI, {}),
}
"""Dialect -> its fake, the component that speaks it, and that component's settings beside the base URL."""


def _base(server: FaultServer, name: str) -> str:
    return f"{server.url}/api" if name == OPENROUTER else server.url


@pytest.mark.anyio
@pytest.mark.parametrize("text_in", ["question", "state"])
@pytest.mark.parametrize("dialect", SERVERS)
async def test_a_dialect_is_spoken_and_its_answers_become_verdicts(dialect: str, text_in: str) -> None:
    """One request for all questions, or one for each; the same verdicts, in order, equal to single questions."""
    fake, name, options = SERVERS[dialect]
    with FaultServer(fake) as server:
        async with opened(name, base_url=_base(server, name), text_in=text_in, **options) as backend:
            ones = [await backend.evaluate(request) for request in asked()]
            assert len(server.requests) == 5
            if text_in == "question":
                many = list(await backend.evaluate_many(asked()))
                assert len(server.requests) == 6
                assert [(item.outcome, item.probability) for item in many] == [
                    (item.outcome, item.probability) for item in ones
                ]
                assert [(item.usage.calls, item.usage.requests) for item in many] == [(1, 1)] + [(1, 0)] * 4
                assert many[0].usage.input_tokens
            assert await probe(backend) == []
            assert dialect in backend.policy_id
    assert [item.outcome for item in ones] == [YES, NO, ABSTAIN, NO, ABSTAIN]
    assert [item.reason for item in ones] == [None, None, "undecided", None, "undecided"]
    assert {item.policy_id for item in ones} == {backend.policy_id}


@pytest.mark.anyio
async def test_a_request_holds_the_evidence_once_and_each_text_with_its_question() -> None:
    """Untrusted texts are JSON values with names; only the wording is ours, and both sides of the answer are described."""
    with FaultServer(SystemOneFake()) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            await backend.evaluate_many(asked())
        (request,) = server.requests
    body = request.json
    assert sorted(body) == ["model", "questions", "state"]
    assert (request.path, body["model"], body["state"]) == ("/v1/systemone", "jev-latest", {"judged_against": [QUERY]})
    assert list(body["questions"]) == ["q1", "q2", "q3", "q4", "q5"]
    for question, text in zip(body["questions"].values(), TEXTS, strict=True):
        assert question["type"] == "noul"
        assert sorted(question["criteria"]) == ["false", "true"]
        told = question["instructions"]
        assert (sorted(told), told["question"], told["text"]) == (["question", "task", "text"], QUESTION, text)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("dialect", "model"),
    [("jev", "jev-latest"), ("laya", "jev-latest"), ("llama.cpp", None), ("jev-compatible", None)],
)
async def test_the_model_of_a_dialect_is_asked_for_when_none_is_set(dialect: str, model: str | None) -> None:
    """A server that refuses `jev-latest` is sent none."""
    with FaultServer(SystemOneFake(RULES[dialect])) as server:
        async with opened(SYSTEMONE, base_url=server.url, dialect=dialect) as backend:
            await backend.evaluate(asked()[0])
            assert f"model={model or 'default'};" in backend.policy_id
        assert server.requests[0].json.get("model") == model


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("probability", "outcome"),
    [(1, YES), (0.6, YES), (0.5999, ABSTAIN), (0.5, ABSTAIN), (0.4, ABSTAIN), (0.3999, NO), (0, NO)],
)
async def test_a_verdict_follows_from_the_thresholds(probability: float, outcome: DecisionOutcome) -> None:
    """YES from `keep_at` on, NO below `drop_below`, ABSTAIN between; the probability is the server's own."""
    with FaultServer(Answer(json=answered(probability))) as server:
        async with opened(SYSTEMONE, base_url=server.url) as backend:
            result = await backend.evaluate(asked()[0])
    assert (result.outcome, result.probability) == (outcome, probability)
    assert result.reason == ("undecided" if outcome is ABSTAIN else None)
    assert result.usage == Usage(1, 1, 40, 4)
    assert not result.used_fallback


@pytest.mark.anyio
async def test_thresholds_are_settings_and_part_of_the_policy() -> None:
    """Whoever reads a trace can tell which rule made a verdict."""
    with FaultServer(Answer(json=answered(0.45))) as server:
        async with opened(SYSTEMONE, base_url=server.url, keep_at=0.45, drop_below=0.45, model="jev-1.13.0") as backend:
            assert (await backend.evaluate(asked()[0])).outcome is YES
            assert backend.policy_id == (
                "hosted.systemone.v1;wire=systemone/jev;model=jev-1.13.0;prompt=1;keep-at=0.45;drop-below=0.45"
            )
        async with opened(SYSTEMONE, base_url=server.url, text_in="state") as backend:
            assert ";text-in=state;" in backend.policy_id


@pytest.mark.parametrize(
    ("model", "pinned"),
    [
        ("jev-1.13.0", True),
        ("typesafe/jev-1.13-20260917", True),
        ("gpt-6-luna-2026-10-06", True),
        ("registry/kev@sha256:0123456789abcdef", True),
        ("jev-latest", False),
        ("jev-preview", False),
        ("~typesafe/jev-1.13.0", False),
        ("jev-1.14", False),
        ("gpt-6-luna", False),
        ("kev:4b", False),
        ("nightly-20260917", False),
        (None, False),
    ],
)
def test_only_the_name_of_one_exact_version_is_an_exact_model(model: str | None, pinned: bool) -> None:
    """Case 45: verdicts of a name that may move are not to be remembered; in doubt, it may move."""
    assert exact(model) == (model if pinned else None)


@pytest.mark.anyio
async def test_the_backend_tells_its_exact_model() -> None:
    """What a cache of verdicts asks."""
    async with opened(SYSTEMONE, base_url="http://127.0.0.1:9", model="jev-1.13.0") as backend:
        assert backend.exact_model == "jev-1.13.0"
    async with opened(OPENAI, base_url="http://127.0.0.1:9") as backend:
        assert backend.exact_model is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("told", "stays"),
    [
        ("jev-1.13.0", True),
        ("typesafe/jev-1.13.0", True),
        (None, True),
        (7, True),
        ("jev-1.14.0", False),
        ("jev-latest", False),
    ],
)
async def test_a_model_is_exact_only_until_another_one_answers(told: object, stays: bool) -> None:
    """A server that puts another model in its place would else have its verdicts remembered under a wrong name."""
    answers = [Answer(json={**answered(0.9), "model": model}) for model in (told, "jev-1.13.0")]
    with FaultServer(answers) as server:
        async with opened(SYSTEMONE, base_url=server.url, model="jev-1.13.0") as backend:
            await backend.evaluate(*asked(TEXTS[:1]))
            assert backend.exact_model == ("jev-1.13.0" if stays else None)
            await backend.evaluate(*asked(TEXTS[:1]))
            assert backend.exact_model == ("jev-1.13.0" if stays else None)


@pytest.mark.anyio
async def test_a_question_that_openai_declines_is_an_abstention_among_verdicts() -> None:
    """One refusal, with its reason and without a probability; the others are judged."""
    texts = (TEXTS[0], "A forbidden matter.", TEXTS[1])
    with FaultServer(OpenAIFake()) as server:
        async with opened(OPENAI, base_url=server.url) as backend:
            results = await backend.evaluate_many(asked(texts))
    assert [item.outcome for item in results] == [YES, ABSTAIN, NO]
    assert [(item.reason, item.probability is None) for item in results] == [(None, False), ("refused", True), (None, False)]
    assert sum(item.usage.calls for item in results) == 3


@pytest.mark.anyio
async def test_a_server_that_supports_no_yes_no_questions_is_an_error() -> None:
    """Abstaining from everything would keep every candidate and look like a judgement."""
    with FaultServer(SystemOneFake(RULES["jev-compatible"], unsupported=True)) as server:
        async with opened(SYSTEMONE, base_url=server.url, dialect="jev-compatible") as backend:
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(asked())
    assert (caught.value.code, caught.value.usage) == ("unsupported", Usage(5, 1, len(server.requests[0].body) // 4, 5))


@pytest.mark.anyio
@pytest.mark.parametrize(
    "base", ["{}", "{}/", "{}/v1", "{}/v1/", "{}/v1/systemone"], ids=["bare", "slash", "v1", "v1-slash", "whole"]
)
async def test_a_base_url_leads_to_the_route_whether_it_names_the_version_or_not(base: str) -> None:
    """Case 21: no segment is doubled and none lost."""
    with FaultServer(SystemOneFake()) as server:
        async with opened(SYSTEMONE, base_url=base.format(server.url)) as backend:
            assert (await backend.evaluate(asked()[0])).outcome is YES


@pytest.mark.anyio
async def test_a_route_of_its_own_can_be_named() -> None:
    """For gateways that have the same answers elsewhere."""
    rules = attrs.evolve(RULES["jev"], paths=("/gw/ask",))
    with FaultServer(SystemOneFake(rules)) as server:
        async with opened(SYSTEMONE, base_url=f"{server.url}/gw", path="ask") as backend:
            assert (await backend.evaluate(asked()[0])).outcome is YES
