"""Two short forms of asking; rows are untyped, as the engine's are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw


def fetch_value(db: apsw.Connection, sql: str, bound: Sequence[Any] = ()) -> Any:
    """Return the first column of the first row; `None` when there is no row."""
    row = db.execute(sql, bound).fetchone()
    return None if row is None else row[0]


def fetch_rows(db: apsw.Connection, sql: str, bound: Sequence[Any] = ()) -> list[Any]:
    """Return all rows."""
    return db.execute(sql, bound).fetchall()
