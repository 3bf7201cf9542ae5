"""Writes that a gate holds back: nothing of them is lost, and a person decides."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Literal

import attrs

from narrowgate.values.entry import ItemOutcome, ItemStatus, Put
from narrowgate.values.identity import EntryRef

HeldState = Literal["pending", "expired", "released", "rejected"]
"""What became of a held write. `expired` is a pending one whose time is over: it can still be released or rejected."""

Base = tuple[str, int]
"""An entry's id and version."""


@attrs.frozen(kw_only=True)
class HeldDraft:
    """A write as it is handed to the queue.

    Attributes:
        memory: the memory that it was meant for.
        put: the whole write, content and evidence included.
        base: the entry and version that it would have revised when it was held; `None` when it would have added one.
        batch: names the batch that it came in: the operation id of that batch's observations.
        place: its place in that batch, from 0.
        policy_id: the policy that held it.
        policy_version: its version.
        fingerprint: its fingerprint.
        code: why: `needs_evidence`, `invalid_evidence_reference`, `evidence_limit_exceeded`, `insufficient_coverage`.
        observation_id: the observation of the attempt, to which a review links back.
        held_at: when, UTC.
        expires_at: when it expires, UTC.
    """

    memory: str
    put: Put
    base: Base | None = None
    batch: str
    place: int
    policy_id: str
    policy_version: str
    fingerprint: str
    code: str
    observation_id: str
    held_at: datetime
    expires_at: datetime

    @property
    def key(self) -> str:
        """64 lowercase hex digits, equal for the same write on the same evidence, policy and version to revise."""
        put = self.put
        cited = [(item.ref, item.text) for item in put.evidence]
        fields = (self.fingerprint, self.memory, put.entry, put.expected_version, self.base, put.content.digest, cited)
        return hashlib.sha256(b"narrowgate:held:v1\0" + json.dumps(fields, ensure_ascii=True).encode()).hexdigest()


@attrs.frozen(kw_only=True)
class HeldEntry:
    """One place of the queue, without content.

    Attributes:
        held_id: its id; ids rise with time.
        memory, base, batch, place, policy_id, policy_version, fingerprint, code, observation_id, held_at, expires_at: as in
            `HeldDraft`, of the first time that it was held.
        digest: digest of the content.
        entry: the entry that the write names; `None` where it names none.
        expected_version: the version that the write expects there.
        state: what became of it.
        resolved_by: who released or rejected it, where that was said.
        resolved_at: when, UTC.
        reason: in the words of whoever resolved it.
        ref: the entry that a release wrote, or found there already.
    """

    held_id: str
    memory: str
    base: Base | None = None
    batch: str
    place: int
    policy_id: str
    policy_version: str
    fingerprint: str
    code: str
    observation_id: str
    held_at: datetime
    expires_at: datetime
    digest: str
    entry: str | None = None
    expected_version: int | None = None
    state: HeldState = "pending"
    resolved_by: str | None = None
    resolved_at: datetime | None = None
    reason: str | None = None
    ref: EntryRef | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can still be released or rejected."""
        return self.state in ("pending", "expired")


@attrs.frozen
class HeldItem:
    """One place of the queue with what is held there.

    Attributes:
        entry: the place.
        put: the write; `None` once it was released or rejected: the queue keeps no content that nobody has to decide on.
    """

    entry: HeldEntry
    put: Put | None


@attrs.frozen
class HeldRelease:
    """What an attempt to release did.

    Attributes:
        entry: the place as it now stands; open still, when the store refused the write.
        outcome: what the store did: `added`, `revised`, `unchanged`, or `refused` with its code.
        vectors_pending: whether what was written has no vector yet.
    """

    entry: HeldEntry
    outcome: ItemOutcome
    vectors_pending: bool = False


@attrs.frozen
class HeldOutcome:
    """What became of one id that was to be released or rejected.

    Attributes:
        held_id: the id.
        status: `added`, `revised` or `unchanged` for a release; `rejected`; `refused` when it stays as it was.
        ref: the entry that a release wrote, or found there already.
        code: why it was refused: `held-unknown`, `held-resolved`, or the store's own (`stale-version`, ...).
        message: what is wrong and the cure, without content.
        vectors_pending: a release whose entry has no vector yet: search finds it by words, and `reindex` completes it.
    """

    held_id: str
    status: ItemStatus | Literal["rejected"]
    ref: EntryRef | None = None
    code: str | None = None
    message: str | None = None
    vectors_pending: bool = False


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
