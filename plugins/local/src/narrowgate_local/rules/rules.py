"""The rules themselves. Each is pure: equal input, equal verdict, whatever the hour and whatever was asked before.

A rule that judges returns a `ContentJudgement`, which counts as adjudicated. One that only says that nobody is to be asked
returns a `TransportRefusal`: whatever becomes of the content, nobody judged it.
"""

from __future__ import annotations

from typing import Final

import attrs

from narrowgate.seams.gate_ports import ContentJudgement, RuleInput, TransportRefusal
from narrowgate.values.assessment import GateVerdict
from narrowgate_local.rules.lengths import length_of
from narrowgate_local.rules.settings import LengthBoundsSettings, SensitiveSettings

INVALID_REFERENCE: Final = "invalid_evidence_reference"
TOO_SHORT: Final = "too_short"
TOO_LONG: Final = "too_long"
EMPTY: Final = "empty"
OUT_OF_SCOPE: Final = "out_of_scope"
NOT_SENT: Final = "sensitive_not_sent"
ALREADY: Final = "already_adjudicated"
COOLDOWN: Final = "cooldown"


@attrs.frozen
class EvidenceResolves:
    """Denies what cites a reference that names nothing: no model can make that evidence."""

    def judge(self, given: RuleInput) -> ContentJudgement | None:
        """Return `invalid_evidence_reference`, or nothing."""
        return ContentJudgement(GateVerdict.DENY, INVALID_REFERENCE) if given.unresolved_refs else None


@attrs.frozen
class LengthBounds:
    """Judges a subject that is too short or too long to be asked about.

    Attributes:
        settings: the bounds, and what is said of each.
    """

    settings: LengthBoundsSettings = attrs.field(factory=LengthBoundsSettings)

    def judge(self, given: RuleInput) -> ContentJudgement | None:
        """Return `empty`, `too_short` or `too_long`, or nothing."""
        bounds = self.settings
        length = length_of(given.request.subject, bounds.max_length)
        if length == 0:
            return ContentJudgement(GateVerdict(bounds.empty), EMPTY)
        if length < bounds.min_length:
            return ContentJudgement(GateVerdict(bounds.too_short), TOO_SHORT)
        if length > bounds.max_length:
            return ContentJudgement(GateVerdict(bounds.too_long), TOO_LONG)
        return None


@attrs.frozen
class Scope:
    """Denies what happens in a scope that the operation may not touch."""

    def judge(self, given: RuleInput) -> ContentJudgement | None:
        """Return `out_of_scope`, or nothing."""
        if given.allowed_scopes is None or given.scope_id in given.allowed_scopes:
            return None
        return ContentJudgement(GateVerdict.DENY, OUT_OF_SCOPE)


@attrs.frozen
class Sensitive:
    """Keeps sensitive content from leaving this machine, even redacted. Where it does not leave it has nothing to say.

    Attributes:
        settings: which detectors count.
    """

    settings: SensitiveSettings = attrs.field(factory=SensitiveSettings)

    def judge(self, given: RuleInput) -> TransportRefusal | None:
        """Return `sensitive_not_sent`, or nothing. Without a sanitiser in use nobody knows, and nothing is said."""
        if not given.leaves or not given.sensitive:
            return None
        kinds = self.settings.kinds
        if any(number > 0 and (not kinds or kind in kinds) for kind, number in given.sensitive.items()):
            return TransportRefusal(NOT_SENT, privacy=True)
        return None


@attrs.frozen
class AlreadyAdjudicated:
    """Repeats the verdict that the same content had under the same policy, instead of asking twice."""

    def judge(self, given: RuleInput) -> ContentJudgement | None:
        """Return `already_adjudicated` with the earlier verdict, or nothing."""
        return None if given.earlier is None else ContentJudgement(given.earlier, ALREADY)


@attrs.frozen
class Cooldown:
    """Leaves a backend alone for a while after failures in a row."""

    def judge(self, given: RuleInput) -> TransportRefusal | None:
        """Return `cooldown`, or nothing."""
        return TransportRefusal(COOLDOWN) if given.cooling else None
