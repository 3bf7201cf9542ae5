"""Does a policy judge the right way round? Questions whose answers are known, put through its gate.

A backend may well tell yes from no while a policy asks for the opposite of what its mapping takes yes for: then everything
that is supported is held, and filler is written. Only asking can find that out.
"""

from __future__ import annotations

from typing import Final

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

ASKED: Final = ("memory_write_gate", "handoff_evidence_consult")
"""The consumers whose question is whether evidence supports a statement."""


async def polarity(gate: Gate) -> list[Problem]:
    """Return `polarity` for each language in which a policy lets pass what it should not, or the other way round.

    Two questions for each language of the policy that has known ones. What no backend answered says nothing. Nothing is
    observed, and nothing is acted on.

    Args:
        gate: of a consumer in `ASKED`; another has no known questions, and nothing is asked.
    """
    problems = []
    for language, (statement, supporting, unrelated) in KNOWN.items():
        if gate.policy.consumer not in ASKED or language not in gate.policy.languages:
            continue
        supported, unsupported = (
            found.assessment.verdict if found.assessment.attempt is Attempt.BACKEND else GateVerdict.UNKNOWN
            for found in await gate.assess_many(
                [
                    Question(operation_id="probe", scope_id="probe", subject=statement, evidence=(evidence,))
                    for evidence in (supporting, unrelated)
                ]
            )
        )
        raised, passed = supported in (GateVerdict.DENY, GateVerdict.REVIEW), unsupported is GateVerdict.ALLOW
        if raised or passed:
            problems.append(_problem(gate.policy.policy_id, language, raised=raised, passed=passed))
    return problems


def _problem(policy_id: str, language: str, *, raised: bool, passed: bool) -> Problem:
    wrong = [*(["raises what its evidence supports"] * raised), *(["lets pass what it does not"] * passed)]
    text = f"policy {policy_id!r} {' and '.join(wrong)} (asked in {language!r})"
    if raised and passed:
        return Problem("polarity", text, "exchange yes and no in outcome_mapping, or ask the opposite; raise the version")
    hint = "reword its question in that language, or use another backend: this one does not tell the two apart"
    return Problem("polarity", text, hint, severity="warning")
