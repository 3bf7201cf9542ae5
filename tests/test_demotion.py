"""The automatic demotion: off by default; on, it takes power back from a gate that fails or holds too much, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from gate_parts import Judge, Sink, cited, gated, statuses, wrong

from narrowgate import Narrowgate, load_config, plan
from narrowgate.errors import CompositionError
from narrowgate.governance.records import read_records
from narrowgate.values.assessment import GateMode

RULE: dict[str, Any] = {
    "auto_demote": True,
    "demotion_window": 10,
    "demotion_fallback_rate": 0.3,
    "demotion_false_actions": 1,
}


async def write(gate: Narrowgate, count: int, start: int = 0) -> None:
    """Write entries that the judge finds supported, one by one, and wait until what was observed was taken."""
    for number in range(start, start + count):
        await gate.remember("m", [cited(f"Entry number {number}.")])
    await gate.governing.observers.flush()


@pytest.mark.anyio
async def test_without_the_setting_nothing_is_ever_demoted(tmp_path: Path) -> None:
    """A backend that fails all the time leaves the mode as it is."""
    async with gated(tmp_path, judge=Judge(fails=True)) as gate:
        await write(gate, 30)
        assert gate.governing.watch is None
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.ENFORCING
        assert not any(key.startswith("policy.") for key in await gate.health())
    assert len(read_records(tmp_path / "promotions", "team.write.v1")) == 1


@pytest.mark.anyio
async def test_too_many_fallbacks_demote_it_at_once_with_a_record_and_an_observation(tmp_path: Path) -> None:
    """Not before the window is full; then to the mode before, for every write that begins after that."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, judge=judge, sink=sink, policies={**RULE, "cooldown": 0.0}) as gate:
        assert (await gate.health())["policy.team.write.v1"] == "watched"
        await write(gate, 6)
        judge.fails = True
        await write(gate, 3, start=6)
        policy = gate.governing.gates["team.write.v1"].policy
        assert policy.mode is GateMode.ENFORCING, "nine observations are no window"
        await write(gate, 2, start=9)
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.ADVISORY
        judge.fails = False
        assert statuses(await gate.remember("m", [wrong("It is held no more.")])) == ["added"]
        assert (await gate.health())["policy.team.write.v1"] == "demoted to advisory"
        await gate.governing.observers.flush()
    (demoted,) = [item for item in sink.taken if item.final_action == "policy_demote"]
    assert (demoted.assessment.reason, demoted.assessment.attempt) == ("demoted_fallback_rate", "no_call")
    assert sink.actions[-1] == "memory_write_flag"
    first, second = read_records(tmp_path / "promotions", "team.write.v1")
    assert (second.mode, second.previous, second.automatic) == (GateMode.ADVISORY, GateMode.ENFORCING, True)
    assert (second.approver, second.reason, second.fingerprint) == ("automatic-demotion", "fallback_rate", first.fingerprint)
    assert second.measured == {"fallback_rate": 0.4, "allowed": 0.3, "window": 10.0}


@pytest.mark.anyio
async def test_the_next_start_runs_it_in_the_weaker_mode_and_warns(tmp_path: Path) -> None:
    """A rule that acted while nobody looked must not turn a start into an outage. A person's demotion refuses, as ever."""
    async with gated(tmp_path, judge=Judge(fails=True), policies={**RULE, "cooldown": 0.0}) as gate:
        await write(gate, 12)
    async with gated(tmp_path, policies=RULE) as gate:
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.ADVISORY
        assert [item.code for item in gate.composition.warnings if item.code == "policy-demoted"] == ["policy-demoted"]
        assert gate.governing.watch is None
        assert statuses(await gate.remember("m", [wrong("Not held.")])) == ["added"]
    path = tmp_path / "promotions" / "team.write.v1.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"automatic": true', '"automatic": false'), encoding="utf-8")
    with pytest.raises(CompositionError, match="not-promoted"):
        async with gated(tmp_path):
            pass


