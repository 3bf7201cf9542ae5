"""How a text relates to the entries that recall finds for it, from narrow yes or no questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from narrowgate.decisions import DecisionOutcome
from narrowgate.governance.advice.desk import CONTRADICTORY, SAME_TEXT, Answer, Desk
from narrowgate.governance.advice.values import Relation, RelationAdvice, RelationsAdvice
from narrowgate.governance.cited import MAX_CHARACTERS, TOO_MUCH
from narrowgate.governance.consumers import CONFLICT_KIND, DUPLICATE_KIND, TOPIC_KIND
from narrowgate.governance.gate import Gate
from narrowgate.governance.questions import Question
from narrowgate.seams.gate_ports import ContentJudgement
from narrowgate.seams.ports import EntryStore
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Hit, SearchPage, SearchRequest

YES: Final = DecisionOutcome.YES
NO: Final = DecisionOutcome.NO


class Recall(Protocol):
    """Finds candidates."""

    async def search(self, request: SearchRequest) -> SearchPage:
        """See `SearchService.search`."""
        ...


@attrs.frozen(kw_only=True)
class Relations:
    """One consultation.

    It asks first whether the two are about the same thing, and stops there on no. Then it asks twice more: the same fact?
    Can both be true? Answers that contradict one another, and a question that stays open, leave the relation open. No time
    goes into it: that one of two is newer proves nothing.

    Attributes:
        desk: observes.
        gates: decision kind -> gate.
        store: reads the entry, where one is related.
        recall: finds candidates, without a second stage.
        about: the question without evidence; without a subject where an entry is related.
        subject_ref: the entry that the text is of, which is no candidate; `None` for a text that is not stored.
        limit: the most candidates.
        acting: `False` in shadow.
        observed: decision kinds of the attempts that are observed.
        asking: those that are being asked.
    """

    desk: Desk
    gates: Mapping[str, Gate]
    store: EntryStore
    recall: Recall
    about: Question
    subject_ref: EntryRef | None
    limit: int
    acting: bool
    observed: set[str] = attrs.field(factory=set)
    asking: set[str] = attrs.field(factory=set)

    def open_gates(self) -> list[Gate]:
        """Return the gates that were being asked; at first the one that any relation begins with."""
        kinds = (self.asking or {TOPIC_KIND}) - self.observed
        return [gate for kind, gate in self.gates.items() if kind in kinds]

    async def run(self) -> RelationsAdvice:
        """Ask, observe, and say what came of it."""
        about = self.about
        if self.subject_ref is not None:
            about = attrs.evolve(about, subject=(await self.store.read(self.subject_ref)).content.text)
        hits = await self._candidates(about.subject)
        topics = await self._ask(TOPIC_KIND, about, hits)
        for topic in topics.values():
            await self._observe(topic, proposed=False)
        near = {place: hit for place, hit in hits.items() if topics[place].outcome is YES}
        duplicates = await self._ask(DUPLICATE_KIND, about, near)
        conflicts = await self._ask(CONFLICT_KIND, about, near)
        found = []
        for place, hit in hits.items():
            asked = [topics[place], *(kind[place] for kind in (duplicates, conflicts) if place in kind)]
            found.append(await self._related(hit.ref, asked))
        return RelationsAdvice(given=True, relations=tuple(found))

    async def _candidates(self, text: str) -> dict[int, Hit]:
        memories = (self.about.scope_id,)
        # One more, where the entry itself will be among what its own text finds.
        wanted = self.limit if self.subject_ref is None else min(self.limit + 1, 100)
        page = await self.recall.search(SearchRequest(text, memories, wanted))
        own = None if self.subject_ref is None else self.subject_ref.entry
        return dict(enumerate([hit for hit in page.hits if hit.ref.entry != own][: self.limit]))

    async def _ask(self, kind: str, about: Question, hits: Mapping[int, Hit]) -> dict[int, Answer]:
        gate = self.gates[kind]
        if hits:
            self.asking.add(kind)
        questions: dict[int, Question] = {}
        told: dict[int, DecisionOutcome] = {}
        answers: dict[int, Answer] = {}
        for place, hit in hits.items():
            text = hit.content.text
            question = attrs.evolve(about, evidence_refs=(str(hit.ref),))
            if len(text) > MAX_CHARACTERS:
                answers[place] = Answer(gate=gate, judged=gate.not_asked(question, TOO_MUCH))
                continue
            ruling = None
            if text == about.subject:
                told[place] = _OF_ONE_TEXT[kind]
                ruling = ContentJudgement(gate.policy.outcome_mapping[told[place]], SAME_TEXT)
            questions[place] = attrs.evolve(question, evidence=(text,), prejudged=ruling)
        judged = await gate.assess_many(tuple(questions.values()))
        for place, item in zip(questions, judged, strict=True):
            answers[place] = Answer(gate=gate, judged=item, told=told.get(place))
        return answers

    async def _related(self, ref: EntryRef, asked: Sequence[Answer]) -> RelationAdvice:
        relation, code = relation_of([item.outcome for item in asked]), _code(asked)
        raised = asked[_RAISES[relation]] if relation in _RAISES else None
        proposal = raised.proposal(relation) if raised is not None and self.acting and raised.proposes else None
        for item in asked[1:]:
            await self._observe(item, proposed=proposal is not None and item is raised)
        return RelationAdvice(
            ref=ref,
            relation=relation,
            code=code,
            proposal=proposal,
            observation_ids=tuple(item.observation_id for item in asked),
        )

    async def _observe(self, answer: Answer, *, proposed: bool) -> None:
        consumer = answer.gate.consumer
        self.observed.add(answer.gate.policy.decision_kind)
        await self.desk.observe(answer, (consumer.flagged if proposed else None) or consumer.passed)


_OF_ONE_TEXT: Final = {TOPIC_KIND: YES, DUPLICATE_KIND: YES, CONFLICT_KIND: NO}
"""What code answers of two texts that are one, without asking anybody."""

_RAISES: Final = {Relation.EQUIVALENT: 1, Relation.CONFLICTING: 2}
"""Relation -> place of the question whose answer makes it."""

_RELATIONS: Final = {
    (YES, NO): Relation.EQUIVALENT,
    (NO, YES): Relation.CONFLICTING,
    (NO, NO): Relation.COMPLEMENTARY,
}
"""(the same fact, cannot both be true) -> relation. Both at once is a contradiction."""


def relation_of(outcomes: Sequence[DecisionOutcome | None]) -> Relation:
    """Return the relation that the answers make: about the same thing, the same fact, cannot both be true.

    Args:
        outcomes: one when the first is not yes, else three; `None` for a question that stayed open.
    """
    if outcomes[0] is NO:
        return Relation.UNRELATED
    if outcomes[0] is not YES or None in outcomes:
        return Relation.INSUFFICIENT
    same, clash = outcomes[1:]
    return _RELATIONS.get((same, clash), Relation.INSUFFICIENT)  # type: ignore[arg-type]


def _code(asked: Sequence[Answer]) -> str:
    open_questions = [item.code for item in asked if item.outcome is None]
    if open_questions:
        return open_questions[0]
    if len(asked) > 1 and asked[1].outcome is YES and asked[2].outcome is YES:
        return CONTRADICTORY
    return asked[-1].code if len(asked) == 1 else asked[1].code
