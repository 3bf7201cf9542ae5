"""Packaged evaluation bundles: small, of our own writing, in English and Chinese, one for each kind of question.

They show that something works, and roughly how well. What a policy reaches on one's own content, only one's own cases show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from narrowgate.governance.bundles import MANIFEST

HERE: Final = Path(__file__).parent


def kinds() -> tuple[str, ...]:
    """Return the decision kinds for which cases are packaged."""
    return tuple(sorted(path.parent.name for path in HERE.glob(f"*/{MANIFEST}")))


def packaged(decision_kind: str) -> Path | None:
    """Return the folder of the cases for a kind of question, or `None`."""
    return HERE / decision_kind if decision_kind in kinds() else None
