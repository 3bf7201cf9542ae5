"""What a file that was just opened is: new, of an older release, ours as it stands, or nobody's to touch."""

from __future__ import annotations

from pathlib import Path

import apsw

from narrowgate_sqlite._faults import Fault
from narrowgate_sqlite._place import identity_fault
from narrowgate_sqlite._sql import fetch_value


def outdated(db: apsw.Connection, path: Path, schema: int, application: int) -> bool:
    """Return whether the file lacks tables: an empty one, or one of an older schema than `schema`.

    Raises:
        StoreError: `not-ours`, `newer-schema`.
    """
    with db:  # all of one moment: another process may be making the very same tables just now
        found, version = int(db.pragma("application_id")), int(db.pragma("user_version"))
        tables = fetch_value(db, "SELECT count(*) FROM sqlite_schema")
    if found == 0 and version == 0 and not tables:
        return True
    fault = identity_fault(path, found, version, schema, application)
    if fault is not None:
        raise fault.error()
    return version < schema


def require_log(db: apsw.Connection, path: Path) -> None:
    """Give the file a write-ahead log.

    Raises:
        StoreError: `read-only`: it can have none where it is.
    """
    if db.pragma("journal_mode") != "wal" and db.pragma("journal_mode", "wal") != "wal":
        raise Fault("read-only", f"{path} cannot keep a write-ahead log", "set a path on a local disk").error()
