"""The held queue under several processes, and under processes that are killed between holding and writing."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import anyio
import apsw
import pytest
from held_parts import NOON
from sqlite_parts import disagreements, opened
from test_sqlite_processes import workers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the workers fork")


def test_two_processes_hold_and_decide_the_same(file: Path):
    """Each write is held once and decided once, whichever process was first; nobody meets an error."""
    with workers(2) as pair:
        for worker in pair:
            worker.start("hold_all", file, 60)
        decided = 0
        for worker in pair:
            lines = worker.rest()
            assert lines[-1] == "end 0", lines
            decided += int(lines[-2].removeprefix("decided "))
    db = apsw.Connection(str(file))
    assert db.execute("SELECT count(*), sum(state = 'pending') FROM held").fetchone() == (decided, 0)
    assert db.execute("SELECT count(*), count(DISTINCT key) FROM held WHERE state = 'rejected'").fetchone() == (30, 30)
    assert db.execute("SELECT count(*) FROM held_contents").fetchone() == (0,)
    # A released write that is held again is there already: to release it again writes nothing.
    assert db.execute("SELECT revision, active FROM memories").fetchall() == [(30, 30)]
    db.close()
    assert disagreements(file) == []


async def look(file: Path, acknowledged: int) -> None:
    """Of every batch, what was let pass is written and what was not is held; of the last one perhaps only the latter."""
    async with opened(file) as part:
        written = {version.content.text for version in await part.store.scan("m", limit=100_000)}
        held = set()
        after = None
        while page := await part.store.held(now=NOON, after=after, limit=500):
            after = page[-1].held_id
            for entry in page:
                item = await part.store.held_one(entry.held_id, now=NOON)
                assert item.put is not None
                held.add(item.put.content.text)
    for number in range(1, acknowledged + 1):
        for place in range(6):
            assert f"batch {number} place {place}" in (held if place % 2 else written)
    beyond = {text for text in written | held if int(text.split()[1]) > acknowledged}
    assert {int(text.split()[1]) for text in beyond} <= {acknowledged + 1}
    if beyond & written:
        # Whatever was written of a batch, what was held of it was in the queue before.
        assert len(beyond & held) == len(beyond & written) == 3
    assert len(beyond & held) in (0, 3)


def survive(file: Path, kills: int) -> int:
    """Kill a guarded writer again and again and look at the file after each; return how often only the queue had a batch."""
    chance = random.Random(11)
    between = 0
    with workers(1) as (worker,):
        for _ in range(kills):
            file.unlink(missing_ok=True)
            for suffix in ("-wal", "-shm"):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            pid = worker.start("guarded", file)
            acknowledged = 0
            for _ in range(chance.randrange(1, 6)):
                while not (line := worker.line()).startswith("ack "):
                    assert line.startswith("begin "), line
                acknowledged = int(line.removeprefix("ack "))
            time.sleep(chance.uniform(0, 0.012))  # into the middle of whatever it does next
            os.kill(pid, signal.SIGKILL)
            for line in worker.rest()[:-1]:
                if line.startswith("ack "):
                    acknowledged = int(line.removeprefix("ack "))
            anyio.run(look, file, acknowledged)
            assert disagreements(file) == []
            db = apsw.Connection(str(file))
            batches = db.execute("SELECT count(*) FROM held").fetchone()[0] // 3
            between += batches > db.execute("SELECT ifnull(max(revision), 0) FROM memories").fetchone()[0]
            db.close()
    return between


def test_killed_between_holding_and_writing(file: Path):
    """A writer killed at random points: no acknowledged item is lost, whether it was written or held."""
    survive(file, 8)


@pytest.mark.full
def test_killed_a_hundred_times_between_holding_and_writing(file: Path):
    """The same a hundred times; some of the kills really fall between the two transactions."""
    assert survive(file, 100) > 0
