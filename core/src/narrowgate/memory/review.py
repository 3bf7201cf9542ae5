"""The held queue as a person uses it: look, release, reject, purge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from narrowgate.errors import EntryReferenceError, InputError, StoreError
from narrowgate.memory.vectors import vectors_for
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.seams.ports import Embedder, EntryStore
from narrowgate.values.held import HeldEntry, HeldItem, HeldOutcome, HeldState
from narrowgate.values.identity import check_id
from narrowgate.values.policy import POLICY_ID
from narrowgate.values.text import MAX_REASON_POINTS, normalise_reason

STATES: Final[tuple[HeldState, ...]] = ("pending", "expired", "released", "rejected")
"""Every state of a held write."""

MAX_PAGE: Final = 1000
"""The most places of one page."""

_log = logging.getLogger("narrowgate.memory")


class ReviewService:
    """Lists what is held, and does what a person decides.

    Args:
        store: where entries live.
        queue: the store's queue; `None` where it has none.
        embedder: makes the vector of what is released; `None` when no vector channel is in use.
        clock: the time, UTC.
    """

    def __init__(
        self,
        store: EntryStore,
        queue: HeldQueue | None,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._queue, self._embedder, self._clock = store, queue, embedder, clock

    async def held(
        self,
        memory: str | None = None,
        *,
        policy: str | None = None,
        state: HeldState | None = "pending",
        after: str | None = None,
        limit: int = 100,
    ) -> tuple[HeldEntry, ...]:
        """Return places of the queue without content, oldest first.

        Args:
            memory: of this memory only.
            policy: held by the policy with this id only.
            state: in this state only; `None` for all.
            after: those with ids greater than this; fewer than `limit` means the end.
            limit: the most places, 1..1000.

        Raises:
            InputError: `held-state`, `range`, `id-format`.
            StoreError: `no-held-queue`.
        """
        if state is not None and state not in STATES:
            raise InputError("held-state", f"state must be one of {', '.join(STATES)}")
        if not 1 <= limit <= MAX_PAGE:
            raise InputError("range", f"limit must be 1 to {MAX_PAGE}")
        if memory is not None:
            check_id(memory, "memory")
        if after is not None:
            check_id(after, "after")
        queue = self._need()
        if policy is not None and not POLICY_ID.fullmatch(policy):
            return ()
        return await queue.held(now=self._clock(), memory=memory, policy_id=policy, state=state, after=after, limit=limit)

    async def held_one(self, held_id: str) -> HeldItem:
        """Return one place, with its content while it is open.

        Raises:
            EntryReferenceError: `held-unknown`.
            StoreError: `no-held-queue`.
        """
        return await self._need().held_one(_named(held_id), now=self._clock())

    async def release(
        self, held_ids: str | Iterable[str], *, by: str | None = None, reason: str | None = None
    ) -> tuple[HeldOutcome, ...]:
        """Write held entries, each as a revision of its own, in the order given.

        What cannot be written as it stands (the entry has moved on, was forgotten, ...) is `refused` and stays in the queue.

        Args:
            held_ids: one or several ids.
            by: who releases them.
            reason: in their words, at most 512 characters.

        Raises:
            InputError: `reason-too-long`.
            StoreError: `no-held-queue`, or the store cannot write; what was released before stays.
        """
        queue, why, who = self._need(), normalise_reason(reason), _name(by)
        return tuple([await self._release(queue, held_id, who, why) for held_id in _several(held_ids)])

    async def reject(
        self, held_ids: str | Iterable[str], *, by: str | None = None, reason: str | None = None
    ) -> tuple[HeldOutcome, ...]:
        """Close held entries without writing them; records without content stay. Arguments and errors as for `release`."""
        queue, why, who = self._need(), normalise_reason(reason), _name(by)
        outcomes = []
        for held_id in _several(held_ids):
            try:
                await queue.reject_held(_named(held_id), now=self._clock(), by=who, reason=why)
            except EntryReferenceError as error:
                outcomes.append(HeldOutcome(held_id, "refused", None, error.code, str(error)))
            else:
                outcomes.append(HeldOutcome(held_id, "rejected"))
        return tuple(outcomes)

    async def purge(self, state: HeldState, *, memory: str | None = None, before: datetime | None = None) -> int:
        """Remove expired entries with their content, or records of released or rejected ones, for good.

        Args:
            state: `expired`, `released` or `rejected`; what is pending is never purged.
            memory: of this memory only.
            before: only those that expired or were resolved before then; with an offset.

        Returns:
            How many.

        Raises:
            InputError: `held-state`, `held-pending`, `time-format`, `id-format`.
            StoreError: `no-held-queue`.
        """
        if state not in STATES:
            raise InputError("held-state", f"state must be one of {', '.join(STATES[1:])}")
        if before is not None and before.tzinfo is None:
            raise InputError("time-format", "before needs a time zone or an offset")
        if memory is not None:
            check_id(memory, "memory")
        return await self._need().purge_held(state, now=self._clock(), memory=memory, before=before)

    async def counts(self) -> Mapping[HeldState, int]:
        """Return state -> how many places are in it; nothing where the store has no queue."""
        return {} if self._queue is None else await self._queue.held_counts(now=self._clock())

    def _need(self) -> HeldQueue:
        if self._queue is None:
            raise StoreError("no-held-queue", "the store in use keeps no held queue: name one that does, e.g. sqlite.store")
        return self._queue

    async def _release(self, queue: HeldQueue, held_id: str, by: str | None, reason: str | None) -> HeldOutcome:
        try:
            item = await queue.held_one(_named(held_id), now=self._clock())
            vectors, failure = None, None
            if item.put is not None:
                vectors, failure = await vectors_for(self._store, self._embedder, item.entry.memory, [item.put])
            remark = f"released, held as {item.entry.code}" + (f": {reason}" if reason else "")
            done = await queue.release_held(
                held_id,
                now=self._clock(),
                by=by,
                reason=reason,
                remark=remark[:MAX_REASON_POINTS],
                vectors=vectors,
            )
        except EntryReferenceError as error:
            return HeldOutcome(held_id, "refused", None, error.code, str(error))
        if done.vectors_pending and failure is not None:
            _log.warning(
                "vectors pending: the embedder failed (%s); `narrowgate reindex` completes the vectors",
                failure,
                extra={"event": "memory.vectors_pending", "memory": item.entry.memory},
            )
        outcome = done.outcome
        return HeldOutcome(held_id, outcome.status, outcome.ref, outcome.code, outcome.message, done.vectors_pending)


def _named(held_id: object) -> str:
    """Return an id; raise where it has the shape of none, which a store need not be able to look for."""
    try:
        return check_id(held_id, "held id")
    except InputError:
        raise EntryReferenceError("held-unknown", f"nothing is held under the id {ascii(held_id)[:128]}") from None


def _several(held_ids: str | Iterable[str]) -> list[str]:
    return list(dict.fromkeys([held_ids] if isinstance(held_ids, str) else held_ids))


def _name(by: str | None) -> str | None:
    named = normalise_reason(by)
    return None if named is None else " ".join(named.split())[:128]
