"""What leaves this machine under each boundary: a server that stands for another machine, and everything that it was sent.

The server is reached through the environment's proxy under a name that no machine has, so that it counts as `hosted`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs
import pytest
from gate_parts import POLICY, cited
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowgate
from narrowgate.governance.builtin import WRITE
from narrowgate.governance.privacy import project
from narrowgate.governance.questions import Question
from narrowgate.seams import Locality
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate.values.policy import PrivacyBoundary
from narrowgate_http.testing import Answer, FaultServer, Recorded
from narrowgate_redact.sanitiser import RedactSanitiser

sys.path.insert(0, str(Path(__file__).parent.parent / "plugins/redact/tests"))

from redact_parts import VALUES, after, remains, surrounding

pytestmark = pytest.mark.anyio

HOST: Final = "http://judge.invalid"
SECRETS: Final = ("13912345678", "d.8119.w@mail.example.org", "hunter2xyz", "11010519491231002X", "AKIAIOSFODNN7EXAMPLE")
NOTES: Final = (
    "Wang Fang wants a refund before Friday; her number is +86 139 1234 5678, her mail d.8119.w@mail.example.org.",
    "客户王芳要求周五前退款，手机１３９１２３４５６７８，身份证11010519491231002X，邮箱d.8119.w@mail.example.org。",
    "The deploy key AKIAIOSFODNN7EXAMPLE and the password: hunter2xyz were rotated on Monday.",
    "部署密钥AKIAIOSFODNN7EXAMPLE已于周一更换，密码是hunter2xyz。",
)

HOSTED_REDACTED: Final = attrs.evolve(WRITE, privacy_boundary=PrivacyBoundary.HOSTED_REDACTED)
SANITISER: Final = RedactSanitiser()


def judge(request: Recorded) -> Answer:
    """Say yes to everything."""
    questions = request.json["questions"]
    answers = {name: {"type": "noul", "noul": 0.97} for name in questions}
    return Answer(json={"model": "m-1.0.0", "answers": answers, "usage": {"input_tokens": 9, "output_tokens": 1}})


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """Return a server that is reached as another machine."""
    with FaultServer(judge) as server:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, server.url)
        for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield server


def configuration(folder: Path, boundary: str, rules: str = "[]", *, sanitiser: bool = True, more: str = "") -> Path:
    """Write an advisory policy under a boundary, and a configuration that asks the server."""
    policy = POLICY.replace('"local_only"', f'"{boundary}"').replace("local_rules = []", f"local_rules = {rules}")
    (folder / "write.toml").write_text(policy, encoding="utf-8")
    path = folder / "narrowgate.toml"
    use = 'sanitiser = "redact.sanitiser"' if sanitiser else ""
    path.write_text(
        f"""
[use]
channels = ["sqlite.lexical"]
decision_backend = "hosted.systemone"
sinks = ["sqlite.ledger"]
{use}

[policies]
files = ["write.toml"]

[policies.modes]
"team.write.v1" = "advisory"

[settings."sqlite.store"]
path = "memory.db"

