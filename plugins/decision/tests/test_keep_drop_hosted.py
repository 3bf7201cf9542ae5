"""A search whose second stage asks `hosted.systemone`: with every fault it fails, says what it cost, and leaves nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import attrs
import pytest

import narrowgate
from narrowgate.decisions import DecisionRequest, DecisionResult, Usage, account
from narrowgate.errors import DeadlineError, RerankError
from narrowgate.seams import Deps
from narrowgate_decision import KeepDrop
from narrowgate_hosted.plugin import narrowgate_decision_backends
from narrowgate_http import CURES
from narrowgate_http.testing import ALL_FAULTS, PLACES, Answer, FaultServer, Recorded, fault_server, without_waits

T = TypeVar("T")

NOTES: Final = [f"The nightly backup of host {number} starts at four." for number in range(12)] + [
    "备份服务器每天凌晨四点开始备份。",
    "备份失败时先通知值班人员。",
]
QUERY: Final = "when does the nightly backup start? 备份几点开始？"
LIMIT: Final = 5
FAST: Final[dict[str, Any]] = {"timeout": 0.5, "deadline": 1.5, "retries": 1, "allow_http": True}
"""Bounds for servers that never answer; `allow_http`, since the fault server's unknown host has no TLS."""

PATIENT: Final[dict[str, Any]] = {"timeout": 60, "deadline": 120}
"""Bounds with which another deadline than the HTTP client's has to end what never answers."""


def yes(request: Recorded) -> Answer:
    """Say yes to every question."""
    answers = {name: {"type": "noul", "noul": 0.9} for name in request.json["questions"]}
    usage = {"input_tokens": 10 * len(answers), "output_tokens": len(answers)}
    return Answer(json={"model": "m-1.0.0", "answers": answers, "usage": usage})


