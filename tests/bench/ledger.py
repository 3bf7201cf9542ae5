"""The ledger: group commit against one commit for each row; reading whole columns against reading rows.

Both ways of writing go through the sink as the fan-out uses it, on the same disk in the same run, and every commit is
durable (`synchronous = FULL`). Reading is held against the quickest way to the same arrays with an object for each row.
"""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import apsw
import attrs
import numpy as np

from narrowgate.governance.observers import observers
from narrowgate.values.assessment import Attempt, Coverage, DecisionAssessment, GateMode, GateVerdict, VerdictSource
from narrowgate.values.decision import DecisionOutcome, Usage
from narrowgate.values.observation import DecisionObservation
from narrowgate.values.policy import PrivacyBoundary, Thresholds
from narrowgate_sqlite.ledger import open_ledger
from narrowgate_sqlite.settings import LedgerSettings

GROUPED: Final = 20_000
SINGLE: Final = 400
RATIO: Final = 20.0
STORED: Final = 1_000_000
READ: Final = ("probability", "backend_outcome", "latency_ms", "created_at")
"""Columns that rescoring reads."""

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_KEEP: Final = LedgerSettings(keep_days=0, keep_rows=0)


@attrs.frozen
class Written:
    """Observations in a second.

    Attributes:
        grouped: with all that wait in one commit.
        single: with a commit for each.
    """

    grouped: float
    single: float


@attrs.frozen
class Columns:
    """Reading columns of so many observations.

    Attributes:
        rows: how many.
        seconds: whole columns.
        floor: fetching (numbers, kind) row by row from the same file and making the same arrays.
        sweep: a bare sort and sum over the probabilities, for comparison.
    """

    rows: int
    seconds: float
    floor: float
    sweep: float


def _made(number: int, random: Any) -> DecisionObservation:
    probability = float(random.random())
    yes = probability >= 0.5
    said = DecisionAssessment(
        policy_id=f"bench.policy-{number % 3}.v1",
        policy_version="1",
        mode=GateMode.SHADOW,
        attempt=Attempt.BACKEND,
        coverage=Coverage.ADJUDICATED,
        verdict=GateVerdict.ALLOW if yes else GateVerdict.DENY,
        source=VerdictSource.DECISION_MODEL,
        reason="decision_model_verdict",
        outcome=DecisionOutcome.YES if yes else DecisionOutcome.NO,
        probability=probability,
        confidence=max(probability, 1 - probability),
        usage=Usage(1, 1, 200, 1),
        latency_ms=float(random.random()) * 40,
    )
    return DecisionObservation(
        observation_id=f"{number:026}",
        created_at=_START + timedelta(seconds=number),
        operation_id=f"{number // 4:026}",
        scope_id="bench",
        consumer="memory_write_gate",
        fingerprint="ab" * 32,
        assessment=said,
        backend_outcome=said.outcome,
        thresholds=Thresholds(yes_at=0.5),
        subject_refs=(f"bench@{number}/{number:026}/1",),
        evidence_refs=(f"bench@{number}/{number + 1:026}/1",),
        privacy_boundary=PrivacyBoundary.LOCAL_ONLY,
        privacy_outcome="local_model_called",
        provider_id="local.evidence",
        model_policy_id="local.evidence.v1",
        final_action="memory_write_accept",
        language="zh" if number % 2 else "en",
        metadata={"candidates": 1, "evidence": 1},
    )


async def written(folder: Path) -> Written:
    """Write observations through the fan-out, and one by one with a commit for each."""
    random = np.random.default_rng(7)
    many = [_made(number, random) for number in range(GROUPED)]
    async with open_ledger(folder / "single.db", _KEEP) as ledger:
        await ledger.observe(many[0])
        started = perf_counter()
        for item in many[:SINGLE]:
            await ledger.observe(item)
        single = SINGLE / (perf_counter() - started)
    async with open_ledger(folder / "grouped.db", _KEEP) as ledger:
        await ledger.observe(many[0])
        started = perf_counter()
        async with observers([("sqlite.ledger", ledger)]) as fan_out:
            for item in many:
                await fan_out.publish(item)
            await fan_out.flush()
            grouped = GROUPED / (perf_counter() - started)
        assert (await ledger.state())["rows"] == GROUPED + 1
    return Written(grouped, single)


async def columns(folder: Path, rows: int = STORED) -> Columns:
    """Fill a ledger and read columns of it."""
    file = folder / "columns.db"
    random = np.random.default_rng(7)
    async with open_ledger(file, _KEEP) as ledger:
        for start in range(0, rows, 20_000):
            await ledger.observe_many([_made(number, random) for number in range(start, min(start + 20_000, rows))])
        gc.collect()
        seconds = floor = float("inf")
        for _ in range(3):
            started = perf_counter()
            found = await ledger.columns(READ)
            seconds = min(seconds, perf_counter() - started)
            started = perf_counter()
            read = _row_by_row(file)
            floor = min(floor, perf_counter() - started)
        assert np.array_equal(found["probability"], read)
        started = perf_counter()
        np.cumsum(np.sort(found["probability"]))
        return Columns(rows, seconds, floor, perf_counter() - started)


def _row_by_row(file: Path) -> Any:
    """Return the probabilities, unpacked from a Python object for each row."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        packed = b"".join(numbers for numbers, _ in db.execute("SELECT numbers, kind FROM observations ORDER BY id"))
    finally:
        db.close()
    return np.frombuffer(packed, dtype="<f8").reshape(-1, 10)[:, 2]