@pytest.mark.anyio
async def test_too_many_released_holds_demote_it(tmp_path: Path) -> None:
    """What people release was held falsely; the budget is of holds within the window, whoever released them."""
    sink = Sink()
    async with gated(tmp_path, sink=sink, policies=RULE) as gate:
        await gate.remember("m", [wrong(f"Held number {number}.") for number in range(4)])
        held = await gate.held("m")
        await gate.release([held[0].held_id], by="chen")
        await write(gate, 8)
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.ENFORCING, "one false hold is within the budget"
        await gate.remember("m", [wrong(f"Held again {number}.") for number in range(3)])
        again = [item for item in await gate.held("m") if item.held_id not in {one.held_id for one in held}]
        await gate.release([item.held_id for item in again], by="chen")
        await write(gate, 5, start=8)
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.ADVISORY
    assert [item.assessment.reason for item in sink.taken if item.final_action == "policy_demote"] == [
        "demoted_false_actions"
    ]
    assert read_records(tmp_path / "promotions", "team.write.v1")[-1].measured["false_actions"] == 3.0


@pytest.mark.anyio
async def test_rejected_holds_are_none(tmp_path: Path) -> None:
    """What people reject was held rightly."""
    async with gated(tmp_path, policies=RULE) as gate:
        await gate.remember("m", [wrong(f"Held number {number}.") for number in range(6)])
        await gate.reject([item.held_id for item in await gate.held("m")], by="chen")
        await write(gate, 12)
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.ENFORCING


@pytest.mark.anyio
async def test_a_record_that_cannot_be_written_does_not_keep_the_power(tmp_path: Path) -> None:
    """The gate is demoted all the same, and health says that something failed."""
    async with gated(tmp_path, judge=Judge(fails=True), policies={**RULE, "cooldown": 0.0}) as gate:
        path = tmp_path / "promotions" / "team.write.v1.jsonl"
        path.write_text("damaged\n", encoding="utf-8")
        await write(gate, 12)
        assert gate.governing.gates["team.write.v1"].policy.mode is GateMode.SHADOW
        health = await gate.health()
        assert health["policy.team.write.v1"] == "demoted to shadow"
        assert health["sink.narrowgate.demotion.last_failure"] == "ConfigError"
    assert path.read_text(encoding="utf-8") == "damaged\n"


@pytest.mark.anyio
async def test_a_batch_on_its_way_is_settled_in_the_mode_in_which_it_began(tmp_path: Path) -> None:
    """Each item is observed once, with what was really done to it, although the gate was demoted meanwhile."""
    sink, judge = Sink(), Judge(batch_limit=1)
    async with gated(tmp_path, judge=judge, sink=sink) as gate:

        async def demote() -> None:
            gate.governing.gates["team.write.v1"].demote(GateMode.SHADOW)
            await anyio.lowlevel.checkpoint()

        judge.before = demote
        receipt = await gate.remember("m", [cited("Kept."), wrong("Told against.")])
        await gate.governing.observers.flush()
    assert len(sink.taken) == len(receipt.items) == 2
    assert {item.assessment.mode for item in sink.taken} <= {GateMode.SHADOW, GateMode.ENFORCING}
    for item, observed in zip(receipt.items, sink.taken, strict=True):
        assert observed.final_action == ("memory_write_hold" if item.status == "held" else "memory_write_accept")


def test_the_rule_is_shown_with_its_settings(tmp_path: Path) -> None:
    """`narrowgate check` lists it, off unless it was turned on."""
    said = {"use": {"channels": "none"}, "settings": {"sqlite.store": {"path": tmp_path / "m.db"}}}
    rows = {row.key: row.value for row in plan(load_config(overrides=said, env={})).describe()}
    assert rows["policies.auto_demote"] == "False"
    assert rows["policies.demotion_window"] == "200"
