"""The ledger of observations: sink and store of them, `BatchSink` and `ObservationStore`, on a SQLite file of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
import apsw

from narrowgate.errors import InputError, NarrowgateError, StoreError
from narrowgate.seams.observing import Selection, Tally
from narrowgate.values.observation import DecisionObservation
from narrowgate_sqlite import _ledger_file as _file
from narrowgate_sqlite import _ledger_read as _read
from narrowgate_sqlite._engine import Engine
from narrowgate_sqlite._place import LEDGER_ID, examine
from narrowgate_sqlite.settings import LedgerSettings

T = TypeVar("T")

_ALL: Final = Selection()
_LEAST_TO_SHRINK: Final = 250
"""Free pages below which shrinking the file is not worth its while."""


def _now() -> datetime:
    return datetime.now(UTC)


class SqliteLedger:
    """Observations in one file. What `observe` and `observe_many` return from is on the disk: one commit for each call.

    The file is made with the first observation; a ledger that is only read makes none. Where it was deleted or replaced
    meanwhile, the next observation goes to the file that stands there, or to a new one.

    Args:
        path: the file.
        settings: what is kept, and for how long.
        clock: the time by which observations grow old.
    """

    def __init__(self, path: Path, settings: LedgerSettings, clock: Callable[[], datetime] = _now) -> None:
        self.path, self._settings, self._clock = path, settings, clock
        self._place = path.absolute()  # the current folder may change
        self._engine: Engine | None = None
        self._opening = anyio.Lock()
        self._missed = 0

    async def observe(self, observation: DecisionObservation) -> None:
        """See `ObservationSink`; a commit of its own."""
        await self.observe_many((observation,))

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """See `BatchSink`: one commit for all of them.

        Raises:
            StoreError: nothing of it was kept; how much that was is told by `state` once something can be kept again.
        """
        missed = self._missed

        def work(db: apsw.Connection) -> None:
            _file.append(db, observations, snippets=self._settings.snippets)
            _file.prune(db, self._settings, self._clock())
            if missed:
                _file.bump(db, "missed", missed)

        try:
            engine = await self._opened()
            await engine.write(work)
        except BaseException:
            self._missed += len(observations)
            raise
        self._missed -= missed

    async def flush(self) -> None:
        """See `ObservationSink`. Nothing to do: what was taken is durable already."""

    async def records(
        self, selection: Selection = _ALL, *, after: int = 0, limit: int = 1000, newest: bool = False
    ) -> tuple[tuple[int, Mapping[str, Any]], ...]:
        """See `ObservationStore`."""
        if limit < 1:
            raise InputError("limit-range", "limit must be at least 1")
        return await self._reading(lambda db: _read.records(db, selection, after, limit, newest=newest))

    async def named(self, observation_ids: Collection[str]) -> tuple[Mapping[str, Any], ...]:
        """See `ObservationStore`."""
        return await self._reading(lambda db: _read.named(db, observation_ids))

    async def columns(self, names: Sequence[str], selection: Selection = _ALL) -> Mapping[str, Any]:
        """See `ObservationStore`."""

        def work(db: apsw.Connection) -> Mapping[str, Any]:
            table = _read.Table(db, selection)
            return {name: table.column(name) for name in names}

        return await self._reading(work)

    async def tallies(self, by: Sequence[str], selection: Selection = _ALL) -> tuple[Tally, ...]:
        """See `ObservationStore`."""
        return await self._reading(lambda db: _read.Table(db, selection).tallies(by))

    async def state(self) -> Mapping[str, str | int | float | bool]:
        """See `ObservationStore`. `missed`: observations that could not be kept; `removed`: those that grew too old."""

        def work(db: apsw.Connection) -> Mapping[str, str | int | float | bool]:
            return _file.state_of(db, self._place, self._settings)

        facts = await self._reading(work)
        return {**facts, "missed": int(facts["missed"]) + self._missed}

    async def _reading(self, work: Callable[[apsw.Connection], T]) -> T:
        """Read in one transaction. Without a file, return what an empty ledger gives."""
        if not self._place.exists():
            return await anyio.to_thread.run_sync(_of_empty, work)
        engine = await self._opened()
        return await engine.read(lambda reader: _sound(work, reader.db))

    async def _opened(self) -> Engine:
        async with self._opening:
            if self._engine is not None and self._engine.gone:
                # A ledger can be thrown away at any time, e.g. to put an old one aside: the next one begins here.
                gone, self._engine = self._engine, None
                await anyio.to_thread.run_sync(gone.close)
            if self._engine is None:
                open_file, timeout = _file.open_file, self._settings.busy_timeout
                self._engine = await anyio.to_thread.run_sync(lambda: open_file(self._place, timeout, _file.MIGRATIONS))
            return self._engine

    async def start(self) -> None:
        """Open the file where there is one, and remove what has grown too old meanwhile.

        Raises:
            StoreError: it cannot be used.
        """
        if not self._place.exists():
            return
        engine = await self._opened()

        def work(db: apsw.Connection) -> None:
            _file.prune(db, self._settings, self._clock())
            _file.sweep(db)
            free, pages = int(db.pragma("freelist_count")), int(db.pragma("page_count"))
            if free > _LEAST_TO_SHRINK and free * 4 > pages:
                db.execute("PRAGMA incremental_vacuum").fetchall()

        try:
            await engine.write(work)
        except StoreError as error:
            # To remove takes room and a turn too. Without them the rest of the application starts all the same.
            if error.code not in ("full", "locked"):
                raise

    async def close(self) -> None:
        """Close the file."""
        if self._engine is not None:
            await anyio.to_thread.run_sync(self._engine.close)


def _sound(work: Callable[[apsw.Connection], T], db: apsw.Connection) -> T:
    """Return what `work` gives; rows that no ledger writes are damage, wherever reading them comes to grief."""
    try:
        return work(db)
    except NarrowgateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise apsw.CorruptError("a row holds what no ledger writes") from None


def _of_empty(work: Callable[[apsw.Connection], T]) -> T:
    """Return what `work` gives on a ledger without observations."""
    db = apsw.Connection(":memory:")
    try:
        for step in _file.MIGRATIONS:
            step(db)
        return work(db)
    finally:
        db.close()


@asynccontextmanager
async def open_ledger(path: Path, settings: LedgerSettings) -> AsyncIterator[SqliteLedger]:
    """Open the ledger at `path`; the file is made with the first observation.

    Raises:
        StoreError: `not-ours`, `newer-schema`, `read-only`, `network-filesystem`, `corrupt`, `locked`.
    """
    fault = await anyio.to_thread.run_sync(
        lambda: examine(path, _file.SCHEMA_VERSION, allow_network=settings.allow_network_filesystem, application=LEDGER_ID)
    )
    if fault is not None:
        raise fault.error()
    ledger = SqliteLedger(path, settings)
    try:
        await ledger.start()
        yield ledger
    finally:
        with anyio.CancelScope(shield=True):
            await ledger.close()
