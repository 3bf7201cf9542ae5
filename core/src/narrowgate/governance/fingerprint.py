"""The fingerprint of a policy: a hash over everything that can change an outcome or an action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import attrs

from narrowgate.values.policy import DecisionPolicy

_LABEL: Final = b"narrowgate:policy:v1\0"

NOT_IN_IT: Final = frozenset({"mode", "promotion_criteria", "author", "origin"})
"""Fields that change no outcome. The mode is left out so that a policy keeps its identity on its way from shadow to
enforcing: what was observed in shadow is evidence for exactly the policy that is promoted. The languages are in it: evidence
that covers two languages is none for a third."""


def plain(value: Any) -> Any:
    """Return a policy, or any value of one, as tables, lists, texts, numbers and `None`, in the order of its fields."""
    if attrs.has(type(value)):
        return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def outcome_fields(policy: DecisionPolicy) -> dict[str, Any]:
    """Return field -> value of everything that the fingerprint is made of, tables taken apart: `thresholds.yes_at`.

    A field that a policy may get in future is in it unless `NOT_IN_IT` names it.
    """
    found: dict[str, Any] = {}
    for name, value in plain(policy).items():
        if name not in NOT_IN_IT:
            table = value if isinstance(value, dict) else None
            found.update({name: value} if table is None else {f"{name}.{key}": item for key, item in table.items()})
    return {name: _number(value) for name, value in found.items()}


def fingerprint(policy: DecisionPolicy) -> str:
    """Return 64 lowercase hex digits: SHA-256 over the canonical JSON of `outcome_fields`."""
    text = json.dumps(outcome_fields(policy), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(_LABEL + text.encode()).hexdigest()


def _number(value: Any) -> Any:
    # 1 and 1.0, and 0.0 and -0.0, are one threshold.
    return float(value) + 0.0 if isinstance(value, int | float) and not isinstance(value, bool) else value
