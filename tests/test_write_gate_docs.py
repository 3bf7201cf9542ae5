"""The example of docs/write-gate.md, run as it stands with the policy of docs/policies.md."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from test_docs_examples import blocks, run

from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import PromotionRecord, append_record
from narrowgate.values.assessment import GateMode

CONFIGURATION = """
[use]
decision_backend = "local.evidence"

[policies]
files = ["policies/*.toml"]

[policies.modes]
"team.write.v1" = "enforcing"

[settings."sqlite.store"]
path = "memory.db"
"""


def test_evidence_and_what_is_held(tmp_path: Path) -> None:
    """What the minutes support is written, what they say nothing of is held, and so is what cites nothing."""
    (tmp_path / "policies").mkdir()
    path = tmp_path / "policies" / "write.toml"
    path.write_text(blocks("docs/policies.md", "toml")[0], encoding="utf-8")
    policy = read_policy(path).policy
    assert policy is not None
    record = PromotionRecord(
        policy_id=policy.policy_id,
        version=policy.version,
        fingerprint=fingerprint(policy),
        mode=GateMode.ENFORCING,
        previous=GateMode.ADVISORY,
        effect=policy.effect,
        author=policy.author,
        approver="bo",
        decided_at=datetime(2026, 3, 1, tzinfo=UTC),
        evidence={},
        measured={},
    )
    append_record(tmp_path / "promotions", record)
    (tmp_path / "narrowgate.toml").write_text(CONFIGURATION, encoding="utf-8")
    lines = run(blocks("docs/write-gate.md", "python")[0], tmp_path).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["added", "held", "held"]
    assert [line.split(maxsplit=2)[1:] for line in lines[3:]] == [
        ["insufficient_coverage", "Ana likes her tea without sugar."],
        ["needs_evidence", "订单服务没有备份。"],
    ]
