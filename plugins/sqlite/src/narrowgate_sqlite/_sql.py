"""Short forms of asking and of making hits; rows are untyped, as the engine's are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import apsw

from narrowgate.values.search import ChannelHit

as_hit: Final = partial(tuple.__new__, ChannelHit)
"""Make a hit of (memory, entry, version, score): in half the time of its constructor; searches make hundreds."""


def fetch_value(db: apsw.Connection, sql: str, bound: Sequence[Any] = ()) -> Any:
    """Return the first column of the first row; `None` when there is no row."""
    row = db.execute(sql, bound).fetchone()
    return None if row is None else row[0]


def fetch_rows(db: apsw.Connection, sql: str, bound: Sequence[Any] = ()) -> list[Any]:
    """Return all rows."""
    return db.execute(sql, bound).fetchall()
