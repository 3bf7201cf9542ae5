"""What attached evidence says of a claim, from two yes or no questions. Never an acceptance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from narrowgate.decisions import DecisionOutcome
from narrowgate.governance.advice.desk import CONTRADICTORY, JUDGED, Answer, Desk
from narrowgate.governance.advice.values import Finding, HandoffAdvice
from narrowgate.governance.cited import UNREADABLE, gather
from narrowgate.governance.gate import Gate
from narrowgate.governance.questions import Question
from narrowgate.seams.ports import EntryStore
from narrowgate.values.entry import Evidence

YES: Final = DecisionOutcome.YES
NO: Final = DecisionOutcome.NO

_FINDINGS: Final = {
    (YES, NO): Finding.SUPPORTS,
    (NO, YES): Finding.CONTRADICTS,
    (NO, NO): Finding.DOES_NOT_ADDRESS,
}
"""(supports, contradicts) -> finding. Both at once is a contradiction of the answers."""


@attrs.frozen(kw_only=True)
class Handoff:
    """One consultation.

    Attributes:
        desk: observes.
        gates: decision kind -> gate: first the one that asks for support, then the one that asks for contradiction.
        store: reads what is cited by exact reference.
        about: the question without evidence.
        evidence: what is cited.
        acting: `False` in shadow.
        observed: ids of the policies whose attempt is observed.
    """

    desk: Desk
    gates: Mapping[str, Gate]
    store: EntryStore
    about: Question
    evidence: tuple[Evidence, ...]
    acting: bool
    observed: set[str] = attrs.field(factory=set)

    def open_gates(self) -> list[Gate]:
        """Return those whose attempt is not observed yet: both are asked in any case."""
        return [gate for gate in self.gates.values() if gate.policy.policy_id not in self.observed]

    async def run(self) -> HandoffAdvice:
        """Ask, observe, and say what came of it."""
        found = await gather(self.store, self.evidence)
        question = attrs.evolve(self.about, evidence=found.texts, evidence_refs=found.refs, unresolved_refs=found.unresolved)
        answers = []
        for gate in self.gates.values():
            # Before the gate: what names nothing, or does not fit whole, is nobody's judgement.
            judged = gate.not_asked(question, found.code) if found.code else await gate.assess(question)
            answers.append(Answer(gate=gate, judged=judged))
        finding, code = _finding(answers, found.code)
        checked = found.code is not None and found.code != UNREADABLE
        verify = self.acting and finding is not Finding.SUPPORTS and (checked or code in (JUDGED, CONTRADICTORY))
        raising = [item for item in answers if item.proposes or checked] if verify else []
        for item in answers:
            consumer = item.gate.consumer
            self.observed.add(item.gate.policy.policy_id)
            await self.desk.observe(item, (consumer.flagged if item in raising else None) or consumer.passed)
        return HandoffAdvice(
            given=True,
            finding=finding,
            code=code,
            verify=bool(raising),
            unresolved=found.unresolved,
            proposals=tuple(item.proposal("verify") for item in raising),
            observation_ids=tuple(item.observation_id for item in answers),
        )


def _finding(answers: list[Answer], code: str | None) -> tuple[Finding, str]:
    open_questions = [item.code for item in answers if item.outcome is None]
    if code or open_questions:
        return Finding.INSUFFICIENT, code or open_questions[0]
    support, contradiction = (item.outcome for item in answers)
    if support is YES and contradiction is YES:
        return Finding.INSUFFICIENT, CONTRADICTORY
    return _FINDINGS[support, contradiction], JUDGED  # type: ignore[index]
