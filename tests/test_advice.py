"""Advice on a running composition: how entries relate, what evidence says of a claim, which experience fits."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from advice_parts import FITS, HANDOFF, RELATION, Teller, advised
from gate_parts import Sink

import narrowgate
from narrowgate import CapabilityError, EntryRef, InputError
from narrowgate.governance.advice import Applicability, Finding, Fit, Relation, RelationsAdvice
from narrowgate.governance.advice.relations import relation_of
from narrowgate.values.assessment import Attempt, Coverage
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.entry import Evidence

pytestmark = pytest.mark.anyio

STORED: Final = (
    "The order service runs on Postgres 16.",
    "The order service is deployed on Fridays.",
    "订单服务的夜间备份在凌晨两点。",
)
TEXT: Final = "The order service runs on MySQL."


def by_text(said: dict[str, Any]) -> Any:
    """Return an answer by the text of the entry that is compared."""
    return lambda request: next((value for part, value in said.items() if part in request.evidence[0]), "no")


@pytest.mark.parametrize(
    ("topic", "same", "clash", "relation", "code"),
    [
        ("yes", "yes", "no", Relation.EQUIVALENT, "judged"),
        ("yes", "no", "yes", Relation.CONFLICTING, "judged"),
        ("yes", "no", "no", Relation.COMPLEMENTARY, "judged"),
        ("no", "yes", "yes", Relation.UNRELATED, "judged"),
        ("yes", "yes", "yes", Relation.INSUFFICIENT, "contradictory_answers"),
        (None, "yes", "no", Relation.INSUFFICIENT, "no_terms"),
        ("yes", None, "yes", Relation.INSUFFICIENT, "no_terms"),
        ("yes", "yes", None, Relation.INSUFFICIENT, "no_terms"),
    ],
)
async def test_each_relation_comes_of_its_answers(
    tmp_path: Path, topic: Any, same: Any, clash: Any, relation: Relation, code: str
) -> None:
    """Asked narrowly and in order: what is about something else is asked nothing more. Only two relations propose."""
    teller, sink = Teller({"memory.topic": topic, "memory.duplicate": same, "memory.conflict": clash}), Sink()
    async with advised(tmp_path / "m.db", teller, sink) as gate:
        ref = (await gate.remember("m", STORED[0])).items[0].ref
        before = await gate.changes("m")
        advice = await gate.advice.relations("m", TEXT)
        assert await gate.changes("m") == before
        assert await gate.held() == ()
    (found,) = advice.relations
    assert (advice.given, found.ref, found.relation, found.code) == (True, ref, relation, code)
    whole = topic == "yes"
    kinds = ["memory.topic", *(["memory.duplicate", "memory.conflict"] if whole else [])]
    assert teller.kinds == kinds
    assert [item.evidence for item in teller.asked] == [(STORED[0],)] * len(kinds)
    assert [item.assessment.policy_id for item in sink.taken] == list(RELATION[: len(kinds)])
    assert tuple(item.observation_id for item in sink.taken) == found.observation_ids
    assert all(item.evidence_refs == (str(ref),) for item in sink.taken)
    raised = {Relation.EQUIVALENT: 1, Relation.CONFLICTING: 2}.get(relation)
    actions = [
        "duplicate_conflict_propose" if place == raised else "duplicate_conflict_observe" for place in range(len(kinds))
    ]
    assert sink.actions == actions
    assert len(advice.proposals) == (raised is not None)
    for proposal in advice.proposals:
        assert proposal.observation_id == sink.taken[raised or 0].observation_id
        assert (proposal.policy_id, proposal.about, proposal.refs) == (RELATION[raised or 0], relation, (str(ref),))


def test_every_combination_of_answers_has_a_relation() -> None:
    """Nothing that is open or contradictory gets another relation than insufficient."""
    yes, no = DecisionOutcome.YES, DecisionOutcome.NO
    for same, clash in itertools.product((yes, no, None), repeat=2):
        found = relation_of([yes, same, clash])
        if None in (same, clash) or same is clash is yes:
            assert found is Relation.INSUFFICIENT
        else:
            assert found is not Relation.INSUFFICIENT
    assert (relation_of([no]), relation_of([None])) == (Relation.UNRELATED, Relation.INSUFFICIENT)


async def test_each_candidate_is_judged_by_itself(tmp_path: Path) -> None:
    """In the order in which recall finds them, at most as many as were asked for; in English and in Chinese."""
    says = {"memory.topic": by_text({"Postgres": "yes", "Fridays": "no", "备份": "yes"}), "memory.duplicate": "no"}
    teller = Teller({**says, "memory.conflict": by_text({"Postgres": "yes"})})
    async with advised(tmp_path / "m.db", teller) as gate:
        await gate.remember("m", STORED)
        found = await gate.advice.relations("m", TEXT)
        assert [item.relation for item in found.relations] == [Relation.CONFLICTING, Relation.UNRELATED]
        assert len((await gate.advice.relations("m", TEXT, limit=1)).relations) == 1
        chinese = await gate.advice.relations("m", "订单服务没有备份。")
        assert [item.relation for item in chinese.relations] == [Relation.COMPLEMENTARY]
        assert teller.asked[-1].question.startswith("在相同时间")
        assert (await gate.advice.relations("nothing", TEXT)) == RelationsAdvice(given=True)


async def test_one_text_is_one_text(tmp_path: Path) -> None:
    """Two texts that are equal need no model, and an entry is no candidate for itself."""
    teller, sink = Teller(), Sink()
    async with advised(tmp_path / "m.db", teller, sink) as gate:
        receipt = await gate.remember("m", STORED)
        first = receipt.items[0].ref
        assert first is not None
        (found, *_) = (await gate.advice.relations("m", STORED[0], limit=1)).relations
        assert (found.ref, found.relation, found.code) == (first, Relation.EQUIVALENT, "same_text")
        assert teller.asked == []
        assert found.proposal is not None
        others = await gate.advice.relations("m", first)
        assert [item.ref for item in others.relations] == [receipt.items[1].ref]
    assert {item.assessment.attempt for item in sink.taken[:3]} == {Attempt.LOCAL_RULE}
    assert {item.subject_refs for item in sink.taken[3:]} == {(str(first),)}


@pytest.mark.parametrize(
    ("support", "contradiction", "finding", "verify"),
    [
        ("yes", "no", Finding.SUPPORTS, False),
        ("no", "yes", Finding.CONTRADICTS, True),
        ("no", "no", Finding.DOES_NOT_ADDRESS, True),
        ("yes", "yes", Finding.INSUFFICIENT, True),
        (None, "no", Finding.INSUFFICIENT, False),
        ("yes", None, Finding.INSUFFICIENT, False),
    ],
)
async def test_each_finding_comes_of_its_answers(
    tmp_path: Path, support: Any, contradiction: Any, finding: Finding, verify: bool
) -> None:
    """What was judged not to be supported is to be verified; a question that stayed open asks nothing of anybody."""
    teller, sink = Teller({"handoff.consult": support, "handoff.contradiction": contradiction}), Sink()
    async with advised(tmp_path / "m.db", teller, sink) as gate:
        ref = (await gate.remember("m", STORED[0])).items[0].ref
        assert ref is not None
        log = Evidence("ci:17", "All tests passed.")
        advice = await gate.advice.handoff("The service was moved to Postgres.", [ref, log])
    assert (advice.given, advice.finding, advice.verify) == (True, finding, verify)
    assert [item.evidence for item in teller.asked] == [(STORED[0], "All tests passed.")] * 2
    assert advice.observation_ids == tuple(item.observation_id for item in sink.taken)
    assert bool(advice.proposals) is verify
    asking = [item.observation_id for item in sink.taken if item.final_action == "handoff_consult_verify"]
    assert asking == [item.observation_id for item in advice.proposals]


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        ([], "needs_evidence"),
        (["m@1/01HZZZZZZZZZZZZZZZZZZZZZZZ/1"], "invalid_evidence_reference"),
        ([Evidence("ci:17")], "invalid_evidence_reference"),
        ([Evidence("ci:17", "  ")], "invalid_evidence_reference"),
        ([Evidence("ci:17", "x" * 16_001)], "evidence_limit_exceeded"),
        ([Evidence(f"ci:{number}", "passed") for number in range(33)], "evidence_limit_exceeded"),
    ],
)
async def test_evidence_is_judged_whole_or_not_at_all(tmp_path: Path, evidence: Any, code: str) -> None:
    """What names nothing, or is too much, is nobody's judgement: nobody is asked, and somebody should look."""
    teller, sink = Teller(), Sink()
    async with advised(tmp_path / "m.db", teller, sink) as gate:
        advice = await gate.advice.handoff("The task is done.", evidence)
    assert (advice.finding, advice.code, advice.verify) == (Finding.INSUFFICIENT, code, True)
    assert teller.asked == []
    assert {(item.assessment.attempt, item.assessment.coverage) for item in sink.taken} == {
        (Attempt.NO_CALL, Coverage.UNADJUDICATED)
    }
    assert sink.actions == ["handoff_consult_verify"] * 2


