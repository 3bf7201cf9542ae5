"""The policy that describes the second stage: every verdict is observed, and no search is another for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import pytest
from advice_parts import STAGE, Teller, advised
from gate_parts import Sink

from narrowgate import DeadlineError, RerankError, SearchPage
from narrowgate.values.assessment import Attempt, Coverage, GateVerdict
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, Usage
from narrowgate.values.search import Candidate, RerankDecision

pytestmark = pytest.mark.anyio

KEEP_DROP: Final = "decision.keep-drop"
STORED: Final = (
    "The order service runs on Postgres 16.",
    "The order service is deployed on Fridays.",
    "The order service has an office dog.",
    "订单服务的夜间备份在凌晨两点。",
)
QUERY: Final = "order service"


def judging(request: DecisionRequest) -> Any:
    """Say yes of Postgres, nothing of the dog, and no of the rest."""
    if "dog" in request.subject:
        return None
    return 0.9 if "Postgres" in request.subject else 0.2


async def searched(
    folder: Path, teller: Any, sink: Sink, *, times: int = 1, mode: str | None = "shadow", **sections: Any
) -> list[SearchPage]:
    """Return the pages of a search; the observations are in the sink when this returns."""
    use = () if mode is None else (STAGE,)
    sections |= {"mode": mode or "shadow", "use": use, "reranker": KEEP_DROP}
    async with advised(folder / "m.db", teller, sink, **sections) as gate:
        await gate.remember("m", STORED)
        return [await gate.search(QUERY, memory="m") for _ in range(times)]


async def test_every_verdict_is_observed(tmp_path: Path) -> None:
    """With the exact reference, what the backend said, what it cost once, and what became of the candidate."""
    sink = Sink()
    settings = {"settings": {"sqlite.store": {"path": tmp_path / "m.db"}, KEEP_DROP: {"keep": ["yes", "abstain"]}}}
    (page,) = await searched(tmp_path, Teller({"memory.rerank": judging}), sink, **settings)
    trace = page.trace.rerank
    assert trace is not None
    assert trace.decision is not None
    refs = {verdict.rank: str(trace.candidates[verdict.rank - 1].ref) for verdict in trace.decision.verdicts}
    assert [item.subject_refs for item in sink.taken] == [(refs[verdict.rank],) for verdict in trace.decision.verdicts]
    assert len(sink.taken) == 3
    by_action = {item.final_action: item for item in sink.taken if item.assessment.outcome is not DecisionOutcome.ABSTAIN}
    kept, dropped = by_action["memory_rerank_select"], by_action["memory_rerank_drop"]
    assert (kept.assessment.verdict, kept.assessment.probability) == (GateVerdict.ALLOW, 0.9)
    assert (dropped.assessment.verdict, dropped.assessment.probability) == (GateVerdict.DENY, 0.2)
    (open_one,) = [item for item in sink.taken if item.assessment.outcome is DecisionOutcome.ABSTAIN]
    assert (open_one.assessment.coverage, open_one.final_action) == (Coverage.UNADJUDICATED, "memory_rerank_select")
    assert {str(hit.ref) for hit in page.hits} == {
        item.subject_refs[0] for item in sink.taken if item.final_action == "memory_rerank_select"
    }
    assert sum((item.assessment.usage for item in sink.taken), Usage()) == trace.usage
    assert {item.assessment.attempt for item in sink.taken} == {Attempt.BACKEND}
    assert {item.operation_id for item in sink.taken} == {sink.taken[0].operation_id}
    assert {(item.scope_id, item.consumer, item.privacy_outcome) for item in sink.taken} == {
        ("m", "memory_rerank", "local_model_called")
    }
    assert {item.model_policy_id for item in sink.taken} == {"teller.v1"}
    assert "Postgres" not in repr(sink.taken)


async def test_a_remembered_verdict_costs_nothing(tmp_path: Path) -> None:
    """It is observed again, as an attempt that paid for nothing."""

    @attrs.define
    class Exact(Teller):
        exact_model: str = "teller-2026-03-01"

    sink = Sink()
    settings = {"settings": {"sqlite.store": {"path": tmp_path / "m.db"}, KEEP_DROP: {"cache_size": 100}}}
    await searched(tmp_path, Exact({"memory.rerank": judging}), sink, times=2, **settings)
    assert [item.metadata["cached"] for item in sink.taken] == [0, 0, 0, 1, 1, 1]
    assert [item.assessment.usage.calls for item in sink.taken] == [3, 0, 0, 0, 0, 0]
    assert {item.backend_model_id for item in sink.taken} == {"teller-2026-03-01"}


async def test_what_is_shown_although_it_was_not_kept_is_observed_so(tmp_path: Path) -> None:
    """Nothing was kept, and the role shows the coarse order: the action is not called a selection."""
    sink = Sink()
    (page,) = await searched(tmp_path, Teller({"memory.rerank": "no"}), sink)
    assert page.status == "none_relevant"
    assert len(page.hits) == 3
    assert sink.actions == ["memory_rerank_coarse"] * 3
    assert {item.assessment.verdict for item in sink.taken} == {GateVerdict.DENY}


@pytest.mark.parametrize(
    ("mood", "attempt", "code"),
    [("fails", Attempt.BACKEND_FALLBACK, "unavailable"), ("lies", Attempt.PARSE_FAILURE, "invalid-answer")],
)
@pytest.mark.parametrize("on_failure", ["raise", "coarse"])
async def test_a_failed_stage_is_observed(tmp_path: Path, mood: str, attempt: Attempt, code: str, on_failure: str) -> None:
    """Once, with the pool that it was shown and what it cost: the search failed, or shows coarse order, as the role says."""
    sink = Sink()
    rerank = {"rerank": {"on_failure": on_failure}}
    usage: Usage | None
    if on_failure == "raise":
        with pytest.raises(RerankError) as caught:
            await searched(tmp_path, Teller(mood=mood), sink, **rerank)
        usage = caught.value.usage
    else:
        usage = (await searched(tmp_path, Teller(mood=mood), sink, **rerank))[0].usage
    (seen,) = sink.taken
    assert seen.final_action == ("memory_rerank_fail" if on_failure == "raise" else "memory_rerank_coarse")
    assert (seen.assessment.attempt, seen.fallback_reason, seen.assessment.verdict) == (attempt, code, GateVerdict.UNKNOWN)
    assert seen.assessment.usage == usage
    assert len(seen.subject_refs) == 3


async def test_a_stage_that_runs_out_of_time_is_observed(tmp_path: Path) -> None:
    """The deadline of the search is a failure of the stage that was being asked."""
    sink = Sink()
    with pytest.raises(DeadlineError):
        await searched(tmp_path, Teller(mood="hangs"), sink, search={"deadline": 0.3})
    assert [(item.final_action, item.fallback_reason) for item in sink.taken] == [("memory_rerank_fail", "deadline")]


async def test_a_caller_who_leaves_is_observed(tmp_path: Path) -> None:
    """The stage was being asked, and nobody waits for what it would have said."""
    reached = anyio.Event()

    class Slow(Teller):
        async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> Any:
            reached.set()
            await anyio.sleep_forever()

    sink = Sink()
    async with advised(tmp_path / "m.db", Slow(), sink, use=(STAGE,), mode="shadow", reranker=KEEP_DROP) as gate:
        await gate.remember("m", STORED)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: gate.search(QUERY, memory="m"))
            await reached.wait()
            tasks.cancel_scope.cancel()
    assert sink.actions == ["memory_rerank_interrupted"]


async def test_what_asked_no_stage_is_no_attempt(tmp_path: Path) -> None:
    """Neither a search that finds nothing nor one that is refused is an attempt of the policy."""
    sink = Sink()
    async with advised(tmp_path / "m.db", None, sink, use=(STAGE,), mode="shadow", reranker=KEEP_DROP) as gate:
        await gate.remember("m", STORED)
        await gate.search("zeppelin", memory="m")
        await gate.search("...", memory="m")
        await gate.advice._recall.search(_request())
    assert sink.taken == []


def _request() -> Any:
    from narrowgate.values.search import SearchRequest

    return SearchRequest(QUERY, ("m",))


@pytest.mark.parametrize("mood", ["answers", "fails", "lies"])
async def test_a_search_is_the_same_with_and_without(tmp_path: Path, mood: str) -> None:
    """Hits, status, reason, verdicts and cost, whatever the backend does and whatever the sink does."""

    class Broken(Sink):
        async def observe(self, observation: object) -> None:
            raise RuntimeError("no room")

    found: list[Any] = []
    for mode, sink in ((None, Sink()), ("shadow", Sink()), ("advisory", Broken())):
        folder = tmp_path / str(mode)
        folder.mkdir()
        teller = Teller({"memory.rerank": judging}, mood)
        (page,) = await searched(folder, teller, sink, mode=mode, rerank={"on_failure": "coarse"})
        stage = page.trace.rerank
        assert stage is not None
        hits = [(hit.content, hit.score, hit.matched_by) for hit in page.hits]
        verdicts = None if stage.decision is None else (stage.decision.selected_ranks, stage.decision.verdicts)
        found.append((hits, page.status, page.reason, page.usage, stage.policy_id, verdicts, stage.detail, teller.kinds))
    assert found[0] == found[1] == found[2]


async def test_a_policy_of_another_stage_observes_nothing_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its fingerprint would else stand for a question that nobody asked."""

    class Last:
        policy_id = "last.v1"

        async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
            return RerankDecision((len(candidates),))

    from narrowgate import load_config, open, plan  # noqa: A004 - narrowgate.open

    sink = Sink()
    overrides = {
        "use": {"channels": ["sqlite.lexical"]},
        "settings": {"sqlite.store": {"path": tmp_path / "m.db"}},
        "policies": {"use": [STAGE]},
    }
    injected = {"reranker": Last(), "sinks": [sink]}
    with caplog.at_level(logging.WARNING, "narrowgate.governance"):
        async with open(plan(load_config(overrides=overrides, env={}), injected=injected)) as gate:
            await gate.remember("m", STORED)
            assert len((await gate.search(QUERY, memory="m")).hits) == 1
    assert sink.taken == []
    assert [record.event for record in caplog.records] == ["rerank.undescribed"]  # type: ignore[attr-defined]
