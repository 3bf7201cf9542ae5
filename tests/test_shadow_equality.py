"""Shadow is invisible: with every built-in policy in shadow the domain says, byte for byte, what it says without policies.

Whatever the backend does: it answers, hangs, fails, or lies.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from advice_parts import FITS, HANDOFF, RELATION, STAGE, Teller, advised
from gate_parts import BATCH, Sink
from shadowed import Ledger

from narrowgate import BatchRefusedError, ConflictError, EntryDraft, RerankError
from narrowgate.governance.builtin import BUILT_IN

ROOT: Final = Path(__file__).resolve().parent.parent
MOODS: Final = ("answers", "fails", "hangs", "lies")
SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "core": ("host_runtime", "host_lifetimes", "caller_mistakes", "second_stage"),
    "plugins/sqlite": (
        "sqlite_store",
        "sqlite_lexical",
        "sqlite_vector",
        "sqlite_contents",
        "sqlite_reindex",
        "sqlite_model",
        "sqlite_refusals",
    ),
}
"""Folder -> test modules of what memory and recall say, without those that look at tasks, processes or the queue itself."""

WRITE: Final = "memory.write.evidence_sufficiency.v1"
ALL: Final = (WRITE, *RELATION, *HANDOFF, FITS, STAGE)


async def story(file: Path, teller: Any, use: tuple[str, ...], sink: Sink) -> list[str]:
    """Return all that the domain says while memories are written, searched, read and changed."""
    said = Ledger()
    settings = {"timeout": 0.02, "shadow_deadline": 0.05, "cooldown_after": 3, "cooldown": 0.0}
    stage = {"reranker": "decision.keep-drop", "rerank": {"on_failure": "raise"}}
    async with advised(file, teller, sink, use=use, mode="shadow", policies=settings if use else {}, **stage) as gate:
        said.say("written", await gate.remember("m", BATCH))
        again = await gate.remember("m", [*BATCH[:2], EntryDraft("Ana likes tea.", source="ana")])
        said.say("again", again)
        said.say("revised", await gate.remember("m", EntryDraft("Ana likes coffee.", source="ana")))
        for drafts, options in (([""], {"strict": True}), (["x y"], {"expected_revision": 1})):
            try:
                said.say("written", await gate.remember("m", drafts, **options))  # type: ignore[arg-type]
            except (BatchRefusedError, ConflictError) as error:
                said.say("refused", str(error))
        ref = again.items[0].ref
        assert ref is not None
        said.say("forgotten", await gate.forget("m", ref, reason="old"))
        said.say("forgotten again", await gate.forget("m", [ref, "unknown"]))
        said.say("back", await gate.reactivate("m", ref))
        for text in ("order service Postgres", "订单服务的备份", "...", "zeppelin"):
            try:
                page = await gate.search(text, memory=["m", "nothing"])
            except RerankError as error:
                said.say("search failed", (str(error), error.code, error.usage))
            else:
                said.say("found", page)
        said.say("read", (await gate.read(ref), await gate.current("m", ref.entry), await gate.history("m", ref.entry)))
        said.say("changes", await gate.changes("m"))
        said.say("memories", await gate.memories())
        said.say("held", await gate.held())
        if use:
            for advice in (
                await gate.advice.relations("m", "The order service runs on MySQL."),
                await gate.advice.handoff("It was moved.", [ref]),
                await gate.advice.applicability("Move it.", [ref]),
            ):
                assert advice == type(advice)(given=False)
    return said.lines


@pytest.mark.anyio
@pytest.mark.parametrize("mood", MOODS)
async def test_a_story_is_told_the_same_in_shadow(tmp_path: Path, mood: str) -> None:
    """Receipts, refusals, pages with their traces, history and failures; and yet everything was observed."""
    assert set(ALL) == set(BUILT_IN)
    told, sink = [], Sink()
    for use in ((), ALL):
        folder = tmp_path / str(len(use))
        folder.mkdir()
        # The second stage asks the same backend in either run: where it would hang, so would both.
        spares = ("memory.rerank",) if mood == "hangs" else ()
        told.append(await story(folder / "m.db", Teller(mood=mood, spares=spares), use, sink))
    assert told[0] == told[1]
    assert "\n".join(told[0]).encode() == "\n".join(told[1]).encode()
    assert {item.assessment.policy_id for item in sink.taken} >= {WRITE, RELATION[0], *HANDOFF, FITS, STAGE}
    passing = {item.final_action for item in sink.taken if item.assessment.policy_id != STAGE}
    assert passing == {
        "memory_write_accept",
        "duplicate_conflict_observe",
        "handoff_consult_none",
        "applicability_none",
    }


@pytest.mark.anyio
async def test_nobody_waits_for_a_policy_in_shadow(tmp_path: Path) -> None:
    """The backend hangs and would be waited for without end, were it on the caller's path."""
    patient = {"timeout": 1e6, "shadow_deadline": 0.1}
    teller = Teller(mood="hangs", spares=("memory.rerank",))
    sink, stage = Sink(), {"reranker": "decision.keep-drop"}
    async with advised(tmp_path / "m.db", teller, sink, use=ALL, mode="shadow", policies=patient, **stage) as gate:
        with anyio.fail_after(30):
            ref = (await gate.remember("m", BATCH)).items[0].ref
            assert ref is not None
            assert (await gate.search("order service", memory="m")).hits
            assert not (await gate.advice.relations("m", "The order service runs on MySQL.")).given
            assert not (await gate.advice.handoff("It was moved.", [ref])).given
    hanging = [item for item in sink.taken if item.fallback_reason == "shadow_deadline"]
    assert {item.assessment.policy_id for item in hanging} >= {WRITE, RELATION[0]}


def run(folder: str, modules: tuple[str, ...], mood: str, record: Path) -> bytes:
    """Run tests with the plugin, in a process of their own, and return the record."""
    tests = ROOT / folder / "tests"
    env = {**os.environ, "SHADOWED_BY": mood, "SHADOWED_RECORD": str(record), "OPENBLAS_NUM_THREADS": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-p", "shadowed", "-p", "no:cacheprovider", "-q", "-m", "not full"]
    files = [str(tests / f"test_{name}.py") for name in modules]
    done = subprocess.run([*command, *files], env=env, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
    return record.read_bytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """Return a function that returns the record of a suite without policies, made once."""
    made: dict[str, bytes] = {}

    def record(folder: str) -> bytes:
        if folder not in made:
            made[folder] = run(folder, SUITES[folder], "nothing", tmp_path_factory.mktemp("plain") / "said.txt")
        return made[folder]

    return record


@pytest.mark.full
@pytest.mark.parametrize("folder", list(SUITES))
@pytest.mark.parametrize("mood", MOODS)
def test_the_tests_of_the_domain_say_the_same_in_shadow(
    tmp_path: Path, plain: Callable[[str], bytes], folder: str, mood: str
) -> None:
    """Every test passes beside every policy in shadow, and what the domain said in it is the same to the byte."""
    expected = plain(folder)
    assert (expected.count(b"\n== ") > 20, expected.count(b"\n") > 200) == (True, True)
    assert run(folder, SUITES[folder], mood, tmp_path / "said.txt") == expected
