"""Reading labelled collections: what belongs together, and what is refused with file and line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from narrowgate.errors import InputError
from narrowgate_cli.evaluation.dataset import load


def lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


def collection(folder: Path, *, qrels: str = "query_id\tcorpus_id\tgrade\nq1\td1\t2\nq1\td2\t1\n") -> Path:
    """Write a collection of two documents and two queries, of which one has no relevant document."""
    folder.mkdir(parents=True)
    lines(
        folder / "corpus.jsonl",
        [
            {"id": "d1", "text": "one", "time": "2026-03-01", "speaker": "Ana", "fact_group": "f"},
            {"id": "d2", "text": "two", "fact_group": "f"},
            {"id": 3, "text": ""},
        ],
    )
    lines(
        folder / "queries.jsonl",
        [{"id": "q1", "text": "which?", "category": "single", "lang": "en"}, {"id": "q2", "text": "what?"}],
    )
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


def case(query: str, keep: str, **more: Any) -> dict[str, Any]:
    """Return a line of decisions.jsonl; in `keep`, y is a candidate to keep and n one to drop."""
    candidates = [{"text": f"t{number}", "keep": letter == "y"} for number, letter in enumerate(keep)]
    return {"id": query, "query": query, "candidates": candidates, **more}


def test_a_collection_is_read(tmp_path: Path) -> None:
    """Documents, facts, queries with grades; a query without a relevant document is left out and counted."""
    (found,) = load(collection(tmp_path / "one"))
    assert (found.name, [document.id for document in found.documents]) == ("one", ["d1", "d2", "3"])
    assert found.documents[0].speaker == "Ana"
    assert found.facts["d1"] == found.facts["d2"]
    (query,) = found.queries
    assert (query.id, query.grades, query.category, query.lang) == ("q1", {"d1": 2, "d2": 1}, "single", "en")
    assert found.without_qrels == 1
    assert found.decisions == ()


def test_qrels_may_have_no_line_of_headings(tmp_path: Path) -> None:
    """The first line counts when it is no heading; a grade of 0 says not relevant."""
    (found,) = load(collection(tmp_path / "one", qrels="q1\td1\t1\nq2\td2\t0\n"))
    assert [(query.id, query.grades) for query in found.queries] == [("q1", {"d1": 1})]


def test_a_set_shares_its_decisions_out(tmp_path: Path) -> None:
    """Lines beside the folders go to the folder that they name, as text or as a number."""
    collection(tmp_path / "user-00")
    collection(tmp_path / "user-01")
    lines(tmp_path / "decisions.jsonl", [case("a", "y", user=1), case("b", "n", folder="user-00", user=1)])
    first, second = load(tmp_path)
    assert [case.id for case in first.decisions] == ["b"]
    assert [case.id for case in second.decisions] == ["a"]


def test_one_folder_of_a_set_has_its_own_share(tmp_path: Path) -> None:
    """Named alone, a folder takes those lines beside it that name it, and no other."""
    one = collection(tmp_path / "conv-1")
    collection(tmp_path / "conv-2")
    lines(tmp_path / "decisions.jsonl", [case("a", "y", conversation="conv-2"), case("b", "y", conversation="conv-1")])
    (found,) = load(one)
    assert [case.id for case in found.decisions] == ["b"]


def test_decisions_within_a_collection_are_all_its_own(tmp_path: Path) -> None:
    """In its own folder a line need not name it."""
    one = collection(tmp_path / "one")
    lines(one / "decisions.jsonl", [case("a", "yn")])
    (found,) = load(one)
    assert found.decisions[0].candidates == (("t0", True), ("t1", False))


def test_what_is_unanswerable(tmp_path: Path) -> None:
    """Marked questions are; unmarked ones without a kept candidate say nothing; without any marks they are the ones."""
    one = collection(tmp_path / "one")
    rows = [case("a", "y"), case("b", "n"), case("c", "n", category="adversarial"), case("d", "n")]
    lines(one / "decisions.jsonl", rows)
    lines(one / "queries_unanswerable.jsonl", [{"id": "d", "text": "d"}])
    (marked,) = load(one)
    assert [case.answerable for case in marked.decisions] == [True, None, False, False]
    lines(one / "decisions.jsonl", rows[:2])
    (unmarked,) = load(one)
    assert [case.answerable for case in unmarked.decisions] == [True, False]


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("corpus.jsonl", '{"id": "a", "text": "x"}\nno json\n', "corpus.jsonl:2: is not JSON"),
        ("corpus.jsonl", "[1]\n", "corpus.jsonl:1: is not a JSON object"),
        ("corpus.jsonl", '{"text": "x"}\n', "corpus.jsonl:1: needs 'id'"),
        ("queries.jsonl", '\n\n{"id": "q1"}\n', "queries.jsonl:3: needs 'text'"),
        ("qrels.tsv", "q1\td1\tmuch\n", "qrels.tsv:1: needs query id"),
        ("decisions.jsonl", '{"query": "x", "candidates": []}\n', "decisions.jsonl:1: needs a list"),
        ("decisions.jsonl", '{"query": "x", "candidates": [{"text": "t"}]}\n', "needs 'keep'"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    """Whatever is wrong is told with the file and the line."""
    one = collection(tmp_path / "one")
    (one / file).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=complaint.replace(".", r"\.")) as raised:
        load(one)
    assert raised.value.code == "dataset-format"


def test_decisions_that_name_no_folder_are_refused(tmp_path: Path) -> None:
    """Beside a set, a line that belongs nowhere must not be left out in silence."""
    collection(tmp_path / "one")
    collection(tmp_path / "two")
    lines(tmp_path / "decisions.jsonl", [case("a", "y", folder="one"), case("b", "y")])
    with pytest.raises(InputError, match=r"decisions\.jsonl:2"):
        load(tmp_path)


def test_what_is_no_collection(tmp_path: Path) -> None:
    """A folder that is not there, and one without a collection, are told apart from a faulty file."""
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError) as raised:
            load(folder)
        assert raised.value.code == "dataset-missing"
    one = collection(tmp_path / "one")
    (one / "qrels.tsv").unlink()
    with pytest.raises(InputError, match=r"qrels\.tsv is missing"):
        load(one)
