"""Whether the model that answered is the one that was asked: gateways and servers put another in its place."""

from __future__ import annotations

from typing import Any


def is_another(told: Any, asked: str | None) -> bool:
    """Return whether a reply's `model` names another model than the one asked for.

    A reply that names none says nothing. A vendor before a slash, which gateways add or take away, makes no other model.

    Args:
        told: the reply's `model`, as it came.
        asked: the model that was asked for; `None` where the server chooses.
    """
    if not isinstance(told, str) or not told or asked is None:
        return False
    return told != asked and not asked.endswith(f"/{told}") and not told.endswith(f"/{asked}")
