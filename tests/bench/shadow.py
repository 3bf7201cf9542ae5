"""What policies in shadow add to the caller's path: `remember` and `search` with all of them in shadow, and without any.

Blocks with and without take turns, each on a file of its own that begins with the same entries, so that both see the same
machine. Three backends are asked in shadow: the evidence model of this process, which takes processor time from everybody in
it; one that answers after a while, as one over a network does; and one that hangs. Calls come with a little time
between them, and back to back: then whatever shadow computes is somebody's time, since nobody ever leaves the process alone.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import anyio
import attrs
from corpus import Corpus
from parts import MEMORY

import narrowgate
from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.values.entry import EntryDraft, Evidence

ENTRIES: Final = 2_000
"""Entries that a block's memory begins with."""

TEXTS: Final = 4_000
"""Texts that are needed: those to begin with, and what is written after."""

CALLS: Final = 60
"""Calls of each kind in a block."""

TURNS: Final = 4
"""Blocks with, and as many without. The best of each counts, since neighbours disturb."""

BATCH: Final = 50
"""Entries of a batch."""

BETWEEN: Final = 0.02
"""Seconds between the calls of a block in which they do not come back to back."""

BOUND_MS: Final = 2.0
BOUND: Final = 1.25
"""The median with policies in shadow may be this much more than without, or this many times as much: where calls do not come
back to back, and the backend does not compute in this process."""


class Waiting:
    """Answers yes after a while; with `inf`, never.

    Args:
        seconds: how long it takes.
    """

    policy_id, batch_limit, concurrency = "bench-waiting.v1", 8, 4

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some; those of the second stage at once, since its time is the caller's with and without policies."""
        if any(request.decision_kind != "memory.rerank" for request in requests):
            await anyio.sleep(self._seconds)
        return tuple(DecisionResult(DecisionOutcome.YES, self.policy_id, Usage(1, 1), 0.9) for _ in requests)


class Nowhere:
    """A sink that keeps nothing."""

    async def observe(self, observation: object) -> None:
        """Take one."""

    async def flush(self) -> None:
        """Everything is nowhere."""


@attrs.frozen
class Added:
    """One kind of call, milliseconds.

    Attributes:
        name: the call and the backend.
        p50, p95: with all policies in shadow.
        plain_p50, plain_p95: without policies.
        bounded: whether the bound is for this one.
    """

    name: str
    p50: float
    p95: float
    plain_p50: float
    plain_p95: float
    bounded: bool

    @property
    def ok(self) -> bool:
        """Whether the bound holds."""
        return self.p50 <= max(self.plain_p50 * BOUND, self.plain_p50 + BOUND_MS)


BACKENDS: Final[dict[str, Any]] = {"local.evidence": None, "answers in 50 ms": 0.05, "hangs": float("inf")}


async def measure(folder: Path, corpus: Corpus) -> AsyncIterator[Added]:
    """Yield what is added to each kind of call, backend by backend."""
    logging.getLogger("narrowgate.decisions").setLevel(logging.ERROR)  # that a backend hangs is known here
    for name, seconds in BACKENDS.items():
        for between in (BETWEEN, 0.0):
            times: dict[tuple[str, bool], list[list[float]]] = {}
            for turn in range(TURNS):
                for governed in (False, True):
                    file = folder / f"{name}-{between}-{turn}-{governed}.db"
                    async with _opened(file, 0.0, governed=False) as gate:
                        for first in range(0, ENTRIES, 500):
                            await gate.remember(MEMORY, corpus.texts[first : first + 500])
                    async with _opened(file, seconds, governed=governed) as gate:
                        for what, took in (await _block(gate, corpus, turn, between)).items():
                            times.setdefault((what, governed), []).append(took)
            pace = f"{between * 1000:.0f} ms between calls" if between else "back to back"
            for what in dict.fromkeys(what for what, _ in times):
                ours, plain = (times[what, governed] for governed in (True, False))
                bounded = between > 0 and seconds is not None
                label = f"{what}, backend {name}, {pace}"
                yield Added(label, _p(ours, 50), _p(ours, 95), _p(plain, 50), _p(plain, 95), bounded)


async def measured(folder: Path, corpus: Corpus) -> list[Added]:
    """Return what `measure` yields."""
    return [item async for item in measure(folder, corpus)]


@asynccontextmanager
async def _opened(file: Path, seconds: float | None, *, governed: bool) -> AsyncIterator[Any]:
    overrides: dict[str, Any] = {
        "use": {"channels": ["sqlite.lexical"], "embedder": "none", "reranker": "decision.keep-drop"},
        "settings": {"sqlite.store": {"path": file}},
    }
    if governed:
        # What hangs is given up soon here, so that a block ends; that is not the caller's time.
        overrides["policies"] = {"use": list(BUILT_IN), "timeout": 0.5, "shadow_deadline": 1.0}
    injected: dict[str, Any] = {"sinks": [Nowhere()]} if governed else {}
    if seconds is None:
        overrides["use"]["decision_backend"] = "local.evidence"
    else:
        injected["decision_backend"] = Waiting(seconds)
    composition = narrowgate.plan(narrowgate.load_config(overrides=overrides, env={}), injected=injected)
    async with narrowgate.open(composition) as gate:
        yield gate


async def _block(gate: Any, corpus: Corpus, turn: int, between: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}

    async def note(what: str, call: Any) -> None:
        await anyio.sleep(between)
        started = perf_counter()
        await call
        found.setdefault(what, []).append((perf_counter() - started) * 1000)

    fresh = iter(corpus.texts[ENTRIES + turn * CALLS * 6 :])
    for number in range(CALLS):
        await note("remember 1 entry", gate.remember(MEMORY, _cited(next(fresh))))
        if number % 10 == 0:
            batch = [_cited(next(fresh)) for _ in range(BATCH)]
            await note(f"remember {BATCH} entries", gate.remember(MEMORY, batch))
        query = corpus.queries[number % len(corpus.queries)]
        await note("search with a second stage", gate.search(query, memory=MEMORY))
    return found


def _cited(text: str) -> EntryDraft:
    return EntryDraft(text, evidence=(Evidence("bench:1", f"It was said: {text}"),))


def _p(blocks: Sequence[Sequence[float]], percent: int) -> float:
    """Return a percentile of the block that was disturbed least."""
    return min(statistics.quantiles(values, n=100)[percent - 1] for values in blocks)
