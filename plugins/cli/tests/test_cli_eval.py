"""`eval` on small labelled collections of our own, through the whole command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

FACTS = [
    (
        "en",
        "The nightly backup of the billing database starts at 02:30.",
        "When does the billing backup start?",
    ),
    ("en", "Ana leads the migration to PostgreSQL.", "Who leads the migration to PostgreSQL?"),
    ("en", "The office in Oslo closes on 12 June for repairs.", "When does the office in Oslo close?"),
    ("en", "Release 2.4.1 of svc-auth fixed the login loop.", "Which release of svc-auth fixed the login loop?"),
    ("en", "Rest days are paid for everyone on call.", "Are rest days paid?"),
    ("zh", "李雷决定把日志保留期改为三十天。", "日志保留期是多少天？"),
    ("zh", "王芳负责支付网关的迁移。", "谁负责支付网关的迁移？"),
    ("zh", "上海办公室六月十二日停电检修。", "上海办公室什么时候停电？"),
    ("zh", "新的备份服务器放在北京机房。", "备份服务器放在哪里？"),
    ("zh", "周会改到每周四上午十点。", "周会改到什么时候？"),
]


def lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


def collection(folder: Path, name: str = "one") -> Path:
    """Write a collection with one question for each fact, and decisions over all facts of its language."""
    target = folder / name
    target.mkdir(parents=True)
    documents = [{"id": f"d{n}", "text": text, "time": "2026-03-01"} for n, (_, text, _) in enumerate(FACTS)]
    lines(target / "corpus.jsonl", [*documents, {"id": "twin", "text": FACTS[0][1]}, {"id": "blank", "text": ""}])
    queries = [
        {"id": f"q{n}", "text": query, "category": "first" if n % 2 else "second", "lang": lang}
        for n, (lang, _, query) in enumerate(FACTS)
    ]
    lines(target / "queries.jsonl", [*queries, {"id": "loose", "text": "What else?"}])
    rows = [f"q{n}\td{n}\t2" for n in range(len(FACTS))]
    (target / "qrels.tsv").write_text("\n".join(["query_id\tcorpus_id\tgrade", *rows, "q0\ttwin\t1"]) + "\n")
    decisions = [
        {
            "id": f"q{n}",
            "folder": name,
            "query": query,
            "lang": lang,
            "candidates": [{"text": text, "keep": text == FACTS[n][1]} for other, text, _ in FACTS if other == lang],
        }
        for n, (lang, _, query) in enumerate(FACTS)
    ]
    nothing = {"id": "u", "folder": name, "query": "Who painted the ceiling?", "category": "adversarial"}
    nothing["candidates"] = [{"text": text, "keep": False} for lang, text, _ in FACTS if lang == "en"]
    lines(target / "decisions.jsonl", [*decisions, nothing])
    return target


@pytest.mark.usefixtures("everything")
def test_recall_without_a_second_stage(run: Run, tmp_path: Path) -> None:
    """One object with coarse and final alike, by category, language and folder; no decision, no call."""
    done = run("eval", collection(tmp_path), "--json")
    assert done.code == 0, done
    found = done.json
    assert (found["queries"], found["queries_without_qrels"], found["documents"]) == (10, 1, 11)
    assert found["documents_refused"] == {"text-empty": 1}
    assert list(found["coarse"]) == ["recall@10", "recall@30", "ndcg@10", "mrr"]
    assert found["coarse"]["recall@10"] > 0.9
    assert found["final"] == found["coarse"]
    assert (found["decisions"], found["calls"]) == (None, 0)
    assert set(found["by_category"]) == {"first", "second"}
    assert found["by_language"]["zh"]["queries"] == 5
    assert found["by_folder"]["one"]["coarse"] == found["coarse"]
    assert 0 < found["latency_ms"]["p50"] <= found["latency_ms"]["p95"]
    assert "sqlite.lexical" in found["composition"]["components"]


def test_equal_texts_of_two_ids_are_two_documents(run: Run, tmp_path: Path) -> None:
    """Both copies of a text are found and counted: identity is the id, never the text. Case 11."""
    target = collection(tmp_path)
    (target / "qrels.tsv").write_text("q0\td0\t1\nq0\ttwin\t1\n")
    assert run("eval", target, "--json").json["coarse"]["recall@10"] == 1.0


@pytest.mark.usefixtures("everything")
def test_a_second_stage_is_measured_apart(run: Run, tmp_path: Path) -> None:
    """Coarse stays what it was; final, calls and decisions come from the second stage."""
    target = collection(tmp_path)
    plain = run("eval", target, "--json").json
    found = run("eval", target, "--rerank", "decision.keep-drop", "--json").json
    assert found["coarse"] == plain["coarse"]
    assert found["calls"] > 0
    decisions = found["decisions"]
    assert (decisions["queries"], decisions["pairs"], decisions["positives"]) == (11, 55, 10)
    assert decisions["calls"] == 55
    assert decisions["auc"] > 0.8
    assert 0 <= decisions["micro_f1"] <= 1
    assert decisions["calibration_error"] is None
    assert decisions["nothing_kept_unanswerable"] in (0.0, 1.0)
    assert 0 <= decisions["nothing_kept_answerable"] <= 1


def test_a_set_of_collections_is_pooled(run: Run, tmp_path: Path) -> None:
    """Each folder has its own memory and figures; the total is the mean over all queries."""
    collection(tmp_path, "one")
    collection(tmp_path, "two")
    (tmp_path / "two" / "qrels.tsv").write_text("q1\td1\t1\n")
    found = run("eval", tmp_path, "--json").json
    assert (found["folders"], found["queries"]) == (2, 11)
    parts = found["by_folder"]
    expected = (10 * parts["one"]["coarse"]["mrr"] + parts["two"]["coarse"]["mrr"]) / 11
    assert found["coarse"]["mrr"] == pytest.approx(expected, abs=1e-5)


def test_modes_and_a_part_of_the_queries(run: Run, tmp_path: Path) -> None:
    """--mode reaches the search, and --limit-queries takes the first of each collection."""
    found = run("eval", collection(tmp_path), "--mode", "lexical", "--limit-queries", "3", "--json").json
    assert (found["queries"], found["modes"]) == (3, {"lexical": 3})


def test_recalibration_fits_on_some_pairs_and_measures_on_the_others(run: Run, tmp_path: Path) -> None:
    """The fit goes into a file, its pairs are in no figure, the verdicts then carry probabilities; a seed repeats it."""
    target, file = collection(tmp_path), tmp_path / "fit.json"
    options = ("--rerank", "decision.keep-drop", "--pairs", "40", "--json")
    done = run("eval", target, "--recalibrate", file, *options)
    assert done.code == 0, done
    found = done.json
    assert found["recalibration"]["component"] == "local.evidence"
    assert found["recalibration"]["pairs"] == 40
    assert found["recalibration"]["fit"] == json.loads(file.read_text("utf-8"))
    assert found["decisions"]["pairs"] == 15
    assert found["decisions"]["calibration_error"] is not None
    again = run("eval", target, "--recalibrate", tmp_path / "again.json", *options).json
    assert again["recalibration"]["fit"] == found["recalibration"]["fit"]
    assert again["decisions"] == found["decisions"]


def test_recalibration_needs_labels_and_a_backend(run: Run, tmp_path: Path) -> None:
    """Without decisions.jsonl, or without a backend that can be fitted, nothing is written and the reason is told."""
    target, file = collection(tmp_path), tmp_path / "fit.json"
    done = run("eval", target, "--recalibrate", file, "--json")
    assert (done.code, done.json["error"]["code"]) == (4, "capability")
    (target / "decisions.jsonl").unlink()
    done = run("eval", target, "--recalibrate", file, "--rerank", "decision.keep-drop", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "no-labels")
    assert not file.exists()


def test_a_folder_without_a_collection(run: Run, tmp_path: Path) -> None:
    """A wrong folder is a usage error that names it."""
    done = run("eval", tmp_path / "nowhere", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "dataset-missing")
    assert "nowhere" in done.json["error"]["message"]


def test_no_database_of_the_user_is_touched(run: Run, tmp_path: Path) -> None:
    """eval works in temporary files: --db is refused, and the user's data folder stays empty."""
    target = collection(tmp_path)
    assert run("eval", target, "--db", tmp_path / "mine.db").code == 2
    run("eval", target)
    assert not (tmp_path / "mine.db").exists()
    assert list((tmp_path / "home").rglob("*.db")) == []


def test_the_report_for_people(run: Run, tmp_path: Path) -> None:
    """The table shows the figures of all groups and of the decisions."""
    out = run("eval", collection(tmp_path), "--rerank", "decision.keep-drop").out
    for word in ("recall@10", "ndcg@10", "all", "zh", "AUC", "micro-F1", "unanswerable"):
        assert word in out
