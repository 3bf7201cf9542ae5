"""Rescoring: every threshold of a million stored observations, against reading the same columns and a bare sort and sum.

From the ledger (SQLite) and from an export (Parquet), as `narrowgate policy rescore ID --sweep` does it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import attrs
import ledger
import numpy as np

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.seams.observing import Selection
from narrowgate_cli.rescoring.report import Rescoring
from narrowgate_cli.rescoring.stored import READ, Stored, from_files, from_store
from narrowgate_cli.tables import parquet
from narrowgate_sqlite.ledger import SqliteLedger, open_ledger
from narrowgate_sqlite.settings import LedgerSettings

ROWS: Final = 1_000_000
RATIO: Final = 1.5
RUNS: Final = 3
POLICY: Final = attrs.evolve(
    BUILT_IN["memory.write.evidence_sufficiency.v1"], policy_id="bench.policy.v1", origin="benchmark"
)

_KEEP: Final = LedgerSettings(keep_days=0, keep_rows=0)
_BATCH: Final = 20_000


@attrs.frozen
class Rescored:
    """Seconds for one source.

    Attributes:
        name: SQLite or Parquet.
        rows: observations.
        seconds: reading, classes, verdicts, friction and every threshold.
        read: reading the same columns.
        sweep: a bare sort and sum over the numbers and words among them.
    """

    name: str
    rows: int
    seconds: float
    read: float
    sweep: float

    @property
    def ratio(self) -> float:
        """Ours against the bare work."""
        return self.seconds / (self.read + self.sweep)


async def measure(folder: Path, rows: int = ROWS) -> tuple[Rescored, Rescored]:
    """Fill a ledger, export it, and rescore both."""
    random = np.random.default_rng(7)
    path = folder / "rescore.parquet"
    async with open_ledger(folder / "rescore.db", _KEEP) as store:
        with parquet(path) as file:
            place = 0
            for start in range(0, rows, _BATCH):
                made = [_of_policy(ledger._made(number, random)) for number in range(start, min(start + _BATCH, rows))]
                await store.observe_many(made)
                found = await store.records(after=place, limit=_BATCH)
                place = found[-1][0]
                file.write([record for _, record in found])
        return await _sqlite(store, rows), _parquet(path, rows)


def _of_policy(made: Any) -> Any:
    return attrs.evolve(made, assessment=attrs.evolve(made.assessment, policy_id=POLICY.policy_id))


def _rescored(stored: Stored) -> None:
    done = Rescoring(POLICY, stored, {"ab" * 32})
    figures = done.figures()
    curve = done.sweep()
    assert curve is not None
    assert figures["coverage"] == 1.0
    assert curve["points"][-1]["would_hold"] == stored.rows


def _bare(columns: Any) -> None:
    """Sort the numbers with the words beside them, and sum up how many of each are not above every number."""
    order = np.argsort(columns["probability"])
    np.cumsum(columns["backend_outcome"].codes[order] == 0)


async def _sqlite(store: SqliteLedger, rows: int) -> Rescored:
    seconds = read = sweep = float("inf")
    selection = Selection(policy_id=POLICY.policy_id)
    for _ in range(RUNS):
        gc.collect()
        started = perf_counter()
        _rescored(await from_store(store, POLICY.policy_id, None))
        seconds = min(seconds, perf_counter() - started)
        started = perf_counter()
        columns = await store.columns(READ, selection)
        read = min(read, perf_counter() - started)
        sweep = min(sweep, _timed(lambda columns=columns: _bare(columns)))  # type: ignore[misc]
    return Rescored("SQLite", rows, seconds, read, sweep)


def _parquet(path: Path, rows: int) -> Rescored:
    from narrowgate_cli.rescoring import stored as reading

    seconds = read = sweep = float("inf")
    for _ in range(RUNS):
        gc.collect()
        seconds = min(seconds, _timed(lambda: _rescored(from_files([path], POLICY.policy_id, None))))
        started = perf_counter()
        columns = reading._parquet(path).columns
        read = min(read, perf_counter() - started)
        sweep = min(sweep, _timed(lambda columns=columns: _bare(columns)))  # type: ignore[misc]
    return Rescored("Parquet", rows, seconds, read, sweep)


def _timed(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
