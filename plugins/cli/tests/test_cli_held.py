"""`narrowgate held` and what an import past a gate says: over a policy that asks nobody and holds what cites nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import PromotionRecord, append_record
from narrowgate.values.assessment import GateMode

Run = Callable[..., Any]

POLICY = """\
policy_id = "team.write.v1"
decision_kind = "memory.write-gate"
version = "1"
consumer = "memory_write_gate"
mode = "enforcing"
failure_policy = "fail_open"
privacy_boundary = "no_external_call"
local_rules = []
subject_selector = "entry.text"
evidence_selector = "entry.evidence"
effect = "hold"
question = { en = "Does the cited evidence support everything that this entry states?" }
outcome_mapping = { yes = "allow", no = "deny" }
promotion_criteria = { min_labelled = 0, min_held_out = 0 }
"""

LINES = [
    {"id": "a", "text": "With a source.", "evidence": ["mail:1"]},
    {"id": "b", "text": "With what the source says.", "evidence": [{"ref": "mail:1", "text": "It says so."}]},
    {"id": "c", "text": "CANARY without a source.", "kind": "decision", "author": "Ana", "tag": "x"},
    {"id": "d", "text": "没有来源的中文。"},
]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file to import, with the configuration of an enforcing policy in the working folder."""
    Path("write.toml").write_text(POLICY, encoding="utf-8")
    Path("narrowgate.toml").write_text('[policies]\nfiles = ["write.toml"]\n', encoding="utf-8")
    policy = read_policy(Path("write.toml")).policy
    assert policy is not None
    record = PromotionRecord(
        policy_id=policy.policy_id,
        version=policy.version,
        fingerprint=fingerprint(policy),
        mode=GateMode.ENFORCING,
        previous=GateMode.ADVISORY,
        effect=policy.effect,
        author=None,
        approver="bo",
        decided_at=datetime(2026, 3, 1, tzinfo=UTC),
        evidence={},
        measured={},
    )
    append_record(Path("promotions"), record)
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in LINES), encoding="utf-8")
    return path


@pytest.fixture
def held(run: Run, db: Path, gate: Path) -> list[str]:
    """The ids that an import left in the queue, in order; `mail:1` alone names nothing."""
    done = run("import", gate, "--db", db, "--json")
    return [item["id"] for item in done.json["holds"]]


def test_an_import_counts_what_is_held(run: Run, db: Path, gate: Path) -> None:
    """What a gate holds is told with path, line, reason and id, and the exit code says that not all went in."""
    done = run("import", gate, "--db", db, "--json")
    assert done.code == 1
    assert (done.json["added"], done.json["held"], done.json["refused"]) == (1, 3, 0)
    assert [(item["path"], item["line"], item["code"]) for item in done.json["holds"]] == [
        (str(gate), 1, "invalid_evidence_reference"),
        (str(gate), 3, "needs_evidence"),
        (str(gate), 4, "needs_evidence"),
    ]
    told = run("import", gate, "--db", db)
    assert told.code == 1
    assert "1 unchanged" in told.out
    assert "3 held" in told.out
    assert f"held {gate}:3: needs_evidence (narrowgate held show {done.json['holds'][1]['id']})" in told.err


def test_an_import_that_nothing_holds_says_nothing_of_it(run: Run, db: Path, notes: Path) -> None:
    """Without a gate the output is what it was before there were any."""
    done = run("import", notes, "--db", db, "--json").json
    assert set(done) == {"memory", "revision", "added", "revised", "unchanged", "refused", "vectors_pending", "refusals"}
    assert "held" not in run("import", notes, "--db", db).out


def test_the_list_has_no_content_and_show_has_it_all(run: Run, db: Path, held: list[str]) -> None:
    """A page tells ids, reasons and times; one place tells text, evidence and everything else as it was handed in."""
    page = run("held", "list", "--db", db, "--json")
    assert (page.code, [item["id"] for item in page.json["held"]]) == (0, held)
    assert "CANARY" not in page.out
    assert "CANARY" not in run("held", "list", "--db", db).out
    item = page.json["held"][1]
    assert (item["memory"], item["state"], item["code"], item["policy"]) == (
        "default",
        "pending",
        "needs_evidence",
        "team.write.v1",
    )
    shown = run("held", "show", held[1], "--db", db, "--json").json
    assert {key: shown[key] for key in item} == item
    content = shown["content"]
    assert (content["text"], content["kind"], content["author"]) == ("CANARY without a source.", "decision", "Ana")
    assert (content["source"], content["attributes"], content["evidence"]) == ("c", {"tag": "x"}, [])
    evidence = run("held", "show", held[0], "--db", db, "--json").json["content"]["evidence"]
    assert evidence == [{"ref": "mail:1", "text": None}]
    out = run("held", "show", held[2], "--db", db).out
    assert "没有来源的中文。" in out
    assert "evidence 1: mail:1" in run("held", "show", held[0], "--db", db).out


def test_pages_and_filters(run: Run, db: Path, held: list[str]) -> None:
    """A page ends where it is told to, and says how to go on; filters leave out what does not fit."""
    lines = run("held", "list", "--db", db).out.splitlines()
    assert [line.split("  ")[0] for line in lines] == held, "an id is whole, however narrow the terminal"
    assert all(line.split("  ")[1].strip() == "pending" for line in lines)
    first = run("held", "list", "--db", db, "--limit", "2")
    assert f"--after {held[1]}" in first.err
    rest = run("held", "list", "--db", db, "--after", held[1], "--json").json["held"]
    assert [item["id"] for item in rest] == held[2:]
    for more in (("--memory", "other"), ("--policy", "other"), ("--state", "expired")):
        assert run("held", "list", "--db", db, "--json", *more).json == {"held": []}
    assert "nothing is expired" in run("held", "list", "--db", db, "--state", "expired").err
    assert run("held", "list", "--db", db, "--state", "lost").code == 2


