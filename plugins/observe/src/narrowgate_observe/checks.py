"""The offline checks: can the file be written that a sink is told to write?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from narrowgate.seams import CheckContext, Problem
from narrowgate_observe.settings import JsonlSettings, LogSettings


def log_problems(settings: LogSettings, _context: CheckContext) -> Iterator[Problem]:
    """Yield why the file of `observe.log` cannot be written."""
    if settings.path is not None:
        yield from _problems(settings.path)


def jsonl_problems(settings: JsonlSettings, _context: CheckContext) -> Iterator[Problem]:
    """Yield why the file of `observe.jsonl` cannot be written."""
    yield from _problems(settings.path)


def _problems(path: Path) -> Iterator[Problem]:
    if path.exists() and not path.is_file():
        yield Problem("sink-unwritable", f"{path} is no file", "set the path of a file")
        return
    home = path.absolute() if path.exists() else path.absolute().parent
    while not home.exists() and home != home.parent:
        home = home.parent
    wanted = os.W_OK if home.is_file() else os.W_OK | os.X_OK
    if (home != path.absolute() and not home.is_dir()) or not os.access(home, wanted):
        yield Problem(
            "sink-unwritable", f"{path} cannot be written: {home} is closed to this user, or no folder", "set another path"
        )
