"""Does a policy judge the right way round? Questions whose answers are known, put through its gate.

A backend may well tell yes from no while a policy asks for the opposite of what its mapping takes yes for: then everything
that is supported is held, and filler is written. Only asking can find that out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from narrowgate.governance.consumers import APPLICABILITY_KIND, CONFLICT_KIND, CONTRADICTION_KIND, DUPLICATE_KIND
from narrowgate.governance.gate import Gate
from narrowgate.governance.questions import Question
from narrowgate.seams.component import Problem
from narrowgate.values.assessment import Attempt, GateVerdict

KNOWN: Final = {
    "en": (
        "The nightly backup of the order service starts at four o'clock.",
        "Handbook of operations, section 3: The nightly backup of the order service starts at four o'clock.",
        "Nora likes her tea without sugar.",
    ),
    "zh": (
        "订单服务的夜间备份在凌晨四点开始。",
        "运维手册第三节：订单服务的夜间备份在凌晨四点开始。",
        "小林喝茶不加糖。",
    ),
}
"""Language -> a statement, evidence that supports it, and a text that has nothing to do with it."""

_CONTRADICTING: Final = {
    "en": "Handbook of operations, section 3: The nightly backup of the order service starts at nine, never at four.",
    "zh": "运维手册第三节：订单服务的夜间备份在晚上九点开始，绝不在凌晨四点。",
}

Known = Mapping[str, tuple[str, str, str]]
"""Language -> subject, evidence with which it is to pass, evidence with which it is to be raised."""

_SUPPORT: Final[Known] = {name: (said, good, other) for name, (said, good, other) in KNOWN.items()}
_CLASH: Final[Known] = {name: (said, good, _CONTRADICTING[name]) for name, (said, good, _) in KNOWN.items()}

OF_KIND: Final[Mapping[str, Known]] = {
    CONTRADICTION_KIND: _CLASH,
    CONFLICT_KIND: _CLASH,
    DUPLICATE_KIND: {name: (said, other, said) for name, (said, _, other) in KNOWN.items()},
    APPLICABILITY_KIND: {
        "en": (
            "When a service is to be deployed to production.",
            "Translate the menu of the canteen into French.",
            "Deploy the order service to production.",
        ),
        "zh": ("要把服务部署到生产环境时适用。", "把食堂的菜单翻译成法语。", "把订单服务部署到生产环境。"),
    },
}
"""Decision kind -> its known questions, where they are not about support."""

ASKED: Final = ("memory_write_gate", "handoff_evidence_consult")
"""The consumers whose question is whether evidence supports a statement, unless its kind is in `OF_KIND`."""


async def polarity(gate: Gate) -> list[Problem]:
    """Return `polarity` for each language in which a policy lets pass what it should not, or the other way round.

    Two questions for each language of the policy that has known ones. What no backend answered says nothing. Nothing is
    observed, and nothing is acted on.

    Args:
        gate: of a kind in `OF_KIND` or a consumer in `ASKED`; another has no known questions, and nothing is asked.
    """
    problems = []
    about_support = gate.policy.decision_kind not in OF_KIND
    known: Known = OF_KIND.get(gate.policy.decision_kind, _SUPPORT if gate.policy.consumer in ASKED else {})
    for language, (subject, passing, raising) in known.items():
        if language not in gate.policy.languages:
            continue
        passes, raises = (
            found.assessment.verdict if found.assessment.attempt is Attempt.BACKEND else GateVerdict.UNKNOWN
            for found in await gate.assess_many(
                [
                    Question(operation_id="probe", scope_id="probe", subject=subject, evidence=(evidence,))
                    for evidence in (passing, raising)
                ]
            )
        )
        raised, passed = passes in (GateVerdict.DENY, GateVerdict.REVIEW), raises is GateVerdict.ALLOW
        if raised or passed:
            words = ("what its evidence supports", "what it does not") if about_support else ("what is sound", "what is not")
            problems.append(_problem(gate.policy.policy_id, language, words, raised=raised, passed=passed))
    return problems


def _problem(policy_id: str, language: str, words: tuple[str, str], *, raised: bool, passed: bool) -> Problem:
    wrong = [*([f"raises {words[0]}"] * raised), *([f"lets pass {words[1]}"] * passed)]
    text = f"policy {policy_id!r} {' and '.join(wrong)} (asked in {language!r})"
    if raised and passed:
        return Problem("polarity", text, "exchange yes and no in outcome_mapping, or ask the opposite; raise the version")
    hint = "reword its question in that language, or use another backend: this one does not tell the two apart"
    return Problem("polarity", text, hint, severity="warning")
