"""The demonstration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narrowgate_cli.importing import read_paths
from narrowgate_cli.journal import journal_paths, questions

Run = Callable[..., Any]


@pytest.mark.usefixtures("everything")
def test_try_answers_six_questions_through_the_second_stage(run: Run) -> None:
    """Pool, verdicts, hits, calls and time for each question, in both languages."""
    done = run("try", "--json")
    assert done.code == 0, done
    found = done.json
    assert found["reranker"] == "decision.keep-drop"
    assert "local.evidence" in found["components"]
    assert len(found["questions"]) == 6
    assert {question["lang"] for question in found["questions"]} == {"en", "zh"}
    for question in found["questions"]:
        assert question["pool"]
        assert question["calls"] > 0
        assert question["hits"]
        assert question["latency_ms"] > 0
        judged = [place for place in question["pool"] if place["outcome"] is not None]
        assert judged
        selected = [place["ref"] for place in question["pool"] if place["selected"]]
        assert [hit["ref"] for hit in question["hits"]] == selected


@pytest.mark.usefixtures("everything")
def test_try_finds_the_answers(run: Run) -> None:
    """Every answer is in the coarse pool, and most are among the evidence: it shows what it says."""
    found = run("try", "--json").json["questions"]
    assert all(any(question["expected"] in place["text"] for place in question["pool"]) for question in found)
    assert sum(question["answered"] for question in found) >= 4


def test_try_for_people(run: Run) -> None:
    """Every question is shown with kept and dropped candidates, and what to do next."""
    out = run("try").out
    for question in questions():
        assert question.text in " ".join(out.split()) or question.text in "".join(out.split())
    for word in ("kept", "dropped", "decision call", "narrowgate import"):
        assert word in out
    assert "\x1b" not in out


@pytest.mark.parametrize("columns", ["60", "80", "140"])
def test_try_fits_the_terminal(process: Run, columns: str) -> None:
    """No line is wider than the terminal, wide characters counted as two."""
    from rich.cells import cell_len

    out = process("try", env={"COLUMNS": columns}).out
    assert all(cell_len(line.rstrip()) <= int(columns) for line in out.splitlines())


def test_try_touches_nothing_of_the_user(run: Run, tmp_path: Path) -> None:
    """No file is left behind, in the data folder or beside it."""
    run("try", "--json")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_try_keeps_its_memory_where_it_is_told(run: Run, db: Path) -> None:
    """With --db the journal stays, and can be searched."""
    assert run("try", "--db", db, "--json").code == 0
    heads = run("memories", "--db", db, "--json").json["memories"]
    assert [head["memory"] for head in heads] == ["journal"]
    assert run("search", questions()[0].text, "--db", db, "--json").json["hits"]


def test_try_without_the_reranker_plugins(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them it says so plainly and shows the first stage alone."""
    monkeypatch.setenv("NARROWGATE_PLUGINS__DISABLED", "decision")
    told = run("try")
    assert told.code == 0
    assert "not installed" in told.out
    found = run("try", "--json").json
    assert found["reranker"] is None
    assert all(question["hits"] and not question["calls"] for question in found["questions"])


def test_every_entry_of_the_journal_can_be_read() -> None:
    """The packaged journal has no refused item."""
    items = list(read_paths(journal_paths()))
    assert len(items) > 100
    assert all(item.draft is not None for item in items)
