"""Importing, searching, reading, forgetting, exporting, on a real file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narrowgate_cli import exits

Run = Callable[..., Any]


@pytest.mark.usefixtures("everything")
def test_import_search_and_read_back(run: Run, filled: Path) -> None:
    """What was imported is found by a question in English, and its reference reads back the same text."""
    page = run("search", "when does the backup of svc-auth run?", "--db", filled, "--json").json
    assert set(page) == {"mode", "hits"}
    assert page["mode"] == "hybrid"
    hit = page["hits"][0]
    assert set(hit) == {"ref", "source", "text", "score", "matched_by", "occurred_at"}
    assert "nightly backup" in hit["text"]
    assert hit["occurred_at"].startswith("2026-03-02")
    shown = run("show", hit["ref"], "--db", filled, "--json").json
    assert (shown["ref"], shown["text"], shown["active"]) == (hit["ref"], hit["text"], True)
    by_id = run("show", shown["entry"], "--db", filled, "--json").json
    assert by_id["text"] == hit["text"]


@pytest.mark.usefixtures("everything")
def test_a_chinese_question_finds_a_chinese_entry(run: Run, filled: Path) -> None:
    """Chinese goes in and comes out as it is, in JSON and for people. Case 3."""
    page = run("search", "日志保留多久", "--db", filled, "--json").json
    assert "三十天" in page["hits"][0]["text"]
    assert "三十天" in run("search", "日志保留多久", "--db", filled).out


@pytest.mark.parametrize("query", ["svc-auth", "don't", "x:y", "AND", "NEAR(", "*", '"', "???", "GB/s"])
def test_no_query_is_read_as_syntax(run: Run, filled: Path, query: str) -> None:
    """Operators and quotes of any engine are text; punctuation alone finds nothing and is no error. Case 1."""
    done = run("search", "--db", filled, "--json", "--", query)
    assert done.code == 0
    if query in ("*", '"', "???"):
        assert done.json["hits"] == []


@pytest.mark.parametrize("query", ["", "  ", "\t\n"])
def test_a_blank_query_is_a_usage_error(run: Run, filled: Path, query: str) -> None:
    """Nothing asked is a mistake at the command line, and says so."""
    done = run("search", query, "--db", filled)
    assert (done.code, done.out) == (2, "")
    assert "blank" in done.err
    assert run("search", query, "--db", filled, "--json").json["error"]["code"] == "text-empty"


def test_importing_twice_changes_nothing(run: Run, filled: Path, notes: Path) -> None:
    """The same file again leaves every entry unchanged, and the revision where it was."""
    before = run("memories", "--db", filled, "--json").json["memories"]
    again = run("import", notes, "--db", filled, "--json").json
    assert (again["added"], again["revised"], again["unchanged"], again["refused"]) == (0, 0, 4, 0)
    assert run("memories", "--db", filled, "--json").json["memories"] == before


def test_refused_items_are_named_with_their_line(run: Run, db: Path, tmp_path: Path) -> None:
    """Good items are stored, bad ones told with path, line and rule, and the exit code says that not all went in."""
    path = tmp_path / "mixed.jsonl"
    path.write_text('{"id": "a", "text": "good"}\n{"id": "b"}\nno json\n{"id": "d", "text": "fine"}\n', encoding="utf-8")
    done = run("import", path, "--db", db, "--json")
    assert done.code == 1
    assert (done.json["added"], done.json["refused"]) == (2, 2)
    assert [(refusal["path"], refusal["line"]) for refusal in done.json["refusals"]] == [(str(path), 2), (str(path), 3)]
    told = run("import", path, "--db", db)
    assert f"{path}:2: " in told.err
    assert "2 unchanged" in told.out


def test_import_writes_into_the_memory_named(run: Run, db: Path, notes: Path) -> None:
    """--memory keeps memories apart; search looks into all of them unless it is told which."""
    run("import", notes, "--db", db, "--memory", "work")
    run("import", notes, "--db", db, "--memory", "home")
    heads = run("memories", "--db", db, "--json").json["memories"]
    assert [(head["memory"], head["active"]) for head in heads] == [("home", 4), ("work", 4)]
    both = run("search", "billing service", "--db", db, "--json").json["hits"]
    assert {hit["ref"].split("@")[0] for hit in both} == {"home", "work"}
    one = run("search", "billing service", "--db", db, "--memory", "work", "--json").json["hits"]
    assert {hit["ref"].split("@")[0] for hit in one} == {"work"}


def test_times_without_a_zone_are_read_in_the_zone_named(run: Run, db: Path, tmp_path: Path) -> None:
    """--timezone takes a name or an offset; a wrong one is a usage error."""
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "a", "text": "tea at five", "time": "2026-03-01T10:00"}\n', encoding="utf-8")
    for zone, expected in (("Asia/Shanghai", "+08:00"), ("+09:30", "+09:30"), ("UTC", "+00:00")):
        target = tmp_path / f"{expected[1:3]}.db"
        run("import", path, "--db", target, "--timezone", zone)
        hit = run("search", "tea", "--db", target, "--json").json["hits"][0]
        assert hit["occurred_at"] == f"2026-03-01T10:00:00{expected}"
    wrong = run("import", path, "--db", db, "--timezone", "Mars/Olympus")
    assert wrong.code == 2
    assert "Mars/Olympus" in wrong.err


def test_forget_hides_and_restore_brings_back(run: Run, filled: Path) -> None:
    """A forgotten entry is found no more, can still be read, and its history tells both changes with the reason."""
    ref = run("search", "billing service", "--db", filled, "--json").json["hits"][0]["ref"]
    entry = ref.split("/")[1]
    forgotten = run("forget", ref, "--db", filled, "--reason", "superseded", "--json")
    assert (forgotten.code, forgotten.json["items"][0]["status"]) == (0, "deactivated")
    refs = [hit["ref"] for hit in run("search", "billing service", "--db", filled, "--json").json["hits"]]
    assert all(entry not in found for found in refs)
    assert run("show", entry, "--db", filled, "--json").json["active"] is False
    assert run("show", ref, "--db", filled, "--json").json["active"] is True
    assert run("restore", entry, "--db", filled, "--json").json["items"][0]["status"] == "reactivated"
    changes = run("history", ref, "--db", filled, "--json").json["changes"]
    assert [change["kind"] for change in changes] == ["add", "deactivate", "reactivate"]
    assert changes[1]["reason"] == "superseded"


def test_forgetting_an_old_version_is_refused(run: Run, db: Path, tmp_path: Path) -> None:
    """A reference to a version that is no longer current is refused, and nothing is forgotten."""
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "a", "text": "the port is 8080"}\n', encoding="utf-8")
    run("import", path, "--db", db)
    old = run("search", "port", "--db", db, "--json").json["hits"][0]["ref"]
    path.write_text('{"id": "a", "text": "the port is 9090"}\n', encoding="utf-8")
    assert run("import", path, "--db", db, "--json").json["revised"] == 1
    done = run("forget", old, "--db", db, "--json")
    assert done.code == 1
    assert done.json["items"][0]["code"] == "stale-version"
    assert "9090" in run("search", "port", "--db", db).out


def test_a_reference_that_names_nothing(run: Run, filled: Path) -> None:
    """An unknown reference or entry ends with 1, a malformed one with 2; forgetting one of two changes neither."""
    assert run("show", "default@1/nothing/1", "--db", filled).code == 1
    assert run("show", "nothing", "--db", filled).code == 1
    assert run("history", "nothing", "--db", filled).code == 1
    assert run("show", "a@b@c", "--db", filled).code == 2
    ref = run("search", "billing service", "--db", filled, "--json").json["hits"][0]["ref"]
    assert run("forget", ref, "nothing", "--db", filled).code == 1
    assert run("show", ref.split("/")[1], "--db", filled, "--json").json["active"] is True


def test_export_imports_again(run: Run, filled: Path, tmp_path: Path) -> None:
    """An export read into the same memory changes nothing; into another file it makes the same entries."""
    out = tmp_path / "export.jsonl"
    assert run("export", "--db", filled, "--output", out).code == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 4
    assert run("export", "--db", filled).out == out.read_text(encoding="utf-8")
    assert run("import", out, "--db", filled, "--json").json["unchanged"] == 4
    other = tmp_path / "other.db"
    assert run("import", out, "--db", other, "--json").json["added"] == 4
    assert "三十天" in run("search", "日志保留多久", "--db", other).out


@pytest.mark.parametrize("name", ["memory.db", "link.db", "memory.db-wal"])
def test_export_never_writes_over_the_database(run: Run, filled: Path, name: str) -> None:
    """The database itself, under whatever name, and its log are no place to export to: everything in it would be lost."""
    filled.with_name("link.db").symlink_to(filled)
    with contextlib.closing(sqlite3.connect(filled)) as reader:  # keeps the log in place
        reader.execute("SELECT count(*) FROM entries").fetchall()
        done = run("export", "--db", filled, "--output", filled.with_name(name))
        assert (done.code, done.out) == (exits.USAGE, "")
        assert "is the database that is exported" in done.err
    assert len(run("export", "--db", filled).out.splitlines()) == 4


def test_export_to_a_file_that_cannot_be_written(run: Run, filled: Path, tmp_path: Path) -> None:
    """The message names the file and the cause; there is no traceback."""
    done = run("export", "--db", filled, "--output", tmp_path / "nowhere" / "out.jsonl")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert done.err == f"Error: {tmp_path / 'nowhere' / 'out.jsonl'} cannot be written: No such file or directory\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [("memories",), ("memories", "--json"), ("export",), ("search", "backup")])
def test_output_on_a_full_disk(filled: Path, command: tuple[str, ...]) -> None:
    """A result that cannot be written is one message and the documented exit code."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "narrowgate_cli", *command, "--db", str(filled)],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.stderr.decode() == "Error: the result cannot be written: No space left on device\n"
    assert done.returncode == exits.INCOMPLETE


