"""Which experiences fit a task: each judged by itself, then ranked; with an explicit none."""

from __future__ import annotations

from typing import Final

import attrs

from narrowgate.decisions import DecisionOutcome
from narrowgate.governance.advice.desk import Answer, Desk
from narrowgate.governance.advice.values import Applicability, ApplicabilityAdvice, ExperienceAdvice, Fit
from narrowgate.governance.cited import gather, told_of
from narrowgate.governance.gate import Gate
from narrowgate.governance.questions import Question
from narrowgate.seams.ports import EntryStore
from narrowgate.values.entry import Evidence

_FITS: Final = {DecisionOutcome.YES: Fit.APPLIES, DecisionOutcome.NO: Fit.DOES_NOT_APPLY}


@attrs.frozen(kw_only=True)
class Applying:
    """One consultation.

    Attributes:
        desk: observes.
        gate: asks whether conditions fit a task.
        store: reads experiences that are named by exact reference.
        about: the question of which each experience is a subject; its evidence is the task.
        experiences: reference and conditions of each.
        acting: `False` in shadow.
        observed: references of the experiences whose attempt is observed.
    """

    desk: Desk
    gate: Gate
    store: EntryStore
    about: Question
    experiences: tuple[Evidence, ...]
    acting: bool
    observed: set[str] = attrs.field(factory=set)

    def open_gates(self) -> list[Gate]:
        """Return the gate, as long as nothing is observed."""
        return [] if self.observed else [self.gate]

    async def run(self) -> ApplicabilityAdvice:
        """Ask, observe, and say what came of it."""
        answers = await self._ask()
        ranks = ranked(answers)
        found = []
        for place, (item, answer) in enumerate(zip(self.experiences, answers, strict=True)):
            proposed = self.acting and place in ranks and answer.proposes
            consumer = self.gate.consumer
            self.observed.add(item.ref)
            await self.desk.observe(answer, (consumer.flagged if proposed else None) or consumer.passed)
            said = answer.judged.assessment
            found.append(
                ExperienceAdvice(
                    ref=item.ref,
                    fit=_fit(answer),
                    code=answer.code,
                    probability=said.probability,
                    score=said.score,
                    rank=ranks.get(place),
                    proposal=answer.proposal("applies") if proposed else None,
                    observation_id=answer.observation_id,
                )
            )
        fits = {item.fit for item in found}
        outcome = Applicability.SOME if Fit.APPLIES in fits else Applicability.NONE
        if outcome is Applicability.NONE and Fit.UNKNOWN in fits:
            outcome = Applicability.UNKNOWN
        return ApplicabilityAdvice(given=True, outcome=outcome, experiences=tuple(found))

    async def _ask(self) -> list[Answer]:
        questions: dict[int, Question] = {}
        answers: dict[int, Answer] = {}
        for place, item in enumerate(self.experiences):
            read = await gather(self.store, (item,))
            question = attrs.evolve(self.about, subject="".join(read.texts), subject_refs=(told_of(item),))
            if read.code is None:
                questions[place] = question
            else:
                answers[place] = Answer(gate=self.gate, judged=self.gate.not_asked(question, read.code))
        judged = await self.gate.assess_many(tuple(questions.values()))
        answers |= {place: Answer(gate=self.gate, judged=said) for place, said in zip(questions, judged, strict=True)}
        return [answers[place] for place in range(len(self.experiences))]


def _fit(answer: Answer) -> Fit:
    outcome = answer.outcome
    return Fit.UNKNOWN if outcome is None else _FITS[outcome]


def ranked(answers: list[Answer]) -> dict[int, int]:
    """Return place -> rank of those that apply: by probability where all have one, else by score, else as they came."""
    places = [place for place, answer in enumerate(answers) if _fit(answer) is Fit.APPLIES]
    said = {place: answers[place].judged.assessment for place in places}
    for name in ("probability", "score"):
        numbers = {place: getattr(said[place], name) for place in places}
        if all(number is not None for number in numbers.values()):
            places.sort(key=lambda place, numbers=numbers: (-numbers[place], place))  # type: ignore[misc]
            break
    return {place: rank for rank, place in enumerate(places, 1)}
