"""The write gate inside `remember`: one verdict for each entry, each mode's effect, and the action really taken observed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import anyio
import pytest
from gate_parts import BATCH, POLICY, Judge, Sink, cited, gated, statuses, wrong

import narrowgate
from narrowgate.errors import BatchRefusedError, ConflictError
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate.values.observation import DecisionObservation

pytestmark = pytest.mark.anyio


async def texts(gate: narrowgate.Narrowgate, memory: str = "m") -> list[str]:
    """Return the texts of a memory, in order of writing."""
    return [version.content.text for version in await gate.memory.scan(memory)]


async def test_enforcing_holds_only_what_was_judged_against(tmp_path: Path) -> None:
    """A no and a missing citation are held, a yes and an abstention written: as one revision, with an id for each held."""
    sink = Sink()
    async with gated(tmp_path, "enforcing", sink=sink) as gate:
        receipt = await gate.remember("m", BATCH)
        assert statuses(receipt) == ["added", "held", "added", "held", "added", "held"]
        assert (receipt.revision, receipt.count("held")) == (1, 3)
        assert await texts(gate) == [BATCH[0].text, BATCH[2].text, BATCH[4].text]
        held = await gate.held("m")
        assert [entry.held_id for entry in held] == [item.held for item in receipt.items if item.held]
        assert [(entry.place, entry.code) for entry in held] == [
            (1, "insufficient_coverage"),
            (3, "needs_evidence"),
            (5, "insufficient_coverage"),
        ]
        assert [item.code for item in receipt.items if item.held] == [entry.code for entry in held]
        assert all("MySQL" not in str(item.message) for item in receipt.items)
        assert (await gate.held_one(held[0].held_id)).put.content.text == BATCH[1].text
        assert (await gate.health())["held.pending"] == 3
    assert sink.actions == [
        "memory_write_accept",
        "memory_write_hold",
        "memory_write_accept",
        "memory_write_hold",
        "memory_write_accept",
        "memory_write_hold",
    ]
    observed = {item.observation_id: item for item in sink.taken}
    for entry in held:
        assert observed[entry.observation_id].operation_id == entry.batch, "a review finds its observation"
        assert observed[entry.observation_id].subject_refs == ()
    assert [item.assessment.attempt for item in sink.taken] == ["backend"] * 3 + ["local_rule"] + ["backend"] * 2
    assert sink.taken[0].subject_refs == (str(receipt.items[0].ref),)
    assert sink.taken[2].assessment.verdict == "unknown"


async def test_advisory_writes_all_and_remarks(tmp_path: Path) -> None:
    """What an enforcing policy would hold is written, flagged in its history where the caller gave no reason of its own."""
    sink = Sink()
    async with gated(tmp_path, "advisory", sink=sink, promoted=False) as gate:
        batch = [*BATCH, wrong("With a reason.", reason="my own")]
        receipt = await gate.remember("m", batch)
        assert statuses(receipt) == ["added"] * 7
        reasons = [(await gate.read(item.ref)).reason for item in receipt.items if item.ref]
        assert reasons == [
            None,
            "flagged: the evidence was judged not to support the entry",
            None,
            "flagged: the entry cites no evidence",
            None,
            "flagged: the evidence was judged not to support the entry",
            "my own",
        ]
        assert await gate.held() == ()
    flagged = [place for place, action in enumerate(sink.actions) if action == "memory_write_flag"]
    assert (flagged, len(sink.taken)) == ([1, 3, 5, 6], 7)


@pytest.mark.parametrize("mode", ["advisory", "enforcing"])
async def test_a_no_that_falls_short_of_the_threshold_is_remarked_and_never_holds(tmp_path: Path, mode: str) -> None:
    """Nobody judged it, so that it is written; the word was said, so that it is remarked. A weak yes is not."""
    bounds = "\n[thresholds]\nyes_at = 0.95\nno_at = 0.05\n"
    sink = Sink()
    async with gated(tmp_path, mode, sink=sink, policy=POLICY + bounds) as gate:
        receipt = await gate.remember("m", [cited("一个说法。"), wrong("另一个说法。"), cited("perhaps so.")])
        assert statuses(receipt) == ["added"] * 3
        reasons = [(await gate.read(item.ref)).reason for item in receipt.items if item.ref]
    remark = "flagged: the backend leans against the entry, and not as far as the policy asks for"
    assert reasons == [None, remark, None]
    assert sink.actions == ["memory_write_accept", "memory_write_flag", "memory_write_accept"]
    assert {item.assessment.verdict for item in sink.taken} == {"unknown"}
    assert {item.assessment.coverage for item in sink.taken} == {"unadjudicated"}


@pytest.mark.parametrize("fails", [False, True])
async def test_shadow_changes_nothing_and_asks_beside_the_write(tmp_path: Path, fails: bool) -> None:
    """Receipt, memory and history are those of no policy at all; the questions are asked once the write is done."""

    async def run(folder: Path, mode: str | None, judge: Judge, sink: Sink) -> Any:
        async with gated(folder, mode, judge, sink) as gate:
            receipts = [await gate.remember("m", BATCH), await gate.remember("m", BATCH[:2])]
            versions = await gate.memory.scan("m")
            return (
                [[(item.status, item.code, item.held) for item in receipt.items] for receipt in receipts],
                [receipt.revision for receipt in receipts],
                [(version.content, version.reason) for version in versions],
            )

    for name in ("shadow", "none"):
        (tmp_path / name).mkdir()
    judge, sink = Judge(fails=fails), Sink()
    with_shadow = await run(tmp_path / "shadow", "shadow", judge, sink)
    assert with_shadow == await run(tmp_path / "none", None, Judge(), Sink())
    assert len(sink.taken) == 6, "what changed nothing was not judged"
    assert set(sink.actions) == {"memory_write_accept"}
    assert sorted(judge.asked)[0] in {draft.text for draft in BATCH}


@pytest.mark.parametrize("mode", ["advisory", "enforcing"])
async def test_a_verdict_review_is_a_remark_that_says_so(tmp_path: Path, mode: str) -> None:
    """A policy that maps no to review holds nothing, and claims nothing of the evidence that it did not find."""
    asks = POLICY.replace('no = "deny"', 'no = "review"')
    async with gated(tmp_path, mode, policy=asks) as gate:
        receipt = await gate.remember("m", [cited("一个说法。"), wrong("另一个说法。"), EntryDraft("Nobody said so.")])
        assert statuses(receipt) == ["added", "added", "held" if mode == "enforcing" else "added"]
        reasons = [(await gate.read(item.ref)).reason for item in receipt.items[:2] if item.ref]
    assert reasons == [None, "flagged: the policy asks somebody to look at the entry"]


async def test_disabled_builds_nothing(tmp_path: Path) -> None:
    """A disabled policy has no gate, no sink at work and no question; writing goes the way without one."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, "disabled", judge, sink) as gate:
        assert gate.governing.write_gate is None
        assert statuses(await gate.remember("m", BATCH)) == ["added"] * 6
    assert (judge.asked, sink.taken) == ([], [])


