"""Putting a policy's question from the command line, for evaluation and replay: beside what the policy does elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from narrowgate import Config, PolicySet, inspect_policies, load_config, render_problems
from narrowgate.decisions import MeteredBackend
from narrowgate.errors import CompositionError, InputError
from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.gate import Gate
from narrowgate.seams.component import Seam
from narrowgate.values.policy import DecisionPolicy
from narrowgate_cli.app import Place
from narrowgate_cli.session import FILE_STORE, Session, opened, overrides

RERANK: Final = "memory_rerank"
"""The consumer whose policies no gate of a running composition asks: the second stage asks by itself."""


@attrs.frozen
class Known:
    """A policy with where it comes from.

    Attributes:
        config: the configuration.
        found: its policies.
        policy: the one that was asked for, in the mode that it has there; a built-in one that takes no part is in its own.
        used: whether it takes part.
    """

    config: Config
    found: PolicySet
    policy: DecisionPolicy
    used: bool


def known_policy(place: Place, policy_id: str) -> Known:
    """Return a policy of the configuration, or a built-in one.

    Raises:
        InputError: `unknown-policy`.
        CompositionError: its file or the lock has something against it.
    """
    config = load_config(place.config, overrides=overrides(place))
    found = inspect_policies(config)
    policy = next((item for item in found.policies if item.policy_id == policy_id), None)
    wrong = [problem for problem in (*found.own, *found.locked) if problem.severity == "error"]
    if policy is None and policy_id not in BUILT_IN and not wrong:
        names = ", ".join({item.policy_id: None for item in (*found.policies, *BUILT_IN.values())})
        raise InputError("unknown-policy", f"there is no policy {policy_id!r}: there is {names}")
    if wrong:
        raise CompositionError(wrong, render_problems(wrong, title="policies that cannot be used"))
    return Known(config, found, policy or BUILT_IN[policy_id], policy is not None)


def alone(known: Known, backend: str | None) -> dict[str, Any]:
    """Return the sections under which this policy alone takes part, in shadow, with a backend by name or as configured."""
    own = known.policy.policy_id
    modes: dict[str, str] = {item.policy_id: "disabled" for item in known.found.policies}
    settings: dict[str, Any] = {"modes": {**modes, own: "shadow"}, "cooldown": 0.0}
    if not known.used:
        settings["use"] = [*known.config.policies.use, own]
    use: dict[str, Any] = {"reranker": "none", "generator": "none", "sinks": []}
    if backend is not None:
        use["decision_backend"] = backend
    return {"policies": settings, "use": use}


@attrs.frozen
class Asking:
    """A gate that can be asked.

    Attributes:
        session: what it runs in.
        gate: the gate; it observes nothing by itself.
        backend: full name of its backend; `None` where it has none.
    """

    session: Session
    gate: Gate
    backend: str | None


@asynccontextmanager
async def asking(
    place: Place, known: Known, backend: str | None, more: Mapping[str, Mapping[str, Any]] | None = None, *, memory: bool
) -> AsyncIterator[Asking]:
    """Open a gate of the policy, and of nothing else.

    Args:
        place: configuration and database file.
        known: the policy.
        backend: full name of a backend; `None` as configured.
        more: further sections.
        memory: the database must be there; otherwise an empty one stands in where there is none.

    Raises:
        InputError: `no-backend`: the policy asks one, and none is named.
        NarrowgateError: see `opened`.
    """
    sections: dict[str, Any] = {name: dict(values) for name, values in alone(known, backend).items()}
    for name, values in (more or {}).items():
        sections.setdefault(name, {}).update(values)
    with TemporaryDirectory(prefix="narrowgate-") as folder:
        if not memory and not _database_there(place):
            sections["use"]["store"] = FILE_STORE
            place = attrs.evolve(place, db=Path(folder, "none.db"))
        async with opened(place, more=sections, stale=True, create=not memory) as session:
            yield _asking(session, known.policy)


def _database_there(place: Place) -> bool:
    """Return whether the configured store has a file, whose term statistics some backends use."""
    given = load_config(place.config, overrides=overrides(place)).given(FILE_STORE).get("path")
    return given is not None and isinstance(given.value, str | Path) and Path(given.folder or "", given.value).is_file()


def _asking(session: Session, policy: DecisionPolicy) -> Asking:
    planned = {item.policy.policy_id: item for item in session.composition.policies}[policy.policy_id]
    if policy.consumer != RERANK:
        return Asking(session, session.host.governing.gates[policy.policy_id], planned.backend)
    chosen = session.composition.of(Seam.DECISION_BACKEND)
    if not chosen:
        text = f"policy {policy.policy_id!r} describes a second stage, and no backend is named"
        raise InputError("no-backend", f"{text}: name one with --backend, e.g. --backend local.evidence")
    (item,) = chosen
    named = NamedBackend(
        item.name, item.component.locality_for(item.settings), MeteredBackend(session.host.component(item.name))
    )
    timeout = session.composition.config.policies.timeout
    return Asking(session, Gate(planned.policy, backend=named, settings=GateSettings(timeout=timeout)), item.name)


def shares(counts: Mapping[str, int], names: Sequence[str] = ()) -> str:
    """Return counts as `timeout 3, cooldown 2`; those of `names` first and also where they are 0."""
    rest = [name for name in counts if name not in names]
    return ", ".join(f"{name.replace('_', ' ')} {counts.get(name, 0):,}" for name in (*names, *rest)) or "none"