[settings."hosted.systemone"]
base_url = "{HOST}"
allow_http = true
retries = 0
{more}
""",
        encoding="utf-8",
    )
    return path


async def observed(path: Path, batch: list[Any]) -> list[dict[str, Any]]:
    """Write a batch; return what was observed, in order."""
    async with narrowgate.open(path, env={}) as gate:
        receipt = await gate.remember("m", batch)
        assert {item.status for item in receipt.items} <= {"added", "unchanged"}
    async with narrowgate.open(path, env={}) as gate:
        return [dict(record) for _, record in await gate.component("sqlite.ledger").records()]


def sent(server: FaultServer) -> str:
    """Return everything that the server was sent, with its escapes undone."""
    return "\n".join(json.dumps(request.json, ensure_ascii=False) for request in server.requests)


async def test_what_arrives_is_redacted_and_judged(hosted: FaultServer, tmp_path: Path) -> None:
    """In both languages: no value arrives, what is left suffices, and equal values have equal placeholders in evidence."""
    batch = [cited(note, f"来源 / source: {note}") for note in NOTES]
    records = await observed(configuration(tmp_path, "hosted_redacted"), batch)
    arrived = sent(hosted)
    for secret in SECRETS:
        assert remains(secret, arrived) == [], secret
    assert "Wang Fang wants a refund before Friday; her number is [PHONE-1], her mail [EMAIL-1]." in arrived
    assert "客户王芳要求周五前退款，手机[PHONE-1]，身份证[CN_ID-1]，邮箱[EMAIL-1]。" in arrived
    assert "来源 / source: 客户王芳要求周五前退款，手机[PHONE-1]，身份证[CN_ID-1]，邮箱[EMAIL-1]。" in arrived
    assert [(record["attempt"], record["verdict"]) for record in records] == [("backend", "allow")] * 4
    assert {record["privacy_outcome"] for record in records} == {"hosted_redacted_called"}
    assert records[1]["redactions"] == {"phone": 2, "cn_id": 2, "email": 2}
    for secret in SECRETS:
        assert secret not in repr(records)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("password: hunter2xyz", "The password of the deploy user is hunter2xyz since Monday."),
        ("d.8119.w@mail.example.org", "Mail from d.8119.w@mail.example.org of Monday, as noted then."),
        ("手机：13912345678，13912345678，13912345678", "13912345678"),
        ("The key of the deploy user is the old one.", "AKIAIOSFODNN7EXAMPLE"),
        ("部署用户的密钥还是旧的那一个", "１３９１２３４５６７８"),
    ],
)
async def test_what_lost_what_was_needed_is_not_judged(
    hosted: FaultServer, tmp_path: Path, text: str, evidence: str
) -> None:
    """Whether the entry lost it or its evidence: nothing is sent, nobody judged, and it is no allow."""
    (record,) = await observed(configuration(tmp_path, "hosted_redacted"), [cited(text, evidence)])
    assert hosted.requests == []
    assert (record["coverage"], record["verdict"], record["reason"]) == ("unadjudicated", "unknown", "privacy_boundary")
    assert (record["attempt"], record["privacy_outcome"]) == ("privacy_fallback", "redaction_removed_needed")
    assert record["redactions"]
    assert record["final_action"] == "memory_write_accept"


async def test_a_rule_keeps_sensitive_content_here(hosted: FaultServer, tmp_path: Path) -> None:
    """With `local.sensitive` nothing of it is sent, not even redacted; what has nothing sensitive in it is asked about."""
    path = configuration(tmp_path, "hosted_redacted", '["local.sensitive"]')
    records = await observed(path, [cited(NOTES[1]), cited("客户要求周五前退款。")])
    assert [(item["attempt"], item["reason"], item["privacy_outcome"], item["verdict"]) for item in records] == [
        ("privacy_fallback", "sensitive_not_sent", "not_sent", "unknown"),
        ("backend", "decision_model_verdict", "hosted_redacted_called", "allow"),
    ]
    assert len(hosted.requests) == 1
    assert "客户要求周五前退款" in sent(hosted)


async def test_the_rule_can_be_about_some_kinds(hosted: FaultServer, tmp_path: Path) -> None:
    """A key keeps everything here, an address is redacted and goes."""
    more = '[settings."local.sensitive"]\nkinds = ["secret"]\n'
    path = configuration(tmp_path, "hosted_redacted", '["local.sensitive"]', more=more)
    records = await observed(path, [cited(NOTES[0]), cited(NOTES[2])])
    assert [item["privacy_outcome"] for item in records] == ["hosted_redacted_called", "not_sent"]


async def test_a_record_is_redacted_as_well(hosted: FaultServer, tmp_path: Path) -> None:
    """Names of sources, and the snippet that a deployment asked for, redacted before it is cut."""
    text = "退款客户的记录。" * 63 + NOTES[1]
    more = '[settings."sqlite.ledger"]\nsnippets = true\n'
    path = configuration(tmp_path, "hosted_redacted", more=more)
    path.write_text(path.read_text(encoding="utf-8").replace("[policies]", "[policies]\nsnippets = true"), encoding="utf-8")
    entry = EntryDraft(text, evidence=(Evidence("mail of d.8119.w@mail.example.org", text),))
    (record,) = await observed(path, [entry])
    assert record["snippet"].startswith("退款客户的记录。")
    assert len(record["snippet"]) == 512
    assert record["evidence_refs"] == ["mail of [EMAIL-1]"]
    for secret in SECRETS:
        assert remains(secret, repr(record)) == []


@pytest.mark.parametrize("sanitiser", [True, False])
async def test_references_only_sends_no_content(hosted: FaultServer, tmp_path: Path, *, sanitiser: bool) -> None:
    """Names that look like names go; a sentence, an address or a URL does not. Rules see that no content leaves."""
    named = [
        Evidence("mail:81", NOTES[0]),
        Evidence("d.8119.w@mail.example.org", NOTES[1]),
        Evidence("https://h.test/x?api_key=K1234567890abcdef", NOTES[2]),
        Evidence("what Wang Fang said on Monday", NOTES[3]),
    ]
    entry = EntryDraft(NOTES[0], kind="a kind that is 13912345678", evidence=tuple(named))
    path = configuration(tmp_path, "references_only", '["local.sensitive"]', sanitiser=sanitiser)
    (record,) = await observed(path, [entry])
    arrived = sent(hosted)
    assert (record["attempt"], record["privacy_outcome"]) == ("backend", "references_only_called")
    assert "mail:81" in arrived
    assert "source-1" in arrived
    assert "source-3" in arrived
    for part in (*SECRETS, "Wang Fang", "refund", "退款", "K1234567890", "部署", "deploy"):
        assert part not in arrived


async def test_no_external_call_sends_nothing(hosted: FaultServer, tmp_path: Path) -> None:
    """Rules alone judge."""
    path = configuration(tmp_path, "no_external_call", '["local.length-bounds"]')
    records = await observed(path, [cited("ok"), cited(NOTES[0])])
    assert hosted.requests == []
    assert [(item["reason"], item["coverage"]) for item in records] == [
        ("too_short", "adjudicated"),
        (records[1]["reason"], "unadjudicated"),
    ]
    assert records[1]["privacy_outcome"] == "no_external_call"


async def test_without_a_sanitiser_nothing_starts(hosted: FaultServer, tmp_path: Path) -> None:
    """A boundary that nobody could keep is refused before anything opens."""
    with pytest.raises(narrowgate.CompositionError, match="no sanitiser is in use"):
        await observed(configuration(tmp_path, "hosted_redacted", sanitiser=False), [cited(NOTES[0])])
    with pytest.raises(narrowgate.CompositionError, match="is local_only"):
        await observed(configuration(tmp_path, "local_only"), [cited(NOTES[0])])
    assert hosted.requests == []
    assert not (tmp_path / "memory.db").exists()


async def test_no_planted_value_arrives(hosted: FaultServer, tmp_path: Path) -> None:
    """Of values of every kind in random English and Chinese, not even six letters or digits get to the server."""
    batch, values = [], []
    for form in VALUES:
        for seed in range(4):
            random = Random(f"{form} {seed} sent")
            value = VALUES[form](random)
            text = surrounding(random) + value + after(random)
            batch.append(cited(text, f"source {seed}: {text}"))
            values.append(value)
    records = await observed(configuration(tmp_path, "hosted_redacted"), batch)
    assert [item["privacy_outcome"] for item in records] == ["hosted_redacted_called"] * len(batch)
    arrived = sent(hosted)
    assert [value for value in values if remains(value, arrived)] == []


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(VALUES)), st.integers(0, 10**6)), min_size=1, max_size=4),
    st.integers(0, 10**6),
)
def test_no_planted_value_is_in_a_projection(planted: list[tuple[str, int]], seed: int) -> None:
    """The same of what the gate would send, over many more texts: several values in one entry, and the same in evidence."""
    random = Random(seed)
    values = [VALUES[form](Random(number)) for form, number in planted]
    text = "".join(surrounding(random) + value + after(random) for value in values)
    question = Question(operation_id="o", scope_id="m", subject=text, evidence=(surrounding(random) + values[0], text))
    projection = project(HOSTED_REDACTED, question, Locality.HOSTED, SANITISER)
    arrived = "\n".join((projection.request.subject, *projection.request.evidence)) if projection.request else ""
    assert [value for value in values if remains(value, arrived)] == []