@pytest.mark.parametrize("mode", ["advisory", "enforcing"])
async def test_a_failing_backend_lets_pass_and_says_so(tmp_path: Path, mode: str) -> None:
    """An outage is no verdict: everything that needed the backend is written without a remark, and observed as fallback."""
    sink = Sink()
    async with gated(tmp_path, mode, Judge(fails=True), sink) as gate:
        receipt = await gate.remember("m", [BATCH[0], BATCH[1]])
        assert statuses(receipt) == ["added", "added"]
        assert [(await gate.read(item.ref)).reason for item in receipt.items if item.ref] == [None, None]
    assert sink.actions == ["memory_write_accept"] * 2
    for item in sink.taken:
        assert (item.assessment.attempt, item.assessment.coverage) == ("backend_fallback", "unadjudicated")
        assert item.assessment.used_fallback
        assert item.fallback_reason == "unavailable"


async def test_what_is_stored_already_is_not_judged_again(tmp_path: Path) -> None:
    """The same import again asks nobody about what is written; what was held finds its place in the queue."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, "enforcing", judge, sink) as gate:
        first = await gate.remember("m", BATCH)
        asked = len(judge.asked)
        again = await gate.remember("m", BATCH)
        assert statuses(again) == ["unchanged", "held", "unchanged", "held", "unchanged", "held"]
        assert [item.held for item in again.items] == [item.held for item in first.items]
        assert judge.asked[asked:] == [BATCH[1].text, BATCH[5].text]
        assert len(await gate.held()) == 3
        assert again.revision == 1


async def test_an_item_that_repeats_a_held_one_does_not_slip_through(tmp_path: Path) -> None:
    """Equal items are asked about once and held in one place; the same text on better evidence is judged on that."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, "enforcing", judge, sink) as gate:
        bad = wrong("The backup runs at two.")
        receipt = await gate.remember("m", [bad, bad, bad])
        assert statuses(receipt) == ["held"] * 3
        assert len({item.held for item in receipt.items}) == 1
        assert judge.asked == [bad.text]
        better = await gate.remember("m", [bad, cited(bad.text), bad])
        assert statuses(better) == ["held", "added", "held"]
    assert sink.actions == ["memory_write_hold", "memory_write_hold", "memory_write_accept"]