def test_import_tells_where_the_memory_stands(run: Run, filled: Path, tmp_path: Path) -> None:
    """The revision is the memory's, also when the files hold nothing that can be stored."""
    (tmp_path / "empty.md").write_text("", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    for name, code in (("empty.md", exits.OK), ("bad.jsonl", exits.INCOMPLETE)):
        done = run("import", tmp_path / name, "--db", filled, "--json")
        assert (done.code, done.json["revision"], done.json["added"]) == (code, 1, 0)
    assert run("import", tmp_path / "empty.md", "--db", filled, "--memory", "new", "--json").json["revision"] == 0


def test_export_of_a_memory_that_is_not_there(run: Run, filled: Path) -> None:
    """Exporting an unknown memory is an error rather than an empty file."""
    done = run("export", "--db", filled, "--memory", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert "nowhere" in done.err


def test_filters_narrow_a_search(run: Run, db: Path, tmp_path: Path) -> None:
    """Filters on fields and attributes hold together; one that cannot be read is a usage error."""
    path = tmp_path / "filtered.jsonl"
    rows = [
        {"id": "a", "text": "release notes one", "kind": "decision", "project": "atlas", "time": "2026-03-01"},
        {"id": "b", "text": "release notes two", "kind": "note", "project": "atlas", "time": "2026-04-01"},
        {"id": "c", "text": "release notes three", "kind": "decision", "project": "borea", "time": "2026-05-01"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", path, "--db", db)

    def found(*filters: str) -> set[str]:
        options = [part for condition in filters for part in ("--filter", condition)]
        return {hit["source"] for hit in run("search", "release notes", "--db", db, "--json", *options).json["hits"]}

    assert found() == {"a", "b", "c"}
    assert found("kind=decision") == {"a", "c"}
    assert found("kind=decision", "project=atlas") == {"a"}
    assert found("occurred_at>=2026-04-01") == {"b", "c"}
    wrong = run("search", "release", "--db", db, "--filter", "nonsense", "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "filter-format")


def test_reindex_tells_how_many_entries(run: Run, filled: Path) -> None:
    """All indexes are rebuilt, and search finds the same afterwards."""
    before = run("search", "billing", "--db", filled, "--json").out
    assert run("reindex", "--db", filled, "--json").json == {"entries": 4}
    assert run("search", "billing", "--db", filled, "--json").out == before


def test_a_database_that_is_not_there(run: Run, db: Path) -> None:
    """A mistyped path is told, with what to do, and nothing is made of it."""
    for args in (("search", "x"), ("show", "x"), ("memories",), ("export",), ("reindex",), ("forget", "x")):
        done = run(*args, "--db", db)
        assert (done.code, done.out) == (3, "")
        assert "narrowgate import" in done.err
    assert run("search", "x", "--db", db, "--json").json["error"]["code"] == "no-database"
    assert not db.exists()


def test_searching_where_nothing_was_imported(run: Run, db: Path, tmp_path: Path) -> None:
    """An empty page, and a word on standard error; so for a memory that is not there."""
    empty = tmp_path / "empty.md"
    empty.write_text("", encoding="utf-8")
    assert run("import", empty, "--db", db).code == 0
    done = run("search", "anything", "--db", db)
    assert done.code == 0
    assert "narrowgate import" in done.err
    assert run("search", "anything", "--db", db, "--json").json == {"mode": "lexical", "hits": []}
    assert "elsewhere" in run("search", "anything", "--db", db, "--memory", "elsewhere").err


def test_without_a_second_stage_decision_plugins_leave_no_trace(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no reranker the output is the same, byte for byte, whether or not decision plugins are there."""
    commands = [
        ("search", "billing service"),
        ("search", "billing service", "--json"),
        ("search", "日志", "--rerank", "none"),
    ]
    there = [run(*args, "--db", filled) for args in commands]
    monkeypatch.setenv("NARROWGATE_PLUGINS__DISABLED", "decision")
    assert [run(*args, "--db", filled) for args in commands] == there


def test_a_second_stage_is_told_in_json(run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one enabled there are status and reason, and a trace with every verdict; `--rerank none` switches it off."""
    monkeypatch.setenv("NARROWGATE_USE__RERANKER", "decision.keep-drop")
    page = run("search", "billing service", "--db", filled, "--json", "--trace").json
    assert set(page) == {"mode", "hits", "status", "reason", "trace"}
    assert page["status"] in ("applied", "none_relevant")
    stage = page["trace"]["rerank"]
    assert stage["component"] == "decision.keep-drop"
    assert [verdict["rank"] for verdict in stage["verdicts"]] == [place["rank"] for place in stage["candidates"]]
    assert stage["usage"]["calls"] == len(stage["verdicts"])
    assert "rank" in run("search", "billing service", "--db", filled, "--trace").out
    nothing = run("search", "???", "--db", filled, "--json").json
    assert (nothing["hits"], nothing["status"], nothing["reason"]) == ([], "not_applied", "no-terms")
    assert set(run("search", "billing service", "--db", filled, "--json", "--rerank", "none").json) == {"mode", "hits"}


def test_a_channel_that_lacks_entries_is_told(run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries without vectors: auto goes on by words and says so, vector refuses, reindex mends it."""
    monkeypatch.delenv("NARROWGATE_USE__CHANNELS")
    done = run("search", "billing service", "--db", filled)
    assert done.code == 0
    assert "PostgreSQL" in done.out
    assert "sqlite.vector" in done.err
    refused = run("search", "billing service", "--db", filled, "--mode", "vector", "--json")
    assert refused.code == 4
    assert run("reindex", "--db", filled).code == 0
    mended = run("search", "billing service", "--db", filled, "--json")
    assert mended.json["mode"] == "hybrid"
    assert mended.err == ""


def test_an_index_of_another_analyser(run: Run, filled: Path) -> None:
    """Search is refused with the command that mends it; exact reads and export go on; reindex mends it."""
    ref = run("search", "billing service", "--db", filled, "--json").json["hits"][0]["ref"]
    with contextlib.closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'a0' WHERE key = 'analyser'")
    refused = run("search", "billing service", "--db", filled)
    assert refused.code == 2
    assert "narrowgate reindex" in refused.err
    assert run("check", "--db", filled, "--json").json["problems"][0]["code"] == "analyser-mismatch"
    assert run("show", ref, "--db", filled).code == 0
    assert len(run("export", "--db", filled).out.splitlines()) == 4
    assert run("reindex", "--db", filled).code == 0
    assert run("search", "billing service", "--db", filled, "--json").json["hits"][0]["ref"] == ref
