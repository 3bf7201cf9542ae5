"""`policies.lock`: which content stands behind each id and version. What was reviewed cannot change unseen."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate.errors import ConfigError
from narrowgate.governance.fingerprint import fingerprint, outcome_fields
from narrowgate.seams.component import Problem
from narrowgate.values.policy import DecisionPolicy

HEADER: Final = """\
# Policies under review: id, version and fingerprint, and below them the value of each field, a long one as its hash.
# Written by `narrowgate policy lock`, which adds and never changes. Keep it beside the policies.
"""

LONGEST: Final = 120
"""Characters of a value as JSON up to which it is kept as it is."""

_POLICY: Final = re.compile(r"(?P<id>[^\s#]\S*)\t(?P<version>[!-~](?:[ -~]*[!-~])?)\t(?P<fingerprint>[0-9a-f]{64})")
_FIELD: Final = re.compile(r"\t(?P<field>[a-z_]+(?:\.[A-Za-z0-9._-]+)?)\t(?P<value>[^\t]+)")
_SHOWN: Final = 3
"""The most fields that a message names."""


@attrs.frozen
class Locked:
    """One policy of a lock.

    Attributes:
        fingerprint: 64 hex digits. This alone decides.
        fields: field -> its value as JSON, or its hash: says what changed, where it is there.
    """

    fingerprint: str
    fields: Mapping[str, str] = attrs.field(factory=dict)


Lock = dict[tuple[str, str], Locked]
"""(policy id, version) -> what is locked."""


def locked_as(policy: DecisionPolicy) -> Locked:
    """Return what a lock keeps of a policy."""
    return Locked(fingerprint(policy), {name: _kept(value) for name, value in outcome_fields(policy).items()})


def read_lock(path: Path) -> Lock:
    """Return what a lock holds; nothing for a file that is not there.

    Raises:
        ConfigError: the file is empty or cannot be read, or a line is damaged or there twice; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__}): make it a readable UTF-8 file") from None
    if not text.strip():
        # Not even a first line of ours: something cut it off, and a lock that lost its lines would hold nothing to anything.
        raise ConfigError(f"{path} is empty: restore the file from where it is kept under review, or remove it")
    lock: Lock = {}
    fields: dict[str, str] | None = None
    # Not `splitlines`: a value may hold any of the characters that it takes for the end of a line.
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip() or line.startswith("#"):
            continue
        found, field = _POLICY.fullmatch(line), _FIELD.fullmatch(line)
        if found is not None and (found["id"], found["version"]) not in lock:
            fields = {}
            lock[found["id"], found["version"]] = Locked(found["fingerprint"], fields)
        elif field is not None and fields is not None and field["field"] not in fields:
            fields[field["field"]] = field["value"]
        else:
            raise ConfigError(
                f"{path}:{number}: no line of a policy lock, or one that is there twice: "
                "restore the file from where it is kept under review"
            )
    return lock


def differences(locked: Locked, policy: DecisionPolicy) -> list[str]:
    """Return what changed since a policy was locked, e.g. `thresholds.yes_at was 0.7 and is 0.6`; empty where unknown."""
    now = locked_as(policy).fields
    if not locked.fields:
        return []
    return [
        f"{name} {_change(locked.fields.get(name), now.get(name))}"
        for name in sorted({*locked.fields, *now})
        if locked.fields.get(name) != now.get(name)
    ]


def changed(lock: Mapping[tuple[str, str], Locked], policies: Iterable[DecisionPolicy], path: Path) -> list[Problem]:
    """Return a problem for each policy whose content changed under its id and version, a warning for each not locked."""
    problems = []
    for policy in policies:
        known = lock.get((policy.policy_id, policy.version))
        if known is None:
            problems.append(
                Problem(
                    "policy-unlocked",
                    f"{policy.origin}: policy {policy.policy_id!r} version {policy.version!r} is not in {path}",
                    "`narrowgate policy lock` enters it",
                    severity="warning",
                )
            )
        elif known.fingerprint != fingerprint(policy):
            found = differences(known, policy)
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            what = f": {'; '.join(found[:_SHOWN])}{more}" if found else ""
            text = f"{policy.origin}: policy {policy.policy_id!r} is not what {path} holds of version {policy.version!r}"
            problems.append(
                Problem(
                    "policy-changed",
                    text + what,
                    "raise the version of the changed policy, then `narrowgate policy lock`; or restore the policy",
                )
            )
    return problems


def write_lock(path: Path, policies: Iterable[DecisionPolicy]) -> tuple[DecisionPolicy, ...]:
    """Add the policies that the lock does not hold yet; return them. The file is replaced as a whole or not at all.

    Two processes that do so at once take turns: neither loses what the other adds.

    Raises:
        ConfigError: the lock is damaged or cannot be written, or a policy changed under its version: nothing is written.
    """
    policies = tuple(policies)
    try:
        with _turn(path.parent):
            return _add(path, policies)
    except OSError as error:
        text = f"{path} cannot be written ({error.strerror or type(error).__name__})"
        raise ConfigError(f"{text}: make its folder writable, or set lock under [policies]") from None


def _add(path: Path, policies: tuple[DecisionPolicy, ...]) -> tuple[DecisionPolicy, ...]:
    lock = read_lock(path)
    wrong = [problem.message for problem in changed(lock, policies, path) if problem.severity == "error"]
    if wrong:
        raise ConfigError(f"{'; '.join(wrong)}; a lock is never overwritten: raise the version of the changed policy")
    new = {(policy.policy_id, policy.version): policy for policy in policies}
    new = {key: policy for key, policy in new.items() if key not in lock}
    if new:
        whole = {**lock, **{key: locked_as(policy) for key, policy in new.items()}}
        lines = []
        for (policy_id, version), locked in sorted(whole.items()):
            lines += ["", f"{policy_id}\t{version}\t{locked.fingerprint}"]
            lines += [f"\t{name}\t{value}" for name, value in locked.fields.items()]
        partial = path.with_name(f".{path.name}.new")
        try:
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                file.write("\n".join([*HEADER.splitlines(), *lines, ""]))
                file.flush()
                os.fsync(file.fileno())  # or a machine that loses power may keep the new name and not what it names
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
    return tuple(new.values())


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait until no other process adds to a lock in this folder. Nothing is left behind, also where a process is killed."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _kept(value: Any) -> str:
    # Only what is printable stays readable, so that no editor takes a character for the end of a line.
    short = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    if len(short) <= LONGEST and short.isprintable():
        return short
    whole = json.dumps(value, allow_nan=False)
    return f"sha256:{hashlib.sha256(whole.encode()).hexdigest()[:32]}"


def _change(before: str | None, now: str | None) -> str:
    if before is None:
        return "is new"
    if now is None:
        return "is gone"
    hashed = any(kept.removeprefix('"').startswith("sha256:") for kept in (before, now))
    return "changed" if hashed or len(before) + len(now) > LONGEST else f"was {before} and is {now}"
