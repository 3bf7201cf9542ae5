"""Adding lines to a file that other processes may write to as well."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PRIVATE = 0o600
"""Mode of new files: what was asked of whom is nobody else's business."""


def lines_of(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as JSON lines in UTF-8, each with its line end."""
    return "".join(f"{json.dumps(record, ensure_ascii=False, allow_nan=False)}\n" for record in records).encode()


def append(path: Path, lines: bytes, *, sync: bool = False) -> None:
    """Add whole lines to the end of a file, in one write, so that lines of two processes do not mix.

    A line that a full disk tore in two stays what it is: the next one begins on a line of its own.

    Args:
        path: the file; it is made where there is none.
        lines: ends with a line end.
        sync: return only when it is on the disk.

    Raises:
        OSError: not all of it was written.
    """
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), PRIVATE)
    try:
        _lock(handle)
        if _torn(handle):
            lines = b"\n" + lines
        written = os.write(handle, lines)
        if written < len(lines):
            os.write(handle, lines[written:])  # says why: the disk is full
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    """Wait for other processes' writes: half of one looks like a torn line. Closing the handle gives the turn back."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)


def _torn(handle: int) -> bool:
    size = os.fstat(handle).st_size
    if not size:
        return False
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) != b"\n"
