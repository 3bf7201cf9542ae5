"""What callers and third parties hand in gets into no record but in the shape that it should have, and breaks no other."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from advice_parts import FITS, HANDOFF, RELATION, STAGE, Teller, advised
from gate_parts import Judge, Sink, cited, gated, statuses

import narrowgate
from narrowgate import load_config, plan
from narrowgate.decisions import DecisionRequest, checked
from narrowgate.errors import DecisionError, InputError, RerankError
from narrowgate.governance.asking import NamedBackend
from narrowgate.governance.gate import Gate
from narrowgate.governance.questions import Question
from narrowgate.governance.recording import observation_of
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import Redacted
from narrowgate.values.assessment import Attempt
from narrowgate.values.decision import DecisionOutcome, DecisionResult, Usage
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate.values.policy import PrivacyBoundary
from narrowgate_observe.jsonl import JsonlSink
from narrowgate_observe.settings import JsonlSettings
from narrowgate_sqlite.ledger import open_ledger
from narrowgate_sqlite.settings import LedgerSettings

pytestmark = pytest.mark.anyio

CANARIES: Final = ("The canary 7f3a sings at dawn.", "金丝雀七三在黎明歌唱。")


@pytest.mark.parametrize(
    ("cited_as", "code"),
    [
        (Evidence("half \ud800", "text"), "text-surrogate"),
        (Evidence("ci:17", "half \udfff"), "text-surrogate"),
        (Evidence("two\nlines", "text"), "text-control"),
        (Evidence("nul\0", "text"), "text-control"),
        (Evidence("escape \x1b[31m", "text"), "text-control"),
        (Evidence("ci:17", "bell \a"), "text-control"),
        (Evidence("", "text"), "text-empty"),
        (Evidence("页" * 200, "text"), "text-too-long"),
        (Evidence("ci:17", b"bytes"), "text-type"),  # type: ignore[arg-type]
        (Evidence(17, "text"), "text-type"),  # type: ignore[arg-type]
        (CANARIES[0], "evidence-type"),
        (CANARIES[1], "evidence-type"),
        (17, "evidence-type"),
        (None, "evidence-type"),
    ],
)
@pytest.mark.parametrize("mode", ["shadow", "advisory"])
async def test_evidence_of_advice_is_held_to_what_that_of_a_draft_is(
    tmp_path: Path, cited_as: Any, code: str, mode: str
) -> None:
    """A piece that no record could hold is refused to its caller, in every mode, and not found out by a sink much later."""
    sink = Sink()
    async with advised(tmp_path / "m.db", Teller(), sink, mode=mode) as gate:
        for call in (gate.advice.handoff, gate.advice.applicability):
            with pytest.raises(InputError) as caught:
                await call("The task is done.", [cited_as])
            assert caught.value.code == code
            assert not any(canary in str(caught.value) for canary in CANARIES)
    assert sink.taken == []


@pytest.mark.parametrize("said", CANARIES)
@pytest.mark.parametrize("mode", ["shadow", "advisory", "enforcing"])
async def test_a_text_that_is_cited_in_place_of_its_source_is_in_no_record(tmp_path: Path, said: str, mode: str) -> None:
    """A source without a text is nothing that could be judged; where its name is no name, a record does not repeat it."""
    sink = Sink()
    async with gated(tmp_path, mode, Judge(), sink) as gate:
        await gate.remember("team", [EntryDraft("The order service moved.", evidence=(said,))])
        await gate.remember("team", [EntryDraft("It moved again.", evidence=tuple(f"{said} {n}" for n in range(33)))])
        await gate.remember("team", [EntryDraft("And again.", evidence=("mail:17", "https://wiki.example/页面", said))])
    assert [item.evidence_refs for item in sink.taken] == [
        ("withheld",),
        ("withheld",) * 33,
        ("mail:17", "https://wiki.example/页面", "withheld"),
    ]


@pytest.mark.parametrize("said", CANARIES)
@pytest.mark.parametrize("mode", ["shadow", "advisory"])
async def test_advice_on_such_a_text_is_in_no_record_either(tmp_path: Path, said: str, mode: str) -> None:
    """The caller is told which it was, in the caller's own words; the record is not."""
    sink = Sink()
    async with advised(tmp_path / "m.db", Teller(), sink, mode=mode) as gate:
        handed = await gate.advice.handoff("The task is done.", [Evidence(said)])
        fitting = await gate.advice.applicability("Deploy the service.", [Evidence(said)])
    if mode == "advisory":
        assert handed.unresolved == (said,)
        assert [item.ref for item in fitting.experiences] == [said]
    assert {item.evidence_refs for item in sink.taken if item.consumer == "handoff_evidence_consult"} == {("withheld",)}
    assert {item.subject_refs for item in sink.taken if item.consumer == "experience_applicability"} == {("withheld",)}


