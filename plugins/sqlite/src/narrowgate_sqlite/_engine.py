"""Connections: opening a file, one writer, a pool of readers, cancellation."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import apsw

from narrowgate.errors import StoreError
from narrowgate_sqlite._faults import Fault, locked
from narrowgate_sqlite._identity import outdated, require_log
from narrowgate_sqlite._place import APPLICATION_ID
from narrowgate_sqlite._schema import MIGRATIONS, Migration, migrate, set_meta

T = TypeVar("T")

READERS: Final = 4
"""The most searches and reads of one store that are under way at once; more wait their turn."""

_STEPS: Final = 20_000
"""Steps of SQLite's virtual machine, about a millisecond, between two looks at whether the caller is gone."""

_LOOK_UP: Final = 0.1
"""Seconds between two looks at whether the caller is gone, for a read that waits for a connection."""

_STARTS: Final = 4
"""Turns of the event loop in which a read has surely gone to its thread, if one is free."""

_CACHE_KIB: Final = 32_768
_MAP_BYTES: Final = 1 << 30


def fault_of(error: apsw.Error, path: Path, seconds: float) -> Fault:
    """Return the fault behind an error of the engine; the engine's own message may hold data and is left out."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return locked(path, seconds)
    if isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError)):
        return Fault("read-only", f"{path} or its folder cannot be written", "make both writable, or set another path")
    if isinstance(error, apsw.NotADBError):
        return Fault("not-ours", f"{path} is no SQLite database", "set another path")
    if isinstance(error, apsw.CorruptError):
        return Fault("corrupt", f"{path} is damaged", "restore a backup, or save what `sqlite3 FILE .recover` still reads")
    if isinstance(error, apsw.FullError):
        return Fault("full", f"the disk of {path} is full", "make room; nothing of this write was stored")
    return Fault("engine", f"SQLite failed on {path} ({type(error).__name__})", "look at the disk and the system's log")


class TooLongHereError(Exception):
    """Brief work found that it is not brief this time: it belongs into a worker thread."""


class Job:
    """One piece of work in a worker thread.

    Attributes:
        cancelled: set from the event loop when the caller is gone; the connection looks at it while a statement runs.
    """

    def __init__(self) -> None:
        self.cancelled = False


class Reader:
    """A connection that reads, with what is worth remembering as long as the file does not change."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.job: Job | None = None
        self._version = -1
        self._frequency: dict[str, int] = {}
        # `Connection.interrupt` is lost when it comes between two statements; a flag that is looked at is not.
        db.set_progress_handler(lambda: self.job is not None and self.job.cancelled, _STEPS)

    def frequency(self) -> dict[str, int]:
        """Return the cache of document frequencies; empty after any write. Only inside a read transaction."""
        version = self.db.data_version()
        if version != self._version:
            self._version, self._frequency = version, {}
        return self._frequency


