"""What is known to be right: what became of held writes, and what people wrote down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate import Narrowgate
from narrowgate.errors import InputError, StoreError
from narrowgate.governance.bundles import SEVERITIES
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.held import HeldEntry

UNKNOWN: Final = "unknown"
_PAGE: Final = 1000


@attrs.frozen
class Label:
    """What would have been right for one observation.

    Attributes:
        right: `allow`, `deny` or `review`.
        severity: how bad another verdict would be: `low`, `medium`, `high` or `unknown`.
    """

    right: GateVerdict
    severity: str = UNKNOWN


async def held_entries(host: Narrowgate, policy_id: str) -> list[HeldEntry]:
    """Return every write that a policy held, whatever became of it; nothing where the store has no queue."""
    found: list[HeldEntry] = []
    after = None
    try:
        while page := await host.held(policy=policy_id, state=None, after=after, limit=_PAGE):
            found += page
            after = page[-1].held_id
    except StoreError as error:
        if error.code != "no-held-queue":
            raise
    return found


def from_held(entries: Iterable[HeldEntry]) -> dict[str, Label]:
    """Return observation id -> label: what somebody released was held falsely, what somebody rejected was held rightly."""
    rights = {"released": GateVerdict.ALLOW, "rejected": GateVerdict.DENY}
    return {item.observation_id: Label(rights[item.state]) for item in entries if item.state in rights}


def from_file(path: Path) -> dict[str, Label]:
    """Return the labels of a file: one JSON object a line, with observation_id, right and, where known, severity.

    Raises:
        InputError: `bad-labels`: names file and line.
    """
    found: dict[str, Label] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("bad-labels", f"{path} cannot be read ({type(error).__name__}): name a UTF-8 file") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            observation_id, label = _label(line, f"{path}:{number}")
            found[observation_id] = label
    return found


def _label(line: str, place: str) -> tuple[str, Label]:
    try:
        said: Any = json.loads(line)
        if not isinstance(said, Mapping) or not set(said) <= {"observation_id", "right", "severity"}:
            raise ValueError
        right, severity = GateVerdict(said["right"]), said.get("severity", UNKNOWN)
        if right is GateVerdict.UNKNOWN or severity not in (*SEVERITIES, UNKNOWN):
            raise ValueError
        return str(said["observation_id"]), Label(right, severity)
    except (ValueError, KeyError, RecursionError):
        hint = '{"observation_id": "...", "right": "allow", "severity": "low"}; right is allow, deny or review'
        raise InputError("bad-labels", f"{place}: no label: write {hint}") from None
