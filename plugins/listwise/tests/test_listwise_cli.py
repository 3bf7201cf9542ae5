"""At the shell, as processes of their own: import, search with this second stage, and the probe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from listwise_parts import NOTES, RIGHT, by_text, chosen, completion, data_in

from narrowgate_http.testing import Answer, FaultServer, Recorded
from narrowgate_listwise.position_bias import SAMPLES

ANSWERS: Final = frozenset(text for sample in SAMPLES for label, text in sample.texts.items() if label in sample.answer)

CONFIG: Final = """
[use]
store = "sqlite.store"
channels = ["sqlite.lexical"]
reranker = "{reranker}"
generator = "hosted.generator"

[settings."sqlite.store"]
path = "memory.db"

[settings."hosted.generator"]
base_url = "{url}"
model = "m"
retries = 0
"""


@attrs.frozen
class Done:
    """How a command ended."""

    code: int
    out: Any
    err: str


Shell = Callable[..., Done]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return what runs `narrowgate ... --json` in a folder that holds notes and the only configuration."""
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps({"text": note}) + "\n" for note in NOTES), encoding="utf-8")

    def run(url: str, *arguments: str, reranker: str = "none", **variables: str) -> Done:
        (tmp_path / "narrowgate.toml").write_text(CONFIG.format(url=url, reranker=reranker), encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if not name.startswith("NARROWGATE_")} | variables
        command = [sys.executable, "-m", "narrowgate_cli", *arguments, "--json"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False, timeout=100)
        return Done(done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.decode())

    return run


def test_a_search_asks_the_model_where_the_option_says_so(shell: Shell) -> None:
    """English and Chinese: one request each, and the page is what was picked; without the option nobody is asked."""
    with FaultServer(by_text(RIGHT)) as server:
        assert shell(server.url, "import", "notes.jsonl").code == 0
        coarse = shell(server.url, "search", "Who repairs the coffee machine?")
        assert (coarse.code, coarse.out.keys(), server.requests) == (0, {"mode", "hits"}, [])
        assert len(coarse.out["hits"]) > 1
        arguments = ("search", "Who repairs the coffee machine?", "--rerank", "listwise.select", "--trace")
        found = shell(server.url, *arguments)
    assert (found.code, len(server.requests)) == (0, 1)
    assert [hit["text"] for hit in found.out["hits"]] == [NOTES[1]]
    assert (found.out["status"], found.out["reason"]) == ("applied", None)
    usage = {"calls": 1, "requests": 1, "input_tokens": 120, "output_tokens": 9}
    assert found.out["trace"]["rerank"]["usage"] == usage
    with FaultServer(by_text("陈老师")) as server:
        found = shell(server.url, "search", "谁负责维修咖啡机？", "--rerank", "listwise.select")
        assert data_in(server.requests[0])["query"] == "谁负责维修咖啡机？"
    assert [hit["text"] for hit in found.out["hits"]] == [NOTES[4]]


def test_a_model_that_talks_fails_the_command_or_leaves_coarse_order(shell: Shell) -> None:
    """Case 37: exit code 4 with the cause; where coarse order was asked for, a page that says `failed` and why."""
    with FaultServer(completion("None of these fit the question.")) as server:
        assert shell(server.url, "import", "notes.jsonl").code == 0
        arguments = ("search", "Who repairs the coffee machine?")
        failed = shell(server.url, *arguments, reranker="listwise.select")
        assert failed.code == 4
        assert failed.out["error"]["cause"] == "prose"
        page = shell(server.url, *arguments, "--trace", reranker="listwise.select", NARROWGATE_RERANK__ON_FAILURE="coarse")
    assert (page.code, page.out["status"], page.out["reason"]) == (0, "failed", "prose")
    assert page.out["hits"]
    assert page.out["trace"]["rerank"]["usage"]["requests"] == 1


def serving(ranks: Callable[[dict[str, Any]], tuple[int, ...]]) -> Callable[[Recorded], Answer]:
    """Return the script of a server that also answers the probe of its generator, whose schema names the words."""

    def answer(request: Recorded) -> Answer:
        schema = request.json["response_format"]["json_schema"]["schema"]
        if "seal" in schema["properties"]:
            return completion(json.dumps({"seal": schema["properties"]["seal"]["enum"][0]}))
        return chosen(*ranks(data_in(request)))

    return answer


def test_the_probe_finds_a_model_that_picks_by_place(shell: Shell) -> None:
    """`check --probe` shows each sample in two orders: a model that reads passes, one that does not is warned of twice."""

    def reading(data: dict[str, Any]) -> tuple[int, ...]:
        return tuple(item["rank"] for item in data["candidates"] if item["text"] in ANSWERS)

    with FaultServer(serving(reading)) as server:
        sound = shell(server.url, "check", "--probe", reranker="listwise.select")
        asked = [request for request in server.requests if "seal" not in request.body.decode()]
    assert (sound.code, sound.out["ok"], sound.out["problems"], sound.out["warnings"]) == (0, True, [], [])
    assert len(asked) == 4
    with FaultServer(serving(lambda _: (1, 2))) as server:
        biased = shell(server.url, "check", "--probe", reranker="listwise.select")
    assert (biased.code, biased.out["ok"]) == (0, True)
    found = [(warning["code"], warning["component"]) for warning in biased.out["warnings"]]
    assert found == [("position-bias", "listwise.select")] * 2
    assert ["English" in warning["message"] for warning in biased.out["warnings"]] == [True, False]
