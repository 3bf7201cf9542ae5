"""Parts of the tests of the held queue: drafts, and a clock that stands where it is put."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlite_parts import put

from narrowgate.values.entry import Evidence
from narrowgate.values.held import Base, HeldDraft

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def draft(
    text: str,
    *,
    memory: str = "m",
    base: Base | None = None,
    place: int = 0,
    policy: str = "gate.v1",
    evidence: tuple[tuple[str, str | None], ...] = (("source:1", "what the source says"),),
    at: datetime = NOON,
    days: int = 30,
    **fields: Any,
) -> HeldDraft:
    """Return a write as a gate hands it to the queue at noon."""
    cited = tuple(Evidence(*item) for item in evidence)
    return HeldDraft(
        memory=memory,
        put=put(text, evidence=cited, **fields),
        base=base,
        batch="batch-1",
        place=place,
        policy_id=policy,
        policy_version="1",
        fingerprint="f" * 64,
        code="insufficient_coverage",
        observation_id=f"observation-{place}",
        held_at=at,
        expires_at=at + days * DAY,
    )
