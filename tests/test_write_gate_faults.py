"""The write gate where something goes wrong: stores, backends and rules that fail, other writers, callers who leave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from gate_parts import BATCH, Judge, Sink, cited, gated, statuses, wrong

from narrowgate.errors import CompositionError, StoreError
from narrowgate.values.entry import EntryDraft

pytestmark = pytest.mark.anyio


async def test_a_store_without_a_queue_cannot_enforce(tmp_path: Path) -> None:
    """Holding where nothing is kept would be losing: start-up says so. In advisory it runs, and there is no queue."""
    async with gated(tmp_path, None) as gate:
        inner = gate.component("sqlite.store")

        class Bare:
            """The store without its queue."""

            def __getattr__(self, name: str) -> Any:
                if "held" in name or name == "hold":
                    raise AttributeError(name)
                return getattr(inner, name)

        with pytest.raises(CompositionError, match="held-queue"):
            async with gated(tmp_path, "enforcing", store=Bare()):
                pass
        async with gated(tmp_path, "advisory", store=Bare()) as bare:
            assert statuses(await bare.remember("m", BATCH)) == ["added"] * 6
            with pytest.raises(StoreError) as caught:
                await bare.held()
            assert caught.value.code == "no-held-queue"


async def test_without_a_promotion_nothing_enforces(tmp_path: Path) -> None:
    """A policy that nobody promoted does not start in enforcing."""
    with pytest.raises(CompositionError, match="not-promoted"):
        async with gated(tmp_path, "enforcing", promoted=False):
            pass


@attrs.define
class Failing:
    """A store that hands on everything, and fails or waits where it is told to."""

    inner: Any
    fails: frozenset[str] = frozenset()
    once: Any = None

    def __getattr__(self, name: str) -> Any:
        if name in self.fails:

            async def fail(*_: Any, **__: Any) -> Any:
                raise StoreError("full", "the disk is full")

            return fail
        if self.once is not None and name == "commit":

            async def after(*given: Any, **named: Any) -> Any:
                act, self.once = self.once, None
                await act()
                return await self.inner.commit(*given, **named)

            return after
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("fails", "actions", "held"),
    [
        ("commit", ["memory_write_failed", "memory_write_hold"], 1),
        ("hold", ["memory_write_failed", "memory_write_failed"], 0),
    ],
)
async def test_what_fails_is_observed_as_failed(tmp_path: Path, fails: str, actions: Sequence[str], held: int) -> None:
    """When the store fails nothing is said to be written; what is in the queue by then is there, and observed as held."""
    sink = Sink()
    async with gated(tmp_path, None) as plain:
        store = Failing(plain.component("sqlite.store"), frozenset({fails}))
        async with gated(tmp_path, "enforcing", sink=sink, store=store) as gate:
            with pytest.raises(StoreError):
                await gate.remember("m", BATCH[:2])
            assert len(await gate.held()) == held
    assert sink.actions == actions


async def test_evidence_that_cannot_be_read_lets_pass(tmp_path: Path) -> None:
    """A store that fails to read is no verdict on the entry: it is written, and observed as not asked, with the reason."""
    sink, judge = Sink(), Judge()
    async with gated(tmp_path, None) as plain:
        ref = (await plain.remember("m", "a fact")).items[0].ref
        store = Failing(plain.component("sqlite.store"), frozenset({"read"}))
        async with gated(tmp_path, "enforcing", judge, sink, store=store) as gate:
            batch = [EntryDraft("a fact is a fact", evidence=(str(ref),)), BATCH[0]]
            assert statuses(await gate.remember("m", batch)) == ["added", "added"]
    assert [item.assessment.reason for item in sink.taken] == ["evidence_unreadable", "decision_model_verdict"]
    assert judge.asked == [BATCH[0].text]


async def test_a_write_that_was_not_judged_is_never_written(tmp_path: Path) -> None:
    """Another writer changes an entry between the look and the write: what would now change something is judged first."""
    judge, sink = Judge(), Sink()
    async with gated(tmp_path, None) as plain:
        await plain.remember("m", EntryDraft("as it is", source="s"))

        async def meddle() -> None:
            await plain.remember("m", EntryDraft("changed by another", source="s"))

        store = Failing(plain.component("sqlite.store"), once=meddle)
        async with gated(tmp_path, "enforcing", judge, sink, store=store) as gate:
            receipt = await gate.remember("m", [wrong("as it is", source="s"), BATCH[0]])
            assert statuses(receipt) == ["held", "added"]
            assert [version.content.text for version in await gate.memory.scan("m")] == ["changed by another", BATCH[0].text]
    assert judge.asked == [BATCH[0].text, "as it is"]
    assert sink.actions == ["memory_write_accept", "memory_write_hold"]


async def test_a_busy_memory_is_written_in_the_end(tmp_path: Path) -> None:
    """However often others write in between, the batch comes through: at last everything is judged and nothing is pinned."""
    async with gated(tmp_path, None) as plain:
        await plain.remember("m", "as it is")
        inner, turns = plain.component("sqlite.store"), []

        class Busy(Failing):
            """Somebody else writes before every commit."""

            def __getattr__(self, name: str) -> Any:
                async def commit(*given: Any, **named: Any) -> Any:
                    turns.append(1)
                    await plain.remember("m", f"another {len(turns)}")
                    return await inner.commit(*given, **named)

                return commit if name == "commit" else getattr(inner, name)

        judge = Judge()
        async with gated(tmp_path, "enforcing", judge, store=Busy(inner)) as gate:
            receipt = await gate.remember("m", [cited("as it is"), BATCH[0]])
            assert statuses(receipt) == ["unchanged", "added"]
        assert len(turns) == 4
        assert judge.asked == [BATCH[0].text, "as it is"]


async def test_a_judged_item_that_comes_out_unchanged_or_refused_is_observed_so(tmp_path: Path) -> None:
    """The action is what the store did, not what the gate expected."""
    sink = Sink()
    async with gated(tmp_path, None) as plain:
        ref = (await plain.remember("m", EntryDraft("one", source="s"))).items[0].ref

        async def meddle() -> None:
            await plain.remember("m", [EntryDraft("written twice", source="s"), "new and old"])

        store = Failing(plain.component("sqlite.store"), once=meddle)
        async with gated(tmp_path, "enforcing", sink=sink, store=store) as gate:
            stale = cited("two", entry=ref.entry, expected_version=1)
            receipt = await gate.remember("m", [cited("new and old"), stale])
            assert [(item.status, item.code) for item in receipt.items] == [
                ("unchanged", None),
                ("refused", "stale-version"),
            ]
    assert sink.actions == ["memory_write_unchanged", "memory_write_refused"]


@pytest.mark.parametrize("when", ["judging", "writing"])
async def test_a_caller_who_leaves(tmp_path: Path, when: str) -> None:
    """Cancellation passes at once; what was judged by then is observed, with what is known: held, or interrupted."""
    sink = Sink()

    async def forever() -> None:
        reached.set()
        await anyio.sleep_forever()

    reached = anyio.Event()
    judge = Judge(before=forever if when == "judging" else None)
    async with gated(tmp_path, None) as plain:
        store = Failing(plain.component("sqlite.store"), once=forever if when == "writing" else None)
        async with gated(tmp_path, "enforcing", judge, sink, store=store, policies={"timeout": 1e6}) as gate:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gate.remember, "m", BATCH[:2])
                await reached.wait()
                tasks.cancel_scope.cancel()
            assert await gate.memories() == ()
            assert len(await gate.held()) == (when == "writing")
    assert sink.actions == ([] if when == "judging" else ["memory_write_interrupted", "memory_write_hold"])


async def test_a_rule_that_breaks_lets_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the gate itself is never a reason not to write; it is told by its type, and observed as not judged."""
    sink = Sink()
    async with gated(tmp_path, "enforcing", sink=sink) as gate:
        assert gate.governing.write_gate is not None

        async def broken(_questions: object) -> object:
            raise RuntimeError("a rule saw the text: " + BATCH[1].text)

        monkeypatch.setattr(gate.governing.write_gate.gate, "assess_many", broken)
        assert statuses(await gate.remember("m", BATCH[:2])) == ["added", "added"]
    assert [item.assessment.reason for item in sink.taken] == ["gate_failed", "gate_failed"]
