"""Writes that a gate holds back: nothing of them is lost, and a person decides."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs

from narrowgate.values.entry import Put
from narrowgate.values.identity import EntryRef

HeldState = Literal["pending", "released", "rejected", "expired"]
"""What became of a held write; only a pending one can still become anything."""


@attrs.frozen(kw_only=True)
class HeldDraft:
    """A write as it is handed to the queue.

    Attributes:
        memory: the memory that it was meant for.
        put: the whole write, content included.
        batch: names the batch that it came in, so that its borders are kept.
        place: its place in that batch, from 0.
        policy_id: the policy that held it.
        policy_version: its version.
        fingerprint: its fingerprint.
        code: why: `needs_evidence`, `evidence_limit_exceeded`, `insufficient_coverage`.
        observation_id: the observation of the attempt, to which a review links back.
        held_at: when, UTC.
        expires_at: when it expires, UTC.
    """

    memory: str
    put: Put
    batch: str
    place: int
    policy_id: str
    policy_version: str
    fingerprint: str
    code: str
    observation_id: str
    held_at: datetime
    expires_at: datetime


@attrs.frozen(kw_only=True)
class HeldEntry:
    """One place of the queue.

    Attributes:
        held_id: its id.
        draft: what is held.
        state: what became of it.
        resolved_by: who released or rejected it; `None` while pending and for an expired one.
        resolved_at: when, UTC.
        reason: in the words of whoever resolved it.
        ref: the entry that a release wrote.
    """

    held_id: str
    draft: HeldDraft
    state: HeldState = "pending"
    resolved_by: str | None = None
    resolved_at: datetime | None = None
    reason: str | None = None
    ref: EntryRef | None = None


@attrs.frozen(kw_only=True)
class WriteRuling:
    """What a gate says of one item of a batch before it is written.

    Attributes:
        action: `accept` it, `flag` it (written, with a remark), or `hold` it (not written, kept in the queue).
        code: why, for flag and hold.
        reason: one sentence without content, for flag and hold.
    """

    action: Literal["accept", "flag", "hold"] = "accept"
    code: str | None = None
    reason: str | None = None
