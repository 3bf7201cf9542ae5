"""The component `hosted.embedder`: what it checks offline, what it shows, where content goes, and what its probe finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from embedding_parts import COMPONENT, CONTEXT, DIMENSION, listed, opened, settings_of, texts_in

import narrowgate
from narrowgate import diagnose, load_config
from narrowgate.errors import EmbeddingError
from narrowgate.seams import Locality
from narrowgate.seams.ports import Embedder
from narrowgate.values.secret import Secret
from narrowgate_hosted.embedding.probing import probe
from narrowgate_http.testing import FAULTS, Answer, FaultServer, Recorded

pytestmark = pytest.mark.anyio

KEY = "sk-never-to-be-shown"


def codes(base_url: str, **options: Any) -> list[str]:
    """Return what the offline check says."""
    return [problem.code for problem in COMPONENT.check(settings_of(base_url, **options), CONTEXT)]


@pytest.mark.parametrize(
    ("host", "variable"),
    [
        ("api.openai.com", "OPENAI_API_KEY"),
        ("api.voyageai.com", "VOYAGE_API_KEY"),
        ("api.jina.ai", "JINA_API_KEY"),
        ("api.mistral.ai", "MISTRAL_API_KEY"),
        ("API.cohere.com", "CO_API_KEY"),
    ],
)
def test_a_service_that_wants_a_key_is_known(host: str, variable: str) -> None:
    """The hint names the variable that usually holds it; with a key all is well."""
    (problem,) = COMPONENT.check(settings_of(f"https://{host}/v1"), CONTEXT)
    assert (problem.code, problem.component) == ("missing-key", "hosted.embedder")
    assert variable in problem.hint
    assert codes(f"https://{host}/v1", api_key=Secret(KEY)) == []


def test_a_server_of_ones_own_needs_no_key() -> None:
    """On this machine neither key nor TLS; elsewhere TLS, unless it is said otherwise."""
    assert codes("http://127.0.0.1:11434") == []
    assert codes("https://gpu.example") == []
    assert codes("http://gpu.example") == ["insecure-url"]
    assert codes("http://gpu.example", allow_http=True) == []


@pytest.mark.parametrize("url", ["gpu.example", "ftp://gpu.example", "http://", "http://[::1", "http://u:p@gpu.example"])
def test_a_url_that_is_none_is_one_problem(url: str) -> None:
    """Told once, by its own code; nothing of the component fails over it."""
    overrides = {
        "use": {"embedder": "hosted.embedder"},
        "settings": {"hosted.embedder": {"base_url": url, "model": "m", "dimension": 4}},
    }
    found = diagnose(load_config(overrides=overrides, env={}))
    assert [(problem.code, problem.component) for problem in found.problems if problem.severity == "error"] == [
        ("bad-url", "hosted.embedder")
    ]


@pytest.mark.parametrize(
    ("base_url", "dialect", "url"),
    [
        ("https://api.openai.com", "openai", "https://api.openai.com/v1/embeddings"),
        ("https://api.openai.com/v1/", "openai", "https://api.openai.com/v1/embeddings"),
        ("https://api.voyageai.com/v1", "voyage", "https://api.voyageai.com/v1/embeddings"),
        ("http://127.0.0.1:11434", "ollama", "http://127.0.0.1:11434/api/embed"),
        ("http://127.0.0.1:11434/api", "ollama", "http://127.0.0.1:11434/api/embed"),
        ("http://127.0.0.1:8080", "tei", "http://127.0.0.1:8080/embed"),
        ("http://127.0.0.1:8080/embed", "tei", "http://127.0.0.1:8080/embed"),
        ("https://api.cohere.com", "cohere", "https://api.cohere.com/v2/embed"),
        ("https://api.cohere.com/v2", "cohere", "https://api.cohere.com/v2/embed"),
        ("https://h.example/v1?token=abc", "openai", "https://h.example/v1/embeddings?token=***"),
    ],
)
def test_the_resolved_url_is_shown(base_url: str, dialect: Any, url: str) -> None:
    """No segment twice, none lost, no value of a query."""
    assert COMPONENT.facts(settings_of(base_url, dialect=dialect), CONTEXT)["url"] == url


@pytest.mark.parametrize(
    ("base_url", "locality"),
    [
        ("http://127.0.0.1:8080", Locality.LOOPBACK),
        ("http://localhost:8080", Locality.LOOPBACK),
        ("http://[::1]:8080", Locality.LOOPBACK),
        ("https://api.openai.com", Locality.HOSTED),
        ("http://192.168.1.20:8080", Locality.HOSTED),
        ("https://localhost.example", Locality.HOSTED),
        ("http://0.0.0.0:8080", Locality.HOSTED),
    ],
)
def test_where_content_goes_is_read_from_the_url(base_url: str, locality: Locality) -> None:
    """Only this machine itself is loopback."""
    assert COMPONENT.locality_for(settings_of(base_url)) is locality


def test_the_profile_is_known_without_a_server() -> None:
    """Model, version and dimension; whatever marks or precedes texts is in the version, and in the facts."""
    profile = COMPONENT.profile
    assert profile is not None
    plain = profile(settings_of())
    assert (plain.id, plain.version, plain.dimension, plain.threshold) == ("m", "1", DIMENSION, 0.3)
    marked = [
        profile(settings_of(query_prefix="query: ")),
        profile(settings_of(document_prefix="query: ")),
        profile(settings_of(query_fields={"prompt_name": "query"})),
        profile(settings_of(document_fields={"prompt_name": "query"})),
        profile(settings_of(dialect="voyage")),
        profile(settings_of(dialect="jina")),
    ]
    versions = [item.version for item in marked]
    assert len({plain.version, *versions}) == 7
    assert all(version.startswith("1+") for version in versions)
    assert COMPONENT.facts(settings_of(), CONTEXT)["profile"] == str(plain)
    left_out = {"query_fields": {"input_type": ""}, "document_fields": {"input_type": ""}}
    assert profile(settings_of(dialect="voyage", **left_out)) == plain


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("batch_size", {"dialect": "cohere", "batch_size": 97}),
        ("batch_size", {"dialect": "voyage", "batch_size": 1001}),
        ("batch_size", {"batch_size": 0}),
        ("encoding", {"dialect": "ollama", "encoding": "base64"}),
        ("encoding", {"encoding": "binary"}),
        ("query_fields", {"query_fields": {"input": "x"}}),
        ("document_fields", {"document_fields": {"model": "x"}}),
        ("dialect", {"dialect": "openapi"}),
        ("model", {"model": ""}),
        ("dimension", {"dimension": 0}),
        ("threshold", {"threshold": 1.5}),
        ("query_deadline", {"query_deadline": 0}),
    ],
)
def test_a_wrong_option_is_named(option: str, options: dict[str, Any]) -> None:
    """Before anything runs."""
    given = {"base_url": "http://127.0.0.1:9", "model": "m", "dimension": 4, **options}
    config = load_config(overrides={"use": {"embedder": "hosted.embedder"}, "settings": {"hosted.embedder": given}}, env={})
    (problem,) = [item for item in diagnose(config).problems if item.severity == "error"]
    assert (problem.code, problem.component) == ("wrong-setting", "hosted.embedder")
    assert repr(option) in problem.message


@pytest.mark.parametrize("missing", ["base_url", "model", "dimension"])
def test_what_cannot_be_guessed_must_be_said(missing: str) -> None:
    """Where, which model, and how long its vectors are."""
    given = {"base_url": "http://127.0.0.1:9", "model": "m", "dimension": 4}
    del given[missing]
    config = load_config(overrides={"use": {"embedder": "hosted.embedder"}, "settings": {"hosted.embedder": given}}, env={})
    (problem,) = [item for item in diagnose(config).problems if item.severity == "error"]
    assert problem.code == "missing-setting"
    assert missing in problem.message


async def test_the_key_is_sent_and_never_shown() -> None:
    """In the header that was asked for, and in no message, though the server repeats it."""

    def answer(request: Recorded) -> Answer:
        return Answer(status=401, json={"error": {"message": f"bad key {request.headers['authorization']}"}})

    with FaultServer(answer) as server:
        async with opened(server.url, api_key=Secret(KEY)) as embedder:
            assert isinstance(embedder, Embedder)
            with pytest.raises(EmbeddingError) as caught:
                await embedder.embed(["one"])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(caught.value)
    assert KEY not in repr(settings_of(api_key=Secret(KEY)))


def meaning(query: list[float], same: list[float], other: list[float], *, model: str = "m") -> Any:
    """Return the script of a server whose vectors of the probe's texts are given."""

    def answer(request: Recorded) -> Answer:
        known = {True: other, False: same}
        vectors = [query if "When" in text else known["canteen" in text] for text in texts_in(request)]
        return Answer(body=listed(vectors, model=model))

    return answer


