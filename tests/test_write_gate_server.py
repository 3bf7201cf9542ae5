"""The write gate from configuration to HTTP: a System One server on loopback judges, fails and lies; and the local model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gate_parts import cited, policy_file, wrong

import narrowgate
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate_http.testing import FAULTS, Answer, FaultServer, Recorded

pytestmark = pytest.mark.anyio

BATCH = [
    cited("the deployment is frozen"),
    wrong("the deployment is on"),
    cited("部署冻结到复活节"),
    EntryDraft("no source"),
]


def judge(request: Recorded) -> Answer:
    """Say yes where the evidence holds the text."""
    body = request.json
    answers = {}
    for name, question in body["questions"].items():
        told = question["instructions"]
        told = json.loads(told) if isinstance(told, str) and told.startswith("{") else told
        text = body["state"].get("text") or told["text"]
        supported = text in "\n".join(body["state"]["judged_against"])
        answers[name] = {"type": "noul", "noul": 0.97 if supported else 0.02}
    return Answer(json={"model": "m-1.0.0", "answers": answers, "usage": {"input_tokens": 9, "output_tokens": 1}})


def configuration(folder: Path, mode: str, backend: str, more: str = "") -> Path:
    """Write a configuration with the policy, promoted, beside it."""
    policy_file(folder)
    path = folder / "narrowgate.toml"
    path.write_text(
        f"""
[use]
channels = ["sqlite.lexical"]
decision_backend = "{backend}"
sinks = ["sqlite.ledger"]

[policies]
files = ["write.toml"]

[policies.modes]
"team.write.v1" = "{mode}"

[settings."sqlite.store"]
path = "memory.db"
{more}
""",
        encoding="utf-8",
    )
    return path


def hosted(url: str) -> str:
    """Return the settings of a server."""
    return f'[settings."hosted.systemone"]\nbase_url = "{url}"\nretries = 0\n'


async def remember(path: Path, batch: Any = BATCH) -> tuple[list[str], list[Any], list[Any]]:
    """Write the batch; return statuses, what is held, and the ledger's records in order."""
    async with narrowgate.open(path, env={}) as gate:
        receipt = await gate.remember("m", batch)
        held = list(await gate.held())
        ledger = gate.component("sqlite.ledger")
    async with narrowgate.open(path, env={}) as gate:
        ledger = gate.component("sqlite.ledger")
        records = [record for _, record in await ledger.records()]
    return [item.status for item in receipt.items], held, records


async def test_enforcing_over_http(tmp_path: Path) -> None:
    """What the server denies is held, what it supports is written; the ledger has who judged, and no content anywhere."""
    with FaultServer(judge) as server:
        path = configuration(tmp_path, "enforcing", "hosted.systemone", hosted(server.url))
        statuses, held, records = await remember(path)
        assert statuses == ["added", "held", "added", "held"]
        assert [entry.code for entry in held] == ["insufficient_coverage", "needs_evidence"]
        assert [record["final_action"] for record in records] == [
            "memory_write_accept",
            "memory_write_hold",
            "memory_write_accept",
            "memory_write_hold",
        ]
        assert {record["provider_id"] for record in records} == {"hosted.systemone", None}
        assert [record["attempt"] for record in records] == ["backend", "backend", "backend", "local_rule"]
        assert records[1]["observation_id"] == held[0].observation_id
        assert "deployment" not in repr(records)
        requests = len(server.requests)
        statuses, _, _ = await remember(path, [BATCH[0], BATCH[2]])
        assert (statuses, len(server.requests)) == (["unchanged", "unchanged"], requests), "what is stored is not sent again"


async def test_advisory_over_http(tmp_path: Path) -> None:
    """The same verdicts leave a remark and hold nothing."""
    with FaultServer(judge) as server:
        path = configuration(tmp_path, "advisory", "hosted.systemone", hosted(server.url))
        statuses, held, records = await remember(path)
    assert (statuses, held) == (["added"] * 4, [])
    assert [record["final_action"] for record in records] == [
        "memory_write_accept",
        "memory_write_flag",
        "memory_write_accept",
        "memory_write_flag",
    ]


@pytest.mark.parametrize("fault", ["401", "503", "empty-body", "html-body", "wrong-shape", "nan", "cut-body", "closed"])
async def test_a_server_that_fails_or_lies_holds_nothing(tmp_path: Path, fault: str) -> None:
    """Outages and answers that are no verdict let pass what needed one, and are observed as what they are."""
    with FaultServer(lambda _request: FAULTS[fault]) as server:
        path = configuration(tmp_path, "enforcing", "hosted.systemone", hosted(server.url))
        statuses, held, records = await remember(path, BATCH[:3])
    assert (statuses, held) == (["added"] * 3, [])
    assert {record["final_action"] for record in records} == {"memory_write_accept"}
    assert {record["coverage"] for record in records} == {"unadjudicated"}
    parse = fault in ("empty-body", "html-body", "wrong-shape", "nan")
    assert records[0]["attempt"] == ("parse_failure" if parse else "backend_fallback"), records[0]["fallback_reason"]
    assert all(record["fallback_reason"] for record in records)


async def test_the_local_model_decides_in_both_languages(tmp_path: Path) -> None:
    """With the model in process and nothing else, clear cases come out right in English and Chinese."""
    path = configuration(tmp_path, "enforcing", "local.evidence")
    batch = [
        EntryDraft(
            "The order service moved from MySQL to Postgres 16 on 3 March.",
            evidence=(Evidence("mail:1", "Notes of 3 March: the order service moved from MySQL to Postgres 16 today."),),
        ),
        EntryDraft(
            "The order service moved from MySQL to Postgres 16.",
            evidence=(Evidence("mail:2", "Ana likes her tea without sugar."),),
        ),
        EntryDraft(
            "订单服务的夜间备份改到凌晨两点。",
            evidence=(Evidence("mail:3", "会议纪要：订单服务的夜间备份改到凌晨两点开始。"),),
        ),
        EntryDraft("订单服务的夜间备份改到凌晨两点半。", evidence=(Evidence("mail:4", "安娜喜欢不加糖的茶。"),)),
    ]
    statuses, _, records = await remember(path, batch)
    assert statuses == ["added", "held", "added", "held"]
    assert [record["language"] for record in records] == ["en", "en", "zh", "zh"]
