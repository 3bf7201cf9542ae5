"""`policy list`, `show`, `lint` and `lock`, each as a process of its own in a folder of its own."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint

Run = Callable[..., Any]

POLICY = """\
policy_id = "team.handoff.v1"
decision_kind = "handoff.consult"
version = "1"
consumer = "handoff_evidence_consult"
mode = "advisory"
failure_policy = "fail_open"
privacy_boundary = "no_external_call"
local_rules = []
subject_selector = "claim.text"
evidence_selector = "claim.evidence"
outcome_mapping = { yes = "allow", no = "review" }

[question]
en = "Does the attached evidence support this claim?"
zh = "所附证据是否支持这一说法？"

[thresholds]
yes_at = 0.7

[promotion_criteria]
min_precision = 0.95
max_reviews_per_day = 7
"""
RERANK = "memory.rerank.decision.v1"
CONFIG = f"""\
[policies]
use = ["{RERANK}"]
files = ["policies/*.toml"]
"""


@pytest.fixture
def folder() -> Path:
    """The working folder, with a configuration, a policy file and a built-in policy in use."""
    path = Path.cwd()
    (path / "narrowgate.toml").write_text(CONFIG, encoding="utf-8")
    (path / "policies").mkdir()
    (path / "policies" / "handoff.toml").write_text(POLICY, encoding="utf-8")
    return path


def change(folder: Path, old: str, new: str) -> None:
    """Edit the policy file in one place."""
    path = folder / "policies" / "handoff.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_list_says_what_takes_part_and_what_is_there(process: Run, folder: Path) -> None:
    """Those in use first, each with what it is and does; then the built-in ones that are not."""
    done = process("policy", "list", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["problems"] == []
    rows = done.json["policies"]
    assert [row["policy_id"] for row in rows if row["in_use"]] == [RERANK, "team.handoff.v1"]
    assert {row["policy_id"] for row in rows} == {*BUILT_IN, "team.handoff.v1"}
    own = next(row for row in rows if row["policy_id"] == "team.handoff.v1")
    policy = read_policy(folder / "policies" / "handoff.toml").policy
    assert policy is not None
    assert own == {
        "policy_id": "team.handoff.v1",
        "version": "1",
        "fingerprint": fingerprint(policy),
        "origin": str(folder / "policies" / "handoff.toml"),
        "in_use": True,
        "mode": "advisory",
        "consumer": "handoff_evidence_consult",
        "backend": None,
        "local_rules": [],
        "privacy_boundary": "no_external_call",
        "locked": "no",
    }
    told = process("policy", "list").out.splitlines()
    place = told.index("team.handoff.v1  version 1  advisory  locked: no")
    assert told[place + 1] == "    handoff_evidence_consult, no_external_call, backend: none, rules: none"
    assert "handoff.evidence.consult.v1  version 1  not in use  locked: no" in told


def test_the_list_names_the_backend(process: Run, folder: Path) -> None:
    """The one that would be asked, which stands in for want of a name; a whole that cannot run is told, and listed."""
    change(folder, "no_external_call", "local_only")
    rows = {row["policy_id"]: row for row in process("policy", "list", "--json").json["policies"]}
    assert rows["team.handoff.v1"]["backend"] == "local.evidence"
    done = process("policy", "list", env={"NARROWGATE_USE__DECISION_BACKEND": "local.nothing"})
    assert done.code == 0
    assert "team.handoff.v1" in done.out
    assert "`narrowgate check` tells why" in done.err


def test_a_policy_is_shown_whole(process: Run, folder: Path) -> None:
    """Both texts of its question, its fingerprint, and every criterion, those with their defaults too."""
    shown = process("policy", "show", "team.handoff.v1", "--json").json
    written = tomllib.loads(POLICY)
    assert {name: shown[name] for name in written if name not in ("thresholds", "promotion_criteria")} == {
        name: value for name, value in written.items() if name not in ("thresholds", "promotion_criteria")
    }
    assert shown["thresholds"] == {"yes_at": 0.7, "no_at": None}
    assert shown["promotion_criteria"] == {
        "min_labelled": 100,
        "min_held_out": 100,
        "languages": ["en", "zh"],
        "max_high_severity_false_actions": 0,
        "min_precision": 0.95,
        "max_fallback_rate": 0.05,
        "max_added_latency_ms": 1000.0,
        "max_requests_per_decision": 1.0,
        "max_reviews_per_day": 7,
    }
    assert (shown["locked"], shown["promotion"], shown["in_use"]) == ("no", None, True)
    told = process("policy", "show", "team.handoff.v1").out
    for text in (
        "所附证据是否支持这一说法？",
        "Does the attached evidence support this claim?",
        shown["fingerprint"],
        "0.95",
    ):
        assert text in told


def test_a_built_in_policy_is_the_start_of_ones_own(run: Run, folder: Path) -> None:
    """`show --toml` prints a file that reads as the same policy: same fingerprint, nothing left out."""
    for name, policy in BUILT_IN.items():
        done = run("policy", "show", name, "--toml")
        assert done.code == 0
        path = folder / "mine.toml"
        path.write_text(done.out, encoding="utf-8")
        read = read_policy(path)
        assert read.problems == ()
        assert read.policy == policy
        assert fingerprint(read.policy) == fingerprint(policy)


def test_a_policy_that_there_is_not_is_told(process: Run, folder: Path) -> None:
    """With those that there are, and a word where one could not be read."""
    done = process("policy", "show", "team.handof.v1", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "unknown-policy")
    assert "team.handoff.v1" in done.json["error"]["message"]
    change(folder, '"review"', '"maybe"')
    assert "1 problem with policies" in process("policy", "show", "team.handoff.v1").err


def test_lint_of_sound_policies(process: Run, folder: Path) -> None:
    """Exit code 0; what is not locked is a warning. Nothing is written."""
    before = sorted(folder.rglob("*"))
    done = process("policy", "lint", "--json")
    assert (done.code, done.json["ok"], done.json["problems"]) == (0, True, [])
    assert [item["code"] for item in done.json["warnings"]] == ["policy-unlocked"]
    assert [item["policy_id"] for item in done.json["policies"]] == [RERANK, "team.handoff.v1"]
    assert sorted(folder.rglob("*")) == before


def test_lint_tells_all_faults_with_their_lines(process: Run, folder: Path) -> None:
    """Exit code 2, one report: file and line of each, in the text and in the JSON."""
    change(folder, '"advisory"', '"certain"')
    change(folder, "yes_at", "yes_from")
    (folder / "policies" / "broken.toml").write_text("policy_id = \n", encoding="utf-8")
    done = process("policy", "lint")
    assert done.code == 2
    for place in (
        "handoff.toml:5: mode",
        "handoff.toml:18: thresholds: unknown key 'yes_from'",
        "broken.toml:1: no valid TOML",
    ):
        assert place in done.out
    assert [item["code"] for item in process("policy", "lint", "--json").json["problems"]] == ["bad-policy"] * 3


def test_lint_of_files_needs_no_configuration(process: Run, tmp_path: Path) -> None:
    """A file is looked at before anything names it, with others that would clash with it, and against the lock."""
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(POLICY, encoding="utf-8")
    two.write_text(POLICY.replace('version = "1"', 'version = "2"'), encoding="utf-8")
    assert process("policy", "lint", one).code == 0
    done = process("policy", "lint", one, two, tmp_path / "gone.toml", "--json")
    assert (done.code, [item["code"] for item in done.json["problems"]]) == (2, ["bad-policy", "policy-clash"])
    Path("narrowgate.toml").write_text(f'[policies]\nfiles = ["{one}"]\n', encoding="utf-8")
    assert process("policy", "lock").code == 0
    two.write_text(POLICY.replace("0.7", "0.8"), encoding="utf-8")
    done = process("policy", "lint", two, "--json")
    assert [item["code"] for item in done.json["problems"]] == ["policy-changed"]


def test_lint_loads_no_plugin(process: Run, folder: Path, tmp_path: Path) -> None:
    """A rule of a plugin that is not installed is no fault of the file: `check` tells it."""
    change(folder, "local_rules = []", 'local_rules = ["absent.rule"]')
    assert process("policy", "lint").code == 0
    done = process("check", "--json")
    assert (done.code, [item["code"] for item in done.json["problems"]]) == (2, ["plugin-not-installed"])


def test_a_changed_policy_stops_everything_until_its_version_is_raised(process: Run, folder: Path) -> None:
    """Lock, change, refusal by `lock`, `lint`, `check` and a start; then the cure that they name."""
    locked = process("policy", "lock", "--json")
    assert locked.code == 0
    assert [item["policy_id"] for item in locked.json["added"]] == [RERANK, "team.handoff.v1"]
    assert locked.json["lock"] == str(folder / "policies.lock")
    assert {row["locked"] for row in process("policy", "list", "--json").json["policies"] if row["in_use"]} == {"yes"}
    assert process("check", "--json").json["ok"] is True
    again = process("policy", "lock")
    assert (again.code, again.out) == (0, "")
    assert "holds all 2 already" in again.err

    before = (folder / "policies.lock").read_bytes()
    change(folder, "yes_at = 0.7", "yes_at = 0.4")
    new = POLICY.replace("handoff.v1", "other.v1").replace("handoff.consult", "handoff.contradiction")
    (folder / "policies" / "new.toml").write_text(new, encoding="utf-8")
    for command in (("policy", "lock"), ("policy", "lint"), ("check",), ("search", "backup")):
        refused = process(*command)
        assert refused.code == 2
        told = " ".join((refused.out + refused.err).split())  # lines break where the path of the file makes them
        assert "thresholds.yes_at was 0.7 and is 0.4" in told
        assert "raise the version" in told
        assert (folder / "policies.lock").read_bytes() == before
    assert process("policy", "lock", "--json").json["error"]["problems"][0]["code"] == "policy-changed"
    shown = process("policy", "show", "team.handoff.v1", "--json").json
    assert shown["locked"] == "changed"

    change(folder, 'version = "1"', 'version = "2"')
    done = process("policy", "lock")
    assert done.code == 0
    assert [line.split()[:4] for line in done.out.splitlines()] == [
        ["locked", "team.handoff.v1", "version", "2"],
        ["locked", "team.other.v1", "version", "1"],
    ]
    assert process("check", "--json").json["ok"] is True


def test_nothing_is_locked_while_a_file_cannot_be_read(process: Run, folder: Path) -> None:
    """A lock made of half the policies would be taken for one of all."""
    (folder / "policies" / "broken.toml").write_text("policy_id = 3\n", encoding="utf-8")
    done = process("policy", "lock")
    assert done.code == 2
    assert "nothing was locked" in done.err
    assert not (folder / "policies.lock").exists()


def test_a_damaged_lock_is_told_and_not_mended(process: Run, folder: Path) -> None:
    """By every command that looks at it; the list goes on, since nothing is known to be locked."""
    (folder / "policies.lock").write_text("<<<<<<< ours\n", encoding="utf-8")
    for command in ("lock", "lint"):
        done = process("policy", command, "--json")
        assert done.code == 2
        problems = done.json["problems"] if command == "lint" else done.json["error"]["problems"]
        assert [item["code"] for item in problems] == ["policy-lock"]
    listed = process("policy", "list", "--json")
    assert (listed.code, [item["code"] for item in listed.json["problems"]]) == (2, ["policy-lock"])
    assert len(listed.json["policies"]) == len(BUILT_IN) + 1


def test_without_policies_the_commands_say_so(process: Run) -> None:
    """No configuration at all is no fault."""
    done = process("policy", "lock")
    assert (done.code, done.out) == (0, "")
    assert "no policy takes part" in done.err
    assert process("policy", "lint").out == "ok: 0 policies\n"
    assert {row["in_use"] for row in process("policy", "list", "--json").json["policies"]} == {False}
