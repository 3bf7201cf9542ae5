"""`observations`: from a policy in shadow, whose ledger nobody configured, to figures and files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pyarrow.parquet
import pytest

from narrowgate.values.columns import COLUMNS

Run = Callable[..., Any]

POLICY = "team.write.v1"
CONFIG = """
[use]
store = "sqlite.store"
channels = ["sqlite.lexical"]
decision_backend = "local.evidence"

[policies]
files = ["write.toml"]
"""
RULES = f"""
policy_id = "{POLICY}"
version = "1"
decision_kind = "memory.write"
consumer = "memory_write_gate"
mode = "shadow"
failure_policy = "fail_open"
privacy_boundary = "local_only"
local_rules = []
subject_selector = "entry.text"
evidence_selector = "entry.evidence"
outcome_mapping = {{ yes = "allow", no = "deny" }}
effect = "hold"

[question]
en = "Does the cited evidence support this entry?"
zh = "所引用的证据是否支持这条记忆？"

[promotion_criteria]
min_precision = 0.95
"""


@pytest.fixture
def observed(process: Run, tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database that four entries were written to under a policy in shadow."""
    monkeypatch.delenv("NARROWGATE_USE__CHANNELS")
    Path("narrowgate.toml").write_text(CONFIG, encoding="utf-8")
    Path("write.toml").write_text(RULES, encoding="utf-8")
    db = tmp_path / "memory.db"
    done = process("import", notes, "--db", db)
    assert done.code == 0, done
    return db


def test_the_ledger_stands_beside_the_database(process: Run, observed: Path) -> None:
    """No sink was named: the store's plugin keeps the observations, and `check` says where and how many."""
    assert observed.with_name("memory.observations.db").exists()
    done = process("check", "--db", observed, "--json")
    assert done.code == 0
    assert done.json["settings"]["use.sinks"] == {
        "value": "sqlite.ledger",
        "source": "default: ledger beside sqlite.store",
    }
    facts = done.json["facts"]["sqlite.ledger"]
    assert (facts["rows"], facts["missed"], facts["snippets"]) == ("4", "0", "False")
    assert facts["file"] == str(observed.with_name("memory.observations.db"))
    assert done.json["database"]["sink.sqlite.ledger.failed"] == 0


def test_tail_shows_the_newest_last(process: Run, observed: Path) -> None:
    """As lines for people, and as the columns for programs; no text of the entries in either."""
    told = process("observations", "tail", "--db", observed)
    assert told.code == 0
    assert [line.split()[1:5] for line in told.out.splitlines()] == [[POLICY, "shadow", "local_rule", "deny"]] * 4
    done = process("observations", "tail", "--db", observed, "--limit", "3", "--json")
    records = done.json["observations"]
    assert [list(record) for record in records] == [[column.name for column in COLUMNS]] * 3
    assert records == sorted(records, key=lambda record: record["observation_id"])
    assert {record["final_action"] for record in records} == {"memory_write_accept"}
    for text in (told.out, done.out):
        assert "backup" not in text
        assert "日志" not in text


def test_tail_selects(process: Run, observed: Path) -> None:
    """By policy and by time; nothing selected is no failure."""
    nothing = process("observations", "tail", "--db", observed, "--policy", "another")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no observations\n")
    assert process("observations", "tail", "--db", observed, "--since", "2999-01-01", "--json").json == {"observations": []}
    wrong = process("observations", "tail", "--db", observed, "--since", "yesterday")
    assert wrong.code == 2


def test_stats_counts_by_policy(process: Run, observed: Path) -> None:
    """Attempts, verdicts, actions, languages, latency and cost."""
    done = process("observations", "stats", "--db", observed, "--json")
    (figures,) = done.json["policies"]
    assert (figures["policy_id"], figures["mode"], figures["count"]) == (POLICY, "shadow", 4)
    assert figures["actions"] == {"memory_write_accept": 4}
    assert sum(figures["attempts"].values()) == sum(figures["verdicts"].values()) == 4
    assert figures["languages"] == {"en": 3, "zh": 1}
    assert figures["latency_ms"]["p50"] <= figures["latency_ms"]["p95"]
    assert done.json["ledger"]["rows"] == 4
    told = process("observations", "stats", "--db", observed)
    assert f"{POLICY} " in told.out
    assert "memory_write_accept 4" in told.out