async def test_a_strict_batch_with_a_held_item_is_refused_whole(tmp_path: Path) -> None:
    """Nothing is written and nothing is held; the error says which items and why; each question is observed as refused."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, "enforcing", judge, sink) as gate:
        with pytest.raises(BatchRefusedError) as caught:
            await gate.remember("m", BATCH[:2], strict=True)
        assert [(item.status, item.code) for item in caught.value.outcomes] == [
            ("added", None),
            ("refused", "insufficient_coverage"),
        ]
        assert "insufficient_coverage" in str(caught.value)
        assert "MySQL" not in str(caught.value)
        asked = len(judge.asked)
        with pytest.raises(BatchRefusedError):
            await gate.remember("m", [cited("fine"), EntryDraft("")], strict=True)
        assert len(judge.asked) == asked, "a batch that is refused anyway is not judged"
        assert (await gate.memories(), await gate.held()) == ((), ())
        assert statuses(await gate.remember("m", BATCH[:1], strict=True)) == ["added"]
    assert sink.actions == ["memory_write_refused", "memory_write_refused", "memory_write_accept"]


async def test_a_conflict_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    """With an expected revision that is over, nothing is judged and nothing held; with the right one it is written."""
    judge = Judge()
    async with gated(tmp_path, "enforcing", judge) as gate:
        with pytest.raises(ConflictError):
            await gate.remember("m", BATCH, expected_revision=4)
        assert (judge.asked, await gate.held()) == ([], ())
        assert (await gate.remember("m", BATCH, expected_revision=0)).revision == 1


async def test_evidence_by_exact_reference_is_read(tmp_path: Path) -> None:
    """A reference brings the version's own text; one that names nothing is told; a text beside one is not believed."""
    sink = Sink()
    async with gated(tmp_path, "enforcing", sink=sink) as gate:
        minutes = (await gate.remember("minutes", [cited("Ana said: the freeze begins on Monday.")])).items[0].ref
        good = EntryDraft("the freeze begins on Monday", evidence=(str(minutes),))
        gone = EntryDraft("the freeze begins on Tuesday", evidence=(f"{minutes}0",))
        forged = EntryDraft(
            "the freeze is off", evidence=(Evidence(str(minutes), "Ana said: the freeze is off"),), source="forged"
        )
        nameless = EntryDraft("somebody knows", evidence=("a source without a text",))
        receipt = await gate.remember("m", [good, gone, forged, nameless])
        assert [(item.status, item.code) for item in receipt.items] == [
            ("added", None),
            ("held", "invalid_evidence_reference"),
            ("held", "insufficient_coverage"),
            ("held", "invalid_evidence_reference"),
        ]
    assert sink.taken[1].evidence_refs == (str(minutes),)
    assert [item.assessment.attempt for item in sink.taken[2:]] == ["local_rule", "backend", "local_rule"]


