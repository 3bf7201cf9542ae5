"""The face of advice: what an application calls on a running composition."""

from __future__ import annotations

from collections.abc import Iterable

from narrowgate.errors import InputError
from narrowgate.governance.advice.applicability import Applying
from narrowgate.governance.advice.desk import Desk, in_shadow
from narrowgate.governance.advice.handoff import Handoff
from narrowgate.governance.advice.relations import Recall, Relations
from narrowgate.governance.advice.values import ApplicabilityAdvice, HandoffAdvice, RelationsAdvice
from narrowgate.governance.cited import Cited, as_evidence, told_of
from narrowgate.governance.consumers import APPLICABILITY_KIND
from narrowgate.governance.questions import Question
from narrowgate.seams.ports import EntryStore
from narrowgate.values.identity import EntryRef, check_id, new_entry_ids
from narrowgate.values.text import normalise_text

MOST: int = 100
"""Candidates or experiences of one call."""


class Advice:
    """Asks policies that may only propose, and hands on what they say.

    In shadow every call returns at once that no advice is given, as if there were no policy, and the question is asked
    beside it. A call refuses where a policy that it rests on takes no part. What a backend's failure leaves open is said to
    be open.

    Args:
        desk: gates, observations, shadow.
        store: reads exact references.
        recall: finds candidates without a second stage.
    """

    def __init__(self, desk: Desk, store: EntryStore, recall: Recall) -> None:
        self._desk, self._store, self._recall = desk, store, recall

    async def relations(self, memory: str, text: str | EntryRef, *, limit: int = 5) -> RelationsAdvice:
        """Say how a text, or an entry, relates to the entries of a memory that recall finds for it.

        Args:
            memory: where to look.
            text: what is to be related; an `EntryRef` for an entry that is stored, which is then no candidate itself.
            limit: the most candidates, 1..100.

        Raises:
            InputError: a bad argument, or a reference that names nothing.
            CapabilityError: `policy-missing`.
            RecallError: recall failed; not in shadow.
            StoreError: the entry cannot be read; not in shadow.
        """
        gates = self._desk.gates("gate.advice.relations", "duplicate_conflict")
        check_id(memory, "memory")
        if type(limit) is not int or not 1 <= limit <= MOST:
            raise InputError("limit-range", f"limit must be a whole number of 1..{MOST}")
        ref = text if isinstance(text, EntryRef) else None
        subject = "" if ref is not None else normalise_text(text)
        acting = not in_shadow(gates)
        about = Question(
            operation_id=_operation(),
            scope_id=memory,
            subject=subject,
            subject_refs=() if ref is None else (str(ref),),
            metadata={"limit": limit},
        )

        consultation = Relations(
            desk=self._desk,
            gates=gates,
            store=self._store,
            recall=self._recall,
            about=about,
            subject_ref=ref,
            limit=limit,
            acting=acting,
        )
        if acting:
            return await consultation.run()
        self._desk.later(consultation, about)
        return RelationsAdvice(given=False)

    async def handoff(self, claim: str, evidence: Iterable[Cited] | Cited, *, scope: str = "handoff") -> HandoffAdvice:
        """Say what attached evidence says of a claim. Supported is not accepted: whoever takes over decides.

        Args:
            claim: what is claimed, e.g. that a task is done.
            evidence: exact references, which are read, and sources with their text (`Evidence`).
            scope: names the work in observations: an id.

        Raises:
            InputError: a bad argument.
            CapabilityError: `policy-missing`.
        """
        gates = self._desk.gates("gate.advice.handoff", "handoff_evidence_consult")
        cited = as_evidence(evidence)
        about = Question(
            operation_id=_operation(),
            scope_id=check_id(scope, "scope"),
            subject=normalise_text(claim, what="claim"),
            evidence_refs=tuple(map(told_of, cited)),
            metadata={"evidence": len(cited)},
        )
        acting = not in_shadow(gates)
        consultation = Handoff(desk=self._desk, gates=gates, store=self._store, about=about, evidence=cited, acting=acting)
        if acting:
            return await consultation.run()
        self._desk.later(consultation, about)
        return HandoffAdvice(given=False)

    async def applicability(
        self, task: str, experiences: Iterable[Cited] | Cited, *, scope: str = "applicability"
    ) -> ApplicabilityAdvice:
        """Say which experiences (or skills) fit a task: each by itself, those that fit ranked, or none.

        Args:
            task: what is to be done.
            experiences: exact references of entries that state conditions, or `Evidence(ref, conditions)`; at most 100.
            scope: names the work in observations: an id.

        Raises:
            InputError: a bad argument.
            CapabilityError: `policy-missing`.
        """
        gates = self._desk.gates("gate.advice.applicability", "experience_applicability")
        given = as_evidence(experiences)
        if len(given) > MOST:
            raise InputError("limit-range", f"{len(given)} experiences; at most {MOST} at once")
        about = Question(
            operation_id=_operation(),
            scope_id=check_id(scope, "scope"),
            subject="",
            evidence=(normalise_text(task, what="task"),),
            metadata={"experiences": len(given)},
        )
        acting = not in_shadow(gates)
        gate = gates[APPLICABILITY_KIND]
        consultation = Applying(desk=self._desk, gate=gate, store=self._store, about=about, experiences=given, acting=acting)
        if acting:
            return await consultation.run()
        self._desk.later(consultation, about)
        return ApplicabilityAdvice(given=False)


def _operation() -> str:
    return new_entry_ids(1)[0]
