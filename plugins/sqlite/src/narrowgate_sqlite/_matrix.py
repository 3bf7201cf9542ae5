"""The vectors of one memory, in memory: loaded once, then kept up to date along the memory's change list.

A `Segment` is never changed once others can see it: rows are appended beyond the part that older segments look at, and what
is dead is told by a mask of its own. So a search works on the segment of its snapshot while the next one is being made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw
import attrs
import numpy as np
from numpy.typing import NDArray

from narrowgate.errors import StoreError
from narrowgate_sqlite._schema import SHIFT
from narrowgate_sqlite._sql import fetch_rows

_CHUNK: Final = 4096
_SMALLEST: Final = 256
_MARGIN: Final = 2e-6
_BLOCK: Final = 32
_LINE: Final = 16
"""Floats of one cache line, 64 bytes."""

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@attrs.frozen(eq=False)
class Segment:
    """What a memory's vectors were at one moment.

    Attributes:
        next: n of the memory's next change then.
        epoch: the memory's vector epoch then.
        count: rows in use.
        matrix: float32, at least `count` rows, one for each vector.
        ids: entry ids of the rows, as integers.
        labels: (entry id, version) of the rows; `count` of them belong to this segment.
        alive: which of the `count` rows are those of active entries.
        living: how many are.
    """

    next: int
    epoch: int
    count: int
    matrix: Floats
    ids: Ints
    labels: list[tuple[str, int]]
    alive: NDArray[np.bool_]
    living: int


def load(db: apsw.Connection, memory: int, following: int, epoch: int, dimension: int, expected: int) -> Segment:
    """Read all vectors of a memory's active entries.

    Args:
        db: inside a read transaction.
        memory: its number.
        following: n of its next change.
        epoch: its vector epoch.
        dimension: length of a vector.
        expected: about how many there are.
    """
    low, high = _range(memory)
    matrix, ids = _buffers(expected + expected // 8, dimension)
    labels: list[tuple[str, int]] = []
    cursor = db.execute(
        "SELECT e.id, t.vector, e.name, e.version FROM entries e CROSS JOIN vectors t ON t.id = e.current "
        "WHERE e.id BETWEEN ? AND ? AND e.active = 1 ORDER BY e.id",
        (low, high),
    )
    while rows := _some(cursor):
        matrix, ids = _append(matrix, ids, labels, rows, dimension)
    count = len(labels)
    return Segment(following, epoch, count, matrix, ids, labels, np.ones(count, dtype=np.bool_), count)


def follow(db: apsw.Connection, memory: int, old: Segment, following: int, dimension: int) -> Segment:
    """Return `old` with the changes up to `following` taken in."""
    low, high = memory << SHIFT | old.next, memory << SHIFT | following
    changed = fetch_rows(
        db,
        "SELECT c.entry, t.vector, e.name, e.version, e.active FROM (SELECT entry FROM versions WHERE id >= ?1 AND id < ?2 "
        "UNION SELECT entry FROM states WHERE id >= ?1 AND id < ?2) c CROSS JOIN entries e ON e.id = c.entry "
        "LEFT JOIN vectors t ON t.id = e.current ORDER BY c.entry",
        (low, high),
    )
    alive = old.alive
    living = old.living
    earlier = [row[0] for row in changed if row[0] < low]
    if earlier:
        dead = np.isin(old.ids[: old.count], np.asarray(earlier, dtype=np.int64)) & alive
        alive = alive & ~dead
        living -= int(dead.sum())
    rows = [row[:4] for row in changed if row[4] and row[1] is not None]
    matrix, ids, labels = old.matrix, old.ids, old.labels
    if old.count - living > max(living, _SMALLEST):
        kept = np.flatnonzero(alive)
        packed = _buffers(len(kept) + len(rows), dimension)
        packed[0][: len(kept)], packed[1][: len(kept)] = matrix[kept], ids[kept]
        labels = [labels[place] for place in kept.tolist()]
        matrix, ids = packed
        alive = np.ones(len(kept), dtype=np.bool_)
    matrix, ids = _append(matrix, ids, labels, rows, dimension)
    alive = np.concatenate([alive, np.ones(len(rows), dtype=np.bool_)])
    return Segment(following, old.epoch, len(labels), matrix, ids, labels, alive, living + len(rows))


def _range(memory: int) -> tuple[int, int]:
    low = memory << SHIFT
    return low, low | ((1 << SHIFT) - 1)


Row = tuple[int, bytes, str, int]
"""Entry as an integer, its vector, its id, its version."""


def _some(cursor: Iterable[Any]) -> list[Row]:
    rows: list[Row] = []
    for row in cursor:
        rows.append(row)
        if len(rows) == _CHUNK:
            break
    return rows


def _buffers(rows: int, dimension: int) -> tuple[Floats, Ints]:
    """Return room for vectors and ids. The matrix begins where a cache line does: its product takes 3 % less time."""
    size = max(rows, _SMALLEST)
    room = np.empty(size * dimension + _LINE, dtype=np.float32)
    start = -room.ctypes.data // room.itemsize % _LINE
    return room[start : start + size * dimension].reshape(size, dimension), np.empty(size, dtype=np.int64)


def _append(
    matrix: Floats, ids: Ints, labels: list[tuple[str, int]], rows: Sequence[Row], dimension: int
) -> tuple[Floats, Ints]:
    """Write rows behind those that `labels` tells of, in buffers twice as large where there is no room."""
    if not rows:
        return matrix, ids
    count, end = len(labels), len(labels) + len(rows)
    if end > len(ids):
        larger = _buffers(max(end, 2 * len(ids)), dimension)
        larger[0][:count], larger[1][:count] = matrix[:count], ids[:count]
        matrix, ids = larger
    flat = np.frombuffer(b"".join([row[1] for row in rows]), dtype="<f4")
    if flat.size != len(rows) * dimension:
        raise StoreError("corrupt", f"stored vectors are not of dimension {dimension}: run `narrowgate reindex`")
    matrix[count:end] = flat.reshape(len(rows), dimension)
    ids[count:end] = [row[0] for row in rows]
    labels += [row[2:] for row in rows]
    return matrix, ids


def scores(segment: Segment, query: Floats) -> Floats:
    """Return the product of each row with the query; minus infinity for rows that are dead."""
    found: Floats = segment.matrix[: segment.count] @ query
    if segment.living < segment.count:
        found[~segment.alive] = -np.inf
    return found


def best(values: Floats, segment: Segment, limit: int) -> tuple[Ints, Any]:
    """Return rows and scores of the best, at most `limit`, by score, then by entry.

    Scores are rounded to six decimals, about what float32 carries, so that equal vectors tie wherever their rows stand; and
    lie in -1..1.
    """
    edge = _edge(values, limit)
    places = np.flatnonzero(values >= edge - _MARGIN if edge > -np.inf else values > -np.inf)
    rounded = np.minimum(np.maximum(values[places].astype(np.float64).round(6), -1.0), 1.0)
    order = np.lexsort((segment.ids[places], -rounded))[:limit]
    return places[order], rounded[order]


def _edge(values: Floats, limit: int) -> np.float32:
    """Return a value that at least `limit` values reach, and not many more; minus infinity when there are fewer.

    Values are looked at in blocks: `limit` blocks whose largest reaches the edge hold `limit` values that do. Their maxima
    cost a pass over memory, where finding the edge among all values costs several.
    """
    blocks = len(values) // _BLOCK
    if blocks > limit:
        values = values[: blocks * _BLOCK].reshape(_BLOCK, blocks).max(axis=0)
    if len(values) <= limit:
        return np.float32(-np.inf)
    found: np.float32 = np.partition(values, len(values) - limit)[len(values) - limit]
    return found