@pytest.mark.parametrize(
    ("pieces", "length", "code"),
    [(32, 500, None), (33, 10, "evidence_limit_exceeded"), (2, 8000, None), (3, 6000, "evidence_limit_exceeded")],
)
async def test_evidence_is_judged_whole_or_not_at_all(tmp_path: Path, pieces: int, length: int, code: str | None) -> None:
    """Up to 32 pieces and 16,000 characters are shown to the backend; beyond that the item is held, and nobody is asked."""
    judge = Judge()
    async with gated(tmp_path, "enforcing", judge) as gate:
        draft = cited("x", *("x" * length for _ in range(pieces)))
        (item,) = (await gate.remember("m", [draft])).items
        assert item.code == code
        assert judge.asked == ([] if code else ["x"])


async def test_a_large_batch_is_split_and_not_held_whole(tmp_path: Path) -> None:
    """Two thousand entries, far more than one question may hold, are judged in requests of the backend's size."""
    judge = Judge(batch_limit=50)
    async with gated(tmp_path, "enforcing", judge) as gate:
        batch = [(wrong if number % 100 == 7 else cited)(f"entry {number} of a long import.") for number in range(2000)]
        receipt = await gate.remember("m", batch)
        assert (receipt.count("added"), receipt.count("held")) == (1980, 20)
        assert [entry.place for entry in await gate.held()] == list(range(7, 2000, 100))
        assert len(judge.asked) == 2000


async def test_release_and_reject(tmp_path: Path) -> None:
    """A release writes one revision with the reviewer's words in its history; what was rejected is refused from then on."""
    async with gated(tmp_path, "enforcing") as gate:
        receipt = await gate.remember("m", BATCH)
        first, second, third = (item.held for item in receipt.items if item.held)
        (released,) = await gate.release(first, by="ana", reason="Bo confirmed it")
        assert (released.status, released.ref.revision) == ("added", 2)
        version = await gate.read(released.ref)
        assert version.content.text == BATCH[1].text
        assert version.reason == "released, held as insufficient_coverage: Bo confirmed it"
        assert [item.status for item in await gate.reject([second, third], by="ana")] == ["rejected", "rejected"]
        assert await gate.held() == ()
        assert [(entry.state, entry.resolved_by) for entry in await gate.held(state=None)] == [
            ("released", "ana"),
            ("rejected", "ana"),
            ("rejected", "ana"),
        ]
        again = await gate.remember("m", BATCH)
        assert [(item.status, item.code) for item in again.items] == [
            ("unchanged", None),
            ("unchanged", None),
            ("unchanged", None),
            ("refused", "held-rejected"),
            ("unchanged", None),
            ("refused", "held-rejected"),
        ]
        told = await gate.release([first, "nothing", second])
        assert [(item.status, item.code) for item in told] == [
            ("refused", "held-resolved"),
            ("refused", "held-unknown"),
            ("refused", "held-resolved"),
        ]
        page = await gate.search("MySQL", memory="m")
        assert [hit.content.text for hit in page.hits][:1] == [BATCH[1].text]
        assert await gate.purge_held("rejected") == 2
        assert statuses(await gate.remember("m", BATCH)).count("held") == 2


