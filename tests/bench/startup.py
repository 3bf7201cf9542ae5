"""Start-up: how long `import narrowgate` and `narrowgate --help` take, beside an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Final

import attrs

IMPORT_MS: Final = 60.0
HELP_MS: Final = 250.0

_TIMED: Final = "import time; s = time.perf_counter(); import narrowgate{}; print((time.perf_counter() - s) * 1000)"


@attrs.frozen
class Startup:
    """Medians, milliseconds.

    Attributes:
        bare: a process that does nothing.
        imported: `import narrowgate`, inside a process.
        opened: the same and the use of `narrowgate.open`: the public names are loaded when they are first used.
        help: the whole process `narrowgate --help`.
    """

    bare: float
    imported: float
    opened: float
    help: float


def measure(rounds: int = 15) -> Startup:
    """Run each `rounds` times, taking turns, so that a busy moment of the machine hits all alike."""
    bare, imported, opened, helped = [], [], [], []
    for _ in range(rounds):
        bare.append(_process(["-c", "pass"]))
        imported.append(_inside(""))
        opened.append(_inside("; narrowgate.open"))
        helped.append(_process(["-c", "from narrowgate_cli.main import main; main()", "--help"]))
    return Startup(*map(statistics.median, (bare, imported, opened, helped)))


def _inside(more: str) -> float:
    command = [sys.executable, "-c", _TIMED.format(more)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _process(arguments: Sequence[str]) -> float:
    started = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return (perf_counter() - started) * 1000
