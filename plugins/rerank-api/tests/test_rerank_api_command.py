"""From a shell: `narrowgate search --rerank rerank-api.endpoint` on a file, and what `narrowgate check` tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from narrowgate_http.testing import Answer, FaultServer, Recorded
from narrowgate_rerank_api.checks import IRRELEVANT, RELEVANT

KEY: Final = "sk-very-secret-1"
NOTES: Final = """\
- The nightly backup of the order service moves to 02:30.
- The nightly backup fails when disk two is full.
- 李雷决定把日志保留期改为三十天。
"""
QUESTION: Final = "why does the nightly backup fail?"
CONFIG: Final = """\
[use]
channels = ["sqlite.lexical"]

[settings."sqlite.store"]
path = "memory.db"

[settings."rerank-api.endpoint"]
base_url = "{url}"
dialect = "tei"
"""

Command = Callable[..., Any]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return what runs `narrowgate` in a process of its own, in a folder of its own: (exit code, JSON, standard error)."""

    def run(*arguments: str, **variables: str) -> tuple[int, Any, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "TEMP", "TMPDIR")}
        env = {**kept, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PYTHONUTF8": "1", **variables}
        done = subprocess.run(
            [sys.executable, "-m", "narrowgate_cli", *arguments, "--json"],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=100,
        )
        return done.returncode, json.loads(done.stdout), done.stderr.decode()

    return run


def _tei(request: Recorded) -> Answer:
    """Score as a Text-Embeddings-Inference server that knows what fails."""
    rows = [(index, 0.97 if "fails" in text else 0.02) for index, text in enumerate(request.json["texts"])]
    return Answer(
        json=[{"index": index, "score": score} for index, score in sorted(rows, key=lambda row: -row[1])],
        headers={"x-compute-tokens": "33"},
    )


def _set_up(folder: Path, url: str, command: Command, more: str = "") -> None:
    (folder / "narrowgate.toml").write_text(CONFIG.format(url=url) + more, encoding="utf-8")
    (folder / "notes.md").write_text(NOTES, encoding="utf-8")
    assert command("import", "notes.md", "--memory", "notes")[1]["added"] == 3


def test_a_search_on_a_file_with_the_endpoint(tmp_path: Path, command: Command) -> None:
    """The order is the server's, the trace names component, policy, ranks and cost; without `--rerank` nobody is asked."""
    with FaultServer(_tei) as server:
        _set_up(tmp_path, server.url, command)
        code, plain, _ = command("search", QUESTION)
        assert (code, server.requests) == (0, [])
        code, page, said = command("search", QUESTION, "--rerank", "rerank-api.endpoint", "--trace")
        assert (code, said) == (0, "")
        (request,) = server.requests
    assert request.path == "/rerank"
    assert request.json == {
        "query": QUESTION,
        "texts": [hit["text"] for hit in plain["hits"]],
        "return_text": False,
        "truncate": True,
    }
    assert page["hits"][0]["text"].startswith("The nightly backup fails")
    assert {hit["ref"] for hit in page["hits"]} == {hit["ref"] for hit in plain["hits"]}
    told = page["trace"]["rerank"]
    assert (told["component"], told["policy_id"], told["status"]) == (
        "rerank-api.endpoint",
        "memory.rerank.api.v1;dialect=tei",
        "applied",
    )
    assert [told["candidates"][rank - 1]["ref"] for rank in told["selected_ranks"]] == [hit["ref"] for hit in page["hits"]]
    assert told["usage"] == {"calls": len(request.json["texts"]), "requests": 1, "input_tokens": 33, "output_tokens": 0}
    assert not any("0.97" in json.dumps(part) for part in (page, plain))


def test_a_server_that_fails_is_an_error_or_is_shown(tmp_path: Path, command: Command) -> None:
    """An exit code and the cause by default; coarse order with status and a remark where `[rerank]` asks for it."""
    with FaultServer(Answer(status=401, body=b"")) as server:
        _set_up(tmp_path, server.url, command)
        coarse = command("search", QUESTION)[1]["hits"]
        arguments = ("search", QUESTION, "--rerank", "rerank-api.endpoint")
        code, failed, _ = command(*arguments)
        assert code != 0
        assert (failed["error"]["code"], failed["error"]["cause"]) == ("rerank-failed", "unauthorised")
        assert "backup" not in failed["error"]["message"]
        code, page, _ = command(*arguments, NARROWGATE_RERANK__ON_FAILURE="coarse")
        assert (code, page["status"], page["reason"]) == (0, "failed", "unauthorised")
        assert page["hits"] == coarse
        assert len(server.requests) == 2


def test_check_tells_url_limits_and_locality(tmp_path: Path, command: Command) -> None:
    """Case 21: as JSON too."""
    (tmp_path / "narrowgate.toml").write_text(CONFIG.format(url="http://127.0.0.1:8080"), encoding="utf-8")
    code, told, _ = command("check", NARROWGATE_USE__RERANKER="rerank-api.endpoint")
    assert (code, told["ok"]) == (0, True)
    assert told["facts"]["rerank-api.endpoint"] == {
        "url": "http://127.0.0.1:8080/rerank",
        "request_limit": "32 documents and 2000000 bytes",
    }
    assert told["settings"]["locality.rerank-api.endpoint"]["value"] == "loopback"


def test_check_tells_which_variables_of_agent_memory_were_honoured(tmp_path: Path, command: Command) -> None:
    """Spec 8: the variable of each value, as JSON; never the key."""
    code, told, said = command(
        "check",
        NARROWGATE_USE__RERANKER="rerank-api.agent-memory",
        NARROWGATE_USE__CHANNELS="sqlite.lexical",
        AGENT_MEMORY_RERANK_PROVIDER="Jina",
        AGENT_MEMORY_RERANK_MODEL="jina-reranker-v3",
        AGENT_MEMORY_RERANK_BASE_URL="https://api.jina.ai/v1/",
        OPENAI_API_KEY=KEY,
    )
    assert (code, told["ok"]) == (0, True)
    assert told["facts"]["rerank-api.agent-memory"] == {
        "url": "https://api.jina.ai/v1/rerank",
        "request_limit": "none",
        "provider": "as AGENT_MEMORY_RERANK_PROVIDER says",
        "model": "as AGENT_MEMORY_RERANK_MODEL says",
        "base_url": "as AGENT_MEMORY_RERANK_BASE_URL says",
        "api_key": "as OPENAI_API_KEY says",
    }
    assert told["settings"]["locality.rerank-api.agent-memory"]["value"] == "hosted"
    assert KEY not in json.dumps(told) + said


@pytest.mark.parametrize(("better", "codes"), [(RELEVANT, []), (IRRELEVANT, ["polarity"])], ids=["right", "turned-round"])
def test_a_probe_finds_a_scale_that_is_turned_round(better: str, codes: list[str], tmp_path: Path, command: Command) -> None:
    """`narrowgate check --probe` asks the server itself, about texts of its own; there is no database yet."""

    def script(request: Recorded) -> Answer:
        rows = enumerate(request.json["texts"])
        return Answer(json=[{"index": index, "score": 0.9 if text == better else 0.1} for index, text in rows])

    with FaultServer(script) as server:
        (tmp_path / "narrowgate.toml").write_text(CONFIG.format(url=server.url), encoding="utf-8")
        _, told, _ = command("check", "--probe", NARROWGATE_USE__RERANKER="rerank-api.endpoint")
        assert [sorted(request.json["texts"]) for request in server.requests] == [sorted([RELEVANT, IRRELEVANT])]
    assert [item["code"] for item in told["problems"]] == codes
    assert not (tmp_path / "memory.db").exists()