def test_release_and_reject(run: Run, db: Path, held: list[str]) -> None:
    """What is released can be found, what is rejected cannot and is refused from then on; both keep who and why."""
    done = run("held", "release", held[1], held[2], "--db", db, "--by", "ana", "--reason", "I was there", "--json")
    assert (done.code, [item["status"] for item in done.json["items"]]) == (0, ["added", "added"])
    shown = run("show", done.json["items"][0]["ref"], "--db", db, "--json").json
    assert (shown["text"], shown["reason"]) == (
        "CANARY without a source.",
        "released, held as needs_evidence: I was there",
    )
    assert run("search", "CANARY", "--db", db, "--json").json["hits"][0]["text"] == shown["text"]
    rejected = run("held", "reject", held[0], "--db", db, "--reason", "no such mail")
    assert (rejected.code, rejected.out.split()) == (0, ["rejected", held[0]])
    records = run("held", "list", "--db", db, "--state", "all", "--json").json["held"]
    assert [(item["state"], item["reason"]) for item in records] == [
        ("rejected", "no such mail"),
        ("released", "I was there"),
        ("released", "I was there"),
    ]
    assert records[1]["resolved_by"] == "ana"
    assert records[0]["resolved_by"], "the user of this machine"
    assert run("held", "show", held[0], "--db", db, "--json").json["content"] is None
    again = run("import", Path(db.parent, "lines.jsonl"), "--db", db, "--json")
    assert (again.code, again.json["unchanged"], again.json["refused"]) == (1, 3, 1)
    assert again.json["refusals"][0]["code"] == "held-rejected"


def test_what_cannot_be_decided_is_told(run: Run, db: Path, held: list[str]) -> None:
    """A decided or unknown id is refused, the others are decided, and the exit code is 1; `show` of an unknown one too."""
    run("held", "reject", held[0], "--db", db)
    done = run("held", "release", held[0], held[1], "nothing", "--db", db, "--json")
    assert done.code == 1
    assert [(item["status"], item["code"]) for item in done.json["items"]] == [
        ("refused", "held-resolved"),
        ("added", None),
        ("refused", "held-unknown"),
    ]
    told = run("held", "reject", "nothing", "--db", db)
    assert (told.code, told.out) == (1, "")
    assert "nothing is held under the id 'nothing' [held-unknown]" in told.err
    unknown = run("held", "show", "nothing", "--db", db, "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "held-unknown")


def test_purge(run: Run, db: Path, held: list[str]) -> None:
    """Records of what was decided go when they are told to; what is pending cannot be named."""
    run("held", "reject", *held[:2], "--db", db)
    assert run("held", "purge", "--state", "rejected", "--before", "2026-01-01", "--db", db, "--json").json == {"purged": 0}
    assert "2 records removed" in run("held", "purge", "--state", "rejected", "--db", db).err
    assert [item["id"] for item in run("held", "list", "--state", "all", "--db", db, "--json").json["held"]] == held[2:]
    assert run("held", "purge", "--state", "pending", "--db", db).code == 2
    assert run("held", "purge", "--state", "expired", "--before", "soon", "--db", db).code == 2


def test_a_reading_command_makes_no_file(run: Run, db: Path, gate: Path) -> None:
    """A mistyped path does not look like an empty queue."""
    assert gate.exists()
    assert run("held", "list", "--db", db).code == 3
    assert not db.exists()


@pytest.mark.parametrize(
    "evidence",
    ["text", [1], [{"text": "no reference"}], [{"ref": 1}], [{"ref": "a", "text": 2}], [{"ref": "a", "url": "b"}]],
)
def test_evidence_of_a_wrong_form_is_refused(run: Run, db: Path, tmp_path: Path, evidence: Any) -> None:
    """A line whose evidence cannot be read is refused: to judge without it would be to judge something else."""
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"text": "t", "evidence": evidence}), encoding="utf-8")
    done = run("import", path, "--db", db, "--json").json
    assert [(item["line"], item["code"]) for item in done["refusals"]] == [(1, "json-field")]


@pytest.mark.parametrize("odd", ["half \udcff", "two\nlines", "x" * 5000, "编号", " "])
def test_an_id_that_is_none_is_told_as_unknown(run: Run, db: Path, held: list[str], odd: str) -> None:
    """Whatever a shell may hand over, bytes that are no text included: a message, an exit code, and JSON with `--json`."""
    assert held
    for command in (["show"], ["release"], ["reject"]):
        told = run("held", *command, odd, "--db", db)
        assert (told.code, told.out) == (1, "")
        assert "held" in told.err
        assert "\udcff" not in told.err
        done = run("held", *command, odd, "--db", db, "--json")
        said = done.json["error"] if "error" in done.json else done.json["items"][0]
        assert (done.code, said["code"]) == (1, "held-unknown")
    assert run("held", "list", "--policy", odd, "--db", db, "--json").json == {"held": []}
    for wrong in (["list", "--after", odd], ["list", "--memory", odd], ["purge", "--state", "expired", "--memory", odd]):
        done = run("held", *wrong, "--db", db, "--json")
        assert (done.code, done.json["error"]["code"]) == (2, "id-format")
    assert len(run("held", "list", "--db", db, "--json").json["held"]) == len(held)
