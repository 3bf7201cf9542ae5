"""A process that observes: started by the tests of several processes. `ledger_worker.py FILE TAG COUNT|for-ever`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from ledger_parts import observation, opened


def say(*words: object) -> None:
    """Print a line that is there even when this process is killed right after."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def observe(path: Path, tag: str, count: int) -> None:
    """Observe one by one, in a commit each."""
    async with opened(path) as ledger:
        for number in range(count):
            await ledger.observe(observation(number, operation_id=tag))
        say("done")


async def for_ever(path: Path, tag: str) -> None:
    """Observe in groups of varying size, and say after each how many are durable."""
    async with opened(path) as ledger:
        number = group = 0
        while True:
            group = group % 40 + 1
            await ledger.observe_many([observation(number + n, operation_id=tag) for n in range(group)])
            await ledger.flush()
            number += group
            say(number)


def main() -> None:
    """Do what the command line says."""
    path, tag, count = sys.argv[1:]
    if count == "for-ever":
        anyio.run(for_ever, Path(path), tag)
    else:
        anyio.run(observe, Path(path), tag, int(count))


if __name__ == "__main__":
    main()