class Shy:
    """A backend that answers, and cannot say what it is."""

    batch_limit = 8
    concurrency = 1

    def __init__(self, shown: str) -> None:
        self._shown = shown

    @property
    def exact_model(self) -> str:
        raise RuntimeError(self._shown)

    @property
    def policy_id(self) -> str:
        raise RuntimeError(self._shown)

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        return tuple(DecisionResult(DecisionOutcome.NO, "shy.v1", Usage(1, 1), probability=0.1) for _ in requests)


@pytest.mark.parametrize("mode", ["shadow", "advisory", "enforcing"])
async def test_a_backend_that_cannot_say_what_it_is_has_judged_all_the_same(tmp_path: Path, mode: str) -> None:
    """What it answered counts, the model is not known, and a policy that fails open raises nothing."""
    sink = Sink()
    async with gated(tmp_path, mode, Shy(CANARIES[0]), sink) as gate:  # type: ignore[arg-type]
        receipt = await gate.remember("team", [cited("The order service moved.")])
    assert statuses(receipt) == ["held" if mode == "enforcing" else "added"]
    (seen,) = sink.taken
    assert (seen.assessment.attempt, seen.backend_model_id, seen.model_policy_id) == (Attempt.BACKEND, None, "shy.v1")


async def test_advice_of_such_a_backend_is_advice(tmp_path: Path) -> None:
    """All three calls."""
    sink = Sink()
    async with advised(tmp_path / "m.db", Shy(CANARIES[0]), sink) as gate:
        await gate.remember("team", "The order service runs on Postgres.")
        related = await gate.advice.relations("team", "The order service runs on MySQL.")
        handed = await gate.advice.handoff("The task is done.", [Evidence("ci:17", "It failed.")])
        fitting = await gate.advice.applicability("Deploy the service.", [Evidence("skill:tea", "When guests come.")])
    assert [item.relation for item in related.relations] == ["unrelated"]
    assert (handed.finding, fitting.outcome) == ("does_not_address", "none_applies")
    assert {item.backend_model_id for item in sink.taken} == {None}


async def test_a_second_stage_over_such_a_backend_is_observed(tmp_path: Path) -> None:
    """The watch asks the backend what it is as well, beside the search."""
    sink = Sink()

    class Silent(Teller):
        @property
        def exact_model(self) -> str:
            raise RuntimeError(CANARIES[0])

    async with advised(
        tmp_path / "m.db", Silent(), sink, mode="shadow", use=(STAGE,), reranker="decision.keep-drop"
    ) as gate:
        await gate.remember("team", "The order service runs on Postgres.")
        page = await gate.search("order service", memory="team")
    assert len(page.hits) == 1
    assert [(item.final_action, item.backend_model_id, item.model_policy_id) for item in sink.taken] == [
        ("memory_rerank_select", None, "teller.v1")
    ]


@attrs.define
class Loose:
    """A sanitiser that redacts, and counts as it pleases."""

    found: Any
    text: Any = "a text with [KEY-1] in it"
    policy_id: str = "loose.v1"

    def redact(self, texts: Sequence[str]) -> tuple[Redacted, ...]:
        return tuple(Redacted(self.text, self.found) for _ in texts)


def hosted_gate(sanitiser: Loose) -> tuple[Gate, Judge]:
    """Return a gate whose backend is on another machine, behind the sanitiser."""
    from narrowgate.governance.builtin import BUILT_IN

    policy = attrs.evolve(
        BUILT_IN["memory.write.evidence_sufficiency.v1"], privacy_boundary=PrivacyBoundary.HOSTED_REDACTED, local_rules=()
    )
    judge = Judge()
    return Gate(policy, backend=NamedBackend("far.judge", Locality.HOSTED, judge), sanitiser=sanitiser), judge


QUESTION: Final = Question(operation_id="o", scope_id="team", subject="a secret text", evidence=("a secret source",))


@pytest.mark.parametrize(
    "loose",
    [
        Loose({"key": -1}),
        Loose({"key": "one"}),
        Loose({"key": 1.5}),
        Loose({"key": True}),
        Loose({1: 1}),
        Loose(None),
        Loose({"key": 1}, text=None),
        Loose({"key": 1}, text=b"a text"),
    ],
    ids=str,
)
async def test_a_sanitiser_whose_answer_is_none_has_failed(loose: Loose) -> None:
    """Nothing is sent after it, and nobody has judged: it may have taken out nothing at all."""
    gate, judge = hosted_gate(loose)
    judged = await gate.assess(QUESTION)
    assert (judged.assessment.attempt, judged.assessment.reason) == (Attempt.PRIVACY_FALLBACK, "sanitiser_failed")
    assert judge.asked == []
    assert observation_of(gate, judged, "memory_write_accept").redactions == {}


