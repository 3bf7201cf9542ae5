"""Adding lines to a file that other processes may write to as well, and that any of them may put aside."""

from __future__ import annotations

import errno
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

PRIVATE: Final = 0o600
"""Mode of new files: what was asked of whom is nobody else's business."""

PATIENCE: Final = 5.0
"""Seconds that a write waits for other processes' writes. One that hangs while it holds the file must not hang this one: a
thread that waits for ever keeps the application from ending."""

Due = Callable[[int], bool]
"""Returns whether the file of this handle is to be put aside before more is written."""


def lines_of(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as JSON lines in UTF-8, each with its line end."""
    return "".join(f"{json.dumps(record, ensure_ascii=False, allow_nan=False)}\n" for record in records).encode()


def append(
    path: Path, lines: bytes, *, sync: bool = False, due: Due | None = None, aside: Callable[[], None] | None = None
) -> None:
    """Add whole lines to the end of a file, all of them or none; lines of two processes do not mix.

    A line that a process left half-written stays what it is: the next one begins on a line of its own.

    Args:
        path: the file; it is made where there is none.
        lines: ends with a line end.
        sync: return only when it is on the disk.
        due: whether the file is to be put aside first.
        aside: puts it aside. No other process writes to it meanwhile, and none puts aside what this one has begun.

    Raises:
        OSError: it was not written; `TimeoutError` where another process held the file for more than `PATIENCE` seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = _turn(path, deadline)
        try:
            late = due is not None and aside is not None and due(handle)
            if not late:
                _write(handle, lines)
                if sync:
                    os.fsync(handle)
                return
            if aside is not None and sys.platform != "win32":
                aside()
        finally:
            os.close(handle)
        if aside is not None and sys.platform == "win32":  # what is open cannot be renamed there
            aside()


def _turn(path: Path, deadline: float) -> int:
    """Return a handle of the file that stands at the path, to which nobody else writes until the handle is closed."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), PRIVATE)
        try:
            _lock(handle, deadline)
            if _stands_at(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was put aside while this one waited for it


def _lock(handle: int, deadline: float) -> None:
    """Wait for other processes' writes: half of one looks like a torn line. Closing the handle gives the turn back."""
    if sys.platform == "win32":
        return
    import fcntl

    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the file") from None
            time.sleep(random.uniform(0.0005, 0.004))  # noqa: S311 - no secret
        else:
            return


def _stands_at(path: Path, handle: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _write(handle: int, lines: bytes) -> None:
    size = os.fstat(handle).st_size
    left = memoryview(b"\n" + lines if _torn(handle, size) else lines)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError:
        # The disk is full. Part of it would be told as lost and be there all the same.
        if sys.platform != "win32":  # where others may have written behind it meanwhile
            with suppress(OSError):
                os.ftruncate(handle, size)
        raise


def _torn(handle: int, size: int) -> bool:
    if not size:
        return False
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) != b"\n"
