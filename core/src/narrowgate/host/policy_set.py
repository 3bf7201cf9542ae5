"""The policies that a configuration names: found, read, and held against their lock and their promotion records.

Nothing here looks at a plugin: what a policy needs of plugins is planned in `narrowgate.host.policies`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

import attrs

from narrowgate.errors import ConfigError
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.consumers import CONSUMERS
from narrowgate.governance.files import contradictions, read_policy
from narrowgate.governance.lockfile import changed, differences, locked_as, read_lock
from narrowgate.governance.records import read_records, standing, why_not_enforcing
from narrowgate.host import codes
from narrowgate.host.config import Config
from narrowgate.host.loading import must_pass
from narrowgate.host.settings import Given, closest
from narrowgate.seams.component import Problem
from narrowgate.values.assessment import GateMode
from narrowgate.values.policy import DecisionPolicy

WRITE: Final = "memory_write_gate"
"""The consumer of which one policy takes part at a time."""

_DISABLE: Final = 'set the others to "disabled" under [policies.modes]'

BUILT_IN_ORIGIN: Final = "built-in"

_OPTION: Final = re.compile(r"[A-Za-z0-9._-]+")
"""What the full name of an option looks like. One of another form is an error of the configuration."""

_LARGEST: Final = 1e15
"""Below this a number is kept as it is."""


@attrs.frozen(kw_only=True)
class PolicySet:
    """Policies, and what is wrong with them by whom.

    Attributes:
        policies: those that could be read, in configuration order, in the modes that they run in.
        own: faults of files, constants and modes, and of policies with each other.
        locked: what the lock has against them; a warning for each that it does not hold.
        promoted: why one may not enforce.
        lock: path of the lock.
        records: folder of the promotion records.
    """

    policies: tuple[DecisionPolicy, ...]
    own: tuple[Problem, ...]
    locked: tuple[Problem, ...]
    promoted: tuple[Problem, ...]
    lock: Path
    records: Path

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything, warnings included."""
        return (*self.own, *self.locked, *self.promoted)


def inspect_policies(config: Config, files: Sequence[Path] | None = None) -> PolicySet:
    """Return the policies of a configuration, or those of some files under its lock; starts, builds and writes nothing.

    Args:
        config: from `load_config`.
        files: policy files to look at instead of what the configuration names. Modes that it sets, and promotion records,
            are then left aside: a file is looked at before it takes part.
    """
    policies, own = policies_of(config) if files is None else _read(config, files)
    if files is None:
        policies = tuple(_after_demotion(config, policy, own) for policy in policies)
    promoted = [] if files is not None else [item for policy in policies for item in _record_problems(config, policy)]
    return PolicySet(
        policies=policies,
        own=tuple(own),
        locked=tuple(_lock_problems(config, policies)),
        promoted=tuple(promoted),
        lock=lock_path(config),
        records=records_folder(config),
    )


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
    by_id = _by_id(found, problems)
    for name, mode in settings.modes.items():
        if name in by_id:
            by_id[name] = attrs.evolve(by_id[name], mode=mode)
        else:
            near = closest(name, list(by_id))
            hint = f"did you mean {near!r}?" if near else "name it under [policies] use or files, or take the mode out"
            problems.append(Problem(codes.UNKNOWN_POLICY, f"[policies.modes] names {name!r}, which takes no part", hint))
    policies = _deployed(config, by_id.values())
    return policies, [*problems, *_contradictory(policies)]


def _read(config: Config, files: Iterable[Path]) -> tuple[tuple[DecisionPolicy, ...], list[Problem]]:
    """Return the policies of files, and what is wrong with each and with two of one id."""
    read = [read_policy(path) for path in files]
    problems = [problem for item in read for problem in item.problems]
    return _deployed(config, _by_id([item.policy for item in read if item.policy is not None], problems).values()), problems


def _deployed(config: Config, policies: Iterable[DecisionPolicy]) -> tuple[DecisionPolicy, ...]:
    """Return policies with what the configuration sets of their local rules: it is part of what they decide."""
    return tuple(
        attrs.evolve(
            policy,
            rule_settings={
                f"{rule}.{option}": _told_apart(value)
                for rule in policy.local_rules
                for option, value in config.given(rule).items()
                if _OPTION.fullmatch(f"{rule}.{option}")
            },
        )
        for policy in policies
    )


def _told_apart(given: Given) -> float | bool | str:
    """Return what stands for a setting in a fingerprint: numbers and flags as they are, a hash of anything else.

    A text may be a secret that stands where it should not, and fingerprints are explained field by field in the lock.
    """
    value = given.value
    if given.source.kind == "environment":
        with suppress(ValueError):  # the environment knows only text: 10 there is 10 in a file
            value = json.loads(value)
    if isinstance(value, bool) or (isinstance(value, int | float) and abs(value) < _LARGEST):
        return value
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _by_id(policies: Iterable[DecisionPolicy], problems: list[Problem]) -> dict[str, DecisionPolicy]:
    found: dict[str, DecisionPolicy] = {}
    for policy in policies:
        other = found.get(policy.policy_id)
        if other is None:
            found[policy.policy_id] = policy
        else:
            text = f"policy {policy.policy_id!r} is there twice: {other.origin} and {policy.origin}"
            problems.append(Problem(codes.POLICY_CLASH, text, "keep one; another version replaces the old one"))
    return found


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
    found: dict[str, Path] = {}
    for pattern in patterns:
        try:
            paths = _matching(pattern)
        except (OSError, ValueError) as error:
            text = f"[policies] files: {str(pattern)[:200]!r} means no file ({type(error).__name__})"
            hint = "write the path of a file, or a pattern with * and ? and with ** as a folder of its own"
            problems.append(Problem("bad-policy", text, hint))
            continue
        if not paths:
            text = f"[policies] files: no file is called {pattern}"
            problems.append(Problem("bad-policy", text, "correct the pattern, or take it out"))
        for path in paths:
            found.setdefault(os.path.realpath(path), path)  # `resolve` gives up on links that lead to themselves
    return list(found.values())


