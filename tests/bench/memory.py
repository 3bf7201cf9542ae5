"""Peak memory of a process that opens a file and searches it. Run as a program, since a peak never falls again.

python tests/bench/memory.py FILE QUERY...
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import attrs

try:
    import resource
except ImportError:  # Windows has no such module; the line is left out of the table there
    resource = None  # type: ignore[assignment]


@attrs.frozen
class Memory:
    """Mebibytes.

    Attributes:
        started: the peak after all imports, before the file is opened.
        peak: the peak after searching.
    """

    started: float
    peak: float


def measure(file: Path, queries: Sequence[str]) -> Memory | None:
    """Return the memory of a fresh process that searches `file`; `None` where the system does not tell."""
    if resource is None:
        return None
    command = [sys.executable, __file__, str(file), *queries]
    return Memory(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def _peak() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held when it forked
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / unit


async def _search(file: Path, queries: Sequence[str]) -> None:
    from parts import MEMORY, HashEmbedder, opened

    started = _peak()
    async with opened(file, HashEmbedder()) as gate:
        for query in queries:
            await gate.search(query, memory=MEMORY, mode="hybrid")
    json.dump({"started": started, "peak": _peak()}, sys.stdout)


if __name__ == "__main__":
    anyio.run(_search, Path(sys.argv[1]), sys.argv[2:])