EXPERIENCES: Final = tuple(Evidence(f"skill:{name}", f"When {name} is to be deployed.") for name in "abcd")


@pytest.mark.parametrize(
    ("said", "fits", "ranks", "outcome"),
    [
        ((0.7, 0.1, 0.9, 0.7), ("yes", "no", "yes", "yes"), (2, None, 1, 3), Applicability.SOME),
        ((0.1, 0.2, 0.3, 0.4), ("no",) * 4, (None,) * 4, Applicability.NONE),
        ((0.1, None, 0.3, 0.4), ("no", "?", "no", "no"), (None,) * 4, Applicability.UNKNOWN),
        ((None, None, 0.8, None), ("?", "?", "yes", "?"), (None, None, 1, None), Applicability.SOME),
        (("yes", "no", "yes", 0.9), ("yes", "no", "yes", "yes"), (1, None, 2, 3), Applicability.SOME),
    ],
)
async def test_experiences_are_judged_apart_and_ranked(
    tmp_path: Path, said: Any, fits: Any, ranks: Any, outcome: Applicability
) -> None:
    """Absolute fit apart from relative rank; unknown apart from not; an explicit none. No order is made up of no numbers."""
    table = dict(zip("abcd", said, strict=True))
    teller, sink = Teller({"experience.applicability": lambda asked: table[asked.subject.split()[1]]}), Sink()
    async with advised(tmp_path / "m.db", teller, sink) as gate:
        advice = await gate.advice.applicability("Deploy the order service.", EXPERIENCES)
    names = {"yes": Fit.APPLIES, "no": Fit.DOES_NOT_APPLY, "?": Fit.UNKNOWN}
    assert (advice.given, advice.outcome) == (True, outcome)
    assert [item.fit for item in advice.experiences] == [names[item] for item in fits]
    assert tuple(item.rank for item in advice.experiences) == ranks
    assert [item.rank for item in advice.recommended] == sorted(rank for rank in ranks if rank)
    assert [item.proposal is not None for item in advice.experiences] == [rank is not None for rank in ranks]
    expected = ["applicability_recommend" if rank else "applicability_none" for rank in ranks]
    assert sink.actions == expected
    assert [item.subject_refs for item in sink.taken] == [(item.ref,) for item in EXPERIENCES]
    assert all(item.evidence == ("Deploy the order service.",) for item in teller.asked)


