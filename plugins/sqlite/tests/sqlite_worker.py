"""A process that writes: started by the tests of several processes, driven by lines on its standard input.

Each line is `TASK FILE ARGUMENTS...`; the task runs in a fork of this process, so that one start serves many of them. The
fork prints `pid N`, then what the task prints, and this process `end STATUS` when it is gone.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio._backends._asyncio  # while there is one thread
import attrs
import numpy as np  # noqa: F401 - imported once, before the forks
from held_parts import NOON, draft
from sqlite_parts import HashEmbedder, opened, put

from narrowgate.errors import EntryReferenceError
from narrowgate.memory.service import MemoryService
from narrowgate.values.held import WriteRuling


def say(*words: object) -> None:
    """Print a line that is there even when this process is killed right after."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def append(path: Path, tag: str, count: str) -> None:
    """Store entries one by one."""
    async with opened(path) as part:
        for number in range(int(count)):
            receipt = await part.commit([put(f"entry {tag} {number}")])
            assert receipt.items[0].status == "added"
        say("waits", part.store.engine.write_waits)


def batch(number: int) -> list[tuple[str, str]]:
    """Return source and text of the entries that batch `number` of `endless` writes: it also revises older ones."""
    own = [(f"{number}/{place}", f"batch {number} place {place}") for place in range(1 + number % 5)]
    return own + [(f"{old}/0", f"batch {old} place 0 again {number}") for old in range(1, number, 7)]


async def endless(path: Path) -> None:
    """Write batch after batch and acknowledge each; now and then rebuild the indexes."""
    embedder = HashEmbedder()
    async with opened(path, embedder) as part:
        head = (await part.store.heads(["m"]))[0].revision
        while True:
            head += 1
            receipt = await part.commit([put(text, source=source) for source, text in batch(head)])
            assert receipt.revision == head
            say("ack", head)
            if head % 6 == 0:
                await part.store.reindex(embedder)


async def both(path: Path, tag: str, turns: str, seconds: str) -> None:
    """Revise two entries together, turn after turn, and look after each turn whether both processes' pairs are whole."""
    embedder = HashEmbedder()
    deadline = time.monotonic() + float(seconds)
    async with opened(path, embedder) as part:
        turn = 0
        while turn < int(turns) or time.monotonic() < deadline:
            turn += 1
            await part.commit([put(f"pair {tag} side {side} turn{turn}", source=f"{tag}/{side}") for side in "ab"])
            for found in (await part.words("pair"), await part.near("pair side")):
                texts = await part.texts(found)
                assert len(texts) == len(found.hits), "a hit was not of its revision"
                for name in ("left", "right"):
                    turns_seen = [text.split()[-1] for text in texts if f" {name} " in text]
                    assert len(turns_seen) in (0, 2), "half a revision"
                    assert len(set(turns_seen)) <= 1, "two revisions in one page"
                    if name == tag:
                        assert turns_seen == [f"turn{turn}"] * 2, "a lost write"
                assert found.complete
        say("turns", turn)


async def hold_all(path: Path, count: str) -> None:
    """Hold the same writes as every other process that does this; release the even ones, reject the odd ones."""
    async with opened(path) as part:
        done = 0
        for number in range(int(count)):
            (entry,) = await part.store.hold([draft(f"held {number}")])
            decide = part.store.release_held if number % 2 == 0 else part.store.reject_held
            with suppress(EntryReferenceError):  # the other process was first
                await decide(entry.held_id, now=NOON)
                done += 1
        say("decided", done)


class Holding:
    """A gate that holds every other item of a batch."""

    in_shadow, may_hold = False, True

    def begin(self, memory: str, operations: Any) -> Holding:
        """Take a batch."""
        self.memory, self.operations = memory, operations
        return self

    async def rule(self, places: Sequence[int]) -> dict[int, WriteRuling]:
        """Hold what stands at an odd place."""
        held = WriteRuling(action="hold", code="insufficient_coverage", reason="odd")
        return {place: held if place % 2 else WriteRuling() for place in places}

    def drafts(self, bases: Mapping[int, Any]) -> tuple[Any, ...]:
        """Return the items for the queue."""
        return tuple(
            attrs.evolve(draft("stands in", place=place), put=self.operations[place], base=base)
            for place, base in bases.items()
        )

    async def settled(self, outcomes: Sequence[Any]) -> None:
        """Nothing is observed here."""

    async def ended(self, how: str, kept: Any) -> None:
        """Nothing is observed here."""


async def guarded(path: Path) -> None:
    """Remember batch after batch past a gate, and say when each begins and when it is acknowledged."""
    async with opened(path) as part:
        memory = MemoryService(part.store, None, Holding(), part.store)
        number = 0
        while True:
            number += 1
            say("begin", number)
            receipt = await memory.remember("m", [f"batch {number} place {place}" for place in range(6)])
            assert [item.status for item in receipt.items] == ["added", "held"] * 3
            say("ack", number)


TASKS = {"append": append, "endless": endless, "both": both, "hold_all": hold_all, "guarded": guarded}


def main() -> None:
    """Serve lines until the input ends."""
    for line in sys.stdin:
        task, path, *words = line.split()
        child = os.fork()
        if child == 0:
            say("pid", os.getpid())
            try:
                anyio.run(TASKS[task], Path(path), *words)
            except BaseException:  # noqa: BLE001 - the test is told of everything, and a fork must not go on
                say("failed", *traceback.format_exc().splitlines())
                os._exit(1)
            os._exit(0)
        say("end", os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
