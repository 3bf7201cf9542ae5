"""The ledger's file: its tables, how an observation becomes a row, what is kept of it and for how long.

A file of its own, apart from the memories: a commit here never waits for one there, a ledger can be thrown away, and what
was asked never fills the file that holds the answers (docs/adr).

Few different things are said of very many attempts. So the labels of an attempt (policy, verdict, reason, ...) are one row
of `kinds`, as a JSON object, and an observation points at it. Its numbers are one packed value, so that a million of them
are read as whole columns, without a Python object for each.
"""

from __future__ import annotations

import json
import random
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import apsw

from narrowgate.values.columns import BY_NAME, LABELS, time_text
from narrowgate.values.observation import DecisionObservation
from narrowgate_sqlite._engine import Engine, fault_of
from narrowgate_sqlite._faults import Fault
from narrowgate_sqlite._identity import outdated, require_log
from narrowgate_sqlite._place import LEDGER_ID
from narrowgate_sqlite._sql import fetch_value
from narrowgate_sqlite.settings import LedgerSettings

_TABLES: Final = """
CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;

CREATE TABLE kinds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    labels TEXT NOT NULL UNIQUE       -- a JSON object: every column of labels, the thresholds, used_fallback
) STRICT;

CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    numbers BLOB NOT NULL,            -- see NUMBERS
    at INTEGER NOT NULL,              -- microseconds since 1970, UTC
    kind INTEGER NOT NULL,
    observation_id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    rest TEXT NOT NULL,               -- a JSON object: references, redactions, counts
    snippet TEXT                      -- NULL unless its retention was asked for
) STRICT;
CREATE INDEX observations_at ON observations (at);
"""

MIGRATIONS: Final[tuple[Callable[[apsw.Connection], object], ...]] = (lambda db: db.execute(_TABLES),)
"""MIGRATIONS[n] brings a file from schema version n to n + 1."""

SCHEMA_VERSION: Final = len(MIGRATIONS)

NUMBERS: Final = (
    ("created_at", "<i8"),
    ("kind", "<i8"),
    ("probability", "<f8"),
    ("score", "<f8"),
    ("confidence", "<f8"),
    ("latency_ms", "<f8"),
    ("calls", "<i8"),
    ("requests", "<i8"),
    ("input_tokens", "<i8"),
    ("output_tokens", "<i8"),
)
"""What the packed value holds, as a numpy dtype; NaN and -1 stand for none."""

KIND: Final = (*LABELS, "yes_at", "no_at", "used_fallback")
"""The columns that `kinds` holds."""

REST: Final = ("subject_refs", "evidence_refs", "redactions", "metadata")

_PACK: Final = struct.Struct("<2q4d4q")
_MOST: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS_TO_SWEEP: Final = 1000


def micros(moment: datetime) -> int:
    """Return microseconds since 1970 in UTC, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(at: int) -> datetime:
    """Return the moment of so many microseconds since 1970.

    Raises:
        CorruptError: there is no such moment.
    """
    try:
        return _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        raise apsw.CorruptError("a row was made at no moment") from None


def _count(number: int | None) -> int:
    return -1 if number is None else min(number, _MOST)


def _real(number: float | None) -> float:
    return float("nan") if number is None else number


@lru_cache(maxsize=4096)
def _labels(values: tuple[Any, ...]) -> str:
    return json.dumps(dict(zip(KIND, values, strict=True)), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


_KIND_OF: Final = tuple(BY_NAME[name].of for name in KIND)
_REST_OF: Final = tuple((name, BY_NAME[name].of) for name in REST)


def append(db: apsw.Connection, observations: Iterable[DecisionObservation], *, snippets: bool) -> None:
    """Add observations, inside a write transaction."""
    kinds: dict[str, int] = {}

    def row(item: DecisionObservation) -> tuple[Any, ...]:
        labels = _labels(tuple(of(item) for of in _KIND_OF))
        kind = kinds.get(labels)
        if kind is None:
            kind = kinds[labels] = _kind(db, labels)
        said, at = item.assessment, micros(item.created_at)
        usage = said.usage
        return (
            _PACK.pack(
                at,
                kind,
                _real(said.probability),
                _real(said.score),
                _real(said.confidence),
                said.latency_ms,
                _count(usage.calls),
                _count(usage.requests),
                _count(usage.input_tokens),
                _count(usage.output_tokens),
            ),
            at,
            kind,
            item.observation_id,
            item.operation_id,
            item.scope_id,
            json.dumps({name: of(item) for name, of in _REST_OF}, ensure_ascii=False, separators=(",", ":")),
            item.snippet if snippets else None,
        )

    rows = [row(item) for item in observations]
    db.executemany(
        "INSERT INTO observations (numbers, at, kind, observation_id, operation_id, scope_id, rest, snippet) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def _kind(db: apsw.Connection, labels: str) -> int:
    # Looked up anew in each transaction: another process may have swept kinds that nothing used any more.
    found = fetch_value(db, "SELECT id FROM kinds WHERE labels = ?", (labels,))
    if found is None:
        db.execute("INSERT INTO kinds (labels) VALUES (?)", (labels,))
        return int(db.last_insert_rowid())
    return int(found)


def prune(db: apsw.Connection, settings: LedgerSettings, now: datetime) -> int:
    """Remove what is older or more than is to be kept, inside a write transaction; return how many went."""
    before = db.total_changes()
    if settings.keep_days:
        db.execute("DELETE FROM observations WHERE at < ?", (micros(now - timedelta(days=settings.keep_days)),))
    if settings.keep_rows:
        # Ids rise by one; where rows went by age there are gaps, so that rather fewer than too many are kept for a while.
        db.execute("DELETE FROM observations WHERE id <= (SELECT max(id) FROM observations) - ?", (settings.keep_rows,))
    gone = db.total_changes() - before
    if gone:
        bump(db, "removed", gone)
    return gone


def bump(db: apsw.Connection, name: str, by: int) -> None:
    """Add to one of the file's own counts."""
    db.execute("INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value", (name, by))