async def test_an_experience_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    """It is not asked about, and is no reason to say that none applies."""
    teller = Teller({"experience.applicability": "no"})
    async with advised(tmp_path / "m.db", teller) as gate:
        ref = (await gate.remember("m", "When a service is to be deployed.")).items[0].ref
        assert ref is not None
        gone = "m@1/01HZZZZZZZZZZZZZZZZZZZZZZZ/1"
        advice = await gate.advice.applicability("Deploy the order service.", [ref, gone])
        assert [(item.ref, item.fit, item.code) for item in advice.experiences] == [
            (str(ref), Fit.DOES_NOT_APPLY, "judged"),
            (gone, Fit.UNKNOWN, "invalid_evidence_reference"),
        ]
        assert advice.outcome is Applicability.UNKNOWN
        empty = await gate.advice.applicability("Deploy the order service.", [])
        assert (empty.outcome, empty.experiences) == (Applicability.NONE, ())


async def all_three(gate: Any, ref: EntryRef) -> list[Any]:
    """Return what each call says."""
    return [
        await gate.advice.relations("m", TEXT),
        await gate.advice.handoff("The service was moved to Postgres.", [ref]),
        await gate.advice.applicability("Deploy the order service.", EXPERIENCES[:1]),
    ]


@pytest.mark.parametrize("mood", ["fails", "hangs", "lies"])
async def test_an_outage_leaves_things_open(tmp_path: Path, mood: str) -> None:
    """Nothing is raised, nothing is proposed, nothing that nobody judged is said to be so."""
    sink = Sink()
    teller = Teller(mood=mood)
    async with advised(tmp_path / "m.db", teller, sink, policies={"timeout": 0.05, "cooldown_after": 100}) as gate:
        ref = (await gate.remember("m", STORED[0])).items[0].ref
        assert ref is not None
        related, handed, fitting = await all_three(gate, ref)
    assert [item.relation for item in related.relations] == [Relation.INSUFFICIENT]
    assert (handed.finding, handed.verify) == (Finding.INSUFFICIENT, False)
    assert fitting.outcome is Applicability.UNKNOWN
    codes = {"fails": "unavailable", "hangs": "timeout", "lies": "invalid-answer"}
    assert {related.relations[0].code, handed.code, fitting.experiences[0].code} == {codes[mood]}
    attempt = Attempt.PARSE_FAILURE if mood == "lies" else Attempt.BACKEND_FALLBACK
    assert {item.assessment.attempt for item in sink.taken} == {attempt}
    assert {item.final_action for item in sink.taken} == {
        "duplicate_conflict_observe",
        "handoff_consult_none",
        "applicability_none",
    }


