"""The offline checks: everything that opening would refuse, found without creating or changing the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import apsw

from narrowgate.seams import CheckContext, Problem
from narrowgate_sqlite._engine import fault_of
from narrowgate_sqlite._faults import Fault, foreign_vectors, stale_index
from narrowgate_sqlite._ledger_file import SCHEMA_VERSION as LEDGER_SCHEMA
from narrowgate_sqlite._ledger_file import state_of
from narrowgate_sqlite._place import LEDGER_ID, examine, identity_fault
from narrowgate_sqlite._schema import SCHEMA_VERSION, get_meta
from narrowgate_sqlite.settings import LedgerSettings, StoreSettings, ledger_path

STORE: Final = "sqlite.store"
LEDGER: Final = "sqlite.ledger"


def store_problems(settings: StoreSettings, context: CheckContext) -> Iterator[Problem]:
    """Yield why the file of `sqlite.store` cannot be opened."""
    fault = examine(settings.path, SCHEMA_VERSION, allow_network=settings.allow_network_filesystem)
    if fault is None:
        fault, analyser, _ = _look(settings.path)
        if fault is None and analyser not in (None, context.analyser) and not settings.allow_stale_index:
            fault = stale_index(settings.path, analyser, context.analyser)
    if fault is not None:
        yield _problem(fault, STORE)


def vector_problems(context: CheckContext) -> Iterator[Problem]:
    """Yield whether the vectors in the file are not those of the chosen embedder."""
    settings = context.settings_of.get(STORE)
    if context.embedding is None or not isinstance(settings, StoreSettings) or settings.allow_stale_index:
        return
    if examine(settings.path, SCHEMA_VERSION, allow_network=True) is not None:
        return  # the store's own check says so
    fault, _, embedding = _look(settings.path)
    if fault is None and embedding not in (None, str(context.embedding)):
        yield _problem(foreign_vectors(settings.path, str(embedding), str(context.embedding)), "sqlite.vector")


def ledger_problems(settings: LedgerSettings, context: CheckContext) -> Iterator[Problem]:
    """Yield why the file of `sqlite.ledger` cannot be opened."""
    path = _ledger_path(settings, context)
    fault = examine(path, LEDGER_SCHEMA, allow_network=settings.allow_network_filesystem, application=LEDGER_ID)
    if fault is not None:
        yield _problem(fault, LEDGER)


def ledger_facts(settings: LedgerSettings, context: CheckContext) -> Mapping[str, str]:
    """Return where the ledger is and, where there is one, how it stands."""
    path = _ledger_path(settings, context)
    facts = {"file": str(path)}
    if path.exists() and examine(path, LEDGER_SCHEMA, allow_network=True, application=LEDGER_ID) is None:
        try:
            db = _open_to_look(path)
            try:
                facts |= {name: str(value) for name, value in state_of(db, path, settings).items()}
            finally:
                db.close()
        except apsw.Error as error:
            facts["state"] = f"cannot be read now ({type(error).__name__})"
    return facts


def _ledger_path(settings: LedgerSettings, context: CheckContext) -> Path:
    store = context.settings_of.get(STORE)
    return ledger_path(settings, store.path if isinstance(store, StoreSettings) else None)


def _problem(fault: Fault, component: str) -> Problem:
    return Problem(fault.code, fault.message, fault.cure, component)


def _look(path: Path) -> tuple[Fault | None, str | None, str | None]:
    """Return a fault, the index's analyser, and the profile of the vectors (`None` where there are none)."""
    if not path.exists() or path.stat().st_size == 0:
        return None, None, None
    try:
        db = _open_to_look(path)
        try:
            fault = identity_fault(path, int(db.pragma("application_id")), int(db.pragma("user_version")), SCHEMA_VERSION)
            if fault is not None:
                return fault, None, None
            some = db.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None
            return None, get_meta(db, "analyser"), get_meta(db, "embedding") if some else None
        finally:
            db.close()
    except apsw.BusyError:
        return None, None, None  # it is in use, so it can be opened; opening looks again
    except apsw.Error as error:
        return fault_of(error, path, 1.0), None, None


def _open_to_look(path: Path) -> apsw.Connection:
    # Without a log beside it the file alone is the truth, and `immutable` makes no files; with one it must be read too.
    flag = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
    db = apsw.Connection(f"{path.absolute().as_uri()}?{flag}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    db.set_busy_timeout(1000)
    return db
