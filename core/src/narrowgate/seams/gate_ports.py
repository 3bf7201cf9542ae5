"""The protocols of governance: local rules, observation sinks, the sanitiser, the queue of held writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

import attrs

from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionRequest
from narrowgate.values.entry import VectorBatch
from narrowgate.values.held import HeldDraft, HeldEntry, HeldItem, HeldRelease, HeldState
from narrowgate.values.observation import DecisionObservation


@attrs.frozen(kw_only=True)
class RuleInput:
    """What a local rule may look at. The gate gathers it, so that rules stay pure.

    Attributes:
        request: the question as it would be asked, content included.
        scope_id: the memory (or other scope) concerned.
        allowed_scopes: scopes that the operation may touch; `None` for any.
        evidence_refs: references of the evidence.
        unresolved_refs: those of them that name nothing.
        sensitive: detector -> number of sensitive places in subject and evidence; `None` where no sanitiser is in use.
        leaves: whether the backend is on another machine and the boundary is not one under which content never goes there.
        earlier: the verdict under the same policy fingerprint on the same content, where there was one.
        cooling: whether the backend is being left alone after failures.
    """

    request: DecisionRequest
    scope_id: str
    allowed_scopes: frozenset[str] | None = None
    evidence_refs: tuple[str, ...] = ()
    unresolved_refs: tuple[str, ...] = ()
    sensitive: Mapping[str, int] | None = None
    leaves: bool = False
    earlier: GateVerdict | None = None
    cooling: bool = False


@attrs.frozen
class ContentJudgement:
    """A rule judged the content: this counts as adjudicated.

    Attributes:
        verdict: allow, deny or review.
        reason: a closed code, e.g. `too_short`.
    """

    verdict: GateVerdict
    reason: str


@attrs.frozen
class TransportRefusal:
    """A rule says that nobody is to be asked. The content was not judged, whatever becomes of it.

    Attributes:
        reason: a closed code, e.g. `cooldown`, `sensitive_not_sent`.
        privacy: the reason is privacy.
    """

    reason: str
    privacy: bool = False


RuleVerdict = ContentJudgement | TransportRefusal
"""What a local rule says. Whether content was judged is a matter of type, not of a flag that can be forgotten."""


@runtime_checkable
class LocalRule(Protocol):
    """A deterministic judgement without a backend: pure, no input or output, no clock."""

    def judge(self, given: RuleInput) -> RuleVerdict | None:
        """Return a verdict, or `None` when the rule has nothing to say."""
        ...


@runtime_checkable
class ObservationSink(Protocol):
    """Takes content-free records."""

    async def observe(self, observation: DecisionObservation) -> None:
        """Take one record; raise when it cannot be kept."""
        ...

    async def flush(self) -> None:
        """Return when everything taken so far is as durable as this sink makes it."""
        ...


@attrs.frozen
class Redacted:
    """A text without what must not leave.

    Attributes:
        text: the text with each sensitive place replaced by a placeholder such as `[EMAIL-1]`; equal values have equal
            placeholders within one sanitiser session.
        found: detector -> number of places replaced.
    """

    text: str
    found: Mapping[str, int]


@runtime_checkable
class Sanitiser(Protocol):
    """The one redaction of a deployment: for content that leaves, and for logs."""

    @property
    def policy_id(self) -> str:
        """Its versioned id."""
        ...

    def redact(self, texts: Sequence[str]) -> tuple[Redacted, ...]:
        """Return the texts redacted, in order; equal values get equal placeholders across all of them."""
        ...


HELD_QUEUE: Final = "held-queue"
"""The ability of an entry store that is a `HeldQueue`."""


@runtime_checkable
class HeldQueue(Protocol):
    """Keeps writes that a gate holds back; ability `held-queue` of an entry store. Durable as the store is.

    No clock of its own: `now` (UTC) says what has expired, so that expiry is a fact about an entry and no job that can fail.
    """

    async def hold(self, drafts: Sequence[HeldDraft]) -> tuple[HeldEntry, ...]:
        """Keep drafts, all or none; return their places in order.

        A draft whose key (`HeldDraft.key`) is open already is not kept twice: its place is returned as it stands; one that
        had expired waits anew, until the draft's `expires_at`. One that was rejected is not kept either and is returned as
        rejected, until that record is purged. Two equal drafts of one call have one place.
        """
        ...

    async def held(
        self,
        *,
        now: datetime,
        memory: str | None = None,
        policy_id: str | None = None,
        state: HeldState | None = "pending",
        after: str | None = None,
        limit: int = 100,
    ) -> tuple[HeldEntry, ...]:
        """Return places in the order of their ids, which is that of time, those with ids greater than `after`."""
        ...

    async def held_one(self, held_id: str, *, now: datetime) -> HeldItem:
        """Return one place, with its content while it is open.

        Raises:
            EntryReferenceError: `held-unknown`.
        """
        ...

    async def release_held(
        self,
        held_id: str,
        *,
        now: datetime,
        by: str | None = None,
        reason: str | None = None,
        remark: str | None = None,
        vectors: VectorBatch | None = None,
    ) -> HeldRelease:
        """Write an open one as a revision of its own and close it, in one transaction: both happen, or neither.

        The write obeys what it obeyed when it was held: its expected version, and `base`. Where the entry that it speaks of
        has moved on it is refused as `stale-version`; whatever the store refuses stays in the queue as it was.

        Args:
            held_id: which.
            now: when, UTC.
            by: who releases it.
            reason: in their words.
            remark: stands as the reason of the written version, where the write has none of its own.
            vectors: the vectors that travel with it, as for `EntryStore.commit`.

        Raises:
            EntryReferenceError: `held-unknown`, or `held-resolved` when it is no longer open.
            StoreError: the store cannot write.
        """
        ...

    async def reject_held(
        self, held_id: str, *, now: datetime, by: str | None = None, reason: str | None = None
    ) -> HeldEntry:
        """Close an open one without writing it; a record without content stays.

        Raises:
            EntryReferenceError: `held-unknown`, or `held-resolved` when it is no longer open.
        """
        ...

    async def purge_held(
        self,
        state: HeldState,
        *,
        now: datetime,
        memory: str | None = None,
        before: datetime | None = None,
    ) -> int:
        """Remove places for good: expired ones with their content, or records of released or rejected ones.

        Args:
            state: `expired`, `released` or `rejected`; a pending one is never purged.
            now: the time, UTC.
            memory: of this memory only.
            before: only those that expired or were resolved before then.

        Returns:
            How many.

        Raises:
            InputError: `held-pending` for the state `pending`.
        """
        ...

    async def held_counts(self, *, now: datetime) -> Mapping[HeldState, int]:
        """Return state -> how many places are in it; states without any are left out."""
        ...
