"""Policies in a composition: read, held against their lock and records, given rules and a backend, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import attrs

from narrowgate.errors import ConfigError
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.files import contradictions, read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.lockfile import changed, read_lock
from narrowgate.governance.records import read_records, why_not_enforcing
from narrowgate.host import codes, needs
from narrowgate.host.config import Config
from narrowgate.host.loading import must_pass
from narrowgate.host.picks import Pick, Picks
from narrowgate.host.settings import closest
from narrowgate.seams.component import Component, Locality, Need, Problem, Seam
from narrowgate.seams.gate_ports import HELD_QUEUE
from narrowgate.values.assessment import GateMode
from narrowgate.values.policy import DecisionPolicy, PrivacyBoundary

RERANK: Final = "memory_rerank"
"""The consumer whose backend is that of the second stage: its policies are described and observed here, not asked."""

WRITE: Final = "memory_write_gate"
"""The consumer of which one policy takes part at a time."""

BUILT_IN_ORIGIN: Final = "built-in"


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


def policies_of(config: Config) -> tuple[tuple[DecisionPolicy, ...], list[Problem]]:
    """Return the policies that a configuration names, in its order, with their modes, and what is wrong with them.

    Reads files and the modules of named constants; looks at no plugin, no lock and no record.
    """
    settings = config.policies
    problems: list[Problem] = []
    found: list[DecisionPolicy] = []
    for name in settings.use:
        named = _named(name)
        if isinstance(named, Problem):
            problems.append(named)
        else:
            found.append(named)
    for path in files_of(settings.files, problems):
        read = read_policy(path)
        problems += read.problems
        if read.policy is not None:
            found.append(read.policy)
    by_id: dict[str, DecisionPolicy] = {}
    for policy in found:
        if policy.policy_id in by_id:
            text = f"policy {policy.policy_id!r} is there twice: {by_id[policy.policy_id].origin} and {policy.origin}"
            problems.append(Problem(codes.POLICY_CLASH, text, "keep one; another version replaces the old one"))
        else:
            by_id[policy.policy_id] = policy
    for name, mode in settings.modes.items():
        if name in by_id:
            by_id[name] = attrs.evolve(by_id[name], mode=mode)
        else:
            near = closest(name, list(by_id))
            hint = f"did you mean {near!r}?" if near else "name it under [policies] use or files, or take the mode out"
            problems.append(Problem(codes.UNKNOWN_POLICY, f"[policies.modes] names {name!r}, which takes no part", hint))
    policies = tuple(by_id.values())
    return policies, [*problems, *_contradictory(policies)]


def _named(name: str) -> DecisionPolicy | Problem:
    """Return a built-in policy, or the constant that `module:NAME` means."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        near = closest(name, list(BUILT_IN))
        hint = f"did you mean {near!r}?" if near else f"built in are {', '.join(BUILT_IN)}; others come from files"
        return Problem(codes.UNKNOWN_POLICY, f"[policies] use names {name!r}, which is not built in", hint)
    try:
        value = getattr(import_module(module), attribute)
    except BaseException as error:
        if must_pass(error):
            raise
        text = f"[policies] use names {name!r}, which cannot be imported ({type(error).__name__})"
        return Problem(codes.UNKNOWN_POLICY, text, "write module:NAME of an installed module and its constant")
    if not isinstance(value, DecisionPolicy):
        text = f"[policies] use names {name!r}, which is no DecisionPolicy but {type(value).__name__}"
        return Problem(codes.UNKNOWN_POLICY, text, "name a constant that is a narrowgate.values.policy.DecisionPolicy")
    return attrs.evolve(value, origin=name)