@pytest.mark.parametrize("mood", ["answers", "fails", "hangs", "lies"])
async def test_in_shadow_nothing_is_said(tmp_path: Path, mood: str) -> None:
    """At once, whatever the backend does; it is observed, with the action that was really taken: none."""
    teller, sink = Teller(mood=mood), Sink()
    settings = {"timeout": 0.05, "cooldown_after": 100}
    async with advised(tmp_path / "m.db", teller, sink, mode="shadow", policies=settings) as gate:
        ref = (await gate.remember("m", STORED[0])).items[0].ref
        assert ref is not None
        said = await all_three(gate, ref)
        assert teller.asked == []
    assert [item.given for item in said] == [False] * 3
    assert said == [type(item)(given=False) for item in said]
    observed = {item.assessment.policy_id for item in sink.taken}
    assert observed == ({*RELATION, *HANDOFF, FITS} if mood == "answers" else {RELATION[0], *HANDOFF, FITS})
    assert {item.final_action for item in sink.taken} == {
        "duplicate_conflict_observe",
        "handoff_consult_none",
        "applicability_none",
    }
    assert (mood == "answers") is all(item.assessment.coverage is Coverage.ADJUDICATED for item in sink.taken)


async def test_one_policy_in_shadow_keeps_the_whole_advice_back(tmp_path: Path) -> None:
    """Advice is as strong as the weakest policy that it rests on."""
    modes = {"modes": {**dict.fromkeys(RELATION, "advisory"), RELATION[2]: "shadow"}}
    sink = Sink()
    async with advised(tmp_path / "m.db", None, sink, use=RELATION, policies=modes) as gate:
        await gate.remember("m", STORED[0])
        assert not (await gate.advice.relations("m", TEXT)).given
    assert set(sink.actions) == {"duplicate_conflict_observe"}


async def test_a_full_queue_is_observed(tmp_path: Path) -> None:
    """What finds no room is told: nobody was asked."""
    sink = Sink()
    async with advised(
        tmp_path / "m.db",
        Teller(mood="hangs"),
        sink,
        mode="shadow",
        use=[FITS],
        policies={"shadow_queue": 1, "shadow_deadline": 0.5},
    ) as gate:
        for _ in range(6):
            await gate.advice.applicability("Deploy the order service.", EXPERIENCES[:1])
    reasons = [item.assessment.reason for item in sink.taken]
    assert len(reasons) == 6
    assert set(reasons) == {"shadow_queue_full", "shadow_deadline"}
    late = [item for item in sink.taken if item.assessment.reason == "shadow_deadline"]
    assert all((item.assessment.attempt, item.assessment.usage.calls) == (Attempt.BACKEND_FALLBACK, 1) for item in late)


