"""What every kind of advice needs: the gates by what they are asked, observations, and the way off the caller's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import attrs

from narrowgate.decisions import NO_USAGE, DecisionOutcome, Usage
from narrowgate.errors import CapabilityError
from narrowgate.governance.advice.values import Proposal
from narrowgate.governance.consumers import CONSUMERS
from narrowgate.governance.gate import Gate, Judged
from narrowgate.governance.observers import Observers
from narrowgate.governance.questions import Question
from narrowgate.governance.recording import observation_of
from narrowgate.governance.shadow import Shadow
from narrowgate.values.assessment import Coverage, GateMode
from narrowgate.values.identity import new_entry_ids

JUDGED: Final = "judged"
SAME_TEXT: Final = "same_text"
CONTRADICTORY: Final = "contradictory_answers"
_REPEATED: Final = "already_adjudicated"
"""The reason of a rule whose verdict stands for an earlier yes or no; that of any other says nothing about the question."""


@attrs.frozen(kw_only=True)
class Answer:
    """A question with what came of it.

    Attributes:
        gate: who judged.
        judged: the assessment.
        told: yes or no, where code knows it without asking.
        observation_id: under which it is observed.
    """

    gate: Gate
    judged: Judged
    told: DecisionOutcome | None = None
    observation_id: str = attrs.field(factory=lambda: new_entry_ids(1)[0])

    @property
    def outcome(self) -> DecisionOutcome | None:
        """Yes or no; `None` where nobody judged, or a rule judged something else than the question."""
        said = self.judged.assessment
        if self.told is not None or said.coverage is not Coverage.ADJUDICATED:
            return self.told
        if said.outcome is not None or said.reason != _REPEATED:
            return said.outcome
        meant = [outcome for outcome, verdict in self.gate.policy.outcome_mapping.items() if verdict is said.verdict]
        return meant[0] if len(meant) == 1 else None

    @property
    def code(self) -> str:
        """Why there is no yes or no, or `judged`."""
        said = self.judged.assessment
        if self.outcome is None:
            return self.judged.fallback_reason or said.reason
        return SAME_TEXT if said.reason == SAME_TEXT else JUDGED

    @property
    def proposes(self) -> bool:
        """Whether the policy's mode lets this answer propose something."""
        return self.gate.action(self.judged) != self.gate.consumer.passed

    def proposal(self, about: str) -> Proposal:
        """Return a proposal that links back here."""
        question = self.judged.question
        return Proposal(
            policy_id=self.gate.policy.policy_id,
            policy_version=self.gate.policy.version,
            observation_id=self.observation_id,
            about=about,
            refs=(*question.subject_refs, *question.evidence_refs),
        )


class Consultation(Protocol):
    """One call for advice."""

    async def run(self) -> object:
        """Ask, observe, and say what came of it."""
        ...

    def open_gates(self) -> Sequence[Gate]:
        """Return the gates whose attempts would go untold, were it cut off now."""
        ...


class Desk:
    """Hands out gates, observes, and runs off the caller's path.

    Args:
        gates: those of the composition.
        observers: take the observations.
        shadow: runs what may change nothing; `None` where no policy takes part.
        snippets: see `observation_of`.
    """

    def __init__(
        self,
        gates: Sequence[Gate] = (),
        observers: Observers | None = None,
        shadow: Shadow | None = None,
        *,
        snippets: bool = False,
    ) -> None:
        self._observers, self._shadow, self._snippets = observers or Observers(()), shadow, snippets
        self._gates: dict[tuple[str, str], Gate] = {}
        for gate in gates:
            self._gates.setdefault((gate.policy.consumer, gate.policy.decision_kind), gate)

    def gates(self, call: str, consumer: str) -> Mapping[str, Gate]:
        """Return decision kind -> gate, for all that a consumer asks.

        Raises:
            CapabilityError: a policy takes no part.
        """
        kinds = CONSUMERS[consumer].kinds
        missing = [(kind, policy) for kind, policy in kinds.items() if (consumer, kind) not in self._gates]
        if missing:
            names = ", ".join(f'"{policy}"' for _, policy in missing)
            text = (
                f"{call} needs the policies {', '.join(kinds.values())}, and not all take part: add {names} to `use` under "
                f"[policies], or policies of your own of the consumer {consumer} and the decision_kind "
                f"{' and '.join(kind for kind, _ in missing)}, in a mode other than disabled"
            )
            raise CapabilityError(text, code="policy-missing")
        return {kind: self._gates[consumer, kind] for kind in kinds}

    async def observe(self, answer: Answer, action: str) -> None:
        """Publish an answer with the action really taken."""
        found = observation_of(
            answer.gate, answer.judged, action, snippets=self._snippets, observation_id=answer.observation_id
        )
        await self._observers.publish(found)

    def later(self, consultation: Consultation, about: Question) -> None:
        """Run a consultation in shadow, when there is time; what it leaves open is observed for `about`."""
        if self._shadow is not None:
            self._shadow.offer(partial(_ignoring, consultation), partial(self._cut, consultation, about))

    async def _cut(self, consultation: Consultation, about: Question, reason: str, usage: Usage | None) -> None:
        for place, gate in enumerate(consultation.open_gates()):
            # Which of them the calls were made for is not known; what they cost stands once.
            cost = usage if usage is None or place == 0 else NO_USAGE
            await self.observe(Answer(gate=gate, judged=gate.not_asked(about, reason, cost)), gate.consumer.passed)


def in_shadow(gates: Mapping[str, Gate]) -> bool:
    """Return whether nothing may be said: advice is as strong as the weakest of the policies that it rests on."""
    return any(gate.policy.mode is GateMode.SHADOW for gate in gates.values())


async def _ignoring(consultation: Consultation) -> None:
    await consultation.run()