async def test_a_stale_release_is_told_and_kept(tmp_path: Path) -> None:
    """A held revision of an entry that has been revised since is refused; the newer text stays, the held one too."""
    async with gated(tmp_path, "enforcing") as gate:
        ref = (await gate.remember("m", [cited("version one", source="s")])).items[0].ref
        (held,) = (await gate.remember("m", [wrong("version two", source="s")])).items
        await gate.remember("m", [cited("version three", source="s")])
        (item,) = await gate.release(held.held)
        assert (item.status, item.code) == ("refused", "stale-version")
        assert (await gate.current("m", ref.entry)).content.text == "version three"
        assert (await gate.held_one(held.held)).put.content.text == "version two"
        # On today's version the same write is another one: it is judged anew and can be released.
        (fresh,) = (await gate.remember("m", [wrong("version two", source="s")])).items
        assert fresh.held != held.held
        assert [item.status for item in await gate.release(fresh.held)] == ["revised"]


async def test_a_restart_keeps_what_is_held_and_needs_no_gate_to_decide(tmp_path: Path) -> None:
    """What is held is in the file: with the policy taken out, and in the synchronous form, it is listed and released."""
    async with gated(tmp_path, "enforcing") as gate:
        (item,) = (await gate.remember("m", BATCH[1])).items
    async with gated(tmp_path, None) as gate:
        assert [entry.held_id for entry in await gate.held()] == [item.held]
    overrides = {"settings": {"sqlite.store": {"path": tmp_path / "memory.db"}}, "use": {"channels": ["sqlite.lexical"]}}

    def synchronous() -> None:
        with narrowgate.open_sync(overrides=overrides, env={}) as face:
            (entry,) = face.held("m", policy="team.write.v1")
            assert face.held_one(entry.held_id).put.content.text == BATCH[1].text
            assert [done.status for done in face.release([entry.held_id], by="ana")] == ["added"]
            assert [done.code for done in face.reject(entry.held_id)] == ["held-resolved"]
            assert face.purge_held("released") == 1

    await anyio.to_thread.run_sync(synchronous)


def content_free(observation: DecisionObservation) -> bool:
    """Return whether an observation has none of the canary."""
    return "canary" not in repr(observation).casefold()


async def test_no_content_in_observations_receipts_pages_and_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A canary in text, evidence and source is in the store and in `held_one` alone."""
    caplog.set_level("DEBUG")
    sink = Sink()
    async with gated(tmp_path, "enforcing", sink=sink) as gate:
        batch = [wrong("CANARY one"), cited("CANARY two"), EntryDraft("CANARY three", attributes={"x": "CANARY"})]
        receipt = await gate.remember("m", batch)
        page = await gate.held()
        outcomes = await gate.release([entry.held_id for entry in page])
        assert "CANARY" not in repr((receipt, page, outcomes, await gate.held(state=None), await gate.health()))
    assert all(map(content_free, sink.taken))
    assert "CANARY" not in caplog.text


@pytest.mark.parametrize("seed", range(6))
async def test_random_batches_against_each_item_alone(tmp_path: Path, seed: int) -> None:
    """In any batch each item has the verdict that it has alone: what is supported is written, what is not is held."""
    chance = random.Random(seed)
    async with gated(tmp_path, "enforcing", Judge(batch_limit=chance.randrange(1, 6))) as gate:
        supported, unsupported = set(), set()
        for _ in range(8):
            batch = []
            for _ in range(chance.randrange(1, 9)):
                text = f"fact {chance.randrange(12)}"
                good = chance.random() < 0.5
                batch.append((cited if good else wrong)(text))
                (supported if good else unsupported).add(text)
            receipt = await gate.remember("m", batch)
            for draft, item in zip(batch, receipt.items, strict=True):
                good = draft.evidence[0].text != "Something else entirely."
                # On bad evidence a text is held, unless it is stored by then, or the same batch writes it before.
                assert item.status in (("added", "unchanged") if good else ("held", "unchanged"))
        assert set(await texts(gate)) == supported
        held = {(await gate.held_one(entry.held_id)).put.content.text for entry in await gate.held()}
        assert held <= unsupported
        assert unsupported <= held | supported
