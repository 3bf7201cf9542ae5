"""The decision services as components: what they check offline and show, where content goes, what their probe finds."""

from __future__ import annotations

from typing import Any

import pytest
from decisions_fakes import SystemOneFake
from decisions_parts import CONTEXT, OPENAI, OPENROUTER, SYSTEMONE, answered, asked, component, opened, settings_of

from narrowgate import diagnose, load_config
from narrowgate.errors import DecisionError
from narrowgate.seams import Locality
from narrowgate.seams.ports import DecisionBackend
from narrowgate.values.secret import Secret
from narrowgate_hosted.decisions.probing import probe
from narrowgate_hosted.decisions.settings import SystemOneSettings
from narrowgate_http.testing import Answer, FaultServer, Recorded

pytestmark = pytest.mark.anyio

KEY = "sk-never-to-be-shown"


def codes(name: str, **options: Any) -> list[str]:
    """Return what the offline check says."""
    return [problem.code for problem in component(name).check(settings_of(name, **options), CONTEXT)]


@pytest.mark.parametrize(
    ("name", "variable"),
    [(SYSTEMONE, "TYPESAFE_API_KEY"), (OPENAI, "OPENAI_API_KEY"), (OPENROUTER, "OPENROUTER_API_KEY")],
)
def test_a_service_that_wants_a_key_says_which_variable_holds_it(name: str, variable: str) -> None:
    """At its default address; with a key all is well."""
    (problem,) = component(name).check(settings_of(name), CONTEXT)
    assert (problem.code, problem.component) == ("missing-key", name)
    assert variable in problem.hint
    assert codes(name, key=KEY) == []


@pytest.mark.parametrize("name", [SYSTEMONE, OPENAI, OPENROUTER])
def test_a_server_of_ones_own_needs_neither_key_nor_tls(name: str) -> None:
    """On this machine; elsewhere TLS, unless it is said otherwise."""
    assert codes(name, base_url="http://127.0.0.1:8080") == []
    assert codes(name, base_url="https://gpu.example") == []
    assert codes(name, base_url="http://gpu.example") == ["insecure-url"]
    assert codes(name, base_url="http://gpu.example", allow_http=True) == []


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("jev", []),
        ("laya", []),
        ("llama.cpp", []),
        ("jev-compatible", []),
        ("ollama", ["missing-model"]),
        ("nimble", ["missing-model"]),
    ],
)
def test_a_dialect_that_wants_a_model_says_so(dialect: str, expected: list[str]) -> None:
    """Before the first search, and not by its error."""
    assert codes(SYSTEMONE, base_url="http://127.0.0.1:9", dialect=dialect) == expected
    assert codes(SYSTEMONE, base_url="http://127.0.0.1:9", dialect=dialect, model="m") == []


@pytest.mark.parametrize("name", [SYSTEMONE, OPENAI, OPENROUTER])
@pytest.mark.parametrize("url", ["gpu.example", "ftp://gpu.example", "http://", "http://[::1", "https://u:p@gpu.example"])
def test_a_url_that_is_none_is_one_problem(url: str, name: str) -> None:
    """Told once, by its own code; nothing of the component fails over it, and nothing is shown of it."""
    config = load_config(overrides={"use": {"decision_backend": name}, "settings": {name: {"base_url": url}}}, env={})
    found = [problem for problem in diagnose(config).problems if problem.severity == "error"]
    assert [(problem.code, problem.component) for problem in found] == [("bad-url", name)]
    assert component(name).facts(settings_of(name, base_url=url), CONTEXT) == {}


@pytest.mark.parametrize(
    ("name", "base_url", "url"),
    [
        (SYSTEMONE, None, "https://api.typesafe.ai/v1/systemone"),
        (SYSTEMONE, "https://api.typesafe.ai/v1/", "https://api.typesafe.ai/v1/systemone"),
        (SYSTEMONE, "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/systemone"),
        (SYSTEMONE, "https://api.fireworks.example/inference", "https://api.fireworks.example/inference/v1/systemone"),
        (SYSTEMONE, "https://nano.example/api/v1", "https://nano.example/api/v1/systemone"),
        (SYSTEMONE, "https://h.example?api_key=abc", "https://h.example/v1/systemone?api_key=***"),
        (OPENAI, None, "https://api.openai.com/v1/decisions"),
        (OPENAI, "https://api.openai.com/v1/decisions", "https://api.openai.com/v1/decisions"),
        (OPENROUTER, None, "https://openrouter.ai/api/alpha/decisions"),
        (OPENROUTER, "https://openrouter.ai/api/alpha", "https://openrouter.ai/api/alpha/decisions"),
        (OPENROUTER, "https://api.inworld.example/alpha", "https://api.inworld.example/alpha/decisions"),
    ],
)
def test_the_resolved_url_is_shown(name: str, base_url: str | None, url: str) -> None:
    """No segment twice, none lost, no value of a query."""
    options = {} if base_url is None else {"base_url": base_url}
    assert component(name).facts(settings_of(name, **options), CONTEXT)["url"] == url


