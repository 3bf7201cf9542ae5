"""Policies in a composition: given rules and a backend that their boundaries allow, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from narrowgate.governance.fingerprint import fingerprint
from narrowgate.host import codes, needs
from narrowgate.host.config import Config
from narrowgate.host.picks import Pick, Picks
from narrowgate.host.policy_set import inspect_policies
from narrowgate.seams.component import Component, Locality, Need, Problem, Seam
from narrowgate.seams.gate_ports import HELD_QUEUE
from narrowgate.values.assessment import GateMode
from narrowgate.values.policy import DecisionPolicy, PrivacyBoundary

RERANK: Final = "memory_rerank"
"""The consumer whose backend is that of the second stage: its policies are described and observed here, not asked."""


@attrs.frozen
class PlannedPolicy:
    """A policy that takes part.

    Attributes:
        policy: with the mode that it runs in.
        fingerprint: its fingerprint.
        backend: full name of the decision backend; `None` where it needs none.
        rules: full names of its local rules.
    """

    policy: DecisionPolicy
    fingerprint: str
    backend: str | None
    rules: tuple[str, ...]


def resolve(
    picks: Picks, config: Config, locality: Callable[[Component], Locality | None]
) -> tuple[tuple[PlannedPolicy, ...], list[Problem]]:
    """Return the policies that take part and every problem that they have; rules and a backend are added to `picks`."""
    known = inspect_policies(config)
    problems = list(known.problems)
    planned = []
    for policy in known.policies:
        if policy.mode is GateMode.DISABLED:
            continue
        rules = _rules(picks, policy)
        backend, found = _backend(picks, policy, locality)
        problems += found + _queue_problems(picks, policy, locality)
        planned.append(PlannedPolicy(policy, fingerprint(policy), backend, rules))
    return tuple(planned), problems


def _rules(picks: Picks, policy: DecisionPolicy) -> tuple[str, ...]:
    names = []
    taking_part = picks.by_seam[Seam.LOCAL_RULE]
    for name in policy.local_rules:
        component = picks.find(name, Seam.LOCAL_RULE)
        if component is None:
            continue
        if all(pick.component is not component for pick in taking_part):
            taking_part.append(Pick(component, f"policy {policy.policy_id}", named=True))
        names.append(name)
    return tuple(names)


def _backend(
    picks: Picks, policy: DecisionPolicy, locality: Callable[[Component], Locality | None]
) -> tuple[str | None, list[Problem]]:
    if policy.privacy_boundary is PrivacyBoundary.NO_EXTERNAL_CALL or policy.consumer == RERANK:
        return None, []
    label = f"policy {policy.policy_id}"
    problem, names = needs.require(picks, label, Need(Seam.DECISION_BACKEND), locality)
    if problem is not None:
        return None, [problem]
    if not names:
        return None, []
    component = next(pick.component for pick in picks.by_seam[Seam.DECISION_BACKEND] if pick.component.name == names[0])
    return names[0], _boundary(picks, policy, names[0], locality(component))


def _queue_problems(picks: Picks, policy: DecisionPolicy, locality: Callable[[Component], Locality | None]) -> list[Problem]:
    """Return the problem of a policy that may hold writes over a store that would not know where to keep them."""
    if policy.mode is not GateMode.ENFORCING or policy.effect != "hold":
        return []
    problem, _ = needs.require(picks, f"policy {policy.policy_id}", Need(Seam.ENTRY_STORE, HELD_QUEUE), locality)
    return [] if problem is None else [problem]


def _boundary(picks: Picks, policy: DecisionPolicy, backend: str, place: Locality | None) -> list[Problem]:
    if place is not Locality.HOSTED:
        return []
    origin = picks.discovery.origin(backend.partition(".")[0])
    if policy.privacy_boundary is PrivacyBoundary.LOCAL_ONLY:
        text = f"policy {policy.policy_id!r} is local_only, and {backend} sends content to another machine"
        hint = "use a backend on this machine, or a version of the policy with another boundary"
        return [Problem(codes.PRIVACY_BOUNDARY, text, hint, backend, origin)]
    if policy.privacy_boundary is PrivacyBoundary.HOSTED_REDACTED and not picks.by_seam[Seam.SANITISER]:
        text = f"policy {policy.policy_id!r} sends redacted content alone, and no sanitiser is in use"
        hint = 'name one under [use], e.g. sanitiser = "redact.sanitiser" (`pip install narrowgate-redact`)'
        return [Problem(codes.PRIVACY_BOUNDARY, text, hint, backend, origin)]
    return []


def describe(planned: Iterable[PlannedPolicy]) -> Mapping[str, str]:
    """Return policy id -> one line for `narrowgate check`."""
    return {
        item.policy.policy_id: (
            f"version {item.policy.version}, {item.policy.mode}, {item.policy.privacy_boundary}, "
            f"{item.backend or 'no backend'}, fingerprint {item.fingerprint[:12]}"
        )
        for item in planned
    }
