"""The components in a configuration: what check says and shows, where content goes, agent-memory's variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import narrowgate
from narrowgate import CompositionError, diagnose, load_config
from narrowgate_http.testing import Answer, FaultServer
from narrowgate_rerank_api.checks import IRRELEVANT, RELEVANT, probe

KEY: Final = "sk-very-secret-1"


def check(component: str, env: dict[str, str] | None = None, **settings: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return problems (code -> message and hint) and rows (key -> value and source) of a configuration."""
    use = {"reranker": f"rerank-api.{component}", "embedder": "none", "channels": ["sqlite.lexical"]}
    overrides = {"use": use, "settings": {f"rerank-api.{component}": settings} if settings else {}}
    found = diagnose(load_config(overrides=overrides, env=env or {}))
    rows = found.composition.describe() if found.composition else ()
    assert KEY not in repr(found.problems) + repr(rows)
    return (
        {item.code: f"{item.message} -> {item.hint}" for item in found.problems},
        {row.key.replace(f"rerank-api.{component}.", ""): f"{row.value} ({row.source.split(' ')[0]})" for row in rows}
        | {row.key.partition(".")[0]: row.value for row in rows if row.key.startswith("locality.rerank-api")},
    )


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration and no data of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("settings", "code", "word"),
    [
        ({}, "missing-setting", "base_url"),
        ({"dialect": "tei"}, "missing-setting", "base_url"),
        ({"dialect": "vllm", "base_url": "http://127.0.0.1:1"}, "missing-setting", "model"),
        ({"dialect": "tei", "base_url": "http://127.0.0.1:1", "model": "m"}, "wrong-setting", "model"),
        ({"dialect": "cohere", "model": "m"}, "missing-key", "CO_API_KEY"),
        ({"base_url": "https://api.jina.ai/v1", "model": "m"}, "missing-key", "JINA_API_KEY"),
        ({"base_url": "http://rerank.example"}, "insecure-url", "https"),
        ({"base_url": "ftp://h"}, "bad-url", "http"),
        ({"base_url": "http://[::1"}, "bad-url", "URL"),
        ({"base_url": "http://127.0.0.1:1", "dialect": "cohre"}, "wrong-setting", "cohere"),
        ({"base_url": "http://127.0.0.1:1", "min_score": 0.3}, "wrong-setting", "score_range"),
        ({"base_url": "http://127.0.0.1:1", "min_score": 3.0, "score_range": [0, 1]}, "wrong-setting", "within"),
        ({"base_url": "http://127.0.0.1:1", "score_range": [1, 0]}, "wrong-setting", "lowest"),
        ({"base_url": "http://127.0.0.1:1", "score_range": [0, 1, 2]}, "wrong-setting", "score_range"),
        ({"base_url": "http://127.0.0.1:1", "score_range": [-1e308, 1e308]}, "wrong-setting", "finite"),
        ({"base_url": "http://127.0.0.1:1", "weights": ["age"]}, "wrong-setting", "recency"),
        ({"base_url": "http://127.0.0.1:1", "weights": ["recency", "recency"]}, "wrong-setting", "twice"),
        ({"base_url": "http://127.0.0.1:1", "options": {"top_n": 3}}, "wrong-setting", "top_n"),
        ({"base_url": "http://127.0.0.1:1", "max_documents": 0}, "wrong-setting", "max_documents"),
        ({"base_url": "http://127.0.0.1:1", "unscored": "zero"}, "wrong-setting", "after"),
    ],
)
def test_what_is_wrong_is_told_before_the_start(settings: dict[str, Any], code: str, word: str) -> None:
    """Each with its code and, in message or hint, the word that helps."""
    problems, rows = check("endpoint", **settings)
    assert word in problems[code]
    assert rows == {}


