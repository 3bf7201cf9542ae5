"""The two components as an operator meets them: settings, checks, facts, probes, and a search that uses them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from chat_fakes import WIRES, Asked, deciding, fake, generating, reply

import narrowgate
from narrowgate import diagnose, load_config
from narrowgate.errors import RerankError
from narrowgate.seams import CheckContext, Locality
from narrowgate.values.secret import Secret
from narrowgate_hosted.chat.components import BACKENDS, GENERATORS
from narrowgate_hosted.chat.settings import BASE_URLS, ChatDecisionSettings, GeneratorSettings
from narrowgate_http.testing import Answer, FaultServer, Recorded

DECISION, GENERATOR = BACKENDS[0], GENERATORS[0]
CONTEXT = CheckContext({}, "a1")


def composed(settings: Mapping[str, Any], *, env: Mapping[str, str] | None = None, **sections: Any) -> Any:
    """Return the diagnosis of a composition whose decision backend is the chat model."""
    use = {"decision_backend": "hosted.chat-decision", "reranker": "decision.keep-drop", "embedder": "none"}
    overrides = {
        "use": {**use, "channels": ["sqlite.lexical"]},
        "settings": {"hosted.chat-decision": dict(settings)},
        **sections,
    }
    return diagnose(load_config(overrides=overrides, env=env or {}))


@pytest.mark.parametrize("wire", WIRES)
def test_a_wire_knows_where_its_server_usually_is(wire: Any) -> None:
    """With a wire and a model alone, a component leads to the service that the wire is named after."""
    made = GeneratorSettings(wire=wire, model="model-1")
    assert made.base_url == BASE_URLS[wire]
    assert made.auth == ("x-api-key" if wire == "anthropic" else "bearer")
    assert GENERATOR.locality_for(made) is (Locality.LOOPBACK if wire == "ollama" else Locality.HOSTED)
    assert GENERATOR.facts(made, CONTEXT) == {
        "url": {
            "chat": "https://api.openai.com/v1/chat/completions",
            "responses": "https://api.openai.com/v1/responses",
            "anthropic": "https://api.anthropic.com/v1/messages",
            "ollama": "http://127.0.0.1:11434/api/chat",
        }[wire],
        "wire": wire,
        "model": "model-1",
    }


def test_the_field_for_the_limit_follows_the_host() -> None:
    """OpenAI wants the new name, its imitators the old one."""
    assert GeneratorSettings(model="m").token_field == "max_completion_tokens"
    for url in ("https://eu.api.openai.com/v1", "https://API.openai.com"):
        assert GeneratorSettings(model="m", base_url=url).token_field == "max_completion_tokens"
    for url in ("http://127.0.0.1:8000", "https://notapi.openai.com.example", "https://notapi.openai.com", "https://"):
        assert GeneratorSettings(model="m", base_url=url).token_field == "max_tokens"


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ({"model": "m"}, ["missing-key"]),
        ({"model": "m", "wire": "anthropic"}, ["missing-key"]),
        ({"model": "m", "base_url": "https://eu.api.openai.com/v1"}, ["missing-key"]),
        ({"model": "m", "wire": "ollama"}, []),
        ({"model": "m", "base_url": "http://127.0.0.1:8000/v1"}, []),
        ({"model": "m", "base_url": "https://gateway.example/v1"}, []),
        ({"model": "m", "base_url": "http://gateway.example/v1"}, ["insecure-url"]),
        ({"model": "m", "base_url": "gateway.example"}, ["bad-url"]),
        ({"model": "m", "wire": "ollama", "base_url": "http://127.0.0.1:11434/v1"}, ["bad-url"]),
        ({}, ["missing-setting"]),
        ({"model": ""}, ["wrong-setting"]),
        ({"model": "m", "wire": "gopher"}, ["wrong-setting"]),
        ({"model": "m", "wire": "ollama", "schema_as": "tool"}, ["wrong-setting"]),
        ({"model": "m", "wire": "ollama", "extra_body": {"stream": True}}, ["wrong-setting"]),
        ({"model": "m", "wire": "ollama", "extra_body": {"n": 2}}, ["wrong-setting"]),
        ({"model": "m", "wire": "ollama", "keep_at": 0.2}, ["wrong-setting"]),
        ({"model": "m", "wire": "ollama", "batch": 0}, ["wrong-setting"]),
        ({"model": "m", "wire": "ollama", "api_key": "written-out"}, ["literal-secret"]),
    ],
)
def test_what_cannot_run_is_told_before_anything_is_sent(settings: dict[str, Any], codes: list[str]) -> None:
    """By `narrowgate check` and a failing start alike."""
    problems = composed(settings).problems
    assert [problem.code for problem in problems] == codes
    assert "written-out" not in str(problems)


def test_a_missing_key_names_its_usual_variable() -> None:
    """So that the cure can be typed as it stands."""
    for wire, variable in (("chat", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")):
        (problem,) = composed({"model": "m", "wire": wire}).problems
        assert variable in problem.hint
        given = {"model": "m", "wire": wire, "api_key": {"env": variable}}
        assert composed(given, env={variable: "k-1"}).problems == ()


def test_only_a_server_on_this_machine_passes_local_only() -> None:
    """The same component is local or hosted by where its URL leads."""
    here, there = {"model": "m", "wire": "ollama"}, {"model": "m", "base_url": "https://gateway.example"}
    assert composed(here, privacy={"local_only": True}).problems == ()
    assert [item.code for item in composed(there, privacy={"local_only": True}).problems] == ["not-local"]


def test_check_shows_where_the_settings_lead() -> None:
    """URL, wire and model, without what a query may hide."""
    found = composed({"model": "m", "base_url": "https://gateway.example/v1/chat/completions?key=K1234567890"})
    rows = {row.key: row.value for row in found.composition.describe()}
    assert rows["facts.hosted.chat-decision.url"] == "https://gateway.example/v1/chat/completions?key=***"
    assert rows["facts.hosted.chat-decision.wire"] == "chat"


def test_a_secret_is_shown_nowhere() -> None:
    """Neither by the settings nor by a policy or a fact."""
    made = ChatDecisionSettings(model="m", api_key=Secret("k-0123456789"))
    assert "0123456789" not in f"{made!r}{DECISION.facts(made, CONTEXT)}{list(DECISION.check(made, CONTEXT))}"


def _obeys(asked: Asked) -> Any:
    """A server that keeps to the schema: it takes the first of the values allowed."""
    (name,) = asked.schema["properties"]
    return {name: asked.schema["properties"][name]["enum"][0]}


@pytest.mark.anyio
@pytest.mark.parametrize("wire", WIRES)
async def test_the_probe_finds_a_server_that_passes_over_the_schema(wire: str) -> None:
    """The value wanted is named by the schema alone, so that it cannot be hit by luck."""
    assert GENERATOR.probe is not None
    with FaultServer(fake(wire, _obeys)) as server:
        async with generating(server.url, wire) as generator:
            assert list(await GENERATOR.probe(generator)) == []
    for ignoring in ("Hello, reader at the harbour!", '{"greeting": "Hello"}', '{"seal": "harbour"}'):
        with FaultServer(Answer(json=reply(wire, ignoring))) as server:
            async with generating(server.url, wire) as generator:
                (problem,) = await GENERATOR.probe(generator)
        assert problem.code == "probe-failed"
        assert "schema_as" in problem.hint


@pytest.mark.anyio
async def test_the_probe_lets_an_outage_be_one() -> None:
    """The host tells it with its own words and cure."""
    assert GENERATOR.probe is not None
    with FaultServer(Answer(status=401)) as server:
        async with generating(server.url) as generator:
            with pytest.raises(narrowgate.NarrowgateError, match="unauthorised"):
                await GENERATOR.probe(generator)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("supporting", "unrelated", "found"),
    [("yes", "no", 0), ("yes", "abstain", 0), ("no", "yes", 2), ("yes", "yes", 1), ("no", "no", 1), ("abstain", "no", 1)],
)
async def test_the_probe_finds_a_model_that_cannot_tell_yes_from_no(supporting: str, unrelated: str, found: int) -> None:
    """A text that holds the evidence, and one that has nothing to do with the query."""
    assert DECISION.probe is not None

    def speak(asked: Asked) -> Any:
        return {"answer": supporting if "ferry" in asked.data["subject"] else unrelated}

    with FaultServer(fake("chat", speak)) as server:
        async with deciding(server.url) as backend:
            problems = list(await DECISION.probe(backend))
    assert [problem.code for problem in problems] == ["polarity"] * found


def _judge(asked: Asked) -> Any:
    return {"answer": "yes" if "ferry" in asked.data["subject"] else "no"}


def _overrides(folder: Path, url: str, **rerank: Any) -> dict[str, Any]:
    return {
        "use": {
            "decision_backend": "hosted.chat-decision",
            "reranker": "decision.keep-drop",
            "embedder": "none",
            "channels": ["sqlite.lexical"],
        },
        "rerank": rerank,
        "privacy": {"local_only": True},
        "settings": {
            "sqlite.store": {"path": str(folder / "memory.db")},
            "hosted.chat-decision": {"model": "model-1", "base_url": url, "retries": 0},
        },
    }


async def _search(folder: Path, url: str, **rerank: Any) -> Any:
    async with narrowgate.open(overrides=_overrides(folder, url, **rerank), env={}) as gate:
        texts = ["The harbour ferry runs at noon.", "The harbour wall is old.", "The harbour cat sleeps."]
        await gate.remember("notes", texts)
        return await gate.search("harbour", memory="notes")


def test_a_search_is_decided_by_a_chat_model(tmp_path: Path) -> None:
    """From the configuration to the page, on a server of this machine, with the cost of every question."""
    with FaultServer(fake("chat", _judge)) as server:
        page = anyio.run(_search, tmp_path, server.url)
    assert [hit.content.text for hit in page.hits] == ["The harbour ferry runs at noon."]
    assert (page.status, page.usage.calls, page.usage.requests, page.usage.input_tokens) == ("applied", 3, 3, 300)
    assert page.trace.rerank.policy_id


def test_a_search_fails_when_the_model_does_not_answer(tmp_path: Path) -> None:
    """Prose is no verdict: coarse order is not passed off as judged order unless that was asked for."""
    with FaultServer(Answer(json=reply("chat", "Let me think about harbours."))) as server:
        with pytest.raises(RerankError) as caught:
            anyio.run(_search, tmp_path, server.url)
        assert caught.value.usage is not None
        assert caught.value.usage.requests >= 1

        async def coarse() -> Any:
            return await _search(tmp_path, server.url, on_failure="coarse")

        page = anyio.run(coarse)
    assert (page.status, len(page.hits)) == ("failed", 3)


def test_a_credential_in_a_url_is_told_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Case 53: masked before anything is cut, in the error and its causes, in the page with its trace, and in each log."""
    key = "K1234567890abcdef"

    def echo(request: Recorded) -> Answer:
        said = f"no access to {request.path} from here, ask the owner of {key} for a right of your own"
        return Answer(status=403, json={"error": {"message": said}})

    with FaultServer(echo) as server, caplog.at_level(logging.DEBUG):
        url = f"{server.url}/v1/chat/completions?api_key={key}&x=1"
        with pytest.raises(RerankError) as caught:
            anyio.run(_search, tmp_path, url)

        async def coarse() -> Any:
            return await _search(tmp_path, url, on_failure="coarse")

        page = anyio.run(coarse)
        assert f"api_key={key}" in server.requests[0].path, "it is sent, as the operator wrote it"
    causes, error = [], caught.value
    while error is not None:
        causes.append(f"{error!r} {error}")
        error = error.__cause__ or error.__context__
    told = " ".join(causes) + repr(page) + caplog.text
    assert "403" in told
    assert key[:6] not in told


def test_a_server_is_probed_like_any_component(tmp_path: Path) -> None:
    """The host runs the probe of what is chosen and names the component."""

    async def work(url: str) -> Any:
        async with narrowgate.open(overrides=_overrides(tmp_path, url), env={}) as gate:
            return await gate.probe()

    with FaultServer(Answer(json=reply("chat", '{"answer": "no"}'))) as server:
        (problem,) = anyio.run(work, server.url)
    assert (problem.code, problem.component) == ("polarity", "hosted.chat-decision")
