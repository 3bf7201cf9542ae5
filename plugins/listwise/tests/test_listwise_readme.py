"""The README is true: the prompt, the settings, the examples, and what becomes of each answer, over HTTP and a real file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from listwise_parts import QUERY, completion, gate

from narrowgate import diagnose, load_config
from narrowgate.decisions import Usage
from narrowgate.errors import RerankError
from narrowgate.values.search import Candidate
from narrowgate_http.testing import Answer, FaultServer
from narrowgate_listwise import INSTRUCTIONS, PROMPT_VERSION, SCHEMA, Listwise, ListwiseSettings

TEXT: Final = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
LIMIT: Final = 3

ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.split("## What an answer becomes")[1].split("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| the model", "| ---"))
]
"""The rows of the table of answers: what the model writes, status, reason, ranks, counted."""

IN_WORDS: Final[dict[str, Answer]] = {
    "the first line in one code fence": completion(f"```json\n{ROWS[0][0].strip('`')}\n```"),
    "an answer that is cut at the token limit": completion('{"selected_ranks": [3]}', finish="length"),
    "a refusal": completion(None, refusal="I would rather not."),
    "nothing": completion(""),
}
"""The answers that the table tells in words."""


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def test_the_prompt_is_the_one_shown() -> None:
    """To the letter, under the version that the page names; and the schema."""
    assert [text.strip() for text in blocks("text")] == [INSTRUCTIONS]
    assert f"version `{PROMPT_VERSION}`" in TEXT
    assert json.loads(blocks("json")[1]) == SCHEMA


@pytest.mark.anyio
async def test_the_data_is_what_is_shown(
    pool: Callable[..., list[Candidate]], scripted: type, ranks: Callable[..., dict[str, Any]]
) -> None:
    """The example is what a generator gets for these three entries."""
    shown = json.loads(blocks("json")[0])
    generator = scripted(ranks(2))
    candidates = pool([entry["text"] for entry in shown["candidates"]], {1: datetime(2026, 3, 2, 8, 30, tzinfo=UTC)})
    await Listwise(generator).rerank(shown["query"], candidates, 3)
    assert generator.asked[0][1] == shown


def test_the_table_has_a_row_for_every_kind_of_answer() -> None:
    """It is read as it should be: all rows, each told in words known, every status among them."""
    assert len(ROWS) > 20
    assert {row[0] for row in ROWS if not row[0].startswith("`")} == set(IN_WORDS)
    assert {row[1] for row in ROWS} == {"`applied`", "`none_relevant`", "an error"}


@pytest.mark.anyio
@pytest.mark.parametrize("row", ROWS, ids=[str(number) for number in range(1, len(ROWS) + 1)])
async def test_an_answer_becomes_what_the_table_says(row: list[str], tmp_path: Path) -> None:
    """Cases 31, 33, 35, 37, each row over HTTP: the page, or the error with its code and what the call cost."""
    written, status, reason = row[0], row[1].strip("`"), row[2].strip("`")
    with FaultServer(IN_WORDS.get(written) or completion(written.strip("`"))) as server:
        async with gate(server.url, tmp_path) as opened:
            if status == "an error":
                with pytest.raises(RerankError) as caught:
                    await opened.search(QUERY, limit=LIMIT)
                assert (caught.value.code, caught.value.usage) == (reason, Usage(1, 1, 120, 9))
                return
            page = await opened.search(QUERY, limit=LIMIT)
    rerank = page.trace.rerank
    assert rerank is not None
    assert rerank.decision is not None
    place = {candidate.ref: candidate.rank for candidate in rerank.candidates}
    assert len(place) == 4
    found = ", ".join(str(place[hit.ref]) for hit in page.hits) or "none"
    assert (page.status, page.reason or "-", found) == (status, reason, row[3])
    assert rerank.decision.discarded_rank_count == int(row[4])
    assert page.usage == Usage(1, 1, 120, 9)


def test_the_settings_are_those_shown() -> None:
    """Every option with its default, neither more nor less."""
    shown = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", TEXT, re.MULTILINE))
    assert {name: json.loads(value) for name, value in shown.items()} == attrs.asdict(ListwiseSettings())


def test_the_examples_are_sound(tmp_path: Path) -> None:
    """Each can start; each deadline lies below that of whoever waits; the local model has room for the longest prompt."""
    for number, example in enumerate(blocks("toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(example, encoding="utf-8")
        found = diagnose(load_config(file, env={"OPENAI_API_KEY": "k"}))
        assert found.composition is not None
        assert [problem for problem in found.problems if problem.severity == "error"] == []
        values = {row.key: row.value for row in found.composition.describe()}
        assert (values["use.reranker"], values["use.generator"]) == ("listwise.select", "hosted.generator")
        generator, stage = "settings.hosted.generator", "settings.listwise.select"
        times = [f"{generator}.timeout", f"{generator}.deadline", f"{stage}.deadline", "search.deadline"]
        assert times == sorted(times, key=lambda name: float(values[name]))
        if values[f"{generator}.wire"] == "ollama":
            longest = int(values[f"{stage}.max_prompt_tokens"]) + int(values[f"{generator}.max_output_tokens"])
            assert longest <= int(values[f"{generator}.num_ctx"])
