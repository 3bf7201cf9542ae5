"""What the page about consumers says is the code, and its example runs as it stands."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Final

from test_docs_examples import blocks, run

from narrowgate.decisions import DecisionOutcome
from narrowgate.governance import rerank_watch
from narrowgate.governance.advice import Applicability, Finding, Relation
from narrowgate.governance.advice.handoff import _FINDINGS
from narrowgate.governance.advice.relations import relation_of
from narrowgate.governance.cited import MAX_CHARACTERS, MAX_ITEMS
from narrowgate.governance.consumers import CONSUMERS

PAGE: Final = "docs/consumers.md"
TEXT: Final = (Path(__file__).parent.parent / PAGE).read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first line begins with `heading`."""
    lines = TEXT[TEXT.index(f"| {heading}") :].splitlines()
    table = itertools.takewhile(lambda line: line.startswith("|"), lines[2:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def names(cell: str) -> list[str]:
    """Return what is set as code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_of_consumers_is_the_code() -> None:
    """Each but the write gate, with its policies and its actions."""
    told = {names(row[0])[0]: (names(row[2]), names(row[3]), names(row[4])) for row in rows("consumer | called by")}
    expected = {
        name: (
            list(item.kinds.values()) or ["memory.rerank.decision.v1"],
            [item.passed],
            [item.flagged] * bool(item.flagged),
        )
        for name, item in CONSUMERS.items()
        if name != "memory_write_gate"
    }
    assert told == expected


def test_the_tables_of_answers_are_the_code() -> None:
    """Every relation and every finding with the answers that it comes of."""
    word = {"yes": DecisionOutcome.YES, "no": DecisionOutcome.NO}
    relations = rows("relation | about")
    assert [names(row[0])[0] for row in relations] == list(Relation)
    for row in relations[:-1]:
        assert relation_of([word[cell] for cell in row[1:4] if cell in word]) == names(row[0])[0]
    findings = rows("finding | supports")
    assert {names(row[0])[0] for row in findings} == set(Finding)
    assert [_FINDINGS[word[row[1]], word[row[2]]] for row in findings[:3]] == [names(row[0])[0] for row in findings[:3]]
    assert [names(row[0])[0] for row in rows("`outcome` | means")] == list(Applicability)
    actions = [rerank_watch.SELECT, rerank_watch.DROP, rerank_watch.COARSE, rerank_watch.FAIL, rerank_watch.INTERRUPTED]
    assert [names(row[0])[0] for row in rows("action | the candidate")] == actions
    assert f"at most {MAX_ITEMS} pieces and {MAX_CHARACTERS:,} characters" in TEXT


def test_the_example_runs(tmp_path: Path) -> None:
    """With the configuration beside it, in which one policy is still in shadow."""
    (config,) = blocks(PAGE, "toml")
    store = f'\n[settings."sqlite.store"]\npath = "{(tmp_path / "memory.db").as_posix()}"\n'
    (tmp_path / "narrowgate.toml").write_text(config + store, encoding="utf-8")
    (source,) = blocks(PAGE, "python")
    lines = run(source, tmp_path).splitlines()
    assert [line.split()[1] in set(Relation) for line in lines[:-2]] == [True] * (len(lines) - 2)
    assert len(lines) >= 3
    assert lines[-2].split()[0] in set(Finding)
    assert lines[-1] == "False None"
