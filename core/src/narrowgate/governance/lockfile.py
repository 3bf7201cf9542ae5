"""`policies.lock`: which content stands behind each id and version. What was reviewed cannot change unseen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from narrowgate.errors import ConfigError
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.seams.component import Problem
from narrowgate.values.policy import DecisionPolicy

HEADER: Final = (
    "# Policy id, version, fingerprint. Written by `narrowgate policy lock`; keep it beside the policies, under review.\n"
)

_LINE: Final = re.compile(r"(?P<id>\S+)\t(?P<version>[^\t\n]+)\t(?P<fingerprint>[0-9a-f]{64})")

Locked = dict[tuple[str, str], str]
"""(policy id, version) -> fingerprint."""


def read_lock(path: Path) -> Locked:
    """Return what a lock holds; nothing for a file that is not there.

    Raises:
        ConfigError: the file cannot be read, or a line is damaged or there twice; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__})") from None
    locked: Locked = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None or (found["id"], found["version"]) in locked:
            raise ConfigError(f"{path}:{number}: no line of a policy lock: restore the file, or remove it and lock again")
        locked[found["id"], found["version"]] = found["fingerprint"]
    return locked


def changed(locked: Mapping[tuple[str, str], str], policies: Iterable[DecisionPolicy], path: Path) -> list[Problem]:
    """Return a problem for each policy whose content changed under its id and version, a warning for each not locked."""
    problems = []
    for policy in policies:
        known = locked.get((policy.policy_id, policy.version))
        if known is None:
            problems.append(
                Problem(
                    "policy-unlocked",
                    f"{policy.origin}: policy {policy.policy_id!r} version {policy.version!r} is not in {path}",
                    "`narrowgate policy lock` enters it",
                    severity="warning",
                )
            )
        elif known != fingerprint(policy):
            problems.append(
                Problem(
                    "policy-changed",
                    f"{policy.origin}: policy {policy.policy_id!r} is not what {path} holds of version {policy.version!r}",
                    "give the changed policy a new version, then `narrowgate policy lock`; or restore it",
                )
            )
    return problems


def write_lock(path: Path, policies: Iterable[DecisionPolicy]) -> int:
    """Add the policies that the lock does not hold yet; return how many. The file is replaced as a whole or not at all.

    Raises:
        ConfigError: the lock is damaged or cannot be written, or a policy changed under its version: nothing is written.
    """
    locked = read_lock(path)
    policies = tuple(policies)
    wrong = [problem.message for problem in changed(locked, policies, path) if problem.severity == "error"]
    if wrong:
        raise ConfigError("; ".join(wrong) + ": a lock is never overwritten: give the changed policy a new version")
    new = {
        (policy.policy_id, policy.version): fingerprint(policy)
        for policy in policies
        if (policy.policy_id, policy.version) not in locked
    }
    if new:
        lines = [f"{key[0]}\t{key[1]}\t{value}\n" for key, value in sorted({**locked, **new}.items())]
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            partial.write_text(HEADER + "".join(lines), encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise ConfigError(f"{path} cannot be written ({error.strerror or type(error).__name__})") from None
    return len(new)
