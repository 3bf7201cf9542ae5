"""The retrieval of agent-memory as a configuration: the one that the README shows, over a real file and real vectors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import narrowgate
from narrowgate.values.entry import EntryDraft
from narrowgate.values.search import ChannelKind, Mode
from narrowgate_http.testing import Answer, FaultServer, Recorded, without_waits

README: Final = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
(CONFIG,) = (text for text in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "rerank-api.agent-memory" in text)

KEY: Final = "sk-very-secret-1"
QUESTION: Final = "where does the nightly backup of the order service go?"
NOTES: Final = [
    (f"The nightly backup of the order service, note {number}: it goes to disk {number}.", f"P{number % 4}", number)
    for number in range(8)
]
OTHERS: Final = [f"订单服务的夜间备份存放在{disk}号磁盘。" for disk in "一二三四"]
"""What the words of the question do not find, and its meaning does."""


def _score(text: str) -> float:
    """What the server thinks of a text: 0.95 for note 0, and less for each that follows."""
    number = re.search(r"note (\d+)", text)
    return 0.5 if number is None else 0.95 - int(number[1]) / 20


def _drafts(now: datetime) -> list[EntryDraft]:
    """Return the notes, each with priority, vitality and age; a greater number is older."""
    drafts = [
        EntryDraft(
            text, occurred_at=now - timedelta(days=3 * number), attributes={"priority": mark, "vitality": 1 - number / 12}
        )
        for text, mark, number in NOTES
    ]
    return drafts + [EntryDraft(text, occurred_at=now, attributes={"priority": "P2", "vitality": 0.8}) for text in OTHERS]


def _weighted(draft: EntryDraft, now: datetime) -> float:
    """Return score x priority x vitality x recency, written down anew from agent-memory's formula."""
    priority = {"P0": 4, "P1": 3, "P2": 2, "P3": 1}[str(draft.attributes["priority"])]
    vitality = max(0.1, float(draft.attributes["vitality"]))  # type: ignore[arg-type]
    assert isinstance(draft.occurred_at, datetime)
    recency = max(0.1, 1 / (1 + 0.1 * (now - draft.occurred_at).days))
    return _score(draft.text) * priority * vitality * recency


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Return what sets agent-memory's variables for a server, and gives the README's configuration."""

    def made(url: str) -> dict[str, Any]:
        for name in ("AGENT_MEMORY_RERANK_MODEL", "AGENT_MEMORY_RERANK_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AGENT_MEMORY_RERANK_PROVIDER", "OpenAI")
        monkeypatch.setenv("AGENT_MEMORY_RERANK_API_KEY", f"Bearer {KEY}")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1/")
        config = tomllib.loads(CONFIG)
        config["settings"]["sqlite.store"]["path"] = str(tmp_path / "memory.db")
        return config

    return made


@pytest.mark.anyio
async def test_words_and_meaning_then_the_server_then_the_weights(configured: Callable[..., Any]) -> None:
    """Spec 8: BM25 and vectors, RRF, twice the limit to the server, its score x the entry's factors, the limit.

    Of the request nothing but model, query and documents, and the key's own scheme is not doubled.
    """
    now = datetime.now(UTC)
    drafts = {draft.text: draft for draft in _drafts(now)}

    def server_of_it(request: Recorded) -> Answer:
        documents = request.json["documents"]
        results = [{"index": place, "relevance_score": _score(text)} for place, text in enumerate(documents)]
        return Answer(json={"results": sorted(results, key=lambda row: -row["relevance_score"])})

    with FaultServer(server_of_it) as server:
        async with narrowgate.open(overrides=configured(server.url)) as gate:
            await gate.remember("notes", list(drafts.values()))
            page = await gate.search(QUESTION, memory="notes")
        (request,) = server.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/rerank", f"Bearer {KEY}")
    pool = [candidate.content.text for candidate in page.trace.rerank.candidates]
    assert request.json == {"model": "Qwen/Qwen3-Reranker-8B", "query": QUESTION, "documents": pool}

    assert page.trace.mode is Mode.HYBRID
    assert page.trace.fusion == "rrf-1(lexical=1,vector=1)"
    found = {candidate.content.text: set(candidate.matched_by) for candidate in page.trace.rerank.candidates}
    assert {kind for kinds in found.values() for kind in kinds} == {*ChannelKind}
    assert any(found.get(text) == {ChannelKind.VECTOR} for text in OTHERS)
    assert len(drafts) > len(pool) == 10

    expected = sorted(pool, key=lambda text: -_weighted(drafts[text], now))[:5]
    assert (page.status, [hit.content.text for hit in page.hits]) == ("applied", expected)
    # Neither the coarse order nor the server's alone.
    assert expected not in (pool[:5], sorted(pool, key=lambda text: -_score(text))[:5])
    assert page.trace.rerank.policy_id == (
        "memory.rerank.api.v1;dialect=agent-memory;model=Qwen/Qwen3-Reranker-8B;range=0..1;weights=priority+recency+vitality"
    )


@pytest.mark.anyio
async def test_it_goes_on_without_the_server_and_says_so(configured: Callable[..., Any]) -> None:
    """Spec 8: on any error the list as it was; the page, unlike agent-memory's, has status, reason and cost."""
    with FaultServer(Answer(status=500, json={"error": "down"})) as server, without_waits():
        async with narrowgate.open(overrides=configured(server.url)) as gate:
            await gate.remember("notes", _drafts(datetime.now(UTC)))
            page = await gate.search(QUESTION, memory="notes")
        attempts = len(server.requests)
    assert (page.status, page.reason) == ("failed", "server-error")
    assert [hit.ref for hit in page.hits] == [candidate.ref for candidate in page.trace.rerank.candidates[:5]]
    # The embedding of the question is in the account of the page, not in that of the stage.
    assert (page.trace.rerank.usage.calls, page.trace.rerank.usage.requests) == (10, attempts)
