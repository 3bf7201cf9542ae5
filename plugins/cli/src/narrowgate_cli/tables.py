"""Observations as a Parquet file, with the columns of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from narrowgate.errors import InputError
from narrowgate.values.columns import COLUMNS, ColumnType


class ParquetFile:
    """A Parquet file that is being written. Made by `parquet`."""

    def __init__(self, writer: Any, schema: Any, table: Any) -> None:
        self._writer, self._schema, self._table = writer, schema, table

    def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records as one group of rows."""
        values: dict[str, list[Any]] = {column.name: [record[column.name] for record in records] for column in COLUMNS}
        for column in COLUMNS:
            if column.type is ColumnType.TIME:
                values[column.name] = [datetime.fromisoformat(value) for value in values[column.name]]
            elif column.type is ColumnType.COUNTS:
                values[column.name] = [list(value.items()) for value in values[column.name]]
        self._writer.write_table(self._table.from_pydict(values, schema=self._schema))


@contextmanager
def parquet(path: Path) -> Iterator[ParquetFile]:
    """Open a Parquet file for writing.

    Raises:
        InputError: `missing-extra`: pyarrow is not installed.
        OSError: the file cannot be written.
    """
    try:
        import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise InputError(
            "missing-extra", "Parquet needs pyarrow, which is not installed: pip install 'narrowgate-cli[parquet]'"
        ) from None
    types = {
        ColumnType.TEXT: pyarrow.string(),
        ColumnType.LABEL: pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
        ColumnType.REAL: pyarrow.float64(),
        ColumnType.INTEGER: pyarrow.int64(),
        ColumnType.FLAG: pyarrow.bool_(),
        ColumnType.TIME: pyarrow.timestamp("us", tz="UTC"),
        ColumnType.TEXTS: pyarrow.list_(pyarrow.string()),
        ColumnType.COUNTS: pyarrow.map_(pyarrow.string(), pyarrow.int64()),
    }
    schema = pyarrow.schema([pyarrow.field(column.name, types[column.type], column.optional) for column in COLUMNS])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        yield ParquetFile(writer, schema, pyarrow.Table)
