"""The protocols of governance: local rules, observation sinks, the sanitiser, the queue of held writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import attrs

from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionRequest
from narrowgate.values.held import HeldDraft, HeldEntry, HeldState
from narrowgate.values.identity import EntryRef
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
        leaves: whether the backend would receive the content on another machine.
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


@runtime_checkable
class HeldQueue(Protocol):
    """Keeps writes that a gate holds back; ability `held-queue` of an entry store. Durable as the store is."""

    async def hold(self, drafts: Sequence[HeldDraft]) -> tuple[HeldEntry, ...]:
        """Keep drafts; one that is pending already (same memory, content and fingerprint) is returned as it stands."""
        ...

    async def held(
        self, memory: str | None = None, *, state: HeldState | None = "pending", after: str | None = None, limit: int = 1000
    ) -> tuple[HeldEntry, ...]:
        """Return held writes in the order of their ids, which is that of time."""
        ...

    async def held_one(self, held_id: str) -> HeldEntry:
        """Return one.

        Raises:
            EntryReferenceError: `held-unknown`.
        """
        ...

    async def resolve_held(
        self, held_id: str, state: HeldState, *, by: str | None, reason: str | None = None, ref: EntryRef | None = None
    ) -> HeldEntry:
        """Say what became of a pending one; return it as it then stands.

        Raises:
            EntryReferenceError: `held-unknown`, or `held-resolved` when it is no longer pending.
        """
        ...

    async def expire_held(self, now: datetime) -> int:
        """Turn the pending ones whose time is over into expired ones; return how many. Their content stays readable."""
        ...
