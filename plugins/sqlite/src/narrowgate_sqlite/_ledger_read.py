"""Reading the ledger: single records for people, whole columns for arithmetic. All of it inside a read transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import isfinite, isnan
from typing import Any, Final

import apsw
import numpy as np

from narrowgate.errors import InputError
from narrowgate.seams.observing import Coded, Selection, Tally
from narrowgate.values.columns import BY_NAME, COLUMNS, ColumnType, time_text
from narrowgate_sqlite._ledger_file import KIND, NUMBERS, REST, micros, moment_of
from narrowgate_sqlite._sql import fetch_rows, fetch_value

_ROW: Final = np.dtype(list(NUMBERS))
_CHUNK: Final = 1 << 16
"""Ids for one value of packed rows: some megabytes."""

_PACKED: Final = (
    "SELECT CAST(group_concat(numbers, '') AS BLOB) FROM (SELECT numbers FROM observations WHERE {} ORDER BY id)"
)
# Joined by the engine: values of one length, one behind the other, are the rows of an array as they stand.


_FIELDS: Final = "id, kind, at, numbers, observation_id, operation_id, scope_id, rest, snippet"
_NAMED: Final = f"SELECT {_FIELDS} FROM observations WHERE observation_id IN (SELECT value FROM json_each(?)) ORDER BY id"  # noqa: S608


def named(db: apsw.Connection, observation_ids: Collection[str]) -> tuple[Mapping[str, Any], ...]:
    """See `ObservationStore.named`."""
    kinds = _kinds(db)
    return tuple(_record(kinds[row[1]], row) for row in fetch_rows(db, _NAMED, (json.dumps(sorted(observation_ids)),)))


def records(
    db: apsw.Connection, selection: Selection, after: int, limit: int, *, newest: bool
) -> tuple[tuple[int, Mapping[str, Any]], ...]:
    """See `ObservationStore.records`."""
    kinds = _kinds(db)
    wanted = _wanted(kinds, selection)
    if not wanted:
        return ()
    where, bound = "o.id > ?", [after]
    if len(wanted) < len(kinds):
        where += f" AND o.kind IN ({', '.join(map(str, wanted))})"
    if selection.since is not None:
        where, bound = where + " AND o.at >= ?", [*bound, micros(selection.since)]
    order = "id DESC" if newest else "id"
    # Only words of ours and numbers are put together.
    sql = f"SELECT {_FIELDS} FROM observations o WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
    rows = [(row[0], _record(kinds[row[1]], row)) for row in fetch_rows(db, sql, (*bound, limit))]
    return tuple(reversed(rows) if newest else rows)


def _record(labels: Mapping[str, Any], row: Sequence[Any]) -> dict[str, Any]:
    _, _, at, packed, observation_id, operation_id, scope_id, rest, snippet = row
    (numbers,) = np.frombuffer(packed, dtype=_ROW)
    known = {
        **labels,
        **_rest(rest),
        "created_at": time_text(moment_of(at)),
        "observation_id": observation_id,
        "operation_id": operation_id,
        "scope_id": scope_id,
        "snippet": snippet,
    }
    for name, kind in NUMBERS[2:]:
        value = numbers[name].item()
        missing = isnan(value) if kind == "<f8" else value < 0
        if not missing and not isfinite(value):
            raise ValueError(f"{name} is none")
        known[name] = None if missing else value
    return {column.name: known.get(column.name) for column in COLUMNS}


def _kinds(db: apsw.Connection) -> dict[int, Mapping[str, Any]]:
    return {int(number): _labels(labels) for number, labels in fetch_rows(db, "SELECT id, labels FROM kinds")}


@lru_cache(maxsize=4096)
def _labels(said: str) -> Mapping[str, Any]:
    """Return the columns of a kind.

    Raises:
        ValueError: it lacks one, or one is not what that column holds.
    """
    labels: dict[str, Any] = json.loads(said)
    for name in KIND:
        column, value = BY_NAME[name], labels.get(name)
        if not (value is None and column.optional) and not _fits(column.type, value):
            raise ValueError(f"{name} is none")
    return labels


def _fits(column: ColumnType, value: object) -> bool:
    if column is ColumnType.REAL:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return isinstance(value, bool if column is ColumnType.FLAG else str)


def _rest(said: str) -> Mapping[str, Any]:
    """Return the references and counts of a row.

    Raises:
        ValueError: they are none.
    """
    rest: dict[str, Any] = json.loads(said)
    for name in REST:
        value = rest[name]
        if BY_NAME[name].type is ColumnType.TEXTS:
            sound = isinstance(value, list) and all(isinstance(item, str) for item in value)
        else:
            sound = isinstance(value, dict) and all(type(number) is int for number in value.values())
        if not sound:
            raise ValueError(f"{name} are none")
    return rest


def _wanted(kinds: Mapping[int, Mapping[str, Any]], selection: Selection) -> list[int]:
    return [
        number
        for number, labels in kinds.items()
        if selection.policy_id in (None, labels["policy_id"]) and selection.fingerprint in (None, labels["fingerprint"])
    ]


class Table:
    """The numbers of the selected observations, and what their kinds mean."""

    def __init__(self, db: apsw.Connection, selection: Selection) -> None:
        self.kinds = _kinds(db)
        self.rows = _numbers(db, selection)
        wanted = _wanted(self.kinds, selection)
        keep = None
        if len(wanted) < len(self.kinds):
            keep = np.isin(self.rows["kind"], wanted)
        if selection.since is not None:
            late = self.rows["created_at"] >= micros(selection.since)
            keep = late if keep is None else keep & late
        if keep is not None:
            self.rows = self.rows[keep]

    def column(self, name: str) -> Any:
        """Return one column; see `ObservationStore.columns`."""
        column = BY_NAME.get(name)
        if column is not None and name in _ROW.names:  # type: ignore[operator]
            return self.rows[name]
        if column is None or column.type not in (ColumnType.LABEL, ColumnType.REAL, ColumnType.FLAG):
            raise InputError("column-unknown", f"there is no column {name!r} of numbers or labels in a ledger")
        if column.type is ColumnType.LABEL:
            values = sorted({labels[name] for labels in self.kinds.values() if labels.get(name) is not None})
            places = {value: place for place, value in enumerate(values)}
            return Coded(self._spread(lambda labels: places.get(labels.get(name), -1), "<i4"), tuple(values))
        if column.type is ColumnType.FLAG:
            return self._spread(lambda labels: bool(labels.get(name)), "?")
        return self._spread(lambda labels: np.nan if labels.get(name) is None else labels[name], "<f8")

    def _spread(self, of: Any, kind: str) -> Any:
        """Return for each row what a function says of its kind."""
        said = np.zeros(max(self.kinds, default=0) + 1, dtype=kind)
        for number, labels in self.kinds.items():
            said[number] = of(labels)
        return said[self.rows["kind"]]

    def tallies(self, by: Sequence[str]) -> tuple[Tally, ...]:
        """Return figures for each group; see `ObservationStore.tallies`."""
        for name in by:
            if name not in BY_NAME or BY_NAME[name].type is not ColumnType.LABEL:
                raise InputError("column-unknown", f"there is no column {name!r} of labels in a ledger")
        names = sorted({tuple(labels.get(name) for name in by) for labels in self.kinds.values()}, key=repr)
        places = {values: place for place, values in enumerate(names)}
        group = self._spread(lambda labels: places[tuple(labels.get(name) for name in by)], "<i8")
        fallback = self.column("used_fallback")
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=len(names))
        found = []
        for place, end in enumerate(np.cumsum(sizes)):
            if sizes[place]:
                rows = order[end - sizes[place] : end]
                found.append(_tally(dict(zip(by, names[place], strict=True)), self.rows[rows], int(fallback[rows].sum())))
        return tuple(sorted(found, key=lambda tally: (-tally.count, repr(tally.labels))))


def _numbers(db: apsw.Connection, selection: Selection) -> Any:
    first = fetch_value(db, "SELECT min(id) FROM observations")
    if first is not None and selection.since is not None:
        first = fetch_value(db, "SELECT min(id) FROM observations WHERE at >= ?", (micros(selection.since),))
    if first is None:
        return np.empty(0, dtype=_ROW)
    last = fetch_value(db, "SELECT max(id) FROM observations")
    parts = []
    start: int | None = first
    while start is not None:
        end = min(start + _CHUNK - 1, last)
        packed = fetch_value(db, _PACKED.format("id BETWEEN ? AND ?"), (start, end))
        start = fetch_value(db, "SELECT min(id) FROM observations WHERE id > ?", (end,))
        if packed is not None:
            if len(packed) % _ROW.itemsize:
                raise apsw.CorruptError("a packed row has another length")
            parts.append(np.frombuffer(packed, dtype=_ROW))
    return np.concatenate(parts) if parts else np.empty(0, dtype=_ROW)


def _tally(labels: Mapping[str, str | None], rows: Any, fallbacks: int) -> Tally:
    latency = np.sort(rows["latency_ms"])

    def rank(share: float) -> float:
        return float(latency[max(0, int(np.ceil(share * len(latency))) - 1)])

    def tokens(name: str) -> int | None:
        return None if (rows[name] < 0).any() else int(rows[name].sum())

    return Tally(
        labels=labels,
        count=len(rows),
        first=moment_of(int(rows["created_at"].min())),
        last=moment_of(int(rows["created_at"].max())),
        fallbacks=fallbacks,
        latency_p50=rank(0.5),
        latency_p95=rank(0.95),
        calls=int(rows["calls"].sum()),
        requests=int(rows["requests"].sum()),
        input_tokens=tokens("input_tokens"),
        output_tokens=tokens("output_tokens"),
    )