def files_of(patterns: Iterable[Path], problems: list[Problem]) -> list[Path]:
    """Return the files that paths and patterns mean, each once, in their order and by name within a pattern.

    A pattern that finds nothing is added to `problems`: whoever names files wants them to take part.
    """
    found: dict[Path, Path] = {}
    for pattern in patterns:
        parts = pattern.parts
        first = next((place for place, part in enumerate(parts) if "*" in part or "?" in part), None)
        paths = [pattern]
        if first is not None and not pattern.exists():
            inside = Path(*parts[:first]).glob(str(Path(*parts[first:])))
            paths = sorted(path for path in inside if path.is_file())
            if not paths:
                text = f"[policies] files: no file is called {pattern}"
                problems.append(Problem("bad-policy", text, "correct the pattern, or take it out"))
        for path in paths:
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _contradictory(policies: Iterable[DecisionPolicy]) -> list[Problem]:
    """Return what no policy can be in its consumer's hands: constants are held to it like files, and modes that are set."""
    problems = []
    writing: list[str] = []
    for policy in policies:
        if policy.mode is GateMode.DISABLED:
            continue
        problems += [
            Problem("bad-policy", f"{policy.origin}: policy {policy.policy_id!r}: {message}", cure)
            for _, message, cure in contradictions(policy)
        ]
        if policy.consumer == WRITE:
            writing.append(policy.policy_id)
    if len(writing) > 1:
        text = f"{' and '.join(writing)} would all gate writes, and one gate decides about a write"
        problems.append(Problem(codes.POLICY_CLASH, text, 'set the others to "disabled" under [policies.modes]'))
    return problems


def lock_path(config: Config) -> Path:
    """Return the path of the policy lock."""
    return config.policies.lock or _folder(config) / "policies.lock"


def records_folder(config: Config) -> Path:
    """Return the folder of the promotion records."""
    return config.policies.records or _folder(config) / "promotions"


def _folder(config: Config) -> Path:
    return config.file.parent if config.file is not None else Path()


def examined(config: Config) -> tuple[tuple[DecisionPolicy, ...], list[Problem]]:
    """Return `policies_of`, and also what is wrong with them by their lock and by their promotion records."""
    policies, problems = policies_of(config)
    problems += lock_problems(config, policies)
    for policy in policies:
        problems += _record_problems(config, policy)
    return policies, problems


def resolve(
    picks: Picks, config: Config, locality: Callable[[Component], Locality | None]
) -> tuple[tuple[PlannedPolicy, ...], list[Problem]]:
    """Return the policies that take part and every problem that they have; rules and a backend are added to `picks`."""
    policies, problems = examined(config)
    planned = []
    for policy in policies:
        if policy.mode is GateMode.DISABLED:
            continue
        rules = _rules(picks, policy)
        backend, found = _backend(picks, policy, locality)
        problems += found + _queue_problems(picks, policy, locality)
        planned.append(PlannedPolicy(policy, fingerprint(policy), backend, rules))
    return tuple(planned), problems


def lock_problems(config: Config, policies: Iterable[DecisionPolicy]) -> list[Problem]:
    """Return what the lock has against policies: changed ones, and a warning for each that it does not hold.

    What is built in changes with the distribution alone, whose version pins it: a lock may hold it and need not.
    """
    path = lock_path(config)
    try:
        lock = read_lock(path)
    except ConfigError as error:
        return [_told(codes.POLICY_LOCK, error)]
    held = [item for item in policies if item.origin != BUILT_IN_ORIGIN or (item.policy_id, item.version) in lock]
    return changed(lock, held, path)


def _told(code: str, error: ConfigError) -> Problem:
    """Return an error as a problem: our messages end with the cure after the last colon."""
    message, _, cure = str(error).rpartition(": ")
    return Problem(code, message, cure)


def _record_problems(config: Config, policy: DecisionPolicy) -> list[Problem]:
    if policy.mode is not GateMode.ENFORCING:
        return []
    folder = records_folder(config)
    try:
        records = read_records(folder, policy.policy_id)
    except ConfigError as error:
        return [_told(codes.NOT_PROMOTED, error)]
    why = why_not_enforcing(records, policy, separation_of_duties=config.policies.separation_of_duties)
    if why is None:
        return []
    text = f"policy {policy.policy_id!r} is to enforce, and {why}"
    hint = f"`narrowgate policy promote {policy.policy_id} --to enforcing --evidence FILE`, or run it in shadow or advisory"
    return [Problem(codes.NOT_PROMOTED, text, hint)]


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