@pytest.mark.parametrize("name", [*CANARIES, "x" * 200, "half \ud800", ""])
async def test_a_detector_named_after_what_it_found_is_withheld(name: str) -> None:
    """Its places are counted all the same."""
    gate, judge = hosted_gate(Loose({name: 1, "key": 2, name.upper() + "!": 1}))
    seen = observation_of(gate, await gate.assess(QUESTION), "memory_write_accept", snippets=True)
    assert judge.asked == ["a text with [KEY-1] in it"]
    assert seen.redactions == {"withheld": 4, "key": 4}


async def test_half_a_character_of_a_sanitiser_is_in_no_record() -> None:
    """No file could hold it, and all that was to be written with it would be lost with it."""
    gate, _ = hosted_gate(Loose({"key": 1}, text="a text with half a \ud83d in it"))
    asked = attrs.evolve(QUESTION, evidence_refs=("mail of Ana",))
    seen = observation_of(gate, await gate.assess(asked), "memory_write_accept", snippets=True)
    assert (seen.snippet, seen.evidence_refs) == ("a text with half a ? in it", ("a text with half a ? in it",))


@pytest.mark.parametrize("shown", CANARIES)
async def test_an_error_about_an_answer_does_not_repeat_the_id_in_it(tmp_path: Path, shown: str) -> None:
    """An id of a backend is content as soon as the backend says so; what is no id is not told."""
    with pytest.raises(DecisionError) as caught:
        checked(DecisionResult(DecisionOutcome.YES, shown, Usage(1, 1), reason=shown))
    assert "'withheld'" in str(caught.value)
    assert shown not in str(caught.value)


@attrs.define
class Parrot(Teller):
    """A backend whose id is what it was shown last."""

    shown: str = "parrot.v1"

    def __attrs_post_init__(self) -> None:
        self.mood = "fails"

    def __getattribute__(self, name: str) -> Any:
        if name == "policy_id":
            return object.__getattribute__(self, "shown")
        return object.__getattribute__(self, name)

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        self.shown = requests[0].subject
        return await Teller.evaluate_many(self, requests)


@pytest.mark.parametrize("shown", CANARIES)
async def test_neither_a_log_nor_an_error_repeats_what_a_backend_calls_itself(
    tmp_path: Path, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a gate that goes on without it, and of a search that ends with it."""
    caplog.set_level(logging.DEBUG)
    sink = Sink()
    async with advised(
        tmp_path / "m.db", Parrot(), sink, use=(*RELATION, *HANDOFF, FITS), reranker="decision.keep-drop"
    ) as gate:
        await gate.remember("team", shown)
        await gate.advice.handoff(shown, [Evidence("ci:17", shown)])
        with pytest.raises(RerankError) as caught:
            await gate.search(shown, memory="team")
    assert shown not in str(caught.value)
    records = [{**vars(record), "message": record.getMessage()} for record in caplog.records]
    assert "decision.fallback" in {record.get("event") for record in records}
    assert shown not in json.dumps(records, ensure_ascii=False, default=str)


async def test_one_observation_never_costs_the_others_of_its_group(tmp_path: Path) -> None:
    """Every reference that a caller may bring can be written by every sink, side by side with all others."""
    refs = ["‮right to left", "emoji 🧪", "页面 3", "a" * 512, "é", "﷽", "tab less", "\u200bzero", "ci:17?x=1"]
    async with open_ledger(tmp_path / "l.db", LedgerSettings()) as ledger:
        lines = JsonlSink(JsonlSettings(path=tmp_path / "o.jsonl"))
        async with composed(tmp_path / "m.db", [ledger, lines]) as gate:
            for ref in refs:
                await gate.advice.handoff("The task is done.", [Evidence(ref, "It is.")])
        kept = [record for _, record in await ledger.records()]
        written = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text(encoding="utf-8").splitlines()]
    assert kept == written
    assert len(kept) == 2 * len(refs)


def composed(file: Path, sinks: Sequence[Any]) -> Any:
    """Open a memory with advice on a handoff and these sinks."""
    overrides: Mapping[str, Any] = {
        "use": {"channels": ["sqlite.lexical"]},
        "settings": {"sqlite.store": {"path": file}},
        "policies": {"use": list(HANDOFF), "modes": dict.fromkeys(HANDOFF, "advisory")},
    }
    injected: dict[str, Any] = {"decision_backend": Teller(), "sinks": list(sinks)}
    opened: Any = narrowgate.open(plan(load_config(overrides=overrides, env={}), injected=injected))
    return opened