@asynccontextmanager
async def searching(
    url: str, file: Path, *, client: dict[str, Any], on_failure: str = "raise", **sections: dict[str, Any]
) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Open a memory in a file with keep/drop over `hosted.systemone`; yields the search."""
    settings = {
        "sqlite.store": {"path": str(file)},
        "hosted.systemone": {"base_url": url, "model": "m-1.0.0", **client},
        "decision.keep-drop": sections.pop("keep_drop", {}),
    }
    use = {
        "store": "sqlite.store",
        "channels": ["sqlite.lexical"],
        "reranker": "decision.keep-drop",
        "decision_backend": "hosted.systemone",
    }
    overrides = {"use": use, "settings": settings, "rerank": {"on_failure": on_failure}, **sections}
    async with narrowgate.open(narrowgate.load_config(env={}, overrides=overrides)) as gate:
        await gate.remember("team", NOTES)
        yield lambda: gate.search(QUERY, memory="team", limit=LIMIT)


def tasks() -> set[int]:
    """Return the tasks that are there."""
    return {task.id for task in anyio.get_running_tasks()}


@pytest.mark.anyio
@pytest.mark.parametrize("on_failure", ["raise", "coarse"])
@pytest.mark.parametrize("fault", ALL_FAULTS)
async def test_every_fault_fails_the_stage_with_its_cost(fault: str, on_failure: str, tmp_path: Path) -> None:
    """Case 27: an error with code and cost, or the coarse page with the same; never coarse order that looks judged."""
    with fault_server(fault) as server, without_waits(), anyio.fail_after(60):
        async with searching(server.url, tmp_path / "a.db", client=FAST, on_failure=on_failure) as search:
            before = tasks()
            page, failure = None, None
            try:
                page = await search()
            except RerankError as error:
                failure = error
            assert tasks() == before
        await server.deserted()
        reached = len(server.requests)
    assert (reached == 0) is (fault in PLACES)
    if on_failure == "raise":
        assert failure is not None
        code, usage, text = failure.code, failure.usage, str(failure)
    else:
        assert page is not None
        assert [hit.ref for hit in page.hits] == [candidate.ref for candidate in page.trace.rerank.candidates[:LIMIT]]
        assert page.status == "failed"
        assert page.trace.rerank.decision is None
        code, usage, text = page.reason, page.usage, page.trace.rerank.detail
    assert code in CURES
    assert code == EXPECTED.get(fault, code)
    assert f"[{code}]" in text
    assert not any(note in text for note in NOTES)
    assert (usage.calls, usage.requests) == ((LIMIT, reached) if reached else (0, 0))


EXPECTED: Final = {
    "401": "unauthorised",
    "429-ms": "rate-limited",
    "503": "overloaded",
    "529": "overloaded",
    "slow-first-byte": "timeout",
    "slow-trickle": "timeout",
    "cut-body": "cut",
    "html-body": "not-json",
    "nan": "non-finite",
    "wrong-shape": "wrong-shape",
    "huge-body": "response-too-large",
    "refused": "unreachable",
    "dns": "dns",
    "tls-plain-text": "tls",
}
"""Some codes, so that the stage is held to the cause and not to any code; the tests of `narrowgate-hosted` have them all."""


@pytest.mark.anyio
@pytest.mark.parametrize("batch_limit", [None, 1])
@pytest.mark.parametrize("whose", ["stage", "search"])
@pytest.mark.parametrize("fault", ["slow-first-byte", "slow-trickle"])
async def test_nothing_hangs_past_the_deadline(fault: str, whose: str, batch_limit: int | None, tmp_path: Path) -> None:
    """The stage's own deadline and the search's: both end what hangs, with the cost of what was under way."""
    sections = {"keep_drop": {"deadline": 0.4}} if whose == "stage" else {"search": {"deadline": 0.4}}
    client = {**PATIENT, "batch_limit": batch_limit, "concurrency": 3}
    with fault_server(fault) as server, anyio.fail_after(60):
        async with searching(server.url, tmp_path / "a.db", client=client, **sections) as search:
            before = tasks()
            with pytest.raises(RerankError if whose == "stage" else DeadlineError, match=r"decision\.keep-drop") as caught:
                await search()
            assert tasks() == before
        await server.deserted()
        reached = len(server.requests)
    assert caught.value.code == "deadline"
    usage = caught.value.usage
    assert usage is not None
    # A search that was slow to come this far is cut off before it asks anyone, which is one request to be on the safe side.
    asked = (LIMIT, 1) if batch_limit is None else (3, 3)
    assert (usage.calls, usage.requests) in {asked, (1, 1)}
    assert usage.requests >= reached
    assert (usage.input_tokens, usage.output_tokens) == (None, None)


class Steps:
    """Cancels a scope when what it watches waits for the nth time, in whatever tasks that is."""

    def __init__(self, at: int, scope: anyio.CancelScope) -> None:
        self._left, self._scope = at, scope

    def watch(self, work: Awaitable[T]) -> Awaitable[T]:
        """Return `work`, watched."""
        return _Watching(work, self)

    def waits(self) -> None:
        """Note that something waits."""
        self._left -= 1
        if self._left == 0:
            self._scope.cancel()


class _Watching(Awaitable[T]):
    def __init__(self, work: Awaitable[T], steps: Steps) -> None:
        self._work, self._steps = work, steps

    def __await__(self) -> Generator[Any, Any, T]:
        inner: Any = self._work.__await__()
        step, given = inner.send, None
        while True:
            try:
                awaited = step(given)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            self._steps.waits()
            try:
                step, given = inner.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001 - handed on to where it belongs
                step, given = inner.throw, error


@attrs.define
class Watched:
    """A backend whose calls are watched, in whatever task they run."""

    backend: Any
    steps: Steps | None = None

    @property
    def policy_id(self) -> str:
        return str(self.backend.policy_id)

    @property
    def batch_limit(self) -> int:
        return int(self.backend.batch_limit)

    @property
    def concurrency(self) -> int:
        return int(self.backend.concurrency)

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        assert self.steps is not None
        return await self.steps.watch(self.backend.evaluate(request))

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        assert self.steps is not None
        return await self.steps.watch(self.backend.evaluate_many(requests))


@pytest.mark.anyio
@pytest.mark.parametrize("batch_limit", [None, 1])
async def test_cancellation_at_each_await(batch_limit: int | None, pool: Callable[..., Any]) -> None:
    """Case 39: wherever it comes, it passes, no task is left, the account holds what was sent, and the next scan works."""
    (component,) = [item for item in narrowgate_decision_backends() if item.name == "hosted.systemone"]
    candidates = pool(NOTES[:4])
    with FaultServer(yes) as server, anyio.fail_after(100):
        settings = component.settings(base_url=server.url, model="m-1.0.0", batch_limit=batch_limit, concurrency=3)
        async with component.build(settings, Deps({}, analyser="any")) as bare:
            backend = Watched(bare)
            reranker, spent = KeepDrop(backend), []
            for at in range(1, 1000):
                before, scope = tasks(), anyio.CancelScope()
                backend.steps = Steps(at, scope)
                with account() as own, scope:
                    decision = await backend.steps.watch(reranker.rerank(f"query {at}.", candidates, 4))
                assert tasks() == before
                spent.append(own.usage or Usage())
                if not scope.cancel_called:
                    break
                assert scope.cancelled_caught or decision.selected_ranks == (1, 2, 3, 4)
        await server.deserted()
        bodies = [request.body.decode() for request in server.requests]
    assert (decision.selected_ranks, decision.usage.calls) == ((1, 2, 3, 4), 4)
    assert decision.usage == spent[-1]
    assert decision.usage.requests == (1 if batch_limit is None else 4)
    # Connecting, sending, reading and the ends of tasks: far more than the few places that tests elsewhere name.
    assert len(spent) > 8
    for at, usage in enumerate(spent, 1):
        arrived = sum(f"query {at}." in body for body in bodies)
        assert usage.requests >= arrived
        assert usage.calls == (4 * usage.requests if batch_limit is None else usage.requests)


@pytest.mark.anyio
@pytest.mark.parametrize("batch_limit", [None, 1])
async def test_a_wave_is_one_request_or_one_round(batch_limit: int | None, tmp_path: Path) -> None:
    """A page of five that are all kept is five questions, in one request or in five side by side; the trace has all."""
    client = {"batch_limit": batch_limit, "concurrency": 5}
    with FaultServer(yes) as server, anyio.fail_after(60):
        async with searching(server.url, tmp_path / "a.db", client=client) as search:
            page = await search()
        sent = len(server.requests)
    assert (page.status, page.reason, len(page.hits)) == ("applied", None, LIMIT)
    assert sent == (1 if batch_limit is None else 5)
    assert page.usage == Usage(5, sent, 50, 5)
    verdicts = page.trace.rerank.decision.verdicts
    assert [(verdict.rank, verdict.kept, verdict.probability) for verdict in verdicts] == [
        (rank, True, 0.9) for rank in range(1, 6)
    ]
