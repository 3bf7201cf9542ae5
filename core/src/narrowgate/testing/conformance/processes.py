"""A process of its own that opens what a test opens: to be killed, or to write beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio

from narrowgate.memory.drafts import prepare_strictly
from narrowgate.testing.building import Builder
from narrowgate.values.entry import EntryDraft, Put

_PROGRAM = """{source}

import anyio
from functools import partial
from narrowgate.testing.conformance import processes
anyio.run(partial(processes.{function}, build, *{arguments!r}))
"""


@contextmanager
def process(source: str, function: str, *arguments: Any, **env: str) -> Iterator[subprocess.Popen[str]]:
    """Run a function of this module in a process of its own; it is killed at the end if it still runs.

    Args:
        source: Python that defines `build`.
        function: its name; called with `build` and `arguments`.
        arguments: with a `repr` that reads back.
        env: environment variables on top of this process's.
    """
    program = _PROGRAM.format(source=source, function=function, arguments=arguments)
    child = subprocess.Popen(  # noqa: S603 - the author's own code
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, **env}
    )
    try:
        with child:
            yield child
    finally:
        child.kill()


def drafts(who: str, number: int) -> list[Put]:
    """Return a batch of two entries that belong together."""
    return [prepare_strictly(EntryDraft(f"{who} {number} {part}", source=f"{who}/{number}/{part}")) for part in ("a", "b")]


async def append(build: Builder[Any], memory: str, who: str, batches: int) -> None:
    """Commit batches of two entries, one after the other, and print the number of each once it is acknowledged."""
    async with build() as store:
        for number in range(batches):
            await store.commit(memory, drafts(who, number))
            print(number, flush=True)  # noqa: T201 - this is how the parent learns of it


async def find(build: Builder[Any], memory: str, text: str) -> None:
    """Print the ids that a channel finds, one a line, best first."""
    from narrowgate.recall.analysis import analyse_query
    from narrowgate.values.search import ChannelQuery

    async with build() as channel:
        found = await channel.find(ChannelQuery(analyse_query(text), (memory,), (), 50))
        for hit in found.hits:
            print(hit.entry, hit.version)  # noqa: T201 - likewise


async def lines(child: subprocess.Popen[str], count: int) -> list[str]:
    """Return the next `count` lines that a process prints; fewer when it ends before."""
    assert child.stdout is not None
    read = partial(anyio.to_thread.run_sync, child.stdout.readline)
    found: list[str] = []
    while len(found) < count and (line := await read()):
        found.append(line.rstrip("\n"))
    return found