def _matching(pattern: Path) -> list[Path]:
    parts = pattern.parts
    first = next((place for place, part in enumerate(parts) if "*" in part or "?" in part), None)
    if first is None or pattern.exists():
        return [pattern]
    return sorted(path for path in Path(*parts[:first]).glob(str(Path(*parts[first:]))) if path.is_file())


def _contradictory(policies: Iterable[DecisionPolicy]) -> list[Problem]:
    """Return what no policy can be in its consumer's hands: constants are held to it like files, and modes that are set."""
    problems = []
    writing: list[str] = []
    asking: dict[tuple[str, str], list[str]] = {}
    for policy in policies:
        if policy.mode is GateMode.DISABLED:
            continue
        if policy.consumer in CONSUMERS and CONSUMERS[policy.consumer].kinds:
            asking.setdefault((policy.consumer, policy.decision_kind), []).append(policy.policy_id)
        problems += [
            Problem("bad-policy", f"{policy.origin}: policy {policy.policy_id!r}: {message}", cure)
            for _, message, cure in contradictions(policy)
        ]
        if policy.consumer == WRITE:
            writing.append(policy.policy_id)
    if len(writing) > 1:
        text = f"{' and '.join(writing)} would all gate writes, and one gate decides about a write"
        problems.append(Problem(codes.POLICY_CLASH, text, _DISABLE))
    for (consumer, kind), names in asking.items():
        if len(names) > 1:
            text = f"{' and '.join(names)} would all be asked as {kind!r} by {consumer}, and advice rests on one of them"
            problems.append(Problem(codes.POLICY_CLASH, text, _DISABLE))
    return problems


def lock_path(config: Config) -> Path:
    """Return the path of the policy lock."""
    return config.policies.lock or _folder(config) / "policies.lock"


def records_folder(config: Config) -> Path:
    """Return the folder of the promotion records."""
    return config.policies.records or _folder(config) / "promotions"


def _folder(config: Config) -> Path:
    return config.file.parent if config.file is not None else Path()


def _lock_problems(config: Config, policies: Iterable[DecisionPolicy]) -> list[Problem]:
    """Return what the lock has against policies: changed ones, and a warning for each that it does not hold.

    What is built in changes with the distribution alone, whose version pins it: a lock may hold it and need not. For the
    same reason nothing else can go by its id and version: those stand for one content, wherever they are read.
    """
    path = lock_path(config)
    policies = tuple(policies)
    posing = [problem for policy in policies for problem in _posing(policy)]
    try:
        lock = read_lock(path)
    except ConfigError as error:
        return [*posing, _told(codes.POLICY_LOCK, error)]
    held = [item for item in policies if item.origin != BUILT_IN_ORIGIN or (item.policy_id, item.version) in lock]
    return [*posing, *changed(lock, held, path)]


def _posing(policy: DecisionPolicy) -> list[Problem]:
    own = BUILT_IN.get(policy.policy_id)
    if policy.origin == BUILT_IN_ORIGIN or own is None or own.version != policy.version:
        return []
    differ = differences(locked_as(own), attrs.evolve(policy, rule_settings={}))
    if not differ:
        return []
    text = f"{policy.origin}: policy {policy.policy_id!r} is not what is built in as version {policy.version!r}: {differ[0]}"
    return [Problem("policy-changed", text, "give it an id of its own, or another version")]


def _told(code: str, error: ConfigError) -> Problem:
    """Return an error as a problem: our messages end with the cure after the last colon."""
    message, _, cure = str(error).rpartition(": ")
    return Problem(code, message, cure)


def _after_demotion(config: Config, policy: DecisionPolicy, problems: list[Problem]) -> DecisionPolicy:
    """Return a policy in the mode that the automatic rule left it in; a warning says so.

    A rule takes power back while nobody looks. A start that then refuses would turn a gate that did too much into an outage.
    """
    if policy.mode is not GateMode.ENFORCING:
        return policy
    try:
        record = standing(read_records(records_folder(config), policy.policy_id), policy)
    except ConfigError:
        return policy  # told where the records are held against it
    if record is None or not record.automatic or record.mode is GateMode.ENFORCING:
        return policy
    text = f"policy {policy.policy_id!r} was demoted to {record.mode} on {record.decided_at:%Y-%m-%d} ({record.reason})"
    hint = f"find out why, then `narrowgate policy promote {policy.policy_id}` again, or write {record.mode} as its mode"
    problems.append(Problem(codes.POLICY_DEMOTED, text, hint, severity="warning"))
    return attrs.evolve(policy, mode=record.mode)


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
