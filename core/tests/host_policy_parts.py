"""What the tests of planned policies share: plugins with every seam that policies need, and a plan of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from policy_parts import WHOLE

from narrowgate import Diagnosis, diagnose, load_config
from narrowgate.host.discovery import Discovery
from narrowgate.values.assessment import GateMode

Install = Callable[..., str]
Scan = Callable[..., Discovery]

PARTS = """
PLUGIN = Plugin("{id}", (1, 1))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build, offers=frozenset({"held-queue"}))]
@hookimpl
def narrowgate_decision_backends():
    far = Component("{id}.far", Seam.DECISION_BACKEND, "s", build, locality=Locality.HOSTED)
    near = Component("{id}.near", Seam.DECISION_BACKEND, "s", build, locality=Locality.LOOPBACK)
    return [Component("{id}.judge", Seam.DECISION_BACKEND, "s", build), near, far]
@hookimpl
def narrowgate_local_rules():
    return [Component("{id}.short", Seam.LOCAL_RULE, "s", build)]
@hookimpl
def narrowgate_sanitisers():
    return [Component("{id}.redact", Seam.SANITISER, "s", build)]
@hookimpl
def narrowgate_observation_sinks():
    return [Component("{id}.log", Seam.OBSERVATION_SINK, "s", build)]
"""
TEXT = WHOLE.replace("local.length-bounds", "all.short")
OTHER = TEXT.replace("team.write.v1", "team.handoff.v1").replace("memory_write_gate", "handoff_evidence_consult")
OTHER = OTHER.replace('effect = "hold"\n', "").replace("memory.write-gate", "handoff.consult")
RERANK = "memory.rerank.decision.v1"


def plan_with(install: Install, scan: Scan) -> Callable[..., Diagnosis]:
    """Return a function that says what a configuration with these `[policies]` means; the plugin `all` offers its parts."""
    install("all", PARTS)

    def _planned(use: dict[str, Any] | None = None, *named: str, **policies: Any) -> Diagnosis:
        using = {"decision_backend": "all.judge", "sinks": ["all.log"], "channels": "none", **(use or {})}
        policies["use"] = named
        return diagnose(load_config(overrides={"use": using, "policies": policies}, env={}), discovery=scan())

    return _planned


def told(found: Diagnosis, *, warnings: bool = False) -> list[tuple[str, str]]:
    """Return code and message of every problem, without what is said of channels."""
    return [
        (item.code, item.message)
        for item in found.problems
        if item.code != "no-channels" and (warnings or item.severity == "error")
    ]


def taking_part(found: Diagnosis) -> list[tuple[str, GateMode, str | None, tuple[str, ...]]]:
    """Return id, mode, backend and rules of each policy that takes part."""
    assert found.composition is not None, found.problems
    return [(item.policy.policy_id, item.policy.mode, item.backend, item.rules) for item in found.composition.policies]