def test_a_threshold_without_a_declared_scale_is_refused() -> None:
    """A threshold of 0..1 would drop every logit: it needs `score_range`, whatever else is right or wrong."""
    wrong, _ = check("endpoint", base_url="http://127.0.0.1:1", min_score=0.3, limit=3)
    assert "score_range" in wrong["wrong-setting"]
    assert "unknown-key" in wrong
    assert check("endpoint", base_url="http://127.0.0.1:1", min_score=0.3, score_range=[0, 1])[0] == {}


@pytest.mark.parametrize(
    ("settings", "url", "limit", "place"),
    [
        ({"base_url": "http://127.0.0.1:80/v1/"}, "http://127.0.0.1:80/v1/rerank", "none", "loopback"),
        (
            {"dialect": "tei", "base_url": "http://localhost:80"},
            "http://localhost:80/rerank",
            "32 documents and 2000000 bytes",
            "loopback",
        ),
        (
            {"dialect": "cohere", "model": "m", "api_key": {"env": "CO_API_KEY"}},
            "https://api.cohere.com/v2/rerank",
            "1000 documents",
            "hosted",
        ),
        (
            {"base_url": "https://h.example/gw?key=abc", "max_documents": 5},
            "https://h.example/gw/v1/rerank?key=***",
            "5 documents",
            "hosted",
        ),
    ],
)
def test_check_shows_where_requests_go(settings: dict[str, Any], url: str, limit: str, place: str) -> None:
    """Case 21: the resolved URL without what may be a key, the limits of a request, whether content leaves the machine."""
    problems, rows = check("endpoint", {"CO_API_KEY": KEY}, **settings)
    assert problems == {}
    assert rows["facts.url"] == f"{url} (narrowgate-rerank-api)"
    assert rows["facts.request_limit"].startswith(limit)
    assert rows["locality"] == place


ENV: Final = {
    "AGENT_MEMORY_RERANK_PROVIDER": "Jina",
    "AGENT_MEMORY_RERANK_MODEL": "jina-reranker-v3",
    "AGENT_MEMORY_RERANK_API_KEY": KEY,
    "AGENT_MEMORY_RERANK_BASE_URL": "https://api.jina.ai/v1/",
}


def test_the_variables_of_agent_memory_are_honoured_and_told() -> None:
    """Spec 8: provider in any case, model, key and address; the value in force, its source, never the key."""
    problems, rows = check("agent-memory", ENV)
    assert problems == {}
    assert rows["facts.url"].startswith("https://api.jina.ai/v1/rerank ")
    assert rows["settings.model"] == "jina-reranker-v3 (environment)"
    assert rows["settings.api_key"] == "Secret(***) (environment)"
    told = {key: value.partition(" (")[0] for key, value in rows.items() if key.startswith("facts.")}
    assert {key: told[f"facts.{key}"] for key in ("provider", "model", "api_key", "base_url")} == {
        "provider": "as AGENT_MEMORY_RERANK_PROVIDER says",
        "model": "as AGENT_MEMORY_RERANK_MODEL says",
        "api_key": "as AGENT_MEMORY_RERANK_API_KEY says",
        "base_url": "as AGENT_MEMORY_RERANK_BASE_URL says",
    }


def test_the_fallbacks_and_defaults_of_agent_memory() -> None:
    """Spec 8: OPENAI_API_KEY and OPENAI_BASE_URL where its own variables say nothing; then its own defaults."""
    env = {"AGENT_MEMORY_RERANK_PROVIDER": "openai", "OPENAI_API_KEY": KEY, "AGENT_MEMORY_RERANK_MODEL": ""}
    problems, rows = check("agent-memory", env)
    assert problems == {}
    assert rows["facts.url"].startswith("https://api.openai.com/v1/rerank ")
    assert rows["settings.model"] == "Qwen/Qwen3-Reranker-8B (default)"
    assert rows["facts.api_key"].startswith("as OPENAI_API_KEY says ")
    assert "facts.model" not in rows
    _, rows = check("agent-memory", {**env, "OPENAI_BASE_URL": "https://gateway.example"})
    assert rows["facts.url"].startswith("https://gateway.example/rerank ")
    _, rows = check("agent-memory", {**env, "OPENAI_BASE_URL": "https://gateway.example"}, base_url="https://mine.example")
    assert rows["facts.url"].startswith("https://mine.example/rerank ")
    assert rows["facts.base_url"].startswith("not as OPENAI_BASE_URL says: ")


