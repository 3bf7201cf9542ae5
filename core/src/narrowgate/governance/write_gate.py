"""The write gate: may this entry be written on the evidence that it cites? One verdict for each entry (spec 4.1)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import attrs

from narrowgate.decisions import Usage
from narrowgate.governance.cited import MAX_CHARACTERS, MAX_ITEMS, UNREADABLE, text_of, told_of
from narrowgate.governance.gate import Gate, Judged
from narrowgate.governance.observers import Observers
from narrowgate.governance.privacy import is_exact
from narrowgate.governance.questions import Question
from narrowgate.governance.recording import observation_of
from narrowgate.governance.shadow import Shadow
from narrowgate.seams.gate_ports import ContentJudgement
from narrowgate.seams.ports import EntryStore
from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.entry import Evidence, ItemOutcome, Operation, Put
from narrowgate.values.held import Base, HeldDraft, WriteRuling
from narrowgate.values.identity import new_entry_ids

REASONS: Final[Mapping[str, str]] = {
    "needs_evidence": "the entry cites no evidence",
    "evidence_limit_exceeded": "the evidence is too much to be judged as a whole",
    "insufficient_coverage": "the evidence was judged not to support the entry",
    "invalid_evidence_reference": "a cited reference names nothing",
    "needs_review": "the policy asks somebody to look at the entry",
    "low_confidence": "the backend leans against the entry, and not as far as the policy asks for",
}
"""Code -> sentence, for flagged and held items."""

_log = logging.getLogger("narrowgate.governance")


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
        self.gate: Gate = gate
        self.expiry: timedelta = expiry
        self._store, self._observers, self._shadow, self._snippets = store, observers, shadow, snippets

    @property
    def in_shadow(self) -> bool:
        """Whether it may change nothing."""
        return self.gate.policy.mode is GateMode.SHADOW

    @property
    def may_hold(self) -> bool:
        """Whether a ruling may be `hold`."""
        return self.gate.policy.mode is GateMode.ENFORCING and self.gate.policy.effect == "hold"

    def begin(self, memory: str, operations: Sequence[Operation]) -> GatedBatch:
        """Take a batch; nothing is asked yet."""
        return GatedBatch(self, memory, tuple(operations))

    def ruling(self, judged: Judged) -> WriteRuling:
        """Return what the policy's mode makes of an assessment."""
        action = self.gate.action(judged)
        if action == self.gate.consumer.passed:
            weak = "low_confidence" if self._leans_against(judged) else None
            return WriteRuling() if weak is None else WriteRuling(action="flag", code=weak, reason=REASONS[weak])
        by_rule = judged.assessment.reason if judged.assessment.reason in REASONS else None
        code = by_rule or ("needs_review" if judged.assessment.verdict is GateVerdict.REVIEW else "insufficient_coverage")
        held = action == self.gate.consumer.effects["hold"]
        return WriteRuling(action="hold" if held else "flag", code=code, reason=REASONS[code])

    def _leans_against(self, judged: Judged) -> bool:
        """Return whether thresholds alone keep a backend's own word from counting against an entry.

        Nothing was judged, so that nothing is held; but the word was said, and it is remarked (spec 4.1).
        """
        said, assessment = judged.backend_outcome, judged.assessment
        if assessment.mode is GateMode.SHADOW or said is None or assessment.outcome is not DecisionOutcome.ABSTAIN:
            return False
        return self.gate.policy.outcome_mapping.get(said) is GateVerdict.DENY

    async def judged(self, memory: str, operation: str, puts: Sequence[Put]) -> tuple[Judged, ...]:
        """Return an assessment for each item, in order. Raises nothing: a gate that cannot judge lets pass, and says so."""
        known: dict[str, str | None] = {}
        questions: list[Question] = []
        unread: dict[int, Judged] = {}
        for place, put in enumerate(puts):
            try:
                questions.append(await self._question(memory, operation, put, known))
            except Exception as error:  # noqa: BLE001 - any store's failure to read; the write will meet it again, or not
                _warn(error)
                unread[place] = self.gate.not_asked(self._about(memory, operation, put), UNREADABLE)
        try:
            found = list(await self.gate.assess_many(questions))
        except Exception as error:  # noqa: BLE001 - a rule or a sanitiser of a third party: never a reason not to write
            _warn(error)
            found = [self.gate.not_asked(question, "gate_failed") for question in questions]
        return tuple(unread[place] if place in unread else found.pop(0) for place in range(len(puts)))

    def _about(self, memory: str, operation: str, put: Put) -> Question:
        """Return the question without evidence."""
        return Question(
            operation_id=operation,
            scope_id=memory,
            subject=put.content.text,
            evidence_refs=tuple(map(told_of, put.evidence)),
            labels={"kind": put.content.kind},
            metadata={"candidates": 1, "evidence": len(put.evidence)},
        )

    async def _question(self, memory: str, operation: str, put: Put, known: dict[str, str | None]) -> Question:
        about = self._about(memory, operation, put)
        if not put.evidence:
            return attrs.evolve(about, prejudged=ContentJudgement(GateVerdict.DENY, "needs_evidence"))
        if len(put.evidence) > MAX_ITEMS:
            return attrs.evolve(about, prejudged=ContentJudgement(GateVerdict.DENY, "evidence_limit_exceeded"))
        texts = {item: await text_of(self._store, item, known) for item in put.evidence}
        unresolved = tuple(item.ref for item, text in texts.items() if text is None)
        if unresolved:
            early = ContentJudgement(GateVerdict.DENY, "invalid_evidence_reference")
            return attrs.evolve(about, unresolved_refs=unresolved, prejudged=early)
        evidence = tuple(text for text in texts.values() if text is not None)
        if sum(map(len, evidence)) > MAX_CHARACTERS:
            return attrs.evolve(about, prejudged=ContentJudgement(GateVerdict.DENY, "evidence_limit_exceeded"))
        return attrs.evolve(about, evidence=evidence)

    async def observe(self, judged: Judged, action: str, ref: str | None, observation_id: str | None = None) -> None:
        """Publish the observation of one item with the action really taken."""
        if ref is not None:
            judged = attrs.evolve(judged, question=attrs.evolve(judged.question, subject_refs=(ref,)))
        await self._observers.publish(
            observation_of(self.gate, judged, action, snippets=self._snippets, observation_id=observation_id)
        )

    def evaluate_later(self, memory: str, operation: str, written: Sequence[tuple[Put, str]]) -> None:
        """Evaluate in shadow what was written, when there is time; (item, reference) pairs."""
        for put, ref in written:
            kept = bounded(put)
            self._shadow.offer(
                partial(self._evaluate, memory, operation, kept, ref),
                partial(self._not_judged, memory, operation, kept, ref),
            )

    async def _evaluate(self, memory: str, operation: str, put: Put, ref: str) -> None:
        (judged,) = await self.judged(memory, operation, (put,))
        await self.observe(judged, self.gate.consumer.passed, ref)

    async def _not_judged(self, memory: str, operation: str, put: Put, ref: str, reason: str, usage: Usage | None) -> None:
        judged = self.gate.not_asked(self._about(memory, operation, put), reason, usage)
        await self.observe(judged, self.gate.consumer.passed, ref)


