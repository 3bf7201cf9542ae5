"""The fingerprint of a policy: a hash over everything that can change an outcome or an action."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import attrs

from narrowgate.values.policy import DecisionPolicy

_LABEL: Final = b"narrowgate:policy:v1\0"

NOT_IN_IT: Final = frozenset({"mode", "promotion_criteria", "author", "origin"})
"""Fields that change no outcome. The mode is left out so that a policy keeps its identity on its way from shadow to
enforcing: what was observed in shadow is evidence for exactly the policy that is promoted."""


def fingerprint(policy: DecisionPolicy) -> str:
    """Return 64 lowercase hex digits: SHA-256 over the canonical JSON of the policy's fields but `NOT_IN_IT`."""
    value = attrs.asdict(policy, filter=lambda field, _: field.name not in NOT_IN_IT, value_serializer=_plain)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(_LABEL + text.encode()).hexdigest()


def _plain(_owner: Any, _field: Any, value: Any) -> Any:
    # Whole numbers are floats in a threshold: 1 and 1.0 are one policy.
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