def sweep(db: apsw.Connection) -> None:
    """Remove kinds that nothing uses any more, where there are many."""
    if fetch_value(db, "SELECT count(*) FROM kinds") > _KINDS_TO_SWEEP:
        db.execute("DELETE FROM kinds WHERE id NOT IN (SELECT kind FROM observations)")


def counts(db: apsw.Connection) -> Mapping[str, int]:
    """Return the file's own counts: `missed`, `removed`."""
    return {str(name): int(value) for name, value in db.execute("SELECT name, value FROM counts")}


def state_of(db: apsw.Connection, path: Path, settings: LedgerSettings) -> Mapping[str, str | int | float | bool]:
    """Return facts about an open ledger; see `ObservationStore.state`."""
    counted = counts(db)
    facts: dict[str, str | int | float | bool] = {
        "rows": int(fetch_value(db, "SELECT count(*) FROM observations")),
        "bytes": sum(part.stat().st_size for end in ("", "-wal") if (part := path.with_name(path.name + end)).exists()),
        "missed": counted.get("missed", 0),
        "removed": counted.get("removed", 0),
        "snippets": settings.snippets,
    }
    for name, end in (("oldest", "min"), ("newest", "max")):
        at = fetch_value(db, f"SELECT {end}(at) FROM observations")  # noqa: S608 - two words of ours
        if at is not None:
            facts[name] = time_text(moment_of(at))
    return facts


def open_file(path: Path, busy_timeout: float, migrations: Sequence[Callable[[apsw.Connection], object]]) -> Engine:
    """Open `path`, creating the file with its tables, or bringing an older one up to date; blocks.

    Raises:
        StoreError: `not-ours`, `newer-schema`, `read-only`, `locked`, `corrupt`, ...
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fault = Fault("read-only", f"{path.parent} cannot be created ({error.strerror})", "set another path")
        raise fault.error() from error
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            _prepare(path, busy_timeout, migrations)
            return Engine(path, busy_timeout)
        except apsw.BusyError as error:
            # Changing the journal mode does not wait for others by itself.
            if time.monotonic() > deadline:
                raise fault_of(error, path, busy_timeout).error() from error
            time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no secret
        except apsw.Error as error:
            raise fault_of(error, path, busy_timeout).error() from error


def _prepare(path: Path, busy_timeout: float, migrations: Sequence[Callable[[apsw.Connection], object]]) -> None:
    db = apsw.Connection(str(path))
    try:
        db.set_busy_timeout(int(busy_timeout * 1000))
        if outdated(db, path, len(migrations), LEDGER_ID):
            if not db.pragma("user_version"):
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before there is anything in it
            db.execute("BEGIN IMMEDIATE")
            if outdated(db, path, len(migrations), LEDGER_ID):
                for step in migrations[int(db.pragma("user_version")) :]:
                    step(db)
                db.execute(f"PRAGMA application_id = {LEDGER_ID}")
                db.execute(f"PRAGMA user_version = {len(migrations)}")
            db.execute("COMMIT")
        require_log(db, path)
    finally:
        db.close()