NORTH, NEAR, EAST = [1.0, 0.0], [0.8, 0.6], [0.1, 0.995]


async def found(script: Any, **options: Any) -> list[tuple[str, str, str]]:
    """Return code, severity and message of what the probe finds."""
    with FaultServer(script) as server:
        async with opened(server.url, dimension=2, **options) as embedder:
            problems = await probe(embedder)
        assert len(server.requests) == 3
    return [(problem.code, problem.severity, problem.message) for problem in problems]


async def test_the_probe_is_content_with_a_model_that_means_something() -> None:
    """An answer is nearer to its query than an unrelated text, and the threshold lies between."""
    assert await found(meaning(NORTH, NEAR, EAST)) == []
    assert await found(meaning(NORTH, NEAR, EAST, model="org/M:latest")) == []


async def test_the_probe_sees_a_model_that_means_nothing() -> None:
    """Vectors that are equal, or the wrong way round."""
    for same, other in ((NEAR, NEAR), (EAST, NEAR)):
        ((code, severity, message),) = await found(meaning(NORTH, same, other))
        assert (code, severity) == ("probe-failed", "error")
        assert "no nearer" in message


async def test_the_probe_sees_a_threshold_that_lets_everything_in() -> None:
    """Cosines differ between models: a threshold below all of them judges nothing, one above all of them everything."""
    for threshold in (0.05, 0.9):
        ((code, severity, message),) = await found(meaning(NORTH, NEAR, EAST), threshold=threshold)
        assert (code, severity) == ("probe-failed", "warning")
        assert "threshold" in message