class GatedBatch:
    """A batch on its way past the gate: what was judged of it, and what is still to be observed.

    Args:
        gate: the write gate.
        memory: the memory.
        operations: the items; what is no `Put` is none of the gate's business.

    Attributes:
        operation: names the batch, in its observations and in the held queue.
    """

    def __init__(self, gate: WriteGate, memory: str, operations: tuple[Operation, ...]) -> None:
        self.operation: str = new_entry_ids(1)[0]
        self._gate, self._memory, self._operations = gate, memory, operations
        self._shadow = gate.in_shadow  # a demotion on the way is for the batches after this one
        self._judged: dict[int, tuple[Judged, str]] = {}
        self._codes: dict[int, str] = {}
        self._observed: set[int] = set()

    async def rule(self, places: Sequence[int]) -> Mapping[int, WriteRuling]:
        """Return the rulings on the items at `places`. Raises nothing of a backend's: what cannot be judged is accepted."""
        puts = [(place, item) for place in places if isinstance(item := self._operations[place], Put)]
        judged = await self._gate.judged(self._memory, self.operation, [put for _, put in puts])
        rulings: dict[int, WriteRuling] = {}
        for (place, _), found, observation in zip(puts, judged, new_entry_ids(len(puts)), strict=True):
            rulings[place] = self._gate.ruling(found)
            self._judged[place] = found, observation
            self._codes[place] = rulings[place].code or "insufficient_coverage"
        return rulings

    def drafts(self, bases: Mapping[int, Base | None]) -> tuple[HeldDraft, ...]:
        """Return items as the queue takes them; one that equals a judged one shares its observation."""
        policy = self._gate.gate.policy
        now = datetime.now(UTC)
        drafts = []
        for place, base in bases.items():
            put = self._operations[place]
            if isinstance(put, Put):
                judged = place if place in self._judged else self._twin(put)
                drafts.append(
                    HeldDraft(
                        memory=self._memory,
                        put=put,
                        base=base,
                        batch=self.operation,
                        place=place,
                        policy_id=policy.policy_id,
                        policy_version=policy.version,
                        fingerprint=self._gate.gate.fingerprint,
                        code=self._codes[judged],
                        observation_id=self._judged[judged][1],
                        held_at=now,
                        expires_at=now + self._gate.expiry,
                    )
                )
        return tuple(drafts)

    def _twin(self, put: Put) -> int:
        digest = put.content.digest
        same = (
            place
            for place in self._judged
            if isinstance(other := self._operations[place], Put)
            and (other.content.digest, other.entry, other.evidence) == (digest, put.entry, put.evidence)
        )
        return next(same)

    async def settled(self, outcomes: Sequence[ItemOutcome]) -> None:
        """Observe what became of every item of the batch. Called again after a cancellation it goes on where it was."""
        if self._shadow:
            fresh = [
                (put, str(outcome.ref))
                for put, outcome in zip(self._operations, outcomes, strict=True)
                if isinstance(put, Put) and outcome.ref is not None and outcome.status in ("added", "revised")
            ]
            self._gate.evaluate_later(self._memory, self.operation, fresh)
            return
        for place, (judged, _) in self._judged.items():
            outcome = outcomes[place]
            ref = None if outcome.ref is None else str(outcome.ref)
            await self._observe(place, self._action(judged, outcome), ref)

    async def ended(self, how: str, kept: Collection[int]) -> None:
        """Observe that nothing was written (or, `interrupted`, that nobody knows); `kept` is in the queue all the same."""
        for place in self._judged:
            held = self._gate.gate.consumer.effects["hold"]
            await self._observe(place, held if place in kept else f"memory_write_{how}", None)

    async def _observe(self, place: int, action: str, ref: str | None) -> None:
        if place not in self._observed:
            judged, observation = self._judged[place]
            await self._gate.observe(judged, action, ref, observation)
            self._observed.add(place)

    def _action(self, judged: Judged, outcome: ItemOutcome) -> str:
        consumer = self._gate.gate.consumer
        if outcome.status == "held":
            return consumer.effects["hold"]
        if outcome.status in ("refused", "unchanged"):
            return f"memory_write_{outcome.status}"
        flagged = self._gate.ruling(judged).action == "flag"
        return (consumer.flagged if flagged else None) or consumer.passed


def bounded(put: Put) -> Put:
    """Return a write as it may wait in a queue: its evidence takes no more room than a question may, and what is too much
    for one still is. A draft may bring 16 MiB of evidence, and a thousand of them may wait.
    """
    stated = {item: item.text for item in put.evidence if item.text is not None and not is_exact(item.ref)}
    if sum(map(len, stated.values())) > MAX_CHARACTERS:
        left = MAX_CHARACTERS + 1
        for item, text in stated.items():
            stated[item] = text[: max(left, 1)]
            left -= len(stated[item])
    return attrs.evolve(put, evidence=tuple(Evidence(item.ref, stated.get(item)) for item in put.evidence))


def _warn(error: Exception) -> None:
    _log.warning(
        "the write gate could not judge (%s); what it could not judge is written",
        type(error).__name__,
        extra={"event": "memory.write-gate.failed"},
    )
