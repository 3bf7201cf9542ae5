"""The probe of gates: a policy that judges the wrong way round is found out before it holds anything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import attrs
import pytest
from advice_parts import HANDOFF, Teller, advised
from gate_parts import POLICY, Judge, Sink, gated

from narrowgate.governance.polarity import KNOWN
from narrowgate.values.decision import DecisionRequest

pytestmark = pytest.mark.anyio

REVERSED = POLICY.replace('yes = "allow"\nno = "deny"', 'yes = "deny"\nno = "allow"')


@pytest.mark.parametrize("mode", ["shadow", "enforcing"])
async def test_a_sound_policy_has_nothing_to_tell(tmp_path: Path, mode: str) -> None:
    """Each language is asked twice; nothing is written, held or observed for it."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, mode, judge, sink) as gate:
        assert await gate.probe() == ()
        assert await gate.memories() == ()
        assert await gate.held() == ()
    assert judge.asked == [statement for statement, *_ in KNOWN.values() for _ in range(2)]
    assert sink.taken == []


async def test_a_policy_the_wrong_way_round_is_told_in_each_language(tmp_path: Path) -> None:
    """It would hold whatever is supported, and write filler."""
    async with gated(tmp_path, "enforcing", policy=REVERSED) as gate:
        found = await gate.probe()
    assert [(item.code, item.severity) for item in found] == [("polarity", "error")] * 2
    assert found[0].message == (
        "policy 'team.write.v1' raises what its evidence supports and lets pass what it does not (asked in 'en')"
    )
    assert found[1].message.endswith("(asked in 'zh')")


async def test_one_that_tells_nothing_apart_is_a_warning_and_a_language_that_it_does_not_see_is_not_asked(
    tmp_path: Path,
) -> None:
    """Everything is allowed, or everything denied: no use, but not the wrong way round."""
    lax = POLICY.replace('no = "deny"', 'no = "allow"').replace('effect = "hold"', 'effect = "hold"\nlanguages = ["zh"]')
    async with gated(tmp_path, "advisory", policy=lax) as gate:
        (problem,) = await gate.probe()
    assert problem.severity == "warning"
    assert problem.message == "policy 'team.write.v1' lets pass what it does not (asked in 'zh')"


async def test_what_nobody_answered_says_nothing(tmp_path: Path) -> None:
    """A backend that is down is no policy the wrong way round."""
    async with gated(tmp_path, "enforcing", Judge(fails=True), policy=REVERSED) as gate:
        assert await gate.probe() == ()


def sound(request: DecisionRequest) -> str:
    """Answer the known questions of advice as somebody who reads the question would."""
    text, (evidence,) = request.subject, request.evidence
    clashes = any(word in evidence for word in ("never", "绝不"))
    yes = {
        "memory.topic": True,
        "memory.duplicate": text == evidence,
        "memory.conflict": clashes,
        "handoff.consult": text in evidence,
        "handoff.contradiction": clashes,
        "experience.applicability": any(word in evidence for word in ("Deploy", "部署")),
    }
    return "yes" if yes[request.decision_kind] else "no"


CONSUMED: Final = ("memory.conflict", "handoff.consult", "handoff.contradiction", "experience.applicability")


async def test_advice_is_asked_what_it_is_about(tmp_path: Path) -> None:
    """Each question has known ones of its own, but for the one that raises nothing either way."""
    teller = Teller(dict.fromkeys(("memory.duplicate", *CONSUMED), sound))
    async with advised(tmp_path / "m.db", teller) as gate:
        assert await gate.probe() == ()
    assert Counter(teller.kinds) == dict.fromkeys(("memory.duplicate", *CONSUMED), 4)


async def test_a_backend_that_does_not_read_the_question_is_told(tmp_path: Path) -> None:
    """One that judges support, whatever it is asked, calls a supported claim contradicted: nobody should rest on it."""
    judged = Teller(dict.fromkeys(CONSUMED, lambda request: sound(attrs.evolve(request, decision_kind="handoff.consult"))))
    async with advised(tmp_path / "m.db", judged, use=HANDOFF) as gate:
        found = await gate.probe()
    assert {(item.code, item.severity) for item in found} == {("polarity", "error")}
    assert all(
        "'handoff.contradiction.consult.v1' raises what is sound and lets pass what is not" in item.message for item in found
    )
