"""What advice says. All of it is information for whoever decides: nothing here approves, merges, accepts or installs."""

from __future__ import annotations

from enum import StrEnum

import attrs

from narrowgate.values.identity import EntryRef


@attrs.frozen(kw_only=True)
class Proposal:
    """Something that a person should look at, with the way back to where it comes from.

    Attributes:
        policy_id: the policy that proposes; reviews are grouped by it.
        policy_version: its version.
        observation_id: the observation of the attempt.
        about: what is proposed: `equivalent`, `conflicting`, `verify`, `applies`.
        refs: exact references of what is concerned.
    """

    policy_id: str
    policy_version: str
    observation_id: str
    about: str
    refs: tuple[str, ...]


class Relation(StrEnum):
    """How a text relates to an entry that is there.

    EQUIVALENT: the same fact under the same conditions. CONFLICTING: both cannot be true. COMPLEMENTARY: about the same
    thing, and neither of the two. UNRELATED: about something else. INSUFFICIENT: nobody knows, see the code.
    """

    EQUIVALENT = "equivalent"
    CONFLICTING = "conflicting"
    COMPLEMENTARY = "complementary"
    UNRELATED = "unrelated"
    INSUFFICIENT = "insufficient"


@attrs.frozen(kw_only=True)
class RelationAdvice:
    """The relation to one entry.

    Attributes:
        ref: the exact entry.
        relation: see `Relation`.
        code: why: `judged`, `same_text`, `contradictory_answers`, or the reason for which a question stayed open
            (`decision_model_fallback`, `cooldown`, `no_backend`, ...).
        proposal: for an equivalent or conflicting entry, where the policy proposes at all.
        observation_ids: of the questions asked, in order.
    """

    ref: EntryRef
    relation: Relation
    code: str
    proposal: Proposal | None = None
    observation_ids: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class RelationsAdvice:
    """The relations to the candidates that recall found, in its order.

    Attributes:
        given: `False` in shadow: nothing is said, as without the policies.
        relations: one for each candidate. That there is none says nothing about what recall did not find.
    """

    given: bool
    relations: tuple[RelationAdvice, ...] = ()

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """What somebody should look at."""
        return tuple(item.proposal for item in self.relations if item.proposal is not None)


class Finding(StrEnum):
    """What evidence says of a claim. INSUFFICIENT: nobody knows, see the code."""

    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    DOES_NOT_ADDRESS = "does_not_address"
    INSUFFICIENT = "insufficient"


@attrs.frozen(kw_only=True)
class HandoffAdvice:
    """What the attached evidence says of a claim. Supported is not accepted, verified or done.

    Attributes:
        given: `False` in shadow: nothing is said, as without the policies.
        finding: see `Finding`; `None` when nothing is said.
        code: why: `judged`, `contradictory_answers`, `needs_evidence`, `evidence_limit_exceeded`,
            `invalid_evidence_reference`, `evidence_unreadable`, or the reason for which a question stayed open.
        verify: somebody should verify the claim by other means. Not set by an outage: then things go as without advice.
        unresolved: references that name nothing.
        proposals: the same request, with the way back to its observations.
        observation_ids: of the questions, in order.
    """

    given: bool
    finding: Finding | None = None
    code: str | None = None
    verify: bool = False
    unresolved: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    observation_ids: tuple[str, ...] = ()


class Fit(StrEnum):
    """Whether the conditions of an experience fit a task. UNKNOWN is not the same as not."""

    APPLIES = "applies"
    DOES_NOT_APPLY = "does_not_apply"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class ExperienceAdvice:
    """One experience by itself: absolute, whatever the others are.

    Attributes:
        ref: as it was given.
        fit: see `Fit`.
        code: why: `judged`, or the reason for which the question stayed open.
        probability: calibrated, of fitting, 0..1, where the backend has one.
        score: uncalibrated, where it has one.
        rank: place among those that apply, 1 the best; `None` for the others. Relative, and no measure of fit.
        proposal: the recommendation, with the way back to its observation.
        observation_id: of the question.
    """

    ref: str
    fit: Fit
    code: str
    probability: float | None = None
    score: float | None = None
    rank: int | None = None
    proposal: Proposal | None = None
    observation_id: str | None = None


class Applicability(StrEnum):
    """SOME: at least one applies. NONE: every one was judged, and none applies. UNKNOWN: none is known to, and not all were
    judged."""

    SOME = "some_apply"
    NONE = "none_applies"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class ApplicabilityAdvice:
    """Which experiences fit a task.

    Attributes:
        given: `False` in shadow: nothing is said, as without the policy.
        outcome: see `Applicability`; `None` when nothing is said.
        experiences: every one that was given, in the order in which they were.
    """

    given: bool
    outcome: Applicability | None = None
    experiences: tuple[ExperienceAdvice, ...] = ()

    @property
    def recommended(self) -> tuple[ExperienceAdvice, ...]:
        """Those that apply, by rank."""
        ranked = [(item.rank, item) for item in self.experiences if item.rank is not None]
        return tuple(item for _, item in sorted(ranked, key=lambda pair: pair[0]))
