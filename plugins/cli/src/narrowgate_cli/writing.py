"""Files that a command writes for people: whole or not at all, and never over a database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from narrowgate.errors import InputError

_MAGIC: Final = b"SQLite format 3\0"
_PARTS: Final = ("-wal", "-shm", "-journal")
"""What stands beside a SQLite database is named after it."""


def keep_databases(output: Path) -> None:
    """Raise where writing to a file would destroy a database: the memory or ledger that is read, or any other.

    Raises:
        InputError: `unwritable`.
    """
    owners = [output.with_name(output.name.removesuffix(end)) for end in _PARTS if output.name.removesuffix(end)]
    if any(map(_is_database, owners)):
        raise InputError("unwritable", f"{output} is a database, or a part of one: name another file")


def _is_database(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # what cannot be read is told by whoever tries to write it


@contextmanager
def whole(output: Path) -> Iterator[Path]:
    """Yield the path to write to. Under the name of `output` a file is there only when all of it is.

    A symbolic link stays one, and what is no file (a device, a pipe) is written to as it stands.

    Raises:
        InputError: `unwritable`.
    """
    keep_databases(output)
    try:
        target = Path(os.path.realpath(output))
        if target.exists() and not target.is_file():
            yield output
            return
        partial = target.with_name(f".narrowgate-{secrets.token_hex(8)}.partial")
        try:
            yield partial
            if target.exists():
                partial.chmod(target.stat().st_mode & 0o777)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError("unwritable", f"{output} cannot be written: {error.strerror or type(error).__name__}") from None
