"""The write gate: may this entry be written on the evidence that it cites? One verdict for each entry (spec 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import attrs

from narrowgate.errors import EntryReferenceError
from narrowgate.governance.gate import Gate, Judged
from narrowgate.governance.observers import Observers
from narrowgate.governance.questions import Question
from narrowgate.governance.recording import observation_of
from narrowgate.governance.shadow import Shadow
from narrowgate.seams.gate_ports import ContentJudgement
from narrowgate.seams.ports import EntryStore
from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.entry import Evidence, ItemOutcome, Put
from narrowgate.values.held import HeldDraft, WriteRuling
from narrowgate.values.identity import EntryRef, new_entry_ids

MAX_ITEMS: Final = 32
"""Pieces of evidence of one entry that a question may hold."""

MAX_CHARACTERS: Final = 16_000
"""Characters of evidence that a question may hold. What does not fit is held unjudged: truncated evidence is no evidence."""

REASONS: Final[Mapping[str, str]] = {
    "needs_evidence": "the entry cites no evidence",
    "evidence_limit_exceeded": "the evidence is too much to be judged as a whole",
    "insufficient_coverage": "the evidence was judged not to support the entry",
    "invalid_evidence_reference": "a cited reference names nothing",
}
"""Code -> sentence, for flagged and held items."""


@attrs.frozen
class _Item:
    judged: Judged
    ruling: WriteRuling


class WriteGate:
    """Rules on the items of a batch before they are written, and observes what then became of each.

    Args:
        gate: the gate of a policy whose consumer is `memory_write_gate`.
        store: reads evidence that is cited by exact reference.
        observers: take the observations.
        shadow: evaluates off the caller's path; needed for a policy in shadow.
        snippets: see `observation_of`.
        expiry: how long a held write waits for a person.
    """

    def __init__(
        self,
        gate: Gate,
        store: EntryStore,
        observers: Observers,
        shadow: Shadow,
        *,
        snippets: bool = False,
        expiry: timedelta = timedelta(days=30),
    ) -> None:
        self.gate, self.expiry = gate, expiry
        self._store, self._observers, self._shadow, self._snippets = store, observers, shadow, snippets

    @property
    def in_shadow(self) -> bool:
        """Whether it may change nothing."""
        return self.gate.policy.mode is GateMode.SHADOW

    async def rule(self, memory: str, puts: Sequence[Put]) -> Ruled:
        """Return a ruling for each item, in order. In shadow everything is accepted and nobody is asked yet.

        Raises nothing of a backend's: a gate that cannot judge lets pass, and says so in the observation.
        """
        operation = new_entry_ids(1)[0]
        if self.in_shadow:
            return Ruled(self, memory, operation, tuple(puts), None)
        return Ruled(self, memory, operation, tuple(puts), await self._items(memory, operation, puts))

    async def _items(self, memory: str, operation: str, puts: Sequence[Put]) -> tuple[_Item, ...]:
        questions = [await self._question(memory, operation, put) for put in puts]
        judged = await self.gate.assess_many(questions)
        return tuple(_Item(item, self._ruling(item)) for item in judged)

    def _ruling(self, judged: Judged) -> WriteRuling:
        action = self.gate.action(judged)
        if action == self.gate.consumer.passed:
            return WriteRuling()
        by_rule = judged.assessment.reason if judged.assessment.reason in REASONS else None
        code = by_rule or "insufficient_coverage"
        held = action == self.gate.consumer.effects["hold"]
        return WriteRuling(action="hold" if held else "flag", code=code, reason=REASONS[code])

    async def _question(self, memory: str, operation: str, put: Put) -> Question:
        texts: list[str] = []
        unresolved: list[str] = []
        for item in put.evidence:
            text = await self._text(item)
            if text is None:
                unresolved.append(item.ref)
            else:
                texts.append(text)
        early: ContentJudgement | None = None
        if not put.evidence:
            early = ContentJudgement(GateVerdict.DENY, "needs_evidence")
        elif unresolved:
            early = ContentJudgement(GateVerdict.DENY, "invalid_evidence_reference")
        elif len(texts) > MAX_ITEMS or sum(map(len, texts)) > MAX_CHARACTERS:
            early = ContentJudgement(GateVerdict.DENY, "evidence_limit_exceeded")
        return Question(
            operation_id=operation,
            scope_id=memory,
            subject=put.content.text,
            evidence=tuple(texts),
            evidence_refs=tuple(item.ref[:512] for item in put.evidence),
            labels={"kind": put.content.kind},
            unresolved_refs=tuple(unresolved),
            prejudged=early,
            metadata={"candidates": 1, "evidence": len(put.evidence)},
        )

    async def _text(self, item: Evidence) -> str | None:
        if item.text is not None:
            return item.text
        try:
            return (await self._store.read(EntryRef.parse(item.ref))).content.text
        except EntryReferenceError:
            return None

    async def observe(self, judged: Judged, action: str, ref: str | None) -> str:
        """Publish the observation of one item with the action really taken; return its id."""
        if ref is not None:
            judged = attrs.evolve(judged, question=attrs.evolve(judged.question, subject_refs=(ref,)))
        observation = observation_of(self.gate, judged, action, snippets=self._snippets)
        await self._observers.publish(observation)
        return observation.observation_id

    def evaluate_later(self, memory: str, operation: str, written: Sequence[tuple[Put, str]]) -> None:
        """Evaluate in shadow what was written, when there is time; (item, reference) pairs."""
        for put, ref in written:
            if not self._shadow.offer(partial(self._evaluate, memory, operation, put, ref)):
                self._shadow.offer_note(partial(self._not_asked, memory, operation, put, ref))

    async def _evaluate(self, memory: str, operation: str, put: Put, ref: str) -> None:
        judged = await self.gate.assess(await self._question(memory, operation, put))
        await self.observe(judged, self.gate.consumer.passed, ref)

    async def _not_asked(self, memory: str, operation: str, put: Put, ref: str) -> None:
        question = await self._question(memory, operation, put)
        await self.observe(self.gate.not_asked(question, "shadow_queue_full"), self.gate.consumer.passed, ref)


@attrs.frozen
class Ruled:
    """A batch on its way: what the gate ruled, and what is still to be observed of it.

    Attributes:
        gate: the write gate.
        memory: the memory.
        operation: names the batch.
        puts: its items.
        items: what was made of each; `None` in shadow, where nobody was asked yet.
    """

    gate: WriteGate
    memory: str
    operation: str
    puts: tuple[Put, ...]
    items: tuple[_Item, ...] | None

    @property
    def rulings(self) -> tuple[WriteRuling, ...]:
        """One for each item, in order."""
        return tuple(WriteRuling() for _ in self.puts) if self.items is None else tuple(item.ruling for item in self.items)

    async def hold(self, place: int, put: Put) -> HeldDraft:
        """Return the item at `place` as the queue takes it; its observation is published."""
        policy = self.gate.gate.policy
        assert self.items is not None  # noqa: S101 - nothing is held in shadow
        item = self.items[place]
        now = datetime.now(UTC)
        return HeldDraft(
            memory=self.memory,
            put=put,
            batch=self.operation,
            place=place,
            policy_id=policy.policy_id,
            policy_version=policy.version,
            fingerprint=self.gate.gate.fingerprint,
            code=item.ruling.code or "insufficient_coverage",
            observation_id=await self.gate.observe(item.judged, self.gate.gate.consumer.effects["hold"], None),
            held_at=now,
            expires_at=now + self.gate.expiry,
        )

    async def written(self, outcomes: Sequence[ItemOutcome | None]) -> None:
        """Observe what became of the items that were not held: one outcome for each item, `None` for a held one."""
        if self.items is None:
            fresh = [
                (put, str(outcome.ref))
                for put, outcome in zip(self.puts, outcomes, strict=True)
                if outcome is not None and outcome.ref is not None and outcome.status in ("added", "revised")
            ]
            self.gate.evaluate_later(self.memory, self.operation, fresh)
            return
        for item, outcome in zip(self.items, outcomes, strict=True):
            if outcome is not None:
                ref = None if outcome.ref is None else str(outcome.ref)
                await self.gate.observe(item.judged, _action(item.ruling, outcome), ref)

    async def failed(self, meant: Sequence[bool]) -> None:
        """Observe that nothing was written: for each item, whether it was meant to be."""
        for item, wanted in zip(self.items or (), meant, strict=False):
            if wanted:
                await self.gate.observe(item.judged, "memory_write_failed", None)


def _action(ruling: WriteRuling, outcome: ItemOutcome) -> str:
    if outcome.status in ("refused", "unchanged"):
        return f"memory_write_{outcome.status}"
    return "memory_write_flag" if ruling.action == "flag" else "memory_write_accept"
