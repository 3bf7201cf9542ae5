"""Policies that ask for power, and boundaries that stop a start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from host_policy_parts import PARTS, TEXT, Install, Scan, plan_with, taking_part, told
from policy_parts import write

from narrowgate import Diagnosis, diagnose, load_config
from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import PromotionRecord, append_record
from narrowgate.seams import Locality
from narrowgate.values.assessment import GateMode


@pytest.fixture
def planned(install: Install, scan: Scan) -> Callable[..., Diagnosis]:
    """See `plan_with`."""
    return plan_with(install, scan)


def test_enforcing_needs_a_record_of_this_content(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """And a store that can keep what is held back. Where the record lies is the configuration's to say."""
    policy = read_policy(write(tmp_path, TEXT)).policy
    assert policy is not None
    wanted = {"files": ["write.toml"], "modes": {"team.write.v1": "enforcing"}, "records": "signed"}
    ((code, message),) = told(planned(**wanted))
    assert (code, message) == ("not-promoted", "policy 'team.write.v1' is to enforce, and there is no promotion record")
    record = PromotionRecord(
        policy_id=policy.policy_id,
        version=policy.version,
        fingerprint=fingerprint(policy),
        mode=GateMode.ENFORCING,
        previous=GateMode.SHADOW,
        effect=policy.effect,
        author=policy.author,
        approver="ana",
        decided_at=datetime(2026, 3, 1, tzinfo=UTC),
        evidence={},
        measured={},
    )
    path = append_record(tmp_path / "signed", record)
    assert [mode for _, mode, _, _ in taking_part(planned(**wanted))] == [GateMode.ENFORCING]
    ((code, _),) = told(planned(**wanted, separation_of_duties=True))
    assert code == "not-promoted"
    path.write_text("{}\n")
    ((code, message),) = told(planned(**wanted))
    assert (code, message) == ("not-promoted", f"{path.relative_to(tmp_path)}:1: no promotion record of this policy")


@pytest.mark.parametrize(
    ("boundary", "backend", "sanitiser", "refused"),
    [
        ("local_only", "judge", None, False),
        ("local_only", "near", None, False),
        ("local_only", "far", "all.redact", True),
        ("hosted_redacted", "judge", None, False),
        ("hosted_redacted", "far", None, True),
        ("hosted_redacted", "far", "all.redact", False),
        ("references_only", "far", None, False),
    ],
)
def test_a_boundary_that_no_call_could_keep_stops_the_start(
    planned: Callable[..., Diagnosis], tmp_path: Path, boundary: str, backend: str, sanitiser: str | None, refused: bool
) -> None:
    """This machine may see everything; another one what the boundary says, redacted where there is what redacts."""
    write(tmp_path, TEXT.replace("local_only", boundary))
    found = planned(files=["write.toml"], use={"decision_backend": f"all.{backend}", "sanitiser": sanitiser})
    assert [code for code, _ in told(found)] == (["privacy-boundary"] if refused else [])
    assert found.ok is not refused


@pytest.mark.parametrize(
    ("said", "refused"),
    [("hosted", True), (Locality.HOSTED, True), ("far away", True), (Locality.LOOPBACK, False), (None, True)],
    ids=str,
)
def test_an_object_of_the_application_says_where_it_sends_content(
    install: Install, scan: Scan, tmp_path: Path, said: Any, refused: bool
) -> None:
    """What it says and nobody knows counts as another machine; an object that says nothing is in process."""
    install("all", PARTS)
    overrides = {"use": {"channels": "none"}, "policies": {"files": [write(tmp_path, TEXT)]}}
    config = load_config(overrides=overrides, env={})
    backend, silent = SimpleNamespace(locality=said), SimpleNamespace()

    def found(given: object) -> list[tuple[str, str]]:
        return told(diagnose(config, injected={"decision_backend": given}, discovery=scan()))

    assert [code for code, _ in found(backend)] == (["privacy-boundary"] if refused else [])
    assert found(silent) == []


def test_no_external_call_needs_no_backend(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """Nor does one take part for its sake; every other boundary needs one."""
    write(tmp_path, TEXT.replace("local_only", "no_external_call"))
    found = planned(files=["write.toml"], use={"decision_backend": None})
    assert [backend for _, _, backend, _ in taking_part(found)] == [None]
    assert found.composition is not None
    assert not any(item.name == "all.judge" for item in found.composition.chosen)
    write(tmp_path, TEXT)
    found = planned(files=["write.toml"], use={"decision_backend": "none"})
    assert told(found) == [
        ("need-unmet", "policy team.write.v1 needs a decision backend, and [use] decision_backend is switched off")
    ]


def test_a_rule_that_is_not_there_is_told(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """Like any component that is named: the closest, or where it would belong."""
    write(tmp_path, TEXT.replace("all.short", "all.shrt"))
    assert told(planned(files=["write.toml"])) == [("unknown-component", "plugin 'all' has no component 'all.shrt'")]
    write(tmp_path, TEXT.replace("all.short", "all.judge"))
    assert told(planned(files=["write.toml"])) == [
        ("wrong-seam", "all.judge is named as a local rule of a policy, but is a decision backend")
    ]