class Engine:
    """All connections of one store.

    Args:
        path: the file, as the operator named it; messages say it so.
        busy_timeout: the longest wait for another writer, in seconds.

    Attributes:
        place: the file's absolute path, since the current folder may change.
    """

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self.path, self.busy_timeout = path, busy_timeout
        self.write_waits = 0
        self.place = path.absolute()
        self._writer = Reader(_connect(self.place))
        self._file = _file_at(self.place)
        self._write_lock = threading.Lock()
        self._idle: list[Reader] = []
        self._count = 0
        self._free = threading.Condition()
        self._closed = False
        self._starting: set[Job] = set()
        self._reading = anyio.CapacityLimiter(READERS)
        self._writing = anyio.CapacityLimiter(1)

    async def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` in a worker thread, inside one read transaction: everything it reads is of one moment."""
        job = Job()
        self._starting.add(job)
        try:
            return await self._run(job, lambda: self._read(job, work), self._reading)
        finally:
            self._starting.discard(job)

    async def read_brief(self, work: Callable[[Reader], T]) -> T | None:
        """Run `work` here and now, in the event loop's thread, inside one read transaction; `None` where that would wait.

        For work of known and small cost, which going to a thread and back would lengthen (docs/adr/0009-brief-reads.md). It
        waits for nothing: neither for a connection, nor for another process, nor for what `work` says with
        `TooLongHereError`. Reads that were asked for before it go to their threads first, so that both are done at once.
        """
        for _ in range(_STARTS):
            await anyio.lowlevel.checkpoint()
            if not self._starting:
                break
        self._require_file()
        with self._free:
            if self._closed:
                raise self._closed_error()
            if not self._idle:
                return None
            reader = self._idle.pop()
        reader.db.set_busy_timeout(0)
        try:
            return self._transaction(Job(), reader, work)
        except (apsw.BusyError, TooLongHereError):
            return None
        except apsw.Error as error:
            raise fault_of(error, self.path, self.busy_timeout).error() from error
        finally:
            reader.db.set_busy_timeout(int(self.busy_timeout * 1000))
            self._give(reader)

    async def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in a worker thread, inside one write transaction; durable when this returns.

        When cancelled before the commit it is rolled back.
        """
        job = Job()
        return await self._run(job, lambda: self._write(job, work), self._writing)

    async def empty_log(self) -> None:
        """Bring the write-ahead log into the file and leave it empty, as far as no reader needs it.

        Pages that were overwritten in the file stand in the log as they were before, until it is begun anew. What cannot be
        done now is done by the last connection that closes; nothing is raised for it.
        """
        job = Job()
        await self._run(job, self._empty_log, self._writing)

    def _empty_log(self) -> None:
        with self._write_lock:
            if not self._closed:
                self._writer.db.set_busy_handler(None)
                with suppress(apsw.Error):
                    self._writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    async def _run(self, job: Job, call: Callable[[], T], limiter: anyio.CapacityLimiter) -> T:
        try:
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
        except anyio.get_cancelled_exc_class():
            job.cancelled = True
            raise

    def _read(self, job: Job, work: Callable[[Reader], T]) -> T:
        self._starting.discard(job)
        self._require_file()
        reader = self._take(job)
        try:
            return self._transaction(job, reader, work)
        except apsw.Error as error:
            raise fault_of(error, self.path, self.busy_timeout).error() from error
        finally:
            self._give(reader)

    @staticmethod
    def _transaction(job: Job, reader: Reader, work: Callable[[Reader], T]) -> T:
        try:
            reader.job = job
            reader.db.execute("BEGIN")
            return work(reader)
        finally:
            reader.job = None
            if reader.db.in_transaction:
                reader.db.execute("ROLLBACK")

    def _write(self, job: Job, work: Callable[[apsw.Connection], T]) -> T:
        if not self._write_lock.acquire(timeout=self.busy_timeout):
            raise locked(self.path, self.busy_timeout).error()
        try:
            if self._closed:
                raise self._closed_error()
            return self._transact(job, work)
        finally:
            self._write_lock.release()

    def _transact(self, job: Job, work: Callable[[apsw.Connection], T]) -> T:
        db = self._writer.db
        self._writer.job = job
        try:
            db.set_busy_handler(self._patience(job))
            db.execute("BEGIN IMMEDIATE")
            result = work(db)
            if job.cancelled:
                raise apsw.InterruptError("the caller is gone")
            self._require_file()
            db.execute("COMMIT")
            return result
        except apsw.Error as error:
            raise fault_of(error, self.path, self.busy_timeout).error() from error
        finally:
            self._writer.job = None
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _patience(self, job: Job) -> Callable[[int], bool]:
        started = 0.0

        def wait(turn: int) -> bool:
            nonlocal started
            if turn == 0:
                started = time.monotonic()
                self.write_waits += 1
            if job.cancelled or time.monotonic() - started > self.busy_timeout:
                return False
            # Random waits that stay short: with SQLite's own growing waits a busy neighbour starves this process.
            time.sleep(random.uniform(0.0005, 0.004))  # noqa: S311 - no secret
            return True

        return wait

    def _take(self, job: Job) -> Reader:
        with self._free:
            while not self._idle and self._count >= READERS + 4:  # abandoned work still holds its connection for a moment
                self._free.wait(_LOOK_UP)
                if job.cancelled:
                    # Else each further caller would leave one more thread waiting behind a read that hangs.
                    raise apsw.InterruptError("the caller is gone")
            if self._closed:
                raise self._closed_error()
            if self._idle:
                return self._idle.pop()
            self._count += 1
        try:
            db = _connect(self.place, create=False)
            db.set_busy_timeout(int(self.busy_timeout * 1000))
            db.execute("PRAGMA query_only = 1")
            return Reader(db)
        except BaseException:
            with self._free:
                self._count -= 1
            raise

    def _require_file(self) -> None:
        """Raise where the path no longer names the file that is open.

        The system keeps a deleted file until it is closed. What is written to it would be acknowledged and lost, and a new
        connection would see another file than the others.
        """
        if self.gone and not self._closed:
            raise Fault(
                "file-gone", f"{self.path} was deleted or replaced while it was open", "put it back, or open the store again"
            ).error()

    @property
    def gone(self) -> bool:
        """Whether the path no longer names the file that is open."""
        return _file_at(self.place) != self._file

    def _closed_error(self) -> StoreError:
        return Fault("closed", f"the store on {self.path} is closed", "open it again").error()

    def _give(self, reader: Reader) -> None:
        with self._free:
            self._idle.append(reader)
            self._free.notify()

    def close(self) -> None:
        """Close every connection, after the work that still uses it; blocks."""
        with self._write_lock, self._free:
            if self._closed:
                return
            self._closed = True
            while len(self._idle) < self._count:
                self._free.wait()
            for reader in self._idle:
                reader.db.close()
            self._idle.clear()
            self._count = 0
            self._writer.db.close()


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at a path from every other, or `None` where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before every read: half the time of Path.stat
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path, *, create: bool = True) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    db = apsw.Connection(str(path), flags=flags)
    db.execute(f"PRAGMA synchronous = FULL; PRAGMA cache_size = -{_CACHE_KIB}; PRAGMA mmap_size = {_MAP_BYTES}").fetchall()
    return db


def open_engine(path: Path, busy_timeout: float, analyser: str, migrations: Sequence[Migration] = MIGRATIONS) -> Engine:
    """Open `path`, creating the file and its tables or bringing an older file up to date; blocks.

    Raises:
        StoreError: `not-ours`, `newer-schema`, `read-only`, `locked`, `corrupt`, ...
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Fault(
            "read-only", f"{path.parent} cannot be created ({error.strerror})", "set another path for sqlite.store"
        ).error() from error
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            _prepare(path, busy_timeout, analyser, migrations)
            return Engine(path, busy_timeout)
        except apsw.BusyError as error:
            # Changing the journal mode does not wait for others by itself.
            if time.monotonic() > deadline:
                raise fault_of(error, path, busy_timeout).error() from error
            time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no secret
        except apsw.Error as error:
            raise fault_of(error, path, busy_timeout).error() from error


def _prepare(path: Path, busy_timeout: float, analyser: str, migrations: Sequence[Migration]) -> None:
    db = _connect(path)
    try:
        db.set_busy_timeout(int(busy_timeout * 1000))
        if outdated(db, path, len(migrations), APPLICATION_ID):
            # A new file gets its tables before it gets a write-ahead log, so that its header names us from the start.
            db.execute("BEGIN IMMEDIATE")
            if outdated(db, path, len(migrations), APPLICATION_ID) and migrate(db, migrations) == 0:
                set_meta(db, "analyser", analyser)
            db.execute("COMMIT")
        require_log(db, path)
    finally:
        db.close()