@pytest.mark.parametrize("use", [(), RELATION[:2]])
async def test_a_call_refuses_without_its_policies(tmp_path: Path, use: Any) -> None:
    """It names what is missing, and the setting that adds it."""
    async with advised(tmp_path / "m.db", use=use) as gate:
        with pytest.raises(CapabilityError) as caught:
            await gate.advice.relations("m", TEXT)
        assert caught.value.code == "policy-missing"
        missing = [name for name in RELATION if name not in use]
        assert all(f'"{name}"' in str(caught.value) for name in missing)
        assert "[policies]" in str(caught.value)
        for call in (gate.advice.handoff("Done.", []), gate.advice.applicability("Deploy.", [])):
            with pytest.raises(CapabilityError, match=r"\[policies\]"):
                await call


async def test_a_disabled_policy_takes_no_part(tmp_path: Path) -> None:
    """As if it were not named."""
    async with advised(tmp_path / "m.db", use=[FITS], mode="disabled") as gate:
        with pytest.raises(CapabilityError, match="disabled"):
            await gate.advice.applicability("Deploy.", [])
        assert gate.governing.gates == {}
        assert gate.governing.shadow is None


@pytest.mark.parametrize("mode", ["shadow", "advisory"])
async def test_bad_arguments_are_refused_in_every_mode(tmp_path: Path, mode: str) -> None:
    """Shadow does not hide a mistake of the caller's."""
    async with advised(tmp_path / "m.db", mode=mode) as gate:
        for call in (
            gate.advice.relations("m", " "),
            gate.advice.relations("not an id", TEXT),
            gate.advice.relations("m", TEXT, limit=0),
            gate.advice.relations("m", TEXT, limit=101),
            gate.advice.handoff("", []),
            gate.advice.handoff("Done.", [3]),  # type: ignore[list-item]
            gate.advice.handoff("Done.", [], scope="two words"),
            gate.advice.applicability("Deploy.", [Evidence(f"s:{number}", "x y") for number in range(101)]),
        ):
            with pytest.raises(InputError):
                await call


async def test_nothing_of_what_is_judged_is_recorded(tmp_path: Path) -> None:
    """A canary in entries, claims, evidence and tasks is in no observation and in no advice."""
    sink = Sink()
    async with advised(tmp_path / "m.db", None, sink) as gate:
        ref = (await gate.remember("m", "The CANARY runs on Postgres 16.")).items[0].ref
        assert ref is not None
        said = [
            await gate.advice.relations("m", "The CANARY runs on MySQL."),
            await gate.advice.handoff("The CANARY was moved.", [ref, Evidence("ci:1", "CANARY passed.")]),
            await gate.advice.applicability("Deploy the CANARY.", [Evidence("s:1", "When a CANARY is deployed.")]),
        ]
    assert sink.taken
    assert "CANARY" not in repr(sink.taken) + repr(said)


async def test_a_caller_who_leaves_is_not_kept(tmp_path: Path) -> None:
    """Cancellation passes through a backend that hangs."""
    async with advised(tmp_path / "m.db", Teller(mood="hangs"), policies={"timeout": 1e6}) as gate:
        await gate.remember("m", STORED[0])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.advice.relations, "m", TEXT)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


def test_advice_without_async(tmp_path: Path) -> None:
    """The same three calls on the synchronous face, with the model that comes with narrowgate."""
    names = [*RELATION, *HANDOFF, FITS]
    overrides: dict[str, Any] = {
        "use": {"channels": ["sqlite.lexical"], "decision_backend": "local.evidence"},
        "settings": {"sqlite.store": {"path": tmp_path / "m.db"}},
        "policies": {"use": names, "modes": dict.fromkeys(names, "advisory")},
    }
    with narrowgate.open_sync(overrides=overrides, env={}) as gate:
        ref = gate.remember("m", STORED[0]).items[0].ref
        assert ref is not None
        assert [item.ref for item in gate.advice.relations("m", TEXT).relations] == [ref]
        assert gate.advice.handoff("The order service runs on Postgres 16.", ref).given
        fitting = gate.advice.applicability("Deploy the order service.", EXPERIENCES)
        assert [item.ref for item in fitting.experiences] == [item.ref for item in EXPERIENCES]