@pytest.mark.parametrize("provider", [None, "none", "OFF", "", "voyage"])
def test_a_reranker_that_the_environment_switches_off_is_no_silent_one(provider: str | None) -> None:
    """agent-memory would go on without; here whoever enabled it is told at the start."""
    env = {**ENV, "AGENT_MEMORY_RERANK_PROVIDER": provider} if provider is not None else {"OPENAI_API_KEY": KEY}
    problems, _ = check("agent-memory", env)
    assert list(problems) == ["reranker-off"]
    assert "AGENT_MEMORY_RERANK_PROVIDER" in problems["reranker-off"]


def test_without_a_key_only_a_server_of_this_machine_is_asked() -> None:
    """Spec 8 has agent-memory switch itself off in silence."""
    env = {"AGENT_MEMORY_RERANK_PROVIDER": "cohere"}
    assert "AGENT_MEMORY_RERANK_API_KEY" in check("agent-memory", env)[0]["missing-key"]
    assert check("agent-memory", {**env, "OPENAI_BASE_URL": "http://127.0.0.1:1"})[0] == {}


def test_a_local_only_composition_takes_a_loopback_server_alone(tmp_path: Path) -> None:
    """`[privacy] local_only` looks at the address, whichever way it was given."""
    base = {"use": {"reranker": "rerank-api.endpoint", "channels": "none"}, "privacy": {"local_only": True}}

    def codes(component: str, env: dict[str, str], **settings: Any) -> list[str]:
        use = {**base["use"], "reranker": f"rerank-api.{component}"}
        overrides = {**base, "use": use, "settings": {f"rerank-api.{component}": settings}}
        return [
            item.code for item in diagnose(load_config(overrides=overrides, env=env)).problems if item.severity == "error"
        ]

    assert codes("endpoint", {}, base_url="http://127.0.0.1:1") == []
    assert codes("endpoint", {}, base_url="https://rerank.example") == ["not-local"]
    assert codes("agent-memory", ENV) == ["not-local"]
    assert codes("agent-memory", {**ENV, "AGENT_MEMORY_RERANK_BASE_URL": "http://[::1]:1"}) == []


@pytest.mark.anyio
async def test_a_start_that_is_refused_asks_nobody(tmp_path: Path) -> None:
    """Problems are found offline."""
    with FaultServer(Answer()) as server:
        overrides = {
            "use": {"reranker": "rerank-api.endpoint", "channels": "none"},
            "settings": {
                "sqlite.store": {"path": str(tmp_path / "m.db")},
                "rerank-api.endpoint": {"base_url": server.url, "dialect": "vllm"},
            },
        }
        with pytest.raises(CompositionError, match="missing-setting"):
            async with narrowgate.open(overrides=overrides):
                raise AssertionError("it must not start")
        assert server.connections == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({RELEVANT: 4.7, IRRELEVANT: -8.1}, None),
        ({RELEVANT: 0.1, IRRELEVANT: 0.9}, "above"),
        ({RELEVANT: 0.5, IRRELEVANT: 0.5}, "alike"),
        ({RELEVANT: 0.5}, "only one"),
    ],
)
async def test_the_probe_sees_whether_more_means_better(
    scores: dict[str, float], said: str | None, endpoint: Callable[..., Any], scoring: Callable[..., Any]
) -> None:
    """A relevant and an irrelevant text; a server that turns the scale round would put the worst evidence first."""
    with FaultServer(scoring(scores)) as server:
        async with endpoint(server.url) as reranker:
            problems = await probe(reranker)
    assert [item.code for item in problems] == ([] if said is None else ["polarity"])
    assert said is None or said in problems[0].message