async def test_the_probe_sees_that_another_model_answers() -> None:
    """Some servers take any name and answer with what they have loaded."""
    ((code, severity, message),) = await found(meaning(NORTH, NEAR, EAST, model="other-embedder"))
    assert (code, severity) == ("probe-failed", "warning")
    assert "'other-embedder'" in message


async def test_the_probe_sees_a_text_with_two_vectors() -> None:
    """What was stored would not be found again."""
    turn = iter([NORTH, EAST])

    def answer(request: Recorded) -> Answer:
        texts = texts_in(request)
        return Answer(body=listed([next(turn)] if len(texts) == 1 else [NEAR, EAST]))

    problems = await found(answer)
    assert problems[0][:2] == ("probe-failed", "error")
    assert "two vectors" in problems[0][2]


async def test_a_server_that_fails_is_a_finding_with_its_cure(tmp_path: Path) -> None:
    """Through the host: the sentence of the failure, and the component."""
    given = {"model": "m", "dimension": DIMENSION, "retries": 0}
    for script, code in ((FAULTS["401"], "unauthorised"), (Answer(body=listed([[0.0] * DIMENSION])), "zero-vector")):
        with FaultServer(script) as server:
            overrides = {
                "use": {"embedder": "hosted.embedder", "reranker": "none"},
                "settings": {
                    "sqlite.store": {"path": str(tmp_path / "memory.db")},
                    "hosted.embedder": {**given, "base_url": server.url},
                },
            }
            async with narrowgate.open(overrides=overrides, env={}) as gate:
                (problem,) = await gate.probe()
        assert (problem.code, problem.component) == ("probe-failed", "hosted.embedder")
        assert f"[{code}]" in problem.message
