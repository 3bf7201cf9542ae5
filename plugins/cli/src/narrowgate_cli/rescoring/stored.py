"""Observations as columns: out of a ledger, a Parquet file or JSON lines, without a Python object for each row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from narrowgate.errors import InputError
from narrowgate.seams.observing import Coded, ObservationStore, Selection
from narrowgate.values.columns import BY_NAME, ColumnType
from narrowgate.values.times import instant_micros, parse_instant

READ: Final = (
    "created_at",
    "policy_id",
    "mode",
    "fingerprint",
    "attempt",
    "verdict",
    "reason",
    "fallback_reason",
    "backend_outcome",
    "probability",
    "score",
    "latency_ms",
    "requests",
    "provider_id",
    "backend_model_id",
    "final_action",
)
"""The columns that rescoring reads."""

_ABOUT_LABELS: Final = ("observation_id", "fingerprint", "attempt", "verdict", "reason", "backend_outcome", "probability")


@attrs.frozen
class Stored:
    """Observations of one policy.

    Attributes:
        columns: name -> an array, or `Coded` for labels; those of `READ`.
    """

    columns: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.columns["created_at"])

    def real(self, name: str) -> Any:
        """Return a column of numbers."""
        return self.columns[name]

    def coded(self, name: str) -> Coded:
        """Return a column of labels."""
        found: Coded = self.columns[name]
        return found

    def equals(self, name: str, *values: str) -> Any:
        """Return for each row whether a label is one of some values."""
        column = self.coded(name)
        hits = sum(value in values for value in column.values)
        if hits in (0, len(column.values)):  # mostly: one policy, one mode, one version
            return column.codes >= 0 if hits else np.zeros(len(column.codes), dtype=bool)
        # One more place than there are labels: -1, for none, is the last of it.
        table = np.zeros(len(column.values) + 1, dtype=bool)
        table[:-1] = [value in values for value in column.values]
        return table[column.codes]

    def counted(self, name: str, mask: Any = None) -> dict[str, int]:
        """Return label -> how many rows have it, among those of a mask; rows without one are left out."""
        column = self.coded(name)
        codes = column.codes if mask is None else column.codes[mask]
        counts = np.bincount(codes + 1, minlength=len(column.values) + 1)[1:]
        return {value: int(number) for value, number in zip(column.values, counts, strict=True) if number}

    def where(self, mask: Any) -> Stored:
        """Return the rows of a mask."""
        if mask.all():
            return self
        return Stored(
            {
                name: Coded(column.codes[mask], column.values) if isinstance(column, Coded) else column[mask]
                for name, column in self.columns.items()
            }
        )


async def from_store(store: ObservationStore, policy_id: str, since: datetime | None) -> Stored:
    """Read the observations of a policy out of a ledger."""
    return Stored(await store.columns(READ, Selection(policy_id=policy_id, since=since)))


def from_files(paths: Sequence[Path], policy_id: str, since: datetime | None) -> Stored:
    """Read the observations of a policy out of exported files, Parquet or JSON lines.

    Raises:
        InputError: `bad-observations`: a file cannot be read, or is none; `missing-extra`: pyarrow is not installed.
    """
    found = _joined([_parquet(path) if path.suffix == ".parquet" else _lines(path) for path in paths])
    keep = found.equals("policy_id", policy_id)
    if since is not None:
        keep &= found.real("created_at") >= instant_micros(since)
    return found.where(keep)


def labelled_in_files(paths: Sequence[Path], observation_ids: set[str]) -> list[Mapping[str, Any]]:
    """Return what rescoring needs of the named observations in exported files."""
    names = (*_ABOUT_LABELS, "score")
    found: list[Mapping[str, Any]] = []
    for path in paths:
        if path.suffix == ".parquet":
            table = _pyarrow(path).read_table(path, columns=list(names))
            values = {name: table.column(name).to_pylist() for name in names}
            rows = ({name: values[name][row] for name in names} for row in range(table.num_rows))
        else:
            rows = ({name: record.get(name) for name in names} for record in _records(path))
        found += [row for row in rows if row["observation_id"] in observation_ids]
    return found


def _joined(parts: Sequence[Stored]) -> Stored:
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {}
    for name in READ:
        if BY_NAME[name].type is ColumnType.LABEL:
            values = sorted({value for part in parts for value in part.coded(name).values})
            places = {value: place for place, value in enumerate(values)}
            codes = []
            for part in parts:
                column = part.coded(name)
                table = np.array([*(places[value] for value in column.values), -1], dtype=np.int32)
                codes.append(table[column.codes])
            columns[name] = Coded(np.concatenate(codes), tuple(values))
        else:
            columns[name] = np.concatenate([part.real(name) for part in parts])
    return Stored(columns)


def _records(path: Path) -> list[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            found = [json.loads(line) for line in file if line.strip()]
    except OSError as error:
        raise InputError("bad-observations", f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise _bad(path) from None
    if not all(isinstance(item, dict) for item in found):
        raise _bad(path)
    return found


def _bad(path: Path) -> InputError:
    hint = "name what `narrowgate observations export` or the sink `observe.jsonl` wrote"
    return InputError("bad-observations", f"{path} holds no observations as JSON lines or Parquet: {hint}")


def _lines(path: Path) -> Stored:
    records = _records(path)
    columns: dict[str, Any] = {}
    try:
        for name in READ:
            given = [record.get(name) for record in records]
            kind = BY_NAME[name].type
            if kind is ColumnType.LABEL:
                values = sorted({value for value in given if value is not None})
                places: dict[str | None, int] = {value: place for place, value in enumerate(values)}
                columns[name] = Coded(np.array([places.get(value, -1) for value in given], np.int32), tuple(values))
            elif kind is ColumnType.TIME:
                columns[name] = np.array([instant_micros(parse_instant(value or "")) for value in given], np.int64)
            elif kind is ColumnType.REAL:
                columns[name] = np.array([np.nan if value is None else float(value) for value in given], np.float64)
            else:
                columns[name] = np.array([-1 if value is None else int(value) for value in given], np.int64)
    except (InputError, TypeError, ValueError):
        raise _bad(path) from None
    return Stored(columns)


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        text = f"{path} is Parquet, which needs pyarrow, and that is not installed"
        raise InputError("missing-extra", f"{text}: pip install 'narrowgate-cli[parquet]'") from None
    return pyarrow.parquet


def _parquet(path: Path) -> Stored:
    parquet = _pyarrow(path)
    try:
        table = parquet.read_table(path, columns=list(READ)).unify_dictionaries().combine_chunks()
        return Stored({name: _column(table.column(name), BY_NAME[name].type) for name in READ})
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError("bad-observations", f"{path} does not exist: name an exported file") from None
        raise _bad(path) from None


def _column(chunked: Any, kind: ColumnType) -> Any:
    # One chunk, or none where there are no rows.
    array = chunked.chunk(0) if chunked.num_chunks else chunked.combine_chunks()
    if kind is ColumnType.LABEL:
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        return Coded(codes, tuple(array.dictionary.to_pylist()))
    if kind is ColumnType.TIME:
        return array.cast("int64").to_numpy(zero_copy_only=False)
    if kind is ColumnType.REAL:
        return array.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return array.fill_null(-1).to_numpy(zero_copy_only=False)


def span(stored: Stored) -> tuple[datetime | None, datetime | None, float]:
    """Return when the first and the last was made, and how many days that is, at least 1."""
    times = stored.real("created_at")
    if not len(times):
        return None, None, 1.0
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    first, last = (epoch + timedelta(microseconds=int(time)) for time in (times.min(), times.max()))
    return first, last, max((last - first) / timedelta(days=1), 1.0)