@pytest.mark.parametrize(
    ("name", "options", "wire", "model", "batch"),
    [
        (SYSTEMONE, {}, "systemone/jev", "jev-latest", "at most 256 questions and 131072 bytes in a request"),
        (
            SYSTEMONE,
            {"dialect": "ollama", "model": "kev"},
            "systemone/ollama",
            "kev",
            "at most 64 questions and 65536 bytes in a request",
        ),
        (
            SYSTEMONE,
            {"dialect": "llama.cpp", "batch_limit": 7, "max_request_bytes": 5000},
            "systemone/llama.cpp",
            "the server's own",
            "at most 7 questions and 5000 bytes in a request",
        ),
        (
            SYSTEMONE,
            {"text_in": "state", "batch_limit": 7},
            "systemone/jev",
            "jev-latest",
            "at most 1 questions and 131072 bytes in a request",
        ),
        (OPENAI, {}, "decisions/openai", "gpt-6-luna", "at most 400 questions and 262144 bytes in a request"),
        (OPENROUTER, {}, "decisions/openrouter", "typesafe/jev-1.13", "at most 256 questions and 131072 bytes in a request"),
    ],
)
def test_wire_model_and_limits_are_shown(name: str, options: dict[str, Any], wire: str, model: str, batch: str) -> None:
    """What an operator would have to look up otherwise."""
    facts = component(name).facts(settings_of(name, **options), CONTEXT)
    assert (facts["wire"], facts["model"], facts["batch"]) == (wire, model, batch)


@pytest.mark.parametrize(
    ("base_url", "locality"),
    [
        ("http://127.0.0.1:8080", Locality.LOOPBACK),
        ("http://localhost:8080", Locality.LOOPBACK),
        ("http://[::1]:8080", Locality.LOOPBACK),
        ("https://api.typesafe.ai", Locality.HOSTED),
        ("http://192.168.1.20:8080", Locality.HOSTED),
        ("http://0.0.0.0:8080", Locality.HOSTED),
    ],
)
@pytest.mark.parametrize("name", [SYSTEMONE, OPENAI, OPENROUTER])
def test_where_content_goes_is_read_from_the_url(name: str, base_url: str, locality: Locality) -> None:
    """The same component is local with a server on this machine, and hosted with any other."""
    assert component(name).locality_for(settings_of(name, base_url=base_url)) is locality


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("keep_at", {"keep_at": 1.5}),
        ("keep_at", {"keep_at": float("nan")}),
        ("drop_below", {"drop_below": -0.1}),
        ("drop_below", {"keep_at": 0.3, "drop_below": 0.4}),
        ("text_in", {"text_in": "input"}),
        ("batch_limit", {"batch_limit": 0}),
        ("batch_limit", {"batch_limit": 1001}),
        ("max_request_bytes", {"max_request_bytes": 255}),
        ("max_question_bytes", {"max_question_bytes": 0}),
        ("dialect", {"dialect": "kev"}),
        ("model", {"model": ""}),
        ("timeout", {"timeout": 0}),
        ("deadline", {"deadline": float("inf")}),
        ("concurrency", {"concurrency": 0}),
        ("retries", {"retries": -1}),
        ("auth", {"auth": "digest"}),
    ],
)
def test_a_wrong_option_is_named(option: str, options: dict[str, Any]) -> None:
    """Before anything runs."""
    given = {"base_url": "http://127.0.0.1:9", **options}
    config = load_config(overrides={"use": {"decision_backend": SYSTEMONE}, "settings": {SYSTEMONE: given}}, env={})
    (problem,) = [item for item in diagnose(config).problems if item.severity == "error"]
    assert (problem.code, problem.component) == ("wrong-setting", SYSTEMONE)
    assert option in problem.message


@pytest.mark.parametrize("name", [SYSTEMONE, OPENAI, OPENROUTER])
async def test_the_key_is_sent_and_never_shown(name: str) -> None:
    """In its header, and in no message, though the server repeats it."""

    def answer(request: Recorded) -> Answer:
        return Answer(status=401, json={"error": {"message": f"bad key {request.headers['authorization']}"}})

    with FaultServer(answer) as server:
        async with opened(name, KEY, base_url=server.url) as backend:
            assert isinstance(backend, DecisionBackend)
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate(asked()[0])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "never" not in f"{caught.value}{caught.value.__cause__}"
    assert KEY not in repr(component(name).settings(api_key=Secret(KEY)))


async def found(script: Any, **options: Any) -> list[tuple[str, str]]:
    """Return code and severity of what the probe finds."""
    with FaultServer(script) as server:
        async with opened(SYSTEMONE, base_url=server.url, **options) as backend:
            problems = await probe(backend)
        assert len(server.requests) == 2
    return [(problem.code, problem.severity) for problem in problems]


async def test_the_probe_is_content_with_a_service_that_judges() -> None:
    """With a batch, and without."""
    assert await found(SystemOneFake()) == []
    assert await found(SystemOneFake(), batch_limit=1) == []
    assert await found(SystemOneFake(), text_in="state", batch_limit=1) == []


@pytest.mark.parametrize(
    ("pair", "alone", "expected"),
    [
        ((0.1, 0.9), 0.9, [("polarity", "error")]),
        ((0.5, 0.5), 0.5, [("polarity", "warning")]),
        ((0.9, 0.1), 0.15, []),
        ((0.9, 0.1), 0.6, [("batch-dependent", "warning")]),
        ((0.1, 0.9), 0.2, [("polarity", "error"), ("batch-dependent", "warning")]),
    ],
)
async def test_the_probe_sees_a_yes_that_means_no_and_a_verdict_that_depends_on_company(
    pair: tuple[float, float], alone: float, expected: list[tuple[str, str]]
) -> None:
    """Well-formed answers, each by itself beyond suspicion."""

    def answer(request: Recorded) -> Answer:
        return Answer(json=answered(*pair) if len(request.json["questions"]) == 2 else answered(alone))

    assert await found(answer) == expected


@pytest.mark.parametrize("option", ["batch_limit", "max_request_bytes", "max_question_bytes"])
def test_a_truth_value_is_no_limit(option: str) -> None:
    """`True` is 1 to Python, and one question in a request is not what anybody means by it."""
    with pytest.raises(TypeError, match=option):
        SystemOneSettings(**{option: True})
