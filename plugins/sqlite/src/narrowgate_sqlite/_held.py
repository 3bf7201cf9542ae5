"""The held queue: places without content in `held`, what is held in `held_contents` as long as nobody has decided.

Only `pending`, `released` and `rejected` are written; that a pending one has expired follows from its time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import apsw
import attrs

from narrowgate.errors import EntryReferenceError, InputError
from narrowgate.values.entry import EntryContent, Evidence, ItemOutcome, Put, VectorBatch
from narrowgate.values.held import HeldDraft, HeldEntry, HeldItem, HeldRelease, HeldState
from narrowgate.values.identity import EntryRef, new_entry_ids
from narrowgate.values.times import instant_micros
from narrowgate_sqlite import _write
from narrowgate_sqlite._rows import moment
from narrowgate_sqlite._sql import fetch_rows

_COLUMNS: Final = (
    "id, memory, state, base_entry, base_version, batch, place, policy, policy_version, fingerprint, code, observation, "
    "held_at, expires_at, digest, entry, expected_version, resolved_by, resolved_at, reason, ref"
)

_STATES: Final[Mapping[HeldState | None, str]] = {
    None: "1",
    "pending": "state = 'pending' AND expires_at > :now",
    "expired": "state = 'pending' AND expires_at <= :now",
    "released": "state = 'released'",
    "rejected": "state = 'rejected'",
}


def hold(db: apsw.Connection, drafts: Sequence[HeldDraft]) -> tuple[HeldEntry, ...]:
    """See `HeldQueue.hold`; inside the caller's transaction."""
    places = []
    for draft, name in zip(drafts, new_entry_ids(len(drafts)), strict=True):
        now = instant_micros(draft.held_at)
        key = bytes.fromhex(draft.key)
        known = db.execute(
            "SELECT id, state, expires_at FROM held WHERE key = ? AND state <> 'released' ORDER BY state LIMIT 1", (key,)
        ).fetchone()
        if known is None:
            _insert(db, name, key, draft)
            known = (name,)
        elif known[1] == "pending" and known[2] <= now:
            db.execute("UPDATE held SET expires_at = ? WHERE id = ?", (instant_micros(draft.expires_at), known[0]))
        places.append(_entry_of(db, known[0], now))
    return tuple(places)


def _insert(db: apsw.Connection, name: str, key: bytes, draft: HeldDraft) -> None:
    put, base = draft.put, draft.base or (None, None)
    db.execute(
        f"INSERT INTO held (key, {_COLUMNS}) VALUES ({', '.join('?' * 22)})",  # noqa: S608 - columns of ours
        (
            *(key, name, draft.memory, "pending", *base, draft.batch, draft.place),
            *(draft.policy_id, draft.policy_version, draft.fingerprint, draft.code, draft.observation_id),
            *(instant_micros(draft.held_at), instant_micros(draft.expires_at)),
            *(bytes.fromhex(put.content.digest), put.entry, put.expected_version, None, None, None, None),
        ),
    )
    db.execute("INSERT INTO held_contents VALUES (?, ?)", (name, _packed(put)))


def places(
    db: apsw.Connection,
    now: datetime,
    memory: str | None,
    policy_id: str | None,
    state: HeldState | None,
    after: str | None,
    limit: int,
) -> tuple[HeldEntry, ...]:
    """See `HeldQueue.held`."""
    moment_now = instant_micros(now)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM held WHERE {_STATES[state]} AND id > :after "  # noqa: S608 - conditions of ours
        "AND (:memory IS NULL OR memory = :memory) AND (:policy IS NULL OR policy = :policy) ORDER BY id LIMIT :limit",
        {"now": moment_now, "memory": memory, "policy": policy_id, "after": after or "", "limit": max(limit, 0)},
    ).fetchall()
    return tuple(_entry(row, moment_now) for row in rows)


def one(db: apsw.Connection, held_id: str, now: datetime) -> HeldItem:
    """See `HeldQueue.held_one`."""
    entry = _entry_of(db, held_id, instant_micros(now))
    row = db.execute("SELECT content FROM held_contents WHERE id = ?", (held_id,)).fetchone()
    return HeldItem(entry, None if row is None else _unpacked(row[0], entry.digest))


def release(
    db: apsw.Connection,
    held_id: str,
    now: datetime,
    by: str | None,
    reason: str | None,
    remark: str | None,
    vectors: VectorBatch | None,
) -> HeldRelease:
    """See `HeldQueue.release_held`; the write and the end of the wait are one transaction of the caller's."""
    item = one(db, held_id, now)
    entry, put = item.entry, item.put
    if put is None or not entry.is_open:
        raise _resolved(entry)
    refused = _moved_on(db, entry, put)
    if refused is not None:
        return HeldRelease(entry, refused)
    written = attrs.evolve(put, reason=put.reason or remark)
    receipt = _write.commit(db, entry.memory, [written], None, False, vectors)  # noqa: FBT003 - strict
    (outcome,) = receipt.items
    if outcome.status == "refused":
        return HeldRelease(entry, outcome)
    _resolve(db, held_id, "released", now, by, reason, outcome.ref)
    return HeldRelease(_entry_of(db, held_id, instant_micros(now)), outcome, bool(receipt.vectors_pending))