def test_export_as_json_lines(process: Run, observed: Path, tmp_path: Path) -> None:
    """To standard output and to a file, the same lines; what `tail` shows."""
    done = process("observations", "export", "--db", observed)
    records = [json.loads(line) for line in done.out.splitlines()]
    assert records == process("observations", "tail", "--db", observed, "--json").json["observations"]
    file = tmp_path / "out.jsonl"
    assert process("observations", "export", "--db", observed, "--output", file).code == 0
    assert file.read_text(encoding="utf-8") == done.out


def test_export_as_parquet(process: Run, observed: Path, tmp_path: Path) -> None:
    """The same columns with types: labels as dictionaries, times in UTC, counts as maps; the same values."""
    file = tmp_path / "out.parquet"
    done = process("observations", "export", "--db", observed, "--format", "parquet", "--output", file)
    assert (done.code, done.err) == (0, f"4 observations written to {file}\n")
    table = pyarrow.parquet.read_table(file)
    assert table.column_names == [column.name for column in COLUMNS]
    assert str(table.schema.field("created_at").type) == "timestamp[us, tz=UTC]"
    assert str(table.schema.field("probability").type) == "double"
    assert str(table.schema.field("subject_refs").type).startswith("list<")
    lines = process("observations", "export", "--db", observed).out.splitlines()
    for row, line in zip(table.to_pylist(), lines, strict=True):
        row["created_at"] = row["created_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        row["redactions"], row["metadata"] = dict(row["redactions"]), dict(row["metadata"])
        assert row == json.loads(line)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_parquet_without_pyarrow_says_what_to_install(process: Run, observed: Path, tmp_path: Path) -> None:
    """A clear error, exit code 2, and no file; everything else works without it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "pyarrow.py").write_text("raise ImportError('not here')\n")
    env = {"PYTHONPATH": str(site)}
    file = tmp_path / "out.parquet"
    done = process("observations", "export", "--db", observed, "--format", "parquet", "--output", file, env=env)
    assert done.code == 2
    assert "pip install 'narrowgate-cli[parquet]'" in done.err
    assert not file.exists()
    assert process("observations", "export", "--db", observed, env=env).code == 0


def test_parquet_needs_a_file(process: Run, observed: Path) -> None:
    """Nobody wants it on a terminal."""
    done = process("observations", "export", "--db", observed, "--format", "parquet")
    assert done.code == 2
    assert "--output" in done.err


def test_an_export_that_cannot_be_written(process: Run, observed: Path, tmp_path: Path) -> None:
    """Tells the file and why."""
    done = process("observations", "export", "--db", observed, "--output", tmp_path / "nowhere" / "out.jsonl")
    assert done.code == 2
    assert "nowhere" in done.err


def test_a_ledger_can_be_read_by_its_file_alone(process: Run, observed: Path, tmp_path: Path) -> None:
    """On a machine without the memory, whatever is configured there; to look removes nothing, also when it is old."""
    ledger = tmp_path / "archive.db"
    observed.with_name("memory.observations.db").rename(ledger)
    observed.unlink()
    Path("narrowgate.toml").write_text('[use]\nsinks = []\n[settings."sqlite.ledger"]\nkeep_rows = 1\n')
    done = process("observations", "stats", "--ledger", ledger, "--json")
    assert done.json["policies"][0]["count"] == 4
    gone = process("observations", "tail", "--ledger", tmp_path / "gone.db")
    assert gone.code == 2
    assert "gone.db" in gone.err


def test_a_policy_that_stops_the_start_does_not_hide_what_it_did(process: Run, observed: Path) -> None:
    """Its file is broken now; what was observed before can still be read."""
    Path("broken.toml").write_text("this is no policy")
    Path("narrowgate.toml").write_text(CONFIG.replace("write.toml", "broken.toml"), encoding="utf-8")
    assert process("check", "--db", observed).code == 2
    assert len(process("observations", "tail", "--db", observed, "--json").json["observations"]) == 4


def test_without_a_sink_that_keeps_them(process: Run, observed: Path) -> None:
    """The error names the cure."""
    Path("narrowgate.toml").write_text(CONFIG.replace("[use]", "[use]\nsinks = []"), encoding="utf-8")
    done = process("observations", "tail", "--db", observed, "--json")
    assert done.code == 2
    assert done.json["error"]["code"] == "no-ledger"
    assert "sqlite.ledger" in done.json["error"]["message"]


def test_a_damaged_ledger_is_told_as_such(process: Run, observed: Path) -> None:
    """With the file's name, and without a traceback."""
    ledger = observed.with_name("memory.observations.db")
    ledger.write_bytes(b"rubbish" * 1000)
    done = process("observations", "tail", "--db", observed)
    assert done.code != 0
    assert str(ledger) in done.out + done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("which", ["observations", "memory"])
def test_an_export_never_writes_over_a_database(process: Run, observed: Path, which: str, end: str) -> None:
    """Neither over the ledger that is read nor over the memory, nor over a part of one: both kinds of export refuse."""
    stem = "memory.observations.db" if which == "observations" else "memory.db"
    held = apsw.Connection(str(observed.with_name(stem)))  # so that its log is there
    held.execute("UPDATE sqlite_sequence SET seq = seq" if which == "observations" else "PRAGMA user_version").fetchall()
    target = observed.with_name(stem + end)
    before = target.read_bytes()
    exports = (["observations", "export"], ["observations", "export", "--format", "parquet"], ["export"])
    for command in exports:
        done = process(*command, "--db", observed, "--output", target)
        assert done.code == 2, done
        assert target.name in done.err
    assert target.read_bytes() == before
    held.close()
    assert process("observations", "stats", "--db", observed, "--json").json["ledger"]["rows"] == 4
    assert sorted(path.name for path in observed.parent.iterdir() if "partial" in path.name) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such device there")
def test_an_export_leaves_links_and_devices_what_they_are(process: Run, observed: Path, tmp_path: Path) -> None:
    """A link is written through, a device is written to: neither is replaced by a file."""
    real = tmp_path / "real.jsonl"
    real.write_text("old\n")
    real.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(real)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert process("observations", "export", "--db", observed, "--output", link).code == 0
    assert link.is_symlink()
    assert len(real.read_text(encoding="utf-8").splitlines()) == 4
    assert real.stat().st_mode & 0o777 == 0o640
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        assert process("observations", "export", "--db", observed, "--output", pipe).code == 0
        said, _ = reader.communicate()
    assert len(said.splitlines()) == 4
    assert pipe.is_fifo()


def test_an_export_of_nothing_is_whole(process: Run, observed: Path, tmp_path: Path) -> None:
    """A Parquet file without rows has all columns, JSON lines have no line; what stood there before is gone."""
    for form in ("parquet", "jsonl"):
        file = tmp_path / f"out.{form}"
        file.write_text("old")
        none = ("--since", "2999-01-01")
        done = process("observations", "export", "--db", observed, "--format", form, "--output", file, *none)
        assert (done.code, done.err) == (0, f"0 observations written to {file}\n")
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert (table.num_rows, table.column_names) == (0, [column.name for column in COLUMNS])


def test_a_failed_export_leaves_what_stood_there(process: Run, observed: Path, tmp_path: Path) -> None:
    """The disk is full in the middle: the old file stays whole, and nothing half-written beside it."""
    many = tmp_path / "many.jsonl"
    many.write_text("".join(json.dumps({"text": f"Note {number}."}) + "\n" for number in range(100)))
    assert process("import", many, "--db", observed).code == 0
    file = tmp_path / "out.jsonl"
    file.write_text("old")
    limit = (
        "import resource, signal, sys, runpy; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000)); sys.argv[1:2] = []; "
        "runpy.run_module('narrowgate_cli', run_name='__main__')"
    )
    words = ["observations", "export", "--db", str(observed), "--output", str(file)]
    done = subprocess.run([sys.executable, "-c", limit, "narrowgate", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "cannot be written" in done.stderr
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
