"""A process that runs a `local_only` composition with every policy, and reports each socket, name and process asked for.

    python local_only_worker.py FOLDER asyncio|trio process|loopback [namespace]

`process`: the backend computes in this process. `loopback`: it is a server on this machine. `namespace`: it runs where there
is no network but loopback, which has to be switched on first. Prints one JSON object.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "plugins/hosted/tests"))

# First of ours: it watches from its own import on.
import hosted_local_only_worker as hosted  # isort: skip

import json
import socket
from collections import Counter
from typing import Any, Final

import anyio
import decisions_fakes

import narrowgate
from narrowgate.governance.builtin import BUILT_IN, RERANK
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate_http.testing import FaultServer

SAID: Final = "The order service runs on Postgres 16, says Ana (ana@example.org)."
DRAFTS: Final = [
    EntryDraft("The order service runs on Postgres 16.", evidence=(Evidence("mail:1", SAID),)),
    EntryDraft("订单服务的夜间备份在凌晨两点。", evidence=(Evidence("mail:2", "运维手册：订单服务的夜间备份在凌晨两点。"),)),
    EntryDraft("Nobody said so."),
]


def overrides(folder: Path, url: str | None) -> dict[str, Any]:
    """Return a composition with everything that there is on this machine."""
    modes = {name: "shadow" if policy is RERANK else "advisory" for name, policy in BUILT_IN.items()}
    backend = "local.evidence" if url is None else "hosted.systemone"
    return {
        "use": {
            "embedder": "local.embedder",
            "reranker": "decision.keep-drop",
            "decision_backend": backend,
            "sinks": ["sqlite.ledger", "observe.jsonl"],
            "sanitiser": "redact.sanitiser",
        },
        "privacy": {"local_only": True},
        "policies": {"use": list(BUILT_IN), "modes": modes},
        "settings": {
            "sqlite.store": {"path": str(folder / "memory.db")},
            "sqlite.ledger": {"path": str(folder / "ledger.db")},
            "observe.jsonl": {"path": str(folder / "observations.jsonl")},
            **({} if url is None else {backend: {"base_url": url}}),
        },
    }


async def use(folder: Path, url: str | None) -> dict[str, Any]:
    """Do everything that a policy is asked for."""
    async with narrowgate.open(overrides=overrides(folder, url), env={}) as gate:
        receipt = await gate.remember("team", DRAFTS)
        page = await gate.search("which database does the order service use?", memory="team")
        ref = receipt.items[0].ref
        assert ref is not None
        related = await gate.advice.relations("team", "The order service runs on MySQL.")
        handed = await gate.advice.handoff("It was moved to Postgres.", [ref])
        fitting = await gate.advice.applicability("Deploy it.", [Evidence("skill:1", "When a service is to be deployed.")])
        await gate.probe()
    lines = (folder / "observations.jsonl").read_text(encoding="utf-8").splitlines()
    observed = Counter(json.loads(line)["policy_id"] for line in lines)
    return {
        "statuses": [item.status for item in receipt.items],
        "page": f"{page.mode} {page.status}",
        "given": [related.given, handed.given, fitting.given],
        "observed": observed,
        "judged": sum(json.loads(line)["attempt"] == "backend" for line in lines),
    }


def main(folder: Path, backend: str, kind: str, where: str) -> None:
    """Run, and print what was seen."""
    report: dict[str, Any] = {}
    if where == "namespace":
        hosted._loopback_up()
        report = {"interfaces": [name for _, name in socket.if_nameindex()], "far": hosted._far()}
        hosted.SEEN.clear()
    if kind == "process":
        report["result"] = anyio.run(use, folder, None, backend=backend)
        report |= {"seen": sorted(set(hosted.SEEN)), "server": None}
    else:
        with FaultServer(decisions_fakes.SystemOneFake()) as server:
            report["result"] = anyio.run(use, folder, server.url, backend=backend)
            report |= {"seen": sorted(set(hosted.SEEN)), "server": str(("127.0.0.1", server.port))}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "")