def _moved_on(db: apsw.Connection, entry: HeldEntry, put: Put) -> ItemOutcome | None:
    """Return the refusal of a write that would now do something else than when it was held."""
    _, batch = _write.plan(db, entry.memory, [put])
    (planned,) = batch.items
    if planned.status not in ("added", "revised") or planned.entry is None:
        return None
    would = None if planned.status == "added" else (planned.entry.name, planned.entry.version - 1)
    if would == entry.base:
        return None
    then = "added an entry" if entry.base is None else f"revised version {entry.base[1]} of {entry.base[0]}"
    today = "add one" if would is None else f"revise version {would[1]} of {would[0]}"
    return ItemOutcome(
        "refused",
        None,
        "stale-version",
        f"when it was held it would have {then}, now it would {today}: compare the two, remember what is right, reject this",
    )


def reject(db: apsw.Connection, held_id: str, now: datetime, by: str | None, reason: str | None) -> HeldEntry:
    """See `HeldQueue.reject_held`."""
    entry = _entry_of(db, held_id, instant_micros(now))
    if not entry.is_open:
        raise _resolved(entry)
    _resolve(db, held_id, "rejected", now, by, reason, None)
    return _entry_of(db, held_id, instant_micros(now))


def purge(db: apsw.Connection, state: HeldState, now: datetime, memory: str | None, before: datetime | None) -> int:
    """See `HeldQueue.purge_held`."""
    if state == "pending":
        raise InputError("held-pending", "what is pending is not purged: release it, reject it, or let it expire")
    time = "expires_at" if state == "expired" else "resolved_at"
    bound = {
        "now": instant_micros(now),
        "memory": memory,
        "before": None if before is None else instant_micros(before),
    }
    which = (
        f"{_STATES[state]} AND (:now IS NOT NULL) AND (:memory IS NULL OR memory = :memory) "
        f"AND (:before IS NULL OR {time} < :before)"
    )
    _erase(db, f"DELETE FROM held_contents WHERE id IN (SELECT id FROM held WHERE {which})", bound)  # noqa: S608
    db.execute(f"DELETE FROM held WHERE {which}", bound)  # noqa: S608
    return int(db.changes())


def counts(db: apsw.Connection, now: datetime) -> dict[HeldState, int]:
    """See `HeldQueue.held_counts`."""
    rows = fetch_rows(
        db,
        "SELECT iif(state = 'pending' AND expires_at <= ?, 'expired', state) AS now, count(*) FROM held GROUP BY now",
        (instant_micros(now),),
    )
    return dict(rows)


def _resolve(
    db: apsw.Connection,
    held_id: str,
    state: HeldState,
    now: datetime,
    by: str | None,
    reason: str | None,
    ref: EntryRef | None,
) -> None:
    db.execute(
        "UPDATE held SET state = ?, resolved_by = ?, resolved_at = ?, reason = ?, ref = ? WHERE id = ?",
        (state, by, instant_micros(now), reason, None if ref is None else str(ref), held_id),
    )
    _erase(db, "DELETE FROM held_contents WHERE id = :id", {"id": held_id})


def _erase(db: apsw.Connection, sql: str, bound: Mapping[str, Any]) -> None:
    """Delete, and overwrite: what a person threw away is not to be read out of the file's free pages either."""
    db.pragma("secure_delete", 1)
    try:
        db.execute(sql, bound)
    finally:
        db.pragma("secure_delete", 0)


def _entry_of(db: apsw.Connection, held_id: str, now: int) -> HeldEntry:
    row = db.execute(f"SELECT {_COLUMNS} FROM held WHERE id = ?", (held_id,)).fetchone()  # noqa: S608
    if row is None:
        raise EntryReferenceError("held-unknown", f"nothing is held under the id {held_id[:128]!r}")
    return _entry(row, now)


def _resolved(entry: HeldEntry) -> EntryReferenceError:
    return EntryReferenceError("held-resolved", f"{entry.held_id} was {entry.state} already")


def _entry(row: Sequence[Any], now: int) -> HeldEntry:
    state: HeldState = row[2]
    return HeldEntry(
        held_id=row[0],
        memory=row[1],
        state="expired" if state == "pending" and row[13] <= now else state,
        base=None if row[3] is None else (row[3], row[4]),
        batch=row[5],
        place=row[6],
        policy_id=row[7],
        policy_version=row[8],
        fingerprint=row[9],
        code=row[10],
        observation_id=row[11],
        held_at=moment(row[12]),
        expires_at=moment(row[13]),
        digest=row[14].hex(),
        entry=row[15],
        expected_version=row[16],
        resolved_by=row[17],
        resolved_at=None if row[18] is None else moment(row[18]),
        reason=row[19],
        ref=None if row[20] is None else EntryRef.parse(row[20]),
    )


def _packed(put: Put) -> str:
    content = put.content
    fields = {
        "text": content.text,
        "kind": content.kind,
        "source": content.source,
        "author": content.author,
        "occurred_at": None if content.occurred_at is None else content.occurred_at.isoformat(),
        "attributes": dict(content.attributes),
        "entry": put.entry,
        "expected_version": put.expected_version,
        "reason": put.reason,
        "evidence": [[item.ref, item.text] for item in put.evidence],
    }
    return json.dumps(fields, ensure_ascii=False, allow_nan=False)


def _unpacked(packed: str, digest: str) -> Put:
    fields = json.loads(packed)
    occurred = fields["occurred_at"]
    content = EntryContent(
        fields["text"],
        fields["kind"],
        fields["source"],
        fields["author"],
        None if occurred is None else datetime.fromisoformat(occurred),
        fields["attributes"],
        digest,
    )
    evidence = tuple(Evidence(ref, text) for ref, text in fields["evidence"])
    return Put(content, fields["entry"], fields["expected_version"], fields["reason"], evidence)
