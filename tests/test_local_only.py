"""`[privacy] local_only` with every policy, sinks and redaction: all of it works where there is no network but loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from narrowgate import diagnose, load_config
from narrowgate.governance.builtin import BUILT_IN

WORKER: Final = Path(__file__).with_name("local_only_worker.py")
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
UNSHARE: Final = ("unshare", "--map-root-user", "--net")

backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])
kinds = pytest.mark.parametrize("kind", ["process", "loopback"])


def run(folder: Path, backend: str, kind: str, where: str = "", *, before: Sequence[str] = ()) -> dict[str, Any]:
    """Run the worker in a process of its own, with proxies in its environment, and return its report."""
    env = {name: value for name, value in os.environ.items() if not name.upper().startswith(("NARROWGATE_", "NO_PROXY"))}
    env |= dict.fromkeys(PROXIES, "http://192.0.2.1:9") | {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    command = [*before, sys.executable, "-W", "error", str(WORKER), str(folder), backend, kind, where]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def assert_all_of_it_worked(report: dict[str, Any], kind: str) -> None:
    """Writes, a judged page, advice and observations of every policy; and not a socket to anybody but the server."""
    # Looking up an address that is one already asks nobody.
    allowed = [["socket.connect", report["server"]], ["socket.getaddrinfo", "127.0.0.1"]] if kind == "loopback" else []
    assert [item for item in report["seen"] if item not in allowed] == []
    assert (["socket.connect", report["server"]] in report["seen"]) is (kind == "loopback")
    result = report["result"]
    assert result["statuses"] == ["added"] * 3
    assert result["page"].startswith("hybrid ")
    assert result["given"] == [True] * 3
    asked = set(BUILT_IN) - {"memory.duplicate.relation.v1", "memory.conflict.relation.v1"}
    assert set(result["observed"]) >= asked
    assert result["judged"] > 5


@backends
@kinds
def test_a_local_only_composition_with_policies_opens_no_other_socket(tmp_path: Path, backend: str, kind: str) -> None:
    """An audit hook sees each connection, datagram, name and process that Python is asked for, from the first import on."""
    assert_all_of_it_worked(run(tmp_path, backend, kind), kind)


@backends
@kinds
def test_a_local_only_composition_with_policies_needs_no_network(tmp_path: Path, backend: str, kind: str) -> None:
    """It does all its work in a network namespace that has nothing but loopback: not even compiled code could get out.

    Where the system gives none, the test is skipped with the reason; the one with the audit hook runs everywhere.
    """
    if shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespaces for this user: proved by the audit hook alone")
    report = run(tmp_path, backend, kind, "namespace", before=UNSHARE)
    assert report["interfaces"] == ["lo"]
    assert report["far"].startswith("OSError"), report["far"]
    assert_all_of_it_worked(report, kind)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != "memory.rerank.decision.v1"])
def test_a_policy_that_keeps_content_here_refuses_a_backend_elsewhere(name: str) -> None:
    """Every built-in policy that asks is `local_only`: the start is refused without any setting of `[privacy]`."""
    overrides = {
        "use": {"decision_backend": "hosted.systemone"},
        "settings": {"hosted.systemone": {"base_url": "https://models.example", "api_key": {"env": "KEY"}}},
        "policies": {"use": [name]},
    }
    found = diagnose(load_config(overrides=overrides, env={"KEY": "sk-1"}))
    assert [item.code for item in found.problems if item.severity == "error"] == ["privacy-boundary"]
